//! The issuer's published keys: fetched when needed, kept for a while, fetched
//! again when a token names a key that is new. An issuer that is down for a
//! while locks nobody out whose key is known.

use std::time::Duration;

use jsonwebtoken::jwk::{Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::settings::IdentitySettings;

/// Keys are asked for again after this long.
const FRESH: Duration = Duration::from_secs(10 * 60);
/// Keys are used this long while the issuer does not answer.
const STALE: Duration = Duration::from_secs(24 * 60 * 60);
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
const BODY_BYTES_MAX: usize = 256 * 1024;
/// Issuers have two or three.
const KEYS_MAX: usize = 64;

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The issuer has no such key.
    #[error("no such key")]
    Unknown,
    /// The issuer could not be asked.
    #[error("the issuer does not answer")]
    Unavailable,
}

/// Why a fetch failed; for the log.
#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error(transparent)]
    Http(#[from] reqwest::Error),
    #[error("the answer is larger than {BODY_BYTES_MAX} bytes")]
    TooLarge,
    #[error("the answer is no key set: {0}")]
    NoKeySet(#[from] serde_json::Error),
}

/// The keys behind one URL.
pub struct KeySet {
    url: String,
    http: reqwest::Client,
    retry_after: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    keys: Vec<PublishedKey>,
    fetched_at: Option<Instant>,
    tried_at: Option<Instant>,
}

struct PublishedKey {
    id: Option<String>,
    /// What it is for, where the issuer says so.
    algorithm: Option<String>,
    key: DecodingKey,
}

impl PublishedKey {
    fn read(jwk: &Jwk) -> Option<Self> {
        if jwk.common.public_key_use == Some(PublicKeyUse::Encryption) {
            return None;
        }
        Some(Self {
            id: jwk.common.key_id.clone(),
            algorithm: jwk
                .common
                .key_algorithm
                .map(|algorithm| algorithm.to_string()),
            key: DecodingKey::from_jwk(jwk).ok()?,
        })
    }

    fn fits(&self, algorithm: Algorithm) -> bool {
        // A token chooses its algorithm; a key must not be used for another.
        let named = self.algorithm.as_deref();
        self.key.family() == algorithm.family()
            && named.is_none_or(|named| named == format!("{algorithm:?}"))
    }
}

impl KeySet {
    /// The keys at the URL of `settings`; nothing is fetched yet.
    ///
    /// # Errors
    /// When no HTTP client can be made.
    pub fn new(settings: &IdentitySettings) -> Result<Self, reqwest::Error> {
        let http = reqwest::Client::builder()
            .timeout(FETCH_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        Ok(Self {
            url: settings.jwks_url.clone(),
            http,
            retry_after: settings.keys_retry_after,
            state: Mutex::default(),
        })
    }

    /// The key that a token names, for the algorithm it names.
    ///
    /// # Errors
    /// [`KeyError`].
    pub async fn find(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<DecodingKey, KeyError> {
        // Held while fetching: a crowd of new tokens makes one fetch.
        let mut state = self.state.lock().await;
        let age = state.fetched_at.map(|at| at.elapsed());
        let known = state.find(id, algorithm);
        let fresh = age.is_some_and(|age| age < FRESH);
        let may_ask = state
            .tried_at
            .is_none_or(|at| at.elapsed() >= self.retry_after);
        if (known.is_none() || !fresh) && may_ask {
            state.tried_at = Some(Instant::now());
            match self.fetch().await {
                Ok(keys) => {
                    state.keys = keys;
                    state.fetched_at = Some(Instant::now());
                    return state.find(id, algorithm).ok_or(KeyError::Unknown);
                }
                Err(error) => {
                    tracing::warn!(url = self.url, %error, "the issuer's keys could not be fetched");
                }
            }
        }
        match known {
            Some(key) if age.is_some_and(|age| age < STALE) => Ok(key),
            None if state.fetched_at.is_some() => Err(KeyError::Unknown),
            _ => Err(KeyError::Unavailable),
        }
    }

    async fn fetch(&self) -> Result<Vec<PublishedKey>, FetchError> {
        let mut response = self.http.get(&self.url).send().await?.error_for_status()?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            if body.len() + chunk.len() > BODY_BYTES_MAX {
                return Err(FetchError::TooLarge);
            }
            body.extend_from_slice(&chunk);
        }
        let set: JwkSet = serde_json::from_slice(&body)?;
        let keys = set
            .keys
            .iter()
            .take(KEYS_MAX)
            .filter_map(PublishedKey::read);
        Ok(keys.collect())
    }
}

impl State {
    /// By id; a token without one is accepted where only one key fits.
    fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Option<DecodingKey> {
        let mut fitting = self.keys.iter().filter(|key| key.fits(algorithm));
        let found = match id {
            Some(id) => fitting.find(|key| key.id.as_deref() == Some(id))?,
            None => {
                let only = fitting.next()?;
                if fitting.next().is_some() {
                    return None;
                }
                only
            }
        };
        Some(found.key.clone())
    }
}
