//! How a bot joins: through the control plane as players do, or straight to a
//! game server that takes no tickets.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use frolic_protocol::signature;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio_tungstenite::tungstenite::http::Uri;

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

/// The server to connect to.
pub struct Entry {
    pub address: String,
    pub ticket: Option<String>,
    /// The platform's key for scripts, and the game; none without a platform.
    pub trust: Option<([u8; 32], String)>,
    /// How to come back; none where there is no control plane to ask.
    pub place: Option<Place>,
}

/// A bot's place in a world, as the control plane knows it.
pub struct Place {
    session_token: String,
    world_id: String,
}

#[derive(Deserialize)]
struct Listing {
    games: Vec<Game>,
}

#[derive(Deserialize)]
struct Game {
    id: String,
}

#[derive(Deserialize)]
struct Login {
    session_token: String,
}

#[derive(Deserialize)]
struct Joined {
    server_address: String,
    ticket: String,
    game_id: String,
    script_key: String,
    world_id: String,
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

    /// Settles on one game, so that a crowd meets instead of each bot opening
    /// a world of its own.
    pub async fn choose_game(self) -> Result<Self> {
        let Door::ControlPlane { url, game: None } = &self else {
            return Ok(self);
        };
        let listing: Listing = reqwest::Client::new()
            .get(format!("{url}/api/games"))
            .send()
            .await
            .and_then(reqwest::Response::error_for_status)
            .with_context(|| {
                format!("requesting the games of {url}; is the platform running there?")
            })?
            .json()
            .await?;
        let first = listing.games.into_iter().next();
        let game = first.context("the platform has no games yet; publish one first")?;
        Ok(Door::ControlPlane {
            url: url.clone(),
            game: Some(game.id),
        })
    }

    /// Where the socket of a `ws:` address is.
    pub async fn resolve(address: &str) -> Result<SocketAddr> {
        let uri: Uri = address
            .parse()
            .with_context(|| format!("reading {address}"))?;
        if uri.scheme_str() != Some("ws") {
            bail!("light bots speak plain ws: only, not {address}");
        }
        let host = uri.host().context("an address without a host")?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let mut found = tokio::net::lookup_host((host, uri.port_u16().unwrap_or(80))).await?;
        found
            .next()
            .with_context(|| format!("no such host: {host}"))
    }

    /// Logs in and joins.
    pub async fn enter(&self, client: &reqwest::Client, name: &str) -> Result<Entry> {
        let (url, game) = match self {
            Door::Direct(address) => {
                return Ok(Entry {
                    address: address.clone(),
                    ticket: None,
                    trust: None,
                    place: None,
                });
            }
            Door::ControlPlane { url, game } => (url, game),
        };
        let login = client
            .post(format!("{url}/login"))
            .json(&serde_json::json!({ "username": name }));
        let login: Login = patiently(login).await.context("logging in")?;
        let wish = serde_json::json!({ "game_id": game });
        join(client, url, login.session_token, &wish).await
    }

    /// Joins the same world again as the same player: its server may have been
    /// restarted at another address.
    pub async fn enter_again(&self, client: &reqwest::Client, place: &Place) -> Result<Entry> {
        let Door::ControlPlane { url, .. } = self else {
            bail!("only a control plane knows where that world is now");
        };
        let wish = serde_json::json!({ "world_id": place.world_id });
        join(client, url, place.session_token.clone(), &wish).await
    }
}

async fn join(
    client: &reqwest::Client,
    url: &str,
    session_token: String,
    wish: &serde_json::Value,
) -> Result<Entry> {
    let request = client
        .post(format!("{url}/join"))
        .bearer_auth(&session_token)
        .json(wish);
    let joined: Joined = patiently(request).await.context("joining")?;
    Ok(Entry {
        address: joined.server_address,
        ticket: Some(joined.ticket),
        // An invalid key trusts no signature.
        trust: Some((
            signature::from_hex(&joined.script_key).unwrap_or_default(),
            joined.game_id,
        )),
        place: Some(Place {
            session_token,
            world_id: joined.world_id,
        }),
    })
}

/// How often a request that came too fast is tried again.
const TRIES: u32 = 60;

/// Sends a request, and again later while the platform asks for patience.
async fn patiently<T: DeserializeOwned>(request: reqwest::RequestBuilder) -> Result<T> {
    for _ in 0..TRIES {
        let again = request
            .try_clone()
            .context("a request that can be repeated")?;
        let answer = again.send().await?;
        if answer.status() != reqwest::StatusCode::TOO_MANY_REQUESTS {
            return Ok(answer.error_for_status()?.json().await?);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    bail!("the platform was busy {TRIES} times")
}
