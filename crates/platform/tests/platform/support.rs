//! A platform on a free port with a real database (see `database.rs`), and helpers for requests.

pub mod certificate;
pub mod creator;
pub mod database;
pub mod gameserver;
pub mod issuer;
pub mod postgres;
pub mod programs;
pub mod small_disk;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use frolic_platform::api::{JoinResponse, LoginResponse};
use frolic_platform::clock::ClockHand;
use frolic_platform::spells::{SpellCompiler, WriteError};
use frolic_platform::{Clock, Parts, Platform, Settings, bind, ids};
use gameserver::{Stage, TaskLauncher};
use reqwest::{Client, Method, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub const ADMIN_TOKEN: &str = "the admin token of the tests";
pub const SECRET: &[u8] = b"the secret key of the tests";
pub const START_MS: i64 = 1_763_164_800_000;

/// A running platform; dropping it deletes its data.
pub struct TestPlatform {
    pub platform: Platform,
    pub url: String,
    pub port: u16,
    pub clock: ClockHand,
    pub stage: Arc<Stage>,
    pub data_dir: PathBuf,
    /// URL of its database.
    pub database_url: String,
    http: Client,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<()>,
}

impl TestPlatform {
    /// Starts with default settings and publishes the sample game.
    pub async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub async fn start_with(change: impl FnOnce(&mut Settings)) -> Self {
        let data_dir = std::env::temp_dir().join(ids::new_id("frolic-test"));
        let started = Self::start_in(data_dir, change).await;
        started.publish_sample(&game_files("sample", 8)).await;
        started
    }

    /// Starts on a data folder that may already exist.
    pub async fn start_in(data_dir: PathBuf, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Settings::new(data_dir.clone(), SECRET.to_vec());
        settings.admin_token = Some(ADMIN_TOKEN.to_owned());
        settings.database_url = Some(database::url(&data_dir));
        change(&mut settings);
        let database_url = settings.database_url.clone().unwrap();
        let listener = bind(settings.host, 0).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (clock, hand) = Clock::manual(START_MS);
        let stage = Arc::new(Stage::default());
        let parts = parts(stage.clone(), clock, address);
        let platform = Platform::open(settings, parts).await.unwrap();
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn({
            let platform = platform.clone();
            async move {
                let shutdown = async {
                    let _ = stopped.await;
                };
                platform.serve(listener, shutdown).await;
            }
        });
        Self {
            platform,
            url: format!("http://{address}"),
            port: address.port(),
            clock: hand,
            stage,
            data_dir,
            database_url,
            // Tests shorten the time after which the server closes idle connections; a reused
            // one could close just as a request is sent.
            http: Client::builder()
                .pool_max_idle_per_host(0)
                .build()
                .expect("a client"),
            stop: Some(stop),
            served,
        }
    }

    /// Stops the platform as Ctrl-C does and waits for the end; the data stays.
    pub async fn stop(mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        (&mut self.served).await.unwrap();
        // An empty path keeps `drop` from deleting the data.
        self.data_dir = PathBuf::new();
    }

    pub async fn publish_sample(&self, files: &BTreeMap<String, Vec<u8>>) -> String {
        let archive = frolic_package::pack(files).unwrap();
        let published = self.platform.publish_sample(Bytes::from(archive)).await;
        published.unwrap().revision
    }

    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("{}{path}", self.url))
    }

    pub async fn get(&self, path: &str) -> Response {
        self.request(Method::GET, path).send().await.unwrap()
    }

    pub async fn get_json<T: DeserializeOwned>(&self, path: &str) -> T {
        let response = self.get(path).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        response.json().await.unwrap()
    }

    pub async fn admin<T: DeserializeOwned>(&self, method: Method, path: &str) -> T {
        let response = self
            .request(method, path)
            .bearer_auth(ADMIN_TOKEN)
            .send()
            .await
            .unwrap();
        assert!(
            response.status().is_success(),
            "{path}: {}",
            response.status()
        );
        response.json().await.unwrap()
    }

    pub async fn login(&self, name: &str) -> LoginResponse {
        let body = serde_json::json!({ "username": name });
        let response = self
            .request(Method::POST, "/login")
            .json(&body)
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        response.json().await.unwrap()
    }

    /// Posts to `/join` and returns the response, also for errors.
    pub async fn try_join(&self, token: &str, body: Value) -> Response {
        let request = self
            .request(Method::POST, "/join")
            .bearer_auth(token)
            .json(&body);
        request.send().await.unwrap()
    }

    /// Logs in a new guest and joins.
    pub async fn join(&self, body: Value) -> JoinResponse {
        let guest = self.login("Guest").await;
        let response = self.try_join(&guest.session_token, body).await;
        let status = response.status();
        let text = response.text().await.unwrap();
        assert_eq!(status, StatusCode::OK, "{text}");
        serde_json::from_str(&text).unwrap()
    }
}

