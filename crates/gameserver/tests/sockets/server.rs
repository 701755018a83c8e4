//! A game server with a control plane that only answers what it must.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use frolic_fleet_api::persist::{PersistBatch, PersistReply, Saved, SavedPlayer};
use frolic_fleet_api::process::{
    AskBlocks, CLOSE_LIMIT_S, Expelled, FleetAction, Heartbeat, HeartbeatReply, PlayerBlocks,
    PublishScripts, PublishedScripts, ServerReady, WebTransportEndpoint, WorldBoot,
};
use frolic_fleet_api::store::{StoreAnswer, StoreAnswers, StoreBatch, StoreRequest};
use frolic_fleet_api::ticket::{TicketClaims, TicketKey, sign, world_key};
use frolic_gameserver::{GameServerConfig, WorldSource};
use frolic_protocol::Args;
use frolic_protocol::json::BINARY_SUBPROTOCOL;
use frolic_protocol::script::ScriptList;
use frolic_protocol::signature::ManifestSigner;
use futures_util::{SinkExt, StreamExt};
use sha2::{Digest, Sha256};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

/// State of a world in the test's control plane.
#[derive(Default)]
pub struct Shelf {
    pub persistent: bool,
    /// Processes that the world had.
    pub epoch: AtomicU64,
    pub saved: Mutex<Saved>,
    /// Whether the world is said to run elsewhere.
    pub replaced: AtomicBool,
    /// Whether nothing can be stored right now.
    pub busy: AtomicBool,
    /// Players that fit; as many as the game says when it is 0.
    pub players_max: u32,
    /// Seconds that scripts have at the end; as usual when it is 0.
    pub close_limit_s: u32,
    /// Players who were away at the last heartbeat.
    pub away: watch::Sender<Vec<String>>,
    /// Whom players have blocked.
    pub blocks: Mutex<BTreeMap<String, Vec<String>>>,
    /// One permit for every list that was asked for.
    pub asked_blocks: Asked,
    /// Whom heartbeats name.
    pub expelled: Mutex<Vec<Expelled>>,
    /// The process whose heartbeats are answered with an order to stop.
    pub stopping: AtomicU64,
    /// Persistence batches that arrived, whether they were stored or not.
    pub persist_tries: watch::Sender<u64>,
    /// Whether the store takes its time with whatever it is asked.
    pub store_hangs: watch::Sender<bool>,
    /// Requests that reached the store.
    pub asked_store: watch::Sender<Vec<AskedStore>>,
}

/// Requests that reached the store, and the players persisted by then, by
/// session.
#[derive(Clone)]
pub struct AskedStore {
    pub batch: StoreBatch,
    pub sessions: Vec<(String, String)>,
}

/// A semaphore that starts empty.
pub struct Asked(Semaphore);

impl Default for Asked {
    fn default() -> Self {
        Self(Semaphore::new(0))
    }
}

impl std::ops::Deref for Asked {
    type Target = Semaphore;

    fn deref(&self) -> &Semaphore {
        &self.0
    }
}

impl Shelf {
    /// Waits until what is stored is as wanted.
    pub async fn until(&self, wanted: impl Fn(&Saved) -> bool) {
        let search = async {
            while !wanted(&self.saved.lock().expect("whole")) {
                tokio::time::sleep(tokio::time::Duration::from_millis(10)).await;
            }
        };
        let patience = tokio::time::Duration::from_secs(30);
        let found = tokio::time::timeout(patience, search).await;
        found.expect("it is stored in time");
    }

    fn keep(&self, batch: PersistBatch) -> Result<Json<PersistReply>, StatusCode> {
        self.persist_tries.send_modify(|tries| *tries += 1);
        if self.replaced.load(Relaxed) || batch.epoch != self.epoch.load(Relaxed) {
            return Err(StatusCode::CONFLICT);
        }
        if self.busy.load(Relaxed) {
            return Err(StatusCode::SERVICE_UNAVAILABLE);
        }
        let mut saved = self.saved.lock().expect("whole");
        let newest = saved.world.newest();
        let fresh = batch.ops.into_iter().filter(|op| op.seq > newest);
        saved.world.ops.extend(fresh);
        for mut player in batch.players {
            // The session state stored with a write may be newer.
            let known = saved.players.iter().find(|known| {
                known.player_id == player.player_id && known.session == player.session
            });
            let noted = known.map_or(0, |known| known.received);
            player.received = player.received.max(noted);
            let others = |known: &SavedPlayer| known.player_id != player.player_id;
            saved.players.retain(others);
            saved.players.push(player);
        }
        let forgotten = |known: &SavedPlayer| batch.forget.contains(&known.player_id);
        saved.players.retain(|known| !forgotten(known));
        let seq = saved.world.newest();
        Ok(Json(PersistReply { seq }))
    }

