//! A game server is killed under its players: the platform starts it again,
//! and everybody comes back as who they were (NET-9, PLAT-6).

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use frolic_client::{Client, ClientEvent};
use frolic_protocol::json::BINARY_SUBPROTOCOL;
use frolic_protocol::message::Resumption;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value as Json, json};
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

const PLAYERS: u32 = 30;
const PATIENCE: Duration = Duration::from_secs(60);
const ADMIN_TOKEN: &str = "admin-of-this-test-0123456789";

/// `frolic serve` on a free port, ended with the test.
struct Platform {
    process: Child,
    url: String,
}

impl Platform {
    fn start() -> Self {
        let data = Path::new(env!("CARGO_TARGET_TMPDIR")).join("killed-server");
        let _ = std::fs::remove_dir_all(&data);
        std::fs::create_dir_all(&data).expect("the scratch folder is ours");
        let mut process = Command::new(env!("CARGO_BIN_EXE_frolic"))
            .arg("serve")
            .current_dir(&data)
            .env("HOST", "127.0.0.1")
            .env("PORT", "0")
            .env("DATA_DIR", &data)
            .env("SECRET_KEY", "of-this-test-only-0123456789abcdef")
            .env("ADMIN_TOKEN", ADMIN_TOKEN)
            .stdout(Stdio::piped())
            .spawn()
            .expect("cargo built it");
        let output = process.stdout.take().expect("piped");
        let mut lines = BufReader::new(output).lines();
        let url = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let start = line.find("http://127.0.0.1:")?;
            Some(line[start..].split_whitespace().next()?.to_owned())
        });
        // Whoever prints into a pipe that nobody reads stops some day.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Self {
            process,
            url: url.expect("it prints its address"),
        }
    }

    async fn game_server(&self) -> Json {
        let request = reqwest::Client::new()
            .get(format!("{}/admin/servers", self.url))
            .bearer_auth(ADMIN_TOKEN);
        let list: Json = ask(request).await.expect("the list of servers");
        list["servers"][0].clone()
    }
}

impl Drop for Platform {
    fn drop(&mut self) {
        let id = rustix::process::Pid::from_child(&self.process);
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        let _ = self.process.wait();
    }
}

/// Sends a request, and again while the platform asks for patience.
async fn ask(request: reqwest::RequestBuilder) -> Result<Json, String> {
    let began = Instant::now();
    loop {
        let again = request.try_clone().expect("can be repeated");
        let answer = again.send().await.map_err(|error| error.to_string())?;
        if answer.status().is_success() {
            return answer.json().await.map_err(|error| error.to_string());
        }
        let busy = matches!(answer.status().as_u16(), 429 | 503);
        if !busy || began.elapsed() > PATIENCE {
            return Err(answer.text().await.unwrap_or_default());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// What a player was told when they came in.
struct Arrival {
    player_id: String,
    resumption: Resumption,
}

/// Plays until told twice that they are in, joining again when the line breaks.
async fn play_through_a_crash(
    url: String,
    number: u32,
    first: tokio::sync::mpsc::Sender<u32>,
) -> Result<Vec<Arrival>, String> {
    let http = reqwest::Client::new();
    let name = json!({ "username": format!("Player {number}") });
    let login = ask(http.post(format!("{url}/login")).json(&name)).await?;
    let session = login["session_token"].as_str().unwrap_or_default();
    let games = ask(http.get(format!("{url}/api/games"))).await?;
    let mut wish = json!({ "game_id": games["games"][0]["id"] });
    let mut client = Client::new();
    let mut arrivals = Vec::new();
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        let join = http.post(format!("{url}/join")).bearer_auth(session);
        let joined = ask(join.json(&wish)).await?;
        wish = json!({ "world_id": joined["world_id"] });
        let ticket = joined["ticket"].as_str().map(str::to_owned);
        let address = joined["server_address"].as_str().unwrap_or_default();
        client.handshake(ticket, None, None);
        if let Err(cause) = stay(address, &mut client, &mut arrivals, began, &first).await {
            // The port may still be the dead server's.
            tracing::debug!(number, %cause, "line lost");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        if arrivals.len() == 2 {
            return Ok(arrivals);
        }
        client.reconnect();
    }
    Err(format!("player {number} came in {} times", arrivals.len()))
}

async fn stay(
    address: &str,
    client: &mut Client,
    arrivals: &mut Vec<Arrival>,
    began: Instant,
    first: &tokio::sync::mpsc::Sender<u32>,
) -> Result<(), String> {
    let mut request = address.into_client_request().map_err(|e| e.to_string())?;
    let protocol = BINARY_SUBPROTOCOL.parse().expect("a header");
    request
        .headers_mut()
        .insert("sec-websocket-protocol", protocol);
    let connected = tokio_tungstenite::connect_async(request).await;
    let (mut socket, _) = connected.map_err(|error| error.to_string())?;
    let mut every = tokio::time::interval(Duration::from_millis(33));
    loop {
        tokio::select! {
            message = socket.next() => match message {
                Some(Ok(Message::Binary(bytes))) => {
                    let now_ms = began.elapsed().as_secs_f64() * 1000.0;
                    client.receive(&bytes, now_ms).map_err(|error| error.to_string())?;
                }
                Some(Ok(Message::Close(_))) | None => return Err("closed".into()),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.to_string()),
            },
            _ = every.tick() => {
                client.advance(began.elapsed().as_secs_f64() * 1000.0);
                let mut packet = client.take_reliable().unwrap_or_default();
                while let Some(datagram) = client.take_datagram() {
                    packet.extend_from_slice(&datagram);
                }
                if !packet.is_empty() {
                    let sent = socket.send(Message::Binary(packet.into())).await;
                    sent.map_err(|error| error.to_string())?;
                }
            }
        }
        while let Some(event) = client.take_event() {
            let ClientEvent::Welcome(welcome) = event else {
                continue;
            };
            arrivals.push(Arrival {
                player_id: welcome.player_id,
                resumption: welcome.resumption,
            });
            if arrivals.len() == 2 {
                return Ok(());
            }
            let _ = first.send(1).await;
        }
    }
}

#[tokio::test]
async fn everybody_comes_back_after_their_game_server_is_killed() {
    let platform = Platform::start();
    let (first, mut came_in) = tokio::sync::mpsc::channel(PLAYERS as usize);
    let mut players = JoinSet::new();
    for number in 0..PLAYERS {
        let url = platform.url.clone();
        players.spawn(play_through_a_crash(url, number, first.clone()));
    }
    for _ in 0..PLAYERS {
        let waited = tokio::time::timeout(PATIENCE, came_in.recv()).await;
        waited.expect("everybody comes in");
    }
    let before = platform.game_server().await;
    let pid = before["pid"].as_i64().expect("a process") as i32;
    let pid = rustix::process::Pid::from_raw(pid).expect("a process id");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it is ours");

    while let Some(player) = players.join_next().await {
        let arrivals = player
            .expect("no panic")
            .unwrap_or_else(|why| panic!("{why}"));
        let [before, after] = arrivals.as_slice() else {
            panic!("{} arrivals", arrivals.len());
        };
        assert_eq!(before.resumption, Resumption::New);
        assert_eq!(after.resumption, Resumption::Restarted);
        assert_eq!(before.player_id, after.player_id);
    }
    let after = platform.game_server().await;
    assert_eq!(after["world_id"], before["world_id"]);
    assert_eq!(after["crashes"], 1);
    assert_ne!(after["pid"], before["pid"]);
}
