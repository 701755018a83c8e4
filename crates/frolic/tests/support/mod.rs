//! `frolic serve` as a process of its own, and players of the simplest kind.
#![allow(dead_code, reason = "each test program uses a part of this")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value as Json, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

pub mod crowd;
pub mod disk;
pub mod earlier;
#[path = "../../src/config/environment.rs"]
mod environment;
pub mod resident;

pub use environment::without_settings;

pub const ADMIN_TOKEN: &str = "admin-of-this-test-0123456789";
pub const PATIENCE: Duration = Duration::from_secs(120);

/// The binary, without the settings of the shell that runs the tests.
pub fn frolic() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_frolic"));
    without_settings(&mut command);
    command
}

/// `frolic serve` on a free port, ended with the test.
pub struct Platform {
    process: Child,
    pub url: String,
    pub data: PathBuf,
    /// Output of it and its game servers.
    lines: mpsc::Receiver<String>,
    http: reqwest::Client,
    /// Game servers to end by their ids, should the platform be killed.
    orphans: Vec<i32>,
}

impl Platform {
    pub fn start(name: &str) -> Self {
        let data = scratch(name);
        let command = serve(&data, "0");
        Self::start_as(command, data)
    }

    /// Another command than the usual one, whose data will be in that folder.
    pub fn start_as(command: Command, data: PathBuf) -> Self {
        frolic_platform::tls::use_ring();
        let (process, lines) = spawn(command);
        let mut platform = Self {
            process,
            url: String::new(),
            data,
            lines,
            http: reqwest::Client::new(),
            orphans: Vec::new(),
        };
        platform.url = platform.wait_for_url();
        platform
    }

    /// Speaks to it with another client.
    pub fn with_client(mut self, http: reqwest::Client) -> Self {
        self.http = http;
        self
    }

