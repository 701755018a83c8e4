//! Scripts on their way to real clients: first visits, second visits, reloads.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use frolic_client::{Client, ClientEvent};
use frolic_fleet_api::process::{ReloadReply, ReloadRequest};
use frolic_protocol::json::BINARY_SUBPROTOCOL;
use frolic_protocol::script::MANIFEST_PATH;
use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::server::{TestServer, signer};
use crate::stranger::Stranger;

type Socket =
    tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>;

/// A client core on a real socket, with a cache of what it has seen.
struct Visitor {
    client: Client,
    socket: Socket,
    began: Instant,
    cache: HashMap<String, Vec<u8>>,
    /// The scripts that the client was asked to run, and to replace.
    ran: Vec<String>,
    reloaded: Vec<(Vec<String>, Vec<String>)>,
    troubles: Vec<String>,
}

impl Visitor {
    async fn enter(server: &TestServer, name: &str, cache: HashMap<String, Vec<u8>>) -> Self {
        Self::trusting(server, name, cache, signer().public_key()).await
    }

    async fn trusting(
        server: &TestServer,
        name: &str,
        cache: HashMap<String, Vec<u8>>,
        key: [u8; 32],
    ) -> Self {
        let mut request = server.url().into_client_request().expect("an address");
        let protocol = BINARY_SUBPROTOCOL.parse().expect("a header");
        request
            .headers_mut()
            .insert("sec-websocket-protocol", protocol);
        let (socket, _) = tokio_tungstenite::connect_async(request)
            .await
            .expect("connects");
        let mut client = Client::new();
        client.scripts().trust(key, "obby".into());
        client.handshake(Some(server.ticket("world_test", name, 60)), None, None);
        Self {
            client,
            socket,
            began: Instant::now(),
            cache,
            ran: Vec::new(),
            reloaded: Vec::new(),
            troubles: Vec::new(),
        }
    }

    /// Plays until `done`.
    async fn until(&mut self, done: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !done(self) {
            assert!(
                Instant::now() < deadline,
                "waited too long: {:?}",
                self.troubles
            );
            self.flush().await;
            let next = tokio::time::timeout(Duration::from_millis(20), self.socket.next()).await;
            if let Ok(Some(Ok(Message::Binary(bytes)))) = next {
                let now = self.began.elapsed().as_secs_f64() * 1000.0;
                self.client.receive(&bytes, now).expect("readable");
            }
            self.take_events();
        }
        self.flush().await;
    }

    async fn flush(&mut self) {
        while let Some(bytes) = self.client.take_reliable() {
            let sent = self.socket.send(Message::Binary(bytes.into())).await;
            sent.expect("the server listens");
        }
    }

    fn take_events(&mut self) {
        while let Some(event) = self.client.take_event() {
            match event {
                ClientEvent::ScriptManifest(manifest) => {
                    let cached = self.cache.get(&manifest.hash).cloned();
                    let known =
                        cached.is_some_and(|b| self.client.scripts().offer(MANIFEST_PATH, b));
                    if !known {
                        self.client.scripts().request_missing();
                    }
                }
                ClientEvent::ScriptList => self.offer_all(),
                ClientEvent::ScriptVerified { path, hash } => {
                    let bytes = self
                        .client
                        .scripts()
                        .bytecode(&path)
                        .expect("verified")
                        .to_vec();
                    self.cache.insert(hash, bytes);
                }
                ClientEvent::ScriptRun { path } => self.ran.push(path),
                ClientEvent::ScriptsReload { changed, removed } => {
                    self.reloaded.push((changed, removed));
                }
                ClientEvent::Error { message, .. } => self.troubles.push(message),
                _ => {}
            }
        }
    }

    fn offer_all(&mut self) {
        let manifest = self.client.scripts().manifest().expect("announced").clone();
        let bytes = self.client.scripts().list_bytes().expect("listed").to_vec();
        self.cache.insert(manifest.hash, bytes);
        let list = self.client.scripts().list().expect("listed").clone();
        for entry in list.scripts {
            if let Some(bytes) = self.cache.get(&entry.hash) {
                self.client.scripts().offer(&entry.path, bytes.clone());
            }
        }
        self.client.scripts().request_missing();
    }

    fn script_bytes(&self) -> u64 {
        self.client.stats(0.0).script_bytes
    }
}

/// 200 scripts with 2 MB of source together.
fn large_game() -> Vec<(String, String)> {
    (0..200)
        .map(|number| {
            let folder = ["StarterGui", "StarterPlayer", "ServerScriptService"][number % 3];
            let mut source = String::new();
            let mut line = 0;
            while source.len() < 11_500 {
                line += 1;
                source += &format!(
                    "local function f{line}(a) return a * {} + #\"text {number} {line}\" end\n",
                    number * 1000 + line
                );
                if line % 100 == 0 {
                    source += "do end\n";
                }
            }
            // Luau has 200 locals per function.
            let source = source.replace("local function", "function");
            (format!("scripts/{folder}/S{number}.luau"), source)
        })
        .collect()
}