    /// Answers every request with nothing, and records the cursors sent with
    /// writes.
    async fn store(&self, batch: StoreBatch) -> Json<StoreAnswers> {
        let sessions = {
            let saved = self.saved.lock().expect("whole");
            let players = saved.players.iter();
            players
                .map(|player| (player.player_id.clone(), player.session.clone()))
                .collect()
        };
        let asked = AskedStore {
            batch: batch.clone(),
            sessions,
        };
        self.asked_store.send_modify(|all| all.push(asked));
        let mut hangs = self.store_hangs.subscribe();
        let over = hangs.wait_for(|hangs| !hangs).await.map(|_| ());
        over.expect("the gate is open");
        let mut saved = self.saved.lock().expect("whole");
        let newest = saved.world.newest();
        let fresh = batch.ops.iter().filter(|op| op.seq > newest).cloned();
        saved.world.ops.extend(fresh);
        for count in &batch.handled {
            let known = saved
                .players
                .iter_mut()
                .find(|known| known.player_id == count.player_id && known.session == count.session);
            if let Some(known) = known {
                known.received = known.received.max(count.received);
            }
        }
        let answer = |request: &StoreRequest| StoreAnswer {
            id: request.id,
            result: Ok(Args::default()),
        };
        Json(StoreAnswers {
            answers: batch.requests.iter().map(answer).collect(),
            kept: Some(saved.world.newest()),
        })
    }

    /// Waits until the store was asked for something, so often.
    pub async fn asked_store(&self, count: usize) -> Vec<AskedStore> {
        let mut asked = self.asked_store.subscribe();
        let found = asked.wait_for(|all| all.len() >= count);
        let found = tokio::time::timeout(tokio::time::Duration::from_secs(30), found).await;
        found.expect("it asks in time").expect("it runs").clone()
    }

    /// Waits until this many more persistence batches have arrived.
    pub async fn more_persist_tries(&self, count: u64) {
        let mut tries = self.persist_tries.subscribe();
        let wanted = *tries.borrow_and_update() + count;
        let found = tries.wait_for(|tries| *tries >= wanted);
        let found = tokio::time::timeout(tokio::time::Duration::from_secs(30), found).await;
        found.expect("it asks in time").expect("it runs");
    }
}

pub struct TestServer {
    pub address: SocketAddr,
    /// The WebTransport address, as reported to the control plane.
    pub webtransport: WebTransportEndpoint,
    key: TicketKey,
    pub epoch: u64,
    nonce: AtomicU64,
    task: JoinHandle<()>,
    /// Everything of the server but its world's thread, which ends with it.
    process: Option<Runtime>,
}

/// A test that is over leaves no world behind that would run beside the next.
impl Drop for TestServer {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            process.shutdown_background();
        }
    }
}

impl TestServer {
    /// Starts the sample game on free ports.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// The same with more files in the game.
    pub async fn start_with(more: &[(&str, &str)]) -> Self {
        Self::start_on(more, Arc::default()).await
    }