    fn wait_for_url(&self) -> String {
        let line = self.wait_for("Play at http");
        let url = &line[line.find("http").expect("just seen")..];
        url.split_whitespace().next().unwrap_or(url).to_owned()
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Ends the platform without a word, whatever it is doing.
    pub fn kill_now(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Stops the platform in order, as an operator does, and waits for its end.
    pub fn terminate(&mut self) {
        let _ = kill_process(Pid::from_child(&self.process), Signal::TERM);
        let status = self.process.wait().expect("it was started");
        assert!(status.success(), "it did not stop in order: {status}");
    }

    /// Starts a platform that was ended again, where it was; what game servers
    /// it finds running are its own again.
    pub fn restart(&mut self) {
        let port = self.url.rsplit(':').next().expect("a port").to_owned();
        let port = port.trim_end_matches('/');
        (self.process, self.lines) = spawn(serve(&self.data, port));
        assert_eq!(self.wait_for_url(), self.url);
        self.orphans.clear();
    }

    /// The next line that contains `text`.
    pub fn wait_for(&self, text: &str) -> String {
        let began = Instant::now();
        loop {
            let left = PATIENCE.saturating_sub(began.elapsed());
            let line = self.lines.recv_timeout(left);
            let line = line.unwrap_or_else(|_| panic!("nothing said \"{text}\""));
            if line.contains(text) {
                return line;
            }
        }
    }

    pub fn request(&self, method: reqwest::Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("{}{path}", self.url))
    }

    pub async fn json(&self, request: reqwest::RequestBuilder) -> Json {
        let answer = request.send().await.expect("an answer");
        let status = answer.status();
        let text = answer.text().await.expect("a text");
        assert!(status.is_success(), "{status}: {text}");
        serde_json::from_str(&text).unwrap_or(Json::Null)
    }

    pub async fn login(&self, name: &str) -> String {
        let request = self.request(reqwest::Method::POST, "/login");
        let login = self.json(request.json(&json!({ "username": name }))).await;
        login["session_token"].as_str().expect("a token").to_owned()
    }

    /// Publishes the files of a game as the owner of the token.
    pub async fn publish(&self, token: &str, files: &BTreeMap<String, Vec<u8>>) -> Json {
        let archive = frolic_package::pack(files).expect("a package");
        let request = self.request(reqwest::Method::POST, "/api/games");
        self.json(request.bearer_auth(token).body(archive)).await
    }

    /// Joins a world, also one whose process is just being started again.
    pub async fn join_again(&self, token: &str, world: &Json) -> Player {
        let began = Instant::now();
        loop {
            let request = self.request(reqwest::Method::POST, "/join");
            let answer = request.bearer_auth(token).json(world).send().await;
            if let Ok(answer) = answer
                && answer.status().is_success()
                && let Ok(joined) = answer.json().await
                && let Some(player) = Player::try_connect(&joined).await
            {
                return player;
            }
            assert!(began.elapsed() < PATIENCE, "no player can join any more");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Joins as a new guest.
    pub async fn join(&self, game_id: &str) -> Player {
        let token = self.login("Player").await;
        let request = self.request(reqwest::Method::POST, "/join");
        let request = request.bearer_auth(token);
        let joined = self
            .json(request.json(&json!({ "game_id": game_id })))
            .await;
        Player::connect(joined).await
    }

    /// Joins as who the token is of.
    pub async fn join_as(&self, token: &str, wish: &Json) -> Json {
        let request = self.request(reqwest::Method::POST, "/join");
        self.json(request.bearer_auth(token).json(wish)).await
    }

    pub async fn servers(&self) -> Vec<Json> {
        let request = self.request(reqwest::Method::GET, "/admin/servers");
        let list = self.json(request.bearer_auth(ADMIN_TOKEN)).await;
        list["servers"].as_array().cloned().unwrap_or_default()
    }

    /// Ends the platform without a word; its game servers live on for a while.
    pub async fn kill(&mut self) {
        for server in self.servers().await {
            let pid = server["pid"].as_i64().expect("a process");
            self.orphans.push(pid as i32);
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// An empty folder for one test.
pub fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the scratch folder is ours");
    folder
}

/// `frolic serve` on this machine, with its data in a folder.
pub fn serve(data: &Path, port: &str) -> Command {
    let mut command = frolic();
    command
        .arg("serve")
        .current_dir(data)
        .env("HOST", "127.0.0.1")
        .env("PORT", port)
        .env("DATA_DIR", data)
        .env("SECRET_KEY", "of-this-test-only-0123456789abcdef")
        .env("ADMIN_TOKEN", ADMIN_TOKEN);
    command
}

/// The platform, and what it and its game servers print.
fn spawn(mut command: Command) -> (Child, mpsc::Receiver<String>) {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().expect("cargo built it");
    let stdout = process.stdout.take().expect("piped");
    let stderr = process.stderr.take().expect("piped");
    let (sender, lines) = mpsc::channel();
    let also = sender.clone();
    std::thread::spawn(move || pass_on(stdout, &sender));
    std::thread::spawn(move || pass_on(stderr, &also));
    (process, lines)
}

/// A process whose pipe is not read blocks once the pipe is full.
fn pass_on(output: impl std::io::Read, sender: &mpsc::Sender<String>) {
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        eprintln!("{line}");
        // Read on when the test no longer listens.
        let _ = sender.send(line);
    }
}

impl Drop for Platform {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.process), Signal::TERM);
        let _ = self.process.wait();
        for pid in self.orphans.drain(..).filter_map(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// A player over a WebSocket with JSON.
pub struct Player {
    pub world_id: String,
    address: String,
    pub socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    seq: u32,
}

impl Player {
    pub async fn connect(joined: Json) -> Self {
        let connected = Self::try_connect(&joined).await;
        connected.expect("the game server takes connections")
    }

    /// None when the game server is not there (any more).
    pub async fn try_connect(joined: &Json) -> Option<Self> {
        let ticket = joined["ticket"].as_str().expect("a ticket");
        Self::open(joined, &format!("?ticket={ticket}")).await
    }

    /// Comes back with a resume token; with the welcome.
    pub async fn try_resume(joined: &Json, token: &str) -> Option<(Self, Json)> {
        let mut player = Self::open(joined, "").await?;
        let handshake = json!({
            "v": 2, "kind": "command", "seq": 0, "feature": "session", "action": "handshake",
            "payload": { "ticket": joined["ticket"], "resumeToken": token, "received": 0 },
        });
        let message = Message::Text(handshake.to_string().into());
        player.socket.send(message).await.ok()?;
        let welcome = player.next_of_kind("welcome").await;
        Some((player, welcome))
    }

    async fn open(joined: &Json, query: &str) -> Option<Self> {
        let address = joined["server_address"].as_str().expect("an address");
        let mut request = format!("{address}{query}")
            .into_client_request()
            .expect("an address");
        let protocol = frolic_protocol::json::SUBPROTOCOL
            .parse()
            .expect("a header");
        request
            .headers_mut()
            .insert("sec-websocket-protocol", protocol);
        let (socket, _) = tokio_tungstenite::connect_async(request).await.ok()?;
        Some(Self {
            world_id: joined["world_id"].as_str().expect("an id").to_owned(),
            address: address.to_owned(),
            socket,
            seq: 0,
        })
    }

    /// The next message of that kind.
    pub async fn next_of_kind(&mut self, kind: &str) -> Json {
        next_of_kind(&mut self.socket, kind).await
    }

    /// The next message of that kind, whenever it comes; none when the connection
    /// is closed.
    pub async fn try_next_of_kind(&mut self, kind: &str) -> Option<Json> {
        read_kind(&mut self.socket, kind).await
    }

    /// The arguments of the next event of that name.
    pub async fn event(&mut self, name: &str) -> Vec<Json> {
        let next = async {
            while let Some(Ok(message)) = self.socket.next().await {
                let Message::Text(text) = message else {
                    continue;
                };
                let body: Json = serde_json::from_str(&text).unwrap_or_default();
                if body["feature"] == "network" && body["name"] == name {
                    return body["args"].as_array().cloned().unwrap_or_default();
                }
            }
            panic!("the connection ended before {name} came");
        };
        let waited = tokio::time::timeout(PATIENCE, next).await;
        waited.unwrap_or_else(|_| panic!("{name} did not come"))
    }

    /// Leaves for good.
    pub async fn leave(mut self) {
        let command = json!({
            "v": 2, "kind": "command", "seq": self.seq + 1, "feature": "session", "action": "leave",
            "payload": {},
        });
        let message = Message::Text(command.to_string().into());
        self.socket
            .send(message)
            .await
            .expect("the connection is open");
        while let Some(Ok(_)) = self.socket.next().await {}
    }

    /// Where the game server answers HTTP.
    pub fn http_address(&self) -> String {
        let address = self.address.replacen("ws", "http", 1);
        address.trim_end_matches("/ws").to_owned()
    }

    pub async fn fire(&mut self, name: &str) {
        self.fire_with(name, json!([])).await;
    }

    pub async fn fire_with(&mut self, name: &str, args: Json) {
        let payload = json!({ "name": name, "args": args });
        self.command("network", "event", payload).await;
    }

    pub async fn command(&mut self, feature: &str, action: &str, payload: Json) {
        self.seq += 1;
        let command = json!({
            "v": 2, "kind": "command", "seq": self.seq, "feature": feature, "action": action,
            "payload": payload,
        });
        let message = Message::Text(command.to_string().into());
        self.socket
            .send(message)
            .await
            .expect("the connection is open");
    }
}

/// The next JSON message of that kind.
pub async fn next_of_kind<S>(socket: &mut WebSocketStream<S>, kind: &str) -> Json
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let waited = tokio::time::timeout(PATIENCE, read_kind(socket, kind)).await;
    let message = waited.unwrap_or_else(|_| panic!("{kind} did not come"));
    message.unwrap_or_else(|| panic!("the connection closed before {kind} came"))
}

async fn read_kind<S>(socket: &mut WebSocketStream<S>, kind: &str) -> Option<Json>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(Ok(message)) = socket.next().await {
        let Message::Text(text) = message else {
            continue;
        };
        let body: Json = serde_json::from_str(&text).unwrap_or_default();
        if body["kind"] == kind {
            return Some(body);
        }
    }
    None
}

/// A game of one place with one server script.
pub fn game(id: &str, max_players: u32, script: &str) -> BTreeMap<String, Vec<u8>> {
    let manifest = format!(
        "[game]\nid = \"{id}\"\nname = \"{id}\"\nversion = \"1.0.0\"\nmax_players = {max_players}\n\
         [capabilities]\nstore = true\n"
    );
    let scene = r#"{"format":1,"prefabs":{},"entities":[{"id":1,"name":"Spawn","components":{"Transform":{"position":[0,1,0]},"SpawnPoint":{}}}]}"#;
    BTreeMap::from([
        ("game.toml".to_owned(), manifest.into_bytes()),
        ("scene.json".to_owned(), scene.as_bytes().to_vec()),
        (
            "scripts/ServerScriptService/Main.luau".to_owned(),
            script.as_bytes().to_vec(),
        ),
    ])
}
