//! `POST /internal/reload` and `/internal/outside`: the control plane gives a
//! running world new scripts, and forwards requests of outside users. Authenticated
//! by the world's token, which only the supervisor of this process knows.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::sync::{mpsc, oneshot};

use crate::inbox::Inbound;

/// All scripts of a package as JSON.
const BODY_BYTES_MAX: usize = 128 * 1024 * 1024;
/// Spells for a world to learn, with their code.
const OUTSIDE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// A world that takes longer is stuck.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone)]
struct Door {
    inbox: mpsc::Sender<Inbound>,
    token_sha256: Arc<[u8; 32]>,
}

/// The routes, for callers with the world's token.
pub fn routes(inbox: mpsc::Sender<Inbound>, token: &str) -> Router {
    let door = Door {
        inbox,
        token_sha256: Arc::new(Sha256::digest(token).into()),
    };
    Router::new()
        .route("/internal/reload", post(reload))
        .route("/internal/outside", post(outside))
        .with_state(door)
}

async fn reload(State(door): State<Door>, request: Request) -> Response {
    match door.read(request, BODY_BYTES_MAX).await {
        Ok(request) => door.ask(|answer| Inbound::Reload { request, answer }).await,
        Err(refusal) => refusal,
    }
}

async fn outside(State(door): State<Door>, request: Request) -> Response {
    match door.read(request, OUTSIDE_BYTES_MAX).await {
        Ok(request) => {
            door.ask(|answer| Inbound::Outside { request, answer })
                .await
        }
        Err(refusal) => refusal,
    }
}

impl Door {
    /// The body, if the caller has the token.
    async fn read<T: DeserializeOwned>(
        &self,
        request: Request,
        bytes_max: usize,
    ) -> Result<T, Response> {
        let given = request
            .headers()
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.strip_prefix("Bearer "))
            .unwrap_or("");
        // Hashes are compared, in constant time, to prevent timing attacks.
        let given: [u8; 32] = Sha256::digest(given).into();
        if !bool::from(given.ct_eq(self.token_sha256.as_slice())) {
            return Err(StatusCode::UNAUTHORIZED.into_response());
        }
        // The port is public: no unauthenticated body is read.
        let body = axum::body::to_bytes(request.into_body(), bytes_max).await;
        let body = body.map_err(|error| error.to_string());
        let parsed =
            body.and_then(|body| serde_json::from_slice(&body).map_err(|error| error.to_string()));
        parsed.map_err(|error| (StatusCode::BAD_REQUEST, error).into_response())
    }

    /// Sends a request to the world's thread and waits for the answer.
    async fn ask<T: Serialize>(
        &self,
        inbound: impl FnOnce(oneshot::Sender<T>) -> Inbound,
    ) -> Response {
        let (answer, reply) = oneshot::channel();
        let sent = self.inbox.send(inbound(answer)).await;
        match (sent, tokio::time::timeout(PATIENCE, reply).await) {
            (Ok(()), Ok(Ok(reply))) => Json(reply).into_response(),
            _ => (StatusCode::SERVICE_UNAVAILABLE, "the world does not answer").into_response(),
        }
    }
}
