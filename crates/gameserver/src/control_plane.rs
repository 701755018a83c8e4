//! Client of the control plane's internal API: the world to run, and heartbeats.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use frolic_fleet_api::console::ConsoleReport;
use frolic_fleet_api::persist::{PersistBatch, PersistReply, Saved};
use frolic_fleet_api::process::{
    AskBlocks, Heartbeat, HeartbeatReply, PlayerBlocks, PublishScripts, PublishedScripts,
    ServerReady, ServerStopped, WorldBoot,
};
use frolic_fleet_api::remote_commands::{LearnSpell, OutsideNews};
use frolic_fleet_api::store::{StoreAnswers, StoreBatch};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::scripts::ScriptRelease;

/// How long the control plane may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The same for requests of tens of megabytes.
const LARGE_TIMEOUT: Duration = Duration::from_secs(60);
/// Approximate limit of content in one request.
const CONTENTS_BYTES: usize = 4 * 1024 * 1024;

/// Why the control plane could not be used.
#[derive(Debug, thiserror::Error)]
#[error("the control plane at {url} did not complete the request: {what}{}", refusal.as_deref().unwrap_or_default())]
pub struct ControlPlaneError {
    url: String,
    what: String,
    /// The reason that it gave.
    refusal: Option<String>,
    source: reqwest::Error,
}

impl ControlPlaneError {
    /// Whether the control plane has given this world to another process.
    pub fn is_replaced(&self) -> bool {
        use reqwest::StatusCode;
        matches!(
            self.status(),
            Some(StatusCode::UNAUTHORIZED | StatusCode::CONFLICT)
        )
    }

    /// Whether a retry would be refused again.
    pub fn is_refusal(&self) -> bool {
        let busy = [408, 425, 429];
        self.status()
            .is_some_and(|status| status.is_client_error() && !busy.contains(&status.as_u16()))
    }

    /// The HTTP status, if it answered with an error.
    pub fn status(&self) -> Option<reqwest::StatusCode> {
        self.source.status()
    }
}

/// The body of an error.
#[derive(Deserialize)]
struct Refusal {
    error: RefusalReason,
}

#[derive(Deserialize)]
struct RefusalReason {
    message: String,
}

/// A connection to the control plane, for one world.
#[derive(Clone)]
pub struct ControlPlane {
    client: reqwest::Client,
    base: String,
    token: String,
}

impl ControlPlane {
    /// Authenticates as `world_id` with `token`.
    pub fn new(url: &str, world_id: &str, token: &str) -> Self {
        // The control plane is on this machine and uses plain HTTP; but the client
        // requires a TLS provider, and root certificates, which a confined process
        // could not read.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .timeout(TIMEOUT)
            .tls_certs_only([])
            .build();
        // Fails only where `Client::new` panics: without any TLS at all.
        let client = client.unwrap_or_default();
        Self {
            client,
            base: format!("{}/internal/worlds/{world_id}", url.trim_end_matches('/')),
            token: token.to_owned(),
        }
    }

    /// The world to run.
    pub async fn boot(&self) -> Result<WorldBoot, ControlPlaneError> {
        let request = self.client.get(&self.base);
        self.json(request, "the world's settings").await
    }

    /// The packed package.
    pub async fn package(&self) -> Result<Vec<u8>, ControlPlaneError> {
        let request = self.client.get(format!("{}/package", self.base));
        let answer = self.send(request, "the package").await?;
        let bytes = answer.bytes().await;
        let bytes = bytes.map_err(|source| self.error("the package", source))?;
        Ok(bytes.to_vec())
    }

    /// Reports that players can join.
    pub async fn ready(&self, ready: &ServerReady) -> Result<(), ControlPlaneError> {
        self.post("ready", ready).await.map(|_| ())
    }

    /// Sends a heartbeat.
    pub async fn heartbeat(
        &self,
        heartbeat: &Heartbeat,
    ) -> Result<HeartbeatReply, ControlPlaneError> {
        let url = format!("{}/heartbeat", self.base);
        let request = self.client.post(url).json(heartbeat);
        self.json(request, "a heartbeat").await
    }

    /// The block list of a player.
    pub async fn blocks(&self, player_id: &str) -> Result<PlayerBlocks, ControlPlaneError> {
        let url = format!("{}/blocks", self.base);
        let player_id = player_id.to_owned();
        let request = self.client.post(url).json(&AskBlocks { player_id });
        self.json(request, "the blocked players").await
    }

