//! A game server without a game: a task of the test that boots, reports and
//! echoes over the real HTTP interface, and misbehaves when told to.

#![allow(clippy::result_large_err, reason = "the WebSocket library's callback")]

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use frolic_platform::fleet::launcher::BoxFuture;
use frolic_platform::fleet::{GameServer, LaunchRequest, Launcher, ServerExit};
use frolic_platform::ids;
use frolic_protocol::fleet::{
    FleetAction, Heartbeat, HeartbeatReply, ServerReady, ServerStopped, WorldBoot,
};
use futures_util::{SinkExt, StreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

/// What the next launch does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Becomes ready and runs until it is told to stop.
    Run,
    /// Ends before it is ready.
    FailAtStart,
    /// Exists, and never says anything.
    Hang,
    /// Becomes ready, then sends no heartbeat.
    FallSilent,
    /// Ignores being asked to stop.
    Stubborn,
    /// As `Run`, but starts only when the test says so.
    WhenTold,
    /// Ends before it is ready, when the test says so.
    FailWhenTold,
}

/// What the test sees and steers of all its game servers.
#[derive(Default)]
pub struct Stage {
    /// Launches so far, with what they were told.
    pub launches: watch::Sender<Vec<LaunchRequest>>,
    /// Processes alive.
    pub alive: watch::Sender<u32>,
    /// Heartbeats answered so far.
    pub beats: watch::Sender<u64>,
    /// The same by world.
    pub beats_of: watch::Sender<BTreeMap<String, u64>>,
    /// Last words, of all servers.
    pub last_words: Mutex<Vec<String>>,
    /// Players that heartbeats report.
    pub players: AtomicU32,
    /// Those who lost their connection, as heartbeats name them.
    pub away: Mutex<Vec<String>>,
    /// Those who came back from an earlier process, as heartbeats name them.
    pub returned: Mutex<Vec<String>>,
    /// The only world whose heartbeats name them; none: all do.
    pub away_from: Mutex<Option<String>>,
    /// Those who came and went between two heartbeats.
    pub passed_through: AtomicU32,
    /// Plans of the next launches; `Run` when empty.
    pub plans: Mutex<VecDeque<Plan>>,
    /// Raised by one to crash every server.
    pub crash: watch::Sender<u32>,
    /// Reasons of the close frames that servers received.
    pub goodbyes: watch::Sender<Vec<String>>,
    /// Set to let those go on that start when told.
    pub go: watch::Sender<bool>,
    /// Bytes that servers could send to clients that did not read.
    pub poured: watch::Sender<usize>,
}

impl Stage {
    pub fn plan(&self, plans: impl IntoIterator<Item = Plan>) {
        self.plans.lock().unwrap().extend(plans);
    }

    pub fn launch_count(&self) -> usize {
        self.launches.borrow().len()
    }

    /// The only player loses the connection.
    pub async fn lose(&self, player_id: &str) {
        self.players.store(0, Ordering::SeqCst);
        *self.away.lock().unwrap() = vec![player_id.to_owned()];
        self.wait_for_heartbeats().await;
    }

    /// A player of one of several worlds loses the connection.
    pub async fn lose_in(&self, world_id: &str, player_id: &str) {
        *self.away_from.lock().unwrap() = Some(world_id.to_owned());
        *self.away.lock().unwrap() = vec![player_id.to_owned()];
        let count = |beats: &BTreeMap<String, u64>| beats.get(world_id).copied().unwrap_or(0);
        let mut beats = self.beats_of.subscribe();
        let now = count(&beats.borrow());
        // The second began after now.
        beats
            .wait_for(|beats| count(beats) >= now + 2)
            .await
            .unwrap();
    }

    pub async fn wait_for_launches(&self, count: usize) {
        let mut launches = self.launches.subscribe();
        launches
            .wait_for(|launches| launches.len() >= count)
            .await
            .unwrap();
    }

    pub async fn wait_for_alive(&self, count: u32) {
        let mut alive = self.alive.subscribe();
        alive.wait_for(|alive| *alive == count).await.unwrap();
    }

    /// Two whole rounds: the second began after now.
    pub async fn wait_for_heartbeats(&self) {
        let mut beats = self.beats.subscribe();
        let now = *beats.borrow();
        beats.wait_for(|beats| *beats >= now + 2).await.unwrap();
    }

