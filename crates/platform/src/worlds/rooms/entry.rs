//! Entering a room with a session: `?token=…` in the URL instead of a ticket, and `resumeToken=…`
//! to reconnect. The platform joins for the client and sends the ticket to the game server, so that
//! the client needs only one WebSocket.

use axum::extract::Query;
use axum::http::{HeaderMap, Uri};
use serde::Deserialize;
use serde_json::json;

use crate::community::auth;
use crate::core::error::ApiError;
use crate::worlds::Worlds;
use crate::worlds::join;

/// Parameters of the URL.
#[derive(Deserialize)]
pub struct Entry {
    /// Session token, API key or JWT.
    #[serde(default)]
    token: Option<String>,
    /// Resume token of the last welcome.
    #[serde(default, rename = "resumeToken")]
    resume_token: Option<String>,
    /// With a ticket, the platform does not join for the client.
    #[serde(default)]
    ticket: Option<String>,
}

impl Entry {
    /// Parses the URL. `None` if the client sends a ticket or authenticates later.
    pub fn of(uri: &Uri) -> Option<Self> {
        let Query(entry) = Query::<Entry>::try_from_uri(uri).ok()?;
        let given = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        (given(&entry.token) && !given(&entry.ticket)).then_some(entry)
    }

    /// Joins the room, starts its server if necessary, and returns the handshake to send for the
    /// client.
    ///
    /// # Errors
    /// The errors of `POST /join`.
    pub async fn join(
        self,
        worlds: &Worlds,
        headers: &HeaderMap,
        code: &str,
    ) -> Result<String, ApiError> {
        let token = self.token.unwrap_or_default();
        let session = auth::authenticate(&worlds.community, &token).await?;
        let joined = join::into_room(worlds, session, headers, code).await?;
        let resume = self.resume_token.filter(|token| !token.is_empty());
        let handshake = json!({
            "v": 2, "kind": "command", "feature": "session", "action": "handshake",
            "payload": { "ticket": joined.ticket, "resumeToken": resume },
        });
        Ok(handshake.to_string())
    }
}