    /// The same with what an earlier process of this world left.
    pub async fn start_on(more: &[(&str, &str)], shelf: Arc<Shelf>) -> Self {
        let mut files = sample_files();
        for (path, text) in more {
            files.insert((*path).to_owned(), text.as_bytes().to_vec());
        }
        let archive = frolic_package::pack(&files).expect("the sample game packs");
        let boot = WorldBoot {
            world_id: "world_test".into(),
            room_code: "TEST".into(),
            game_id: "obby".into(),
            revision: String::new(),
            seed: 1,
            disabled_scripts: Vec::new(),
            epoch: shelf.epoch.fetch_add(1, Relaxed) + 1,
            persistent: shelf.persistent,
            client_prints: Default::default(),
            filter_chat: true,
        };
        let epoch = boot.epoch;
        let close_limit_s = Some(shelf.close_limit_s).filter(|limit| *limit > 0);
        let players_max = Some(shelf.players_max).filter(|max| *max > 0);
        let (found, mut webtransport) = mpsc::channel(1);
        let routes = Router::new()
            .route(
                "/internal/worlds/world_test",
                get(move || async move { Json(boot) }),
            )
            .route(
                "/internal/worlds/world_test/package",
                get(move || async move { archive }),
            )
            .route("/internal/worlds/world_test/scripts", post(sign_scripts))
            .route(
                "/internal/worlds/world_test/ready",
                post(move |Json(ready): Json<ServerReady>| async move {
                    let _ = found.send(ready.webtransport).await;
                }),
            )
            .route("/internal/worlds/world_test/stopped", post(|| async {}))
            .route(
                "/internal/worlds/world_test/saved",
                get({
                    let shelf = shelf.clone();
                    async move || Json(shelf.saved.lock().expect("whole").clone())
                }),
            )
            .route(
                "/internal/worlds/world_test/keep",
                post({
                    let shelf = shelf.clone();
                    async move |Json(batch): Json<PersistBatch>| shelf.keep(batch)
                }),
            )
            .route(
                "/internal/worlds/world_test/store",
                post({
                    let shelf = shelf.clone();
                    async move |Json(batch): Json<StoreBatch>| shelf.store(batch).await
                }),
            )
            .route(
                "/internal/worlds/world_test/blocks",
                post({
                    let shelf = shelf.clone();
                    async move |Json(asked): Json<AskBlocks>| {
                        let blocks = shelf.blocks.lock().expect("whole");
                        let player_ids = blocks.get(&asked.player_id).cloned();
                        shelf.asked_blocks.add_permits(1);
                        Json(PlayerBlocks {
                            player_ids: player_ids.unwrap_or_default(),
                        })
                    }
                }),
            )
            .route(
                "/internal/worlds/world_test/heartbeat",
                post(async move |Json(beat): Json<Heartbeat>| {
                    shelf.away.send_replace(beat.away);
                    let stops = shelf.stopping.load(Relaxed) == epoch;
                    Json(HeartbeatReply {
                        action: match stops {
                            true => FleetAction::Stop,
                            false => FleetAction::Continue,
                        },
                        expelled: shelf.expelled.lock().expect("whole").clone(),
                        prints_wanted: false,
                    })
                }),
            );
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let control_plane = listener.local_addr().expect("an address");
        tokio::spawn(async move { axum::serve(listener, routes).await });

        let key = world_key(b"a secret of this test", "world_test");
        let config = GameServerConfig {
            world_id: "world_test".into(),
            host: [127, 0, 0, 1].into(),
            port: 0,
            webtransport: true,
            source: WorldSource::ControlPlane {
                url: format!("http://{control_plane}"),
                token: "token".into(),
                key,
            },
            tick_hz: None,
            snapshot_hz: None,
            interest: None,
            client_bytes_per_s: None,
            players_max,
            close_limit_s: close_limit_s.unwrap_or(CLOSE_LIMIT_S),
            blame: None,
            confined: true,
            script_folder: None,
            record_folder: None,
        };
        let (ready, address) = oneshot::channel();
        let process = process();
        let task = process.spawn(async move {
            let ready = |address| {
                let _ = ready.send(address);
            };
            if let Err(error) = frolic_gameserver::run(config, ready).await {
                panic!("{error}");
            }
        });
        let address = address.await.expect("the server starts");
        let webtransport = webtransport.recv().await.flatten();
        Self {
            address,
            webtransport: webtransport.expect("a UDP port"),
            key,
            epoch,
            nonce: AtomicU64::new(first_nonce()),
            task,
            process: Some(process),
        }
    }

    /// Waits until it has ended by itself.
    pub async fn ended(mut self) {
        (&mut self.task).await.expect("it ends in order");
    }

    /// Ends it at once, as when it is killed, and waits until its world is gone:
    /// that is when it lets go of its sockets.
    pub async fn stop(mut self) {
        let witness = tokio_tungstenite::connect_async(self.url()).await;
        if let Some(process) = self.process.take() {
            process.shutdown_background();
        }
        // Where the door was closed to one more, there is nothing to wait for.
        let Ok((mut witness, _)) = witness else {
            return;
        };
        let end = async { while let Some(Ok(_)) = witness.next().await {} };
        let ended = tokio::time::timeout(tokio::time::Duration::from_secs(30), end).await;
        ended.expect("the world ends");
    }

    pub fn url(&self) -> String {
        format!("ws://{}/ws", self.address)
    }