    pub fn crash_all(&self) {
        self.crash.send_modify(|crash| *crash += 1);
    }
}

pub struct TaskLauncher(pub Arc<Stage>);

impl Launcher for TaskLauncher {
    fn launch(&self, request: LaunchRequest) -> BoxFuture<'_, io::Result<Box<dyn GameServer>>> {
        let plan = self
            .0
            .plans
            .lock()
            .unwrap()
            .pop_front()
            .unwrap_or(Plan::Run);
        let alive = Alive::new(self.0.clone());
        let crashes = self.0.crash.subscribe();
        let (terminate, terminated) = watch::channel(false);
        let task = tokio::spawn(run(alive, request.clone(), plan, terminated, crashes));
        self.0
            .launches
            .send_modify(|launches| launches.push(request));
        let server: Box<dyn GameServer> = Box::new(TaskServer {
            task,
            terminate,
            exit: None,
        });
        Box::pin(async { Ok(server) })
    }
}

struct TaskServer {
    task: JoinHandle<bool>,
    terminate: watch::Sender<bool>,
    exit: Option<ServerExit>,
}

impl GameServer for TaskServer {
    fn wait(&mut self) -> BoxFuture<'_, ServerExit> {
        Box::pin(async move {
            if let Some(exit) = &self.exit {
                return exit.clone();
            }
            let success = matches!((&mut self.task).await, Ok(true));
            let description = format!("task, success: {success}");
            let exit = ServerExit {
                success,
                description,
                blamed: None,
            };
            self.exit = Some(exit.clone());
            exit
        })
    }

    fn terminate(&mut self) {
        self.terminate.send_replace(true);
    }

    fn kill(&mut self) {
        self.task.abort();
    }
}

impl Drop for TaskServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Counts a server as alive for as long as its task exists, killed or not.
struct Alive(Arc<Stage>);

impl Alive {
    fn new(stage: Arc<Stage>) -> Self {
        stage.alive.send_modify(|alive| *alive += 1);
        Self(stage)
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.alive.send_modify(|alive| *alive -= 1);
    }
}

/// The life of one server; true when it ended on purpose.
async fn run(
    alive: Alive,
    request: LaunchRequest,
    plan: Plan,
    mut terminated: watch::Receiver<bool>,
    mut crashes: watch::Receiver<u32>,
) -> bool {
    let stage = &alive.0;
    match plan {
        Plan::FailAtStart => return false,
        Plan::Hang => std::future::pending().await,
        Plan::WhenTold | Plan::FailWhenTold => {
            let mut go = stage.go.subscribe();
            go.wait_for(|go| *go).await.unwrap();
            if matches!(plan, Plan::FailWhenTold) {
                return false;
            }
        }
        _ => {}
    }
    let client = Internal::new(&request);
    let boot: WorldBoot = client.get("").await.json().await.unwrap();
    assert_eq!(boot.world_id, request.world_id);
    let package = client.get("/package").await.bytes().await.unwrap();
    assert_eq!(ids::sha256_hex(&package), boot.revision);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let ready = ServerReady {
        pid: 1,
        websocket_port: listener.local_addr().unwrap().port(),
        webtransport: None,
    };
    let echo = tokio::spawn(echo(listener, alive.0.clone()));
    client.post("/ready", &ready).await;
    if plan == Plan::FallSilent {
        std::future::pending::<()>().await;
    }
    let mut beat = tokio::time::interval(Duration::from_millis(20));
    let mut told = 0;
    let reason = loop {
        tokio::select! {
            _ = crashes.changed() => return false,
            _ = terminated.changed() => {
                if plan != Plan::Stubborn {
                    break "asked to stop";
                }
            }
            _ = beat.tick() => {}
        }
        let players = stage.players.load(Ordering::SeqCst);
        let new = players.saturating_sub(told);
        told = players;
        let away_from = stage.away_from.lock().unwrap().clone();
        let away = match away_from.is_none_or(|world_id| world_id == request.world_id) {
            true => stage.away.lock().unwrap().clone(),
            false => Vec::new(),
        };
        let heartbeat = Heartbeat {
            players,
            arrived: new + stage.passed_through.swap(0, Ordering::SeqCst),
            away,
            returned: stage.returned.lock().unwrap().clone(),
            tick: 1,
            tick_ms_p99: 1.5,
            script_errors: 0,
        };
        let reply: HeartbeatReply = client
            .post("/heartbeat", &heartbeat)
            .await
            .json()
            .await
            .unwrap();
        stage.beats.send_modify(|beats| *beats += 1);
        stage.beats_of.send_modify(|beats| {
            *beats.entry(request.world_id.clone()).or_default() += 1;
        });
        if reply.action == FleetAction::Stop && plan != Plan::Stubborn {
            break "told to stop";
        }
    };
    echo.abort();
    stage.last_words.lock().unwrap().push(reason.to_owned());
    let stopped = ServerStopped {
        reason: reason.to_owned(),
    };
    client.post("/stopped", &stopped).await;
    true
}

