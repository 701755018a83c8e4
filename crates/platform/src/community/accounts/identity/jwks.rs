//! Caches the issuer's published keys and fetches them again when a token names an unknown key.
//! While the issuer is unavailable, users whose key is cached can still log in.

use std::time::Duration;

use jsonwebtoken::jwk::{Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::core::settings::IdentitySettings;

/// Cached keys are refreshed after this time.
const FRESH: Duration = Duration::from_secs(10 * 60);
/// Cached keys remain valid for this time while the issuer does not respond.
const STALE: Duration = Duration::from_secs(24 * 60 * 60);
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
const BODY_BYTES_MAX: usize = 256 * 1024;
/// Keys that are read from one key set. Issuers publish two or three.
const KEYS_MAX: usize = 64;

/// Reason why no key was found.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The issuer publishes no such key.
    #[error("no such key")]
    Unknown,
    /// The issuer did not respond.
    #[error("the issuer does not respond")]
    Unavailable,
}

/// Reason why a fetch failed, for the log.
#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error(transparent)]
    Http(#[from] reqwest::Error),
    #[error("the response is larger than {BODY_BYTES_MAX} bytes")]
    TooLarge,
    #[error("the response is not a key set: {0}")]
    NoKeySet(#[from] serde_json::Error),
}

/// The key set published at one URL.
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
    /// Algorithm that the key is for, if the issuer names one.
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
        // The token chooses its algorithm; a key must not be used with any other.
        let named = self.algorithm.as_deref();
        self.key.family() == algorithm.family()
            && named.is_none_or(|named| named == format!("{algorithm:?}"))
    }
}

impl KeySet {
    /// Key set at the URL of `settings`; fetched on first use.
    ///
    /// # Errors
    /// When no HTTP client can be created.
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

    /// Key with the given id for the given algorithm.
    ///
    /// # Errors
    /// [`KeyError`] when there is no such key or the issuer does not respond.
    pub async fn find(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<DecodingKey, KeyError> {
        // The lock is held while fetching, so that many new tokens cause one fetch.
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
                    tracing::warn!(url = self.url, %error, "could not fetch the issuer's keys");
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
    /// A token without a key id is accepted only if exactly one key fits its algorithm.
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