    /// Has a manifest of client scripts signed, and uploads the content that the
    /// control plane does not have. Returns the signature.
    pub async fn publish_scripts(
        &self,
        press: &ScriptRelease,
    ) -> Result<String, ControlPlaneError> {
        let what = "the signature of the scripts";
        let url = format!("{}/scripts", self.base);
        let ask = |contents: Vec<String>| {
            let list = press.list.clone();
            let request = self.client.post(&url);
            self.json::<PublishedScripts>(request.json(&PublishScripts { list, contents }), what)
        };
        let mut answer = ask(Vec::new()).await?;
        // Bounded: each round uploads at least one that was missing.
        for _ in 0..press.contents.len() {
            let mut contents = Vec::new();
            let mut bytes = 0;
            for hash in &answer.missing {
                let Some(unit) = press.contents.get(hash) else {
                    continue;
                };
                bytes += unit.compressed.len();
                contents.push(BASE64.encode(&unit.compressed));
                if bytes > CONTENTS_BYTES {
                    break;
                }
            }
            if contents.is_empty() {
                break;
            }
            answer = ask(contents).await?;
        }
        Ok(answer.signature)
    }

    /// Reports output and costs of scripts.
    pub async fn console(&self, report: &ConsoleReport) -> Result<(), ControlPlaneError> {
        self.post("console", report).await.map(|_| ())
    }

    /// Whether a caller has the secret that only the control plane and this process
    /// know.
    pub fn is_token(&self, given: &str) -> bool {
        let (ours, given) = (Sha256::digest(&self.token), Sha256::digest(given));
        ours == given
    }

    /// Sends requests of scripts to the store.
    pub async fn store(
        &self,
        batch: &StoreBatch,
        patience: Duration,
    ) -> Result<StoreAnswers, ControlPlaneError> {
        self.ask_in_time("store", batch, patience).await
    }

    /// The state that earlier processes of this world persisted.
    pub async fn saved(&self) -> Result<Saved, ControlPlaneError> {
        let request = self.client.get(format!("{}/saved", self.base));
        let request = request.timeout(LARGE_TIMEOUT);
        self.json(request, "the persisted state of the world").await
    }

    /// The spells that earlier processes of this world learned.
    pub async fn spells(&self) -> Result<Vec<LearnSpell>, ControlPlaneError> {
        let request = self.client.get(format!("{}/spells", self.base));
        self.json(request, "spells").await
    }

    /// Sends events to subscribers outside of the world.
    pub async fn post_news(&self, news: &OutsideNews) -> Result<(), ControlPlaneError> {
        self.post("news", news).await.map(|_| ())
    }

    /// Persists a batch.
    pub async fn persist(
        &self,
        batch: &PersistBatch,
        patience: Duration,
    ) -> Result<PersistReply, ControlPlaneError> {
        let patience = match &batch.checkpoint {
            Some(_) => LARGE_TIMEOUT,
            None => patience,
        };
        self.ask_in_time("keep", batch, patience).await
    }

    async fn ask_in_time<T: DeserializeOwned>(
        &self,
        what: &str,
        body: &impl Serialize,
        patience: Duration,
    ) -> Result<T, ControlPlaneError> {
        let url = format!("{}/{what}", self.base);
        let request = self.client.post(url).json(body).timeout(patience);
        self.json(request, what).await
    }

    /// Reports that the world has stopped.
    pub async fn stopped(&self, reason: &str) -> Result<(), ControlPlaneError> {
        let reason = reason.to_owned();
        self.post("stopped", &ServerStopped { reason })
            .await
            .map(|_| ())
    }

    async fn post(
        &self,
        what: &str,
        body: &impl Serialize,
    ) -> Result<reqwest::Response, ControlPlaneError> {
        let url = format!("{}/{what}", self.base);
        self.send(self.client.post(url).json(body), what).await
    }

    async fn json<T: DeserializeOwned>(
        &self,
        request: reqwest::RequestBuilder,
        what: &str,
    ) -> Result<T, ControlPlaneError> {
        let answer = self.send(request, what).await?;
        answer
            .json()
            .await
            .map_err(|source| self.error(what, source))
    }

    async fn send(
        &self,
        request: reqwest::RequestBuilder,
        what: &str,
    ) -> Result<reqwest::Response, ControlPlaneError> {
        let request = request.bearer_auth(&self.token);
        let answer = request.send().await;
        let answer = answer.map_err(|source| self.error(what, source))?;
        let Err(source) = answer.error_for_status_ref() else {
            return Ok(answer);
        };
        // The control plane is trusted, and its errors are short.
        let reason = answer.json::<Refusal>().await.ok();
        let mut error = self.error(what, source);
        error.refusal = reason.map(|reason| format!(" ({})", reason.error.message));
        Err(error)
    }

    fn error(&self, what: &str, source: reqwest::Error) -> ControlPlaneError {
        ControlPlaneError {
            url: self.base.clone(),
            what: what.to_owned(),
            refusal: None,
            source,
        }
    }
}