/// Calls of one game server to `/internal`.
struct Internal {
    http: reqwest::Client,
    base: String,
    token: String,
}

impl Internal {
    fn new(request: &LaunchRequest) -> Self {
        Self {
            http: reqwest::Client::new(),
            base: format!(
                "{}/internal/worlds/{}",
                request.control_plane, request.world_id
            ),
            token: request.world_token.clone(),
        }
    }

    async fn get(&self, path: &str) -> reqwest::Response {
        let request = self.http.get(format!("{}{path}", self.base));
        checked(request.bearer_auth(&self.token)).await
    }

    async fn post(&self, path: &str, body: &impl serde::Serialize) -> reqwest::Response {
        let request = self.http.post(format!("{}{path}", self.base)).json(body);
        checked(request.bearer_auth(&self.token)).await
    }
}

async fn checked(request: reqwest::RequestBuilder) -> reqwest::Response {
    request.send().await.unwrap().error_for_status().unwrap()
}

/// Greets with path and query, answers with the last subprotocol asked for,
/// and sends everything back, or does what a text tells it to.
async fn echo(listener: TcpListener, stage: Arc<Stage>) {
    while let Ok((stream, _)) = listener.accept().await {
        let stage = stage.clone();
        tokio::spawn(async move {
            let mut uri = String::new();
            let socket = tokio_tungstenite::accept_hdr_async(
                stream,
                |request: &Request, response: Response| {
                    uri = request.uri().to_string();
                    select_protocol(request, response)
                },
            );
            // What is no WebSocket gets no answer.
            let Ok(mut socket) = socket.await else {
                return;
            };
            let _ = socket.send(Message::text(uri)).await;
            while let Some(Ok(message)) = socket.next().await {
                let answered = match &message {
                    Message::Close(frame) => {
                        let reason = frame.as_ref().map(|frame| frame.reason.to_string());
                        stage
                            .goodbyes
                            .send_modify(|all| all.push(reason.unwrap_or_default()));
                        Ok(())
                    }
                    Message::Text(text) => obey(&mut socket, text.as_str(), &stage).await,
                    Message::Binary(_) => socket.send(message).await,
                    _ => Ok(()),
                };
                if answered.is_err() {
                    break;
                }
            }
        });
    }
}

async fn obey(
    socket: &mut WebSocketStream<TcpStream>,
    order: &str,
    stage: &Stage,
) -> Result<(), tokio_tungstenite::tungstenite::Error> {
    let (word, rest) = order.split_once(' ').unwrap_or((order, ""));
    match word {
        "close" => {
            let frame = CloseFrame {
                code: 4001.into(),
                reason: rest.into(),
            };
            socket.close(Some(frame)).await
        }
        "big" => {
            let bytes = vec![7; rest.parse().unwrap()];
            socket.send(Message::binary(bytes)).await
        }
        "sleep" => std::future::pending().await,
        "vanish" => Err(tokio_tungstenite::tungstenite::Error::AlreadyClosed),
        "pour" => loop {
            socket.send(Message::binary(vec![7; 64 * 1024])).await?;
            stage.poured.send_modify(|bytes| *bytes += 64 * 1024);
        },
        _ => socket.send(Message::text(order)).await,
    }
}

fn select_protocol(request: &Request, mut response: Response) -> Result<Response, ErrorResponse> {
    let name = "sec-websocket-protocol";
    let asked = request.headers().get_all(name).iter();
    let mut asked = asked.flat_map(|names| names.to_str().unwrap().split(','));
    if let Some(last) = asked.next_back() {
        let chosen = last.trim().parse().unwrap();
        response.headers_mut().insert(name, chosen);
    }
    Ok(response)
}