#[tokio::test]
async fn a_second_visit_to_a_game_with_200_scripts_costs_under_2_kb() {
    let files = large_game();
    let source_bytes: usize = files.iter().map(|(_, source)| source.len()).sum();
    assert!(source_bytes > 2_000_000, "{source_bytes}");
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(p, s)| (p.as_str(), s.as_str()))
        .collect();
    let server = TestServer::start_with(&files).await;

    let mut first = Visitor::enter(&server, "Ada", HashMap::new()).await;
    first
        .until(|v| v.ran.iter().filter(|p| p.contains("/S")).count() == 134)
        .await;
    let first_bytes = first.script_bytes();
    assert!(
        first
            .ran
            .iter()
            .all(|path| !path.contains("ServerScriptService"))
    );
    assert_eq!(first.troubles, Vec::<String>::new());

    let mut second = Visitor::enter(&server, "Ben", first.cache).await;
    second.until(|v| v.ran.len() == first.ran.len()).await;
    let second_bytes = second.script_bytes();
    println!("script bytes: first visit {first_bytes}, second visit {second_bytes}");
    assert!(first_bytes > 100_000, "{first_bytes}");
    assert!(second_bytes < 2_000, "{second_bytes}");
    assert_eq!(second.ran, first.ran, "in the same order");
    server.stop().await;
}

#[tokio::test]
async fn a_list_that_another_key_signed_is_refused() {
    let server = TestServer::start().await;
    let mut visitor = Visitor::trusting(&server, "Ada", HashMap::new(), [3; 32]).await;
    visitor.until(|v| !v.troubles.is_empty()).await;
    assert!(
        visitor.troubles[0].contains("did not sign"),
        "{:?}",
        visitor.troubles
    );
    assert_eq!(visitor.ran, Vec::<String>::new());
    server.stop().await;
}

async fn reload(server: &TestServer, token: &str, request: &ReloadRequest) -> reqwest::Response {
    reqwest::Client::new()
        .post(format!("http://{}/internal/reload", server.address))
        .bearer_auth(token)
        .json(request)
        .send()
        .await
        .expect("the server answers")
}

#[tokio::test]
async fn a_reload_reaches_clients_of_both_encodings_without_reconnecting() {
    const HUD: &str = "StarterGui/Extra.luau";
    const SECRET: &str = "ServerScriptService/Secret.luau";
    let files = [
        ("scripts/StarterGui/Extra.luau", "print(1)"),
        (
            "scripts/ServerScriptService/Secret.luau",
            "local password = 1",
        ),
    ];
    let server = TestServer::start_with(&files).await;
    let mut visitor = Visitor::enter(&server, "Ada", HashMap::new()).await;
    visitor
        .until(|v| v.ran.iter().any(|path| path == HUD))
        .await;
    let mut stranger = Stranger::join(&server, "Ben").await;
    let manifest = stranger.next_of_feature("scripts").await;
    assert_eq!(manifest["manifest"]["version"], 1);

    let request = |hud: &str| ReloadRequest {
        revision: "new".into(),
        scripts: BTreeMap::from([
            (HUD.to_owned(), hud.to_owned()),
            (SECRET.to_owned(), "local password = 2".to_owned()),
        ]),
    };
    assert_eq!(
        reload(&server, "wrong", &request("print(2)"))
            .await
            .status(),
        401
    );
    let reply: ReloadReply = reload(&server, "token", &request("print("))
        .await
        .json()
        .await
        .expect("a reply");
    assert_eq!((reply.version, reply.changed.len()), (1, 0));
    assert!(
        reply.errors[0].starts_with("StarterGui/Extra.luau:1:"),
        "{:?}",
        reply.errors
    );

    let began = Instant::now();
    let reply: ReloadReply = reload(&server, "token", &request("print(2)"))
        .await
        .json()
        .await
        .expect("a reply");
    assert_eq!(reply.version, 2);
    visitor.until(|v| !v.reloaded.is_empty()).await;
    println!("a reload reached the client after {:?}", began.elapsed());
    let (changed, removed) = &visitor.reloaded[0];
    assert_eq!(changed, &[HUD]);
    assert!(!removed.is_empty(), "the sample's own scripts are gone");
    assert_eq!(
        visitor
            .client
            .scripts()
            .manifest()
            .map(|m| m.revision.as_str()),
        Some("new")
    );

    let manifest = stranger.next_of_feature("scripts").await;
    let text = manifest.to_string();
    assert_eq!(manifest["manifest"]["version"], 2, "{text}");
    assert!(text.contains(HUD) && !text.contains("Secret"), "{text}");
    let hash = manifest["manifest"]["hash"].as_str().expect("a hash");
    let signature = manifest["manifest"]["signature"].as_str().expect("signed");
    let key = signer().public_key();
    assert!(frolic_protocol::signature::verify(
        &key, "obby", hash, signature
    ));
    stranger
        .command("scripts", "request", json!({ "paths": [SECRET] }))
        .await;
    let refused = stranger.next_of("error").await;
    assert_eq!(refused["code"], "no_such_script");
    server.stop().await;
}
