//! Coming into a room with a session: `?token=…` in the address instead of a ticket, and
//! `resumeToken=…` to come back. The platform joins for the client and shows the game server the
//! ticket, so that a client needs no more than one WebSocket.

use axum::extract::Query;
use axum::http::{HeaderMap, Uri};
use serde::Deserialize;
use serde_json::json;

use crate::Platform;
use crate::auth;
use crate::error::ApiError;
use crate::join;

/// What a client says in the address.
#[derive(Deserialize)]
pub struct Entry {
    /// A session, an API key or a JWT.
    #[serde(default)]
    token: Option<String>,
    /// Of the last welcome.
    #[serde(default, rename = "resumeToken")]
    resume_token: Option<String>,
    /// Who has one needs nothing of this.
    #[serde(default)]
    ticket: Option<String>,
}

impl Entry {
    /// What the address says, unless the client brings a ticket or says who it is later.
    pub fn of(uri: &Uri) -> Option<Self> {
        let Query(entry) = Query::<Entry>::try_from_uri(uri).ok()?;
        let given = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        (given(&entry.token) && !given(&entry.ticket)).then_some(entry)
    }

    /// Joins the room, starting its server where none runs, and gives the handshake to send for
    /// the client.
    ///
    /// # Errors
    /// As `POST /join`.
    pub async fn join(
        self,
        platform: &Platform,
        headers: &HeaderMap,
        code: &str,
    ) -> Result<String, ApiError> {
        let token = self.token.unwrap_or_default();
        let session = auth::authenticate(platform, &token).await?;
        let joined = join::into_room(platform, session, headers, code).await?;
        let resume = self.resume_token.filter(|token| !token.is_empty());
        let handshake = json!({
            "v": 2, "kind": "command", "feature": "session", "action": "handshake",
            "payload": { "ticket": joined.ticket, "resumeToken": resume },
        });
        Ok(handshake.to_string())
    }
}
