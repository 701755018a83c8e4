//! A game server without a game: a task of the test that boots, reports and echoes over the real
//! HTTP interface, and fails on request.

#![allow(clippy::result_large_err, reason = "the WebSocket library's callback")]

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use frolic_fleet_api::process::{
    FleetAction, Heartbeat, HeartbeatReply, ServerReady, ServerStopped, WorldBoot,
};
use frolic_platform::fleet::launcher::BoxFuture;
use frolic_platform::fleet::{GameServer, LaunchRequest, Launcher, ServerExit};
use frolic_platform::ids;
use futures_util::{SinkExt, StreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

/// Behaviour of the next launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Becomes ready and runs until it is asked to stop.
    Run,
    /// Ends before it is ready.
    FailAtStart,
    /// Exists, but never calls the platform.
    Hang,
    /// Becomes ready, but sends no heartbeat.
    NoHeartbeats,
    /// Ignores requests to stop.
    IgnoreStop,
    /// As `Run`, but starts only on a signal of the test.
    OnSignal,
    /// Ends before it is ready, on a signal of the test.
    FailOnSignal,
}

/// State and controls of all game servers of a test.
#[derive(Default)]
pub struct Stage {
    /// Requests of all launches so far.
    pub launches: watch::Sender<Vec<LaunchRequest>>,
    /// Number of running processes.
    pub alive: watch::Sender<u32>,
    /// Number of heartbeats sent.
    pub beats: watch::Sender<u64>,
    /// Number of heartbeats sent, by world.
    pub beats_of: watch::Sender<BTreeMap<String, u64>>,
    /// Stop reasons that all servers reported.
    pub stop_reports: Mutex<Vec<String>>,
    /// Number of players in heartbeats.
    pub players: AtomicU32,
    /// Disconnected players in heartbeats.
    pub away: Mutex<Vec<String>>,
    /// Players in heartbeats who resumed after a crash.
    pub returned: Mutex<Vec<String>>,
    /// The only world whose heartbeats contain `away`; with `None`, all do.
    pub away_from: Mutex<Option<String>>,
    /// Players who arrived and left between two heartbeats.
    pub passed_through: AtomicU32,
    /// Behaviour of the next launches; `Run` when empty.
    pub plans: Mutex<VecDeque<Plan>>,
    /// Incremented to crash every server.
    pub crash: watch::Sender<u32>,
    /// Reasons of the close frames that servers received.
    pub close_reasons: watch::Sender<Vec<String>>,
    /// Set to start the servers that wait for a signal.
    pub go: watch::Sender<bool>,
    /// Bytes that servers could send to clients that did not read.
    pub sent_unread: watch::Sender<usize>,
}

impl Stage {
    pub fn plan(&self, plans: impl IntoIterator<Item = Plan>) {
        self.plans.lock().unwrap().extend(plans);
    }

    pub fn launch_count(&self) -> usize {
        self.launches.borrow().len()
    }

    /// Disconnects the only player.
    pub async fn lose(&self, player_id: &str) {
        self.players.store(0, Ordering::SeqCst);
        *self.away.lock().unwrap() = vec![player_id.to_owned()];
        self.wait_for_heartbeats().await;
    }

    /// Disconnects a player of one of several worlds.
    pub async fn lose_in(&self, world_id: &str, player_id: &str) {
        *self.away_from.lock().unwrap() = Some(world_id.to_owned());
        *self.away.lock().unwrap() = vec![player_id.to_owned()];
        let count = |beats: &BTreeMap<String, u64>| beats.get(world_id).copied().unwrap_or(0);
        let mut beats = self.beats_of.subscribe();
        let now = count(&beats.borrow());
        // The second heartbeat began after this call.
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

    /// Waits for two heartbeats, because the second one began after this call.
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

/// Counts a server as running while its task exists, killed or not.
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

/// Runs one server; returns true when it ended on request.
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
        Plan::OnSignal | Plan::FailOnSignal => {
            let mut go = stage.go.subscribe();
            go.wait_for(|go| *go).await.unwrap();
            if matches!(plan, Plan::FailOnSignal) {
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
    if plan == Plan::NoHeartbeats {
        std::future::pending::<()>().await;
    }
    let mut beat = tokio::time::interval(Duration::from_millis(20));
    let mut reported = 0;
    let reason = loop {
        tokio::select! {
            _ = crashes.changed() => return false,
            _ = terminated.changed() => {
                if plan != Plan::IgnoreStop {
                    break "asked to stop";
                }
            }
            _ = beat.tick() => {}
        }
        let players = stage.players.load(Ordering::SeqCst);
        let new = players.saturating_sub(reported);
        reported = players;
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
        if reply.action == FleetAction::Stop && plan != Plan::IgnoreStop {
            break "stopped by the platform";
        }
    };
    echo.abort();
    stage.stop_reports.lock().unwrap().push(reason.to_owned());
    let stopped = ServerStopped {
        reason: reason.to_owned(),
    };
    client.post("/stopped", &stopped).await;
    true
}

/// Requests of one game server to `/internal`.
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

/// Greets with path and query, selects the last subprotocol that was offered, echoes every message,
/// and executes commands sent as text.
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
            // Requests that are not WebSocket upgrades get no response.
            let Ok(mut socket) = socket.await else {
                return;
            };
            let _ = socket.send(Message::text(uri)).await;
            while let Some(Ok(message)) = socket.next().await {
                let handled = match &message {
                    Message::Close(frame) => {
                        let reason = frame.as_ref().map(|frame| frame.reason.to_string());
                        stage
                            .close_reasons
                            .send_modify(|all| all.push(reason.unwrap_or_default()));
                        Ok(())
                    }
                    Message::Text(text) => execute(&mut socket, text.as_str(), &stage).await,
                    Message::Binary(_) => socket.send(message).await,
                    _ => Ok(()),
                };
                if handled.is_err() {
                    break;
                }
            }
        });
    }
}

async fn execute(
    socket: &mut WebSocketStream<TcpStream>,
    command: &str,
    stage: &Stage,
) -> Result<(), tokio_tungstenite::tungstenite::Error> {
    let (word, rest) = command.split_once(' ').unwrap_or((command, ""));
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
        "drop" => Err(tokio_tungstenite::tungstenite::Error::AlreadyClosed),
        "flood" => loop {
            socket.send(Message::binary(vec![7; 64 * 1024])).await?;
            stage.sent_unread.send_modify(|bytes| *bytes += 64 * 1024);
        },
        _ => socket.send(Message::text(command)).await,
    }
}

fn select_protocol(request: &Request, mut response: Response) -> Result<Response, ErrorResponse> {
    let name = "sec-websocket-protocol";
    let offered = request.headers().get_all(name).iter();
    let mut offered = offered.flat_map(|names| names.to_str().unwrap().split(','));
    if let Some(last) = offered.next_back() {
        let chosen = last.trim().parse().unwrap();
        response.headers_mut().insert(name, chosen);
    }
    Ok(response)
}