    /// One figure of `/metrics`.
    pub async fn metric(&self, name: &str) -> f64 {
        let url = format!("http://{}/metrics", self.address);
        let response = reqwest::get(url).await.expect("the server answers");
        let text = response.text().await.expect("text");
        let line = text.lines().find_map(|line| {
            let (found, value) = line.rsplit_once(' ')?;
            (found == name).then(|| value.parse().expect("a number"))
        });
        line.unwrap_or_else(|| panic!("{name} is not in\n{text}"))
    }

    /// Waits until a figure of `/metrics` is at least 1.
    pub async fn until_metric(&self, name: &str) {
        let patience = tokio::time::Duration::from_secs(30);
        let search = async {
            while self.metric(name).await < 1.0 {
                tokio::time::sleep(tokio::time::Duration::from_millis(20)).await;
            }
        };
        let found = tokio::time::timeout(patience, search).await;
        found.unwrap_or_else(|_| panic!("{name} stayed 0"));
    }

    /// A ticket with this lifetime in seconds.
    pub fn ticket(&self, world_id: &str, name: &str, lasts_s: i64) -> String {
        sign(&self.key, &self.claims(world_id, name, lasts_s))
    }

    /// A ticket with something more in it.
    pub fn ticket_with(&self, name: &str, more: impl FnOnce(&mut TicketClaims)) -> String {
        let mut claims = self.claims("world_test", name, 60);
        more(&mut claims);
        sign(&self.key, &claims)
    }

    pub fn forged_ticket(&self, name: &str) -> String {
        sign(&[7; 32], &self.claims("world_test", name, 60))
    }

    fn claims(&self, world_id: &str, name: &str, lasts_s: i64) -> TicketClaims {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("after 1970");
        TicketClaims {
            world_id: world_id.into(),
            player_id: format!("client_{name}"),
            name: name.into(),
            nonce: self.nonce.fetch_add(1, Relaxed).to_string(),
            expires_at: now.as_secs().saturating_add_signed(lasts_s),
            epoch: self.epoch,
            ..TicketClaims::default()
        }
    }

    /// Sends bytes as our own client would, and returns why it was closed.
    pub async fn send_binary_until_closed(&self, bytes: Vec<u8>) -> String {
        let mut request = self.url().into_client_request().expect("an address");
        let protocol = BINARY_SUBPROTOCOL.parse().expect("a header");
        request
            .headers_mut()
            .insert("sec-websocket-protocol", protocol);
        let (mut socket, _) = tokio_tungstenite::connect_async(request)
            .await
            .expect("connects");
        let _ = socket.send(Message::Binary(bytes.into())).await;
        closing_reason(&mut socket).await
    }

    /// Connects and waits to be thrown out.
    pub async fn wait_silently(&self) -> String {
        let (mut socket, _) = tokio_tungstenite::connect_async(self.url())
            .await
            .expect("connects");
        closing_reason(&mut socket).await
    }
}

/// Where all tasks of one server run, so that they can end together.
fn process() -> Runtime {
    let mut process = tokio::runtime::Builder::new_multi_thread();
    let process = process.worker_threads(1).enable_all().build();
    process.expect("a runtime")
}

/// The key that signs the scripts of test worlds.
pub fn signer() -> ManifestSigner {
    ManifestSigner::new(&[9; 32])
}

async fn sign_scripts(Json(request): Json<PublishScripts>) -> Json<PublishedScripts> {
    let list: ScriptList = serde_json::from_str(&request.list).expect("a list");
    let hash = hex::encode(Sha256::digest(&request.list));
    Json(PublishedScripts {
        signature: signer().sign(&list.game_id, &format!("sha256:{hash}")),
        missing: Vec::new(),
    })
}

/// Nonces of a restarted server must not look used.
fn first_nonce() -> u64 {
    static STARTS: AtomicU64 = AtomicU64::new(1);
    STARTS.fetch_add(1, Relaxed) * 1_000_000
}

async fn closing_reason<S>(socket: &mut S) -> String
where
    S: StreamExt<Item = Result<Message, tungstenite::Error>> + Unpin,
{
    while let Some(message) = socket.next().await {
        match message {
            Ok(Message::Close(Some(frame))) => return frame.reason.to_string(),
            Ok(_) => {}
            Err(error) => return error.to_string(),
        }
    }
    String::new()
}

pub fn sample_files() -> BTreeMap<String, Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../games/obby");
    let mut files = BTreeMap::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the sample game is there") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(&root).expect("below the root");
            let name = name.to_str().expect("plain names").to_owned();
            files.insert(name, std::fs::read(&path).expect("readable"));
        }
    }
    files
}
