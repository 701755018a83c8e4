//! How a bot gets in: through the control plane like everybody, or straight
//! to a game server that takes no tickets.

use anyhow::{Context, Result};
use serde::Deserialize;

/// Where bots go in.
#[derive(Clone, Debug)]
pub enum Door {
    /// `POST /login` and `/join`.
    ControlPlane {
        /// Its address.
        url: String,
        /// Which game; none: the default one.
        game: Option<String>,
    },
    /// A game server's WebSocket address.
    Direct(String),
}

/// What to connect to.
pub struct Entry {
    pub address: String,
    pub ticket: Option<String>,
}

#[derive(Deserialize)]
struct Login {
    session_token: String,
}

#[derive(Deserialize)]
struct Joined {
    server_address: String,
    ticket: String,
}

impl Door {
    /// A `ws:` address goes straight to a game server, any other to a control plane.
    pub fn new(url: &str, game: Option<String>) -> Self {
        if url.starts_with("ws://") || url.starts_with("wss://") {
            Door::Direct(url.to_owned())
        } else {
            Door::ControlPlane {
                url: url.trim_end_matches('/').to_owned(),
                game,
            }
        }
    }

    /// Logs in and joins.
    pub async fn enter(&self, client: &reqwest::Client, name: &str) -> Result<Entry> {
        let (url, game) = match self {
            Door::Direct(address) => {
                return Ok(Entry {
                    address: address.clone(),
                    ticket: None,
                });
            }
            Door::ControlPlane { url, game } => (url, game),
        };
        let login: Login = client
            .post(format!("{url}/login"))
            .json(&serde_json::json!({ "username": name }))
            .send()
            .await
            .and_then(reqwest::Response::error_for_status)
            .with_context(|| format!("logging in at {url}; is the platform running there?"))?
            .json()
            .await?;
        let joined: Joined = client
            .post(format!("{url}/join"))
            .bearer_auth(&login.session_token)
            .json(&serde_json::json!({ "game_id": game }))
            .send()
            .await
            .and_then(reqwest::Response::error_for_status)
            .context("joining")?
            .json()
            .await?;
        Ok(Entry {
            address: joined.server_address,
            ticket: Some(joined.ticket),
        })
    }
}