/// What a platform gets from its program.
pub fn parts(stage: Arc<Stage>, clock: Clock, listens_on: SocketAddr) -> Parts {
    Parts {
        launcher: Box::new(TaskLauncher(stage)),
        spell_compiler: Arc::new(TestCompiler),
        script_checker: Arc::new(frolic_lint::compile_errors),
        site: Box::new(site_file),
        clock,
        listens_on,
    }
}

impl Drop for TestPlatform {
    fn drop(&mut self) {
        self.served.abort();
        if !self.data_dir.as_os_str().is_empty() {
            database::forget(&self.data_dir);
            let _ = std::fs::remove_dir_all(&self.data_dir);
        }
    }
}

/// Status and code of an error response; panics if it is not in the error format.
pub async fn error_of(response: Response) -> (u16, String) {
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    let body: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("not JSON: {text}"));
    let message = body["error"]["message"].as_str().unwrap_or_default();
    assert!(!message.is_empty(), "no message in {text}");
    (status, body["error"]["code"].as_str().unwrap().to_owned())
}

/// A small game with a thumbnail.
pub fn game_files(id: &str, max_players: u32) -> BTreeMap<String, Vec<u8>> {
    let manifest = format!(
        "[game]\nid = \"{id}\"\nname = \"The {id} Game\"\ndescription = \"For <b>tests</b>\"\n\
         version = \"1.0.0\"\nmax_players = {max_players}\ntags = [\"test\"]\n\
         thumbnail = \"assets/thumbnail.png\"\n\n[world]\nidle_stop_s = 60\n"
    );
    let scene = r#"{"format":1,"prefabs":{},"entities":[{"id":1,"name":"Spawn","components":{"Transform":{"position":[0,1,0]},"SpawnPoint":{}}}]}"#;
    BTreeMap::from([
        ("game.toml".to_owned(), manifest.into_bytes()),
        ("scene.json".to_owned(), scene.as_bytes().to_vec()),
        ("assets/thumbnail.png".to_owned(), picture()),
    ])
}

/// The beginning of a PNG of one pixel.
pub fn picture() -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    bytes.extend([
        0, 0, 0, 1, 0, 0, 0, 1, 8, 2, 0, 0, 0, 0x90, 0x77, 0x53, 0xde,
    ]);
    bytes
}

/// The real compiler, and a model with a few fixed answers.
struct TestCompiler;

impl SpellCompiler for TestCompiler {
    fn supports_prompts(&self) -> bool {
        true
    }

    fn check(&self, spell_id: &str, code: &str) -> Result<(), String> {
        frolic_soul::check_spell(spell_id, code)
    }

    fn write(
        &self,
        spell_id: &str,
        prompt: &str,
        code: Option<&str>,
    ) -> Result<String, WriteError> {
        struct EchoModel<'a>(&'a str);
        impl frolic_soul::Model for EchoModel<'_> {
            fn answer(
                &self,
                _system: &str,
                _turns: &[frolic_soul::Turn],
            ) -> Result<String, frolic_soul::ModelError> {
                Ok(format!(
                    "```luau\n-- {}\nfunction on_cast(ctx) end\n```",
                    self.0
                ))
            }
        }
        if prompt.contains("busy") {
            return Err(WriteError::Retryable("the model is busy".to_owned()));
        }
        if prompt.contains("operator") {
            return Err(WriteError::Unavailable("set SOUL_API_KEY".to_owned()));
        }
        let written = frolic_soul::write_spell(&EchoModel(prompt), spell_id, prompt, code);
        written.map_err(|error| WriteError::Rejected(error.to_string()))
    }
}

fn site_file(path: &str) -> Option<Cow<'static, [u8]>> {
    match path {
        "index.html" => Some(Cow::Borrowed(b"<!doctype html><title>the site</title>")),
        "pages.json" => Some(Cow::Borrowed(include_bytes!(
            "../../../../web/src/lib/pages.json"
        ))),
        // As compressed by the build; the server serves it unchanged.
        "assets/app-1a2b3c4d.js.br" => Some(Cow::Borrowed(b"brotli")),
        "assets/app-1a2b3c4d.js" => Some(Cow::Owned(b"console.log(1);\n".repeat(200))),
        _ => None,
    }
}
