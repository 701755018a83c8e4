//! An identity issuer on a free port with real keys, signatures and HTTP.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use frolic_platform::IdentitySettings;
use jsonwebtoken::jwk::{Jwk, JwkSet};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use p256::pkcs8::EncodePrivateKey as _;
use rsa::RsaPrivateKey;
use rsa::pkcs1::EncodeRsaPrivateKey as _;
use rsa::rand_core::OsRng;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::START_MS;

pub const ISSUER: &str = "https://issuer.test/";
pub const AUDIENCE: &str = "frolic-tests";

/// A key pair of the issuer.
#[derive(Clone)]
pub struct SigningKey {
    id: &'static str,
    algorithm: Algorithm,
    pair: EncodingKey,
}

fn new_rsa() -> EncodingKey {
    let key = RsaPrivateKey::new(&mut OsRng, 2048).unwrap();
    EncodingKey::from_rsa_der(key.to_pkcs1_der().unwrap().as_bytes())
}

impl SigningKey {
    pub fn rsa() -> Self {
        static PAIR: OnceLock<EncodingKey> = OnceLock::new();
        Self {
            id: "rsa-1",
            algorithm: Algorithm::RS256,
            pair: PAIR.get_or_init(new_rsa).clone(),
        }
    }

    /// The key after the issuer rotated its keys.
    pub fn next_rsa() -> Self {
        static PAIR: OnceLock<EncodingKey> = OnceLock::new();
        Self {
            id: "rsa-2",
            algorithm: Algorithm::RS256,
            pair: PAIR.get_or_init(new_rsa).clone(),
        }
    }

    pub fn ec() -> Self {
        static PAIR: OnceLock<EncodingKey> = OnceLock::new();
        let new = || {
            let key = p256::SecretKey::random(&mut OsRng);
            let der = key.to_pkcs8_der().unwrap();
            EncodingKey::from_ec_der(der.as_bytes())
        };
        Self {
            id: "ec-1",
            algorithm: Algorithm::ES256,
            pair: PAIR.get_or_init(new).clone(),
        }
    }

    /// This key under the id of another one, as a forger would use it.
    pub fn named_as(mut self, other: &SigningKey) -> Self {
        self.id = other.id;
        self
    }

    pub fn public(&self) -> Jwk {
        let mut jwk = Jwk::from_encoding_key(&self.pair, self.algorithm).unwrap();
        jwk.common.key_id = Some(self.id.to_owned());
        jwk
    }

    /// Signs valid claims, overridden by `claims`.
    pub fn sign(&self, claims: Value) -> String {
        let now_s = START_MS / 1000;
        let mut all = json!({
            "iss": ISSUER, "aud": AUDIENCE, "sub": "user-1", "exp": now_s + 600, "iat": now_s,
        });
        for (name, value) in claims.as_object().unwrap() {
            if value.is_null() {
                all.as_object_mut().unwrap().remove(name);
            } else {
                all[name] = value.clone();
            }
        }
        let mut header = Header::new(self.algorithm);
        header.kid = Some(self.id.to_owned());
        encode(&header, &all, &self.pair).unwrap()
    }
}

/// The running issuer.
pub struct Issuer {
    url: String,
    answer: Arc<Mutex<Answer>>,
    fetches: Arc<AtomicUsize>,
    served: JoinHandle<()>,
}

#[derive(Clone)]
enum Answer {
    Keys(JwkSet),
    Down,
    Endless,
}

impl Issuer {
    pub async fn start(keys: &[&SigningKey]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/jwks.json", listener.local_addr().unwrap());
        let answer = Arc::new(Mutex::new(Answer::Keys(JwkSet { keys: vec![] })));
        let fetches = Arc::new(AtomicUsize::new(0));
        let route = get({
            let (answer, fetches) = (answer.clone(), fetches.clone());
            move || {
                fetches.fetch_add(1, Ordering::SeqCst);
                let answer = answer.lock().unwrap().clone();
                async move { respond(answer) }
            }
        });
        let app = Router::new().route("/jwks.json", route);
        let served = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        let issuer = Self {
            url,
            answer,
            fetches,
            served,
        };
        issuer.publish(keys);
        issuer
    }

    pub fn settings(&self) -> IdentitySettings {
        let mut settings = IdentitySettings::new(self.url.clone(), ISSUER.to_owned());
        settings.audience = Some(AUDIENCE.to_owned());
        settings
    }

    pub fn publish(&self, keys: &[&SigningKey]) {
        let keys = keys.iter().map(|key| key.public()).collect();
        *self.answer.lock().unwrap() = Answer::Keys(JwkSet { keys });
    }

    pub fn go_down(&self) {
        *self.answer.lock().unwrap() = Answer::Down;
    }

    pub fn respond_endlessly(&self) {
        *self.answer.lock().unwrap() = Answer::Endless;
    }

    pub fn fetches(&self) -> usize {
        self.fetches.load(Ordering::SeqCst)
    }
}

impl Drop for Issuer {
    fn drop(&mut self) {
        self.served.abort();
    }
}

fn respond(answer: Answer) -> Response {
    match answer {
        Answer::Keys(keys) => Json(keys).into_response(),
        Answer::Down => StatusCode::BAD_GATEWAY.into_response(),
        Answer::Endless => vec![b' '; 3_000_000].into_response(),
    }
}
