//! A model behind Anthropic's Messages API, or behind whatever speaks it.

use std::io::Read;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use ureq::Agent;

use crate::{Model, ModelError, Speaker, Turn};

/// The default address of the API.
pub const DEFAULT_URL: &str = "https://api.anthropic.com";
/// The default model.
pub const DEFAULT_MODEL: &str = "claude-sonnet-4-5";

const API_VERSION: &str = "2023-06-01";
/// Room for the largest script that can be described on a few pages.
const ANSWER_TOKENS_MAX: u32 = 16_000;
/// Bytes of one answer of the API.
const ANSWER_BYTES_MAX: u64 = 1024 * 1024;
/// Bytes of an error's text that are shown.
const ERROR_CHARS_MAX: usize = 300;
/// A server that asks for a longer wait is asked again later, by a person.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// How to reach a model.
#[derive(Clone)]
pub struct ApiSettings {
    /// Without `/v1/messages`.
    pub url: String,
    /// The secret.
    pub key: String,
    /// The model's name.
    pub model: String,
    /// How long one answer may take.
    pub patience: Duration,
    /// Rests before the API is asked again when it is busy.
    pub rests: Vec<Duration>,
}

impl ApiSettings {
    /// Settings for a key, the rest as it usually is.
    pub fn new(key: String) -> Self {
        Self {
            url: DEFAULT_URL.to_owned(),
            key,
            model: DEFAULT_MODEL.to_owned(),
            patience: Duration::from_secs(180),
            rests: [2, 8, 20].map(Duration::from_secs).to_vec(),
        }
    }
}

/// A model behind HTTP.
pub struct MessagesApi {
    settings: ApiSettings,
    agent: Agent,
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    max_tokens: u32,
    system: &'a str,
    messages: Vec<Message<'a>>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a str,
}

#[derive(Deserialize)]
struct Answer {
    content: Vec<Block>,
    #[serde(default)]
    stop_reason: Option<String>,
}

/// Blocks of other kinds have no text.
#[derive(Deserialize)]
struct Block {
    #[serde(default)]
    text: String,
}

#[derive(Deserialize)]
struct Refusal {
    error: RefusalText,
}

#[derive(Deserialize)]
struct RefusalText {
    message: String,
}

impl MessagesApi {
    /// A model that is reached as `settings` say.
    ///
    /// # Errors
    /// When the key would travel in the open.
    pub fn new(settings: ApiSettings) -> Result<Self, ModelError> {
        if settings.key.trim().is_empty() {
            return Err(ModelError::NoKey);
        }
        if !is_private(&settings.url) {
            return Err(ModelError::Address(settings.url));
        }
        let agent = Agent::config_builder()
            .timeout_global(Some(settings.patience))
            .http_status_as_error(false)
            .max_redirects(0)
            .user_agent(concat!("frolic/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Self {
            settings,
            agent: agent.into(),
        })
    }

    fn once(&self, request: &Request) -> Result<Outcome, ModelError> {
        let url = format!("{}/v1/messages", self.settings.url.trim_end_matches('/'));
        let sent = self
            .agent
            .post(&url)
            .header("x-api-key", self.settings.key.trim())
            .header("anthropic-version", API_VERSION)
            .send_json(request);
        let mut answer = sent.map_err(|error| self.failure(error))?;
        let status = answer.status().as_u16();
        let wait = answer
            .headers()
            .get("retry-after")
            .and_then(|value| value.to_str().ok()?.parse().ok())
            .map(Duration::from_secs);
        let mut body = Vec::new();
        let reader = answer.body_mut().as_reader();
        let read = reader.take(ANSWER_BYTES_MAX + 1).read_to_end(&mut body);
        if let Err(error) = read {
            return Err(self.failure(ureq::Error::from(error)));
        }
        if body.len() as u64 > ANSWER_BYTES_MAX {
            return Err(ModelError::TooLarge(ANSWER_BYTES_MAX));
        }
        match status {
            200 => read_answer(&body).map(Outcome::Text),
            429 | 503 | 529 => Ok(Outcome::Busy { status, wait }),
            401 | 403 => Err(ModelError::WrongKey {
                status,
                message: message_of(&body),
            }),
            _ => Err(ModelError::Refused {
                status,
                message: message_of(&body),
            }),
        }
    }

    fn failure(&self, error: ureq::Error) -> ModelError {
        let seconds = self.settings.patience.as_secs().max(1);
        match error {
            ureq::Error::Timeout(_) => ModelError::Late(seconds),
            ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::TimedOut => {
                ModelError::Late(seconds)
            }
            error => ModelError::Unreachable {
                url: self.settings.url.clone(),
                cause: error.to_string(),
            },
        }
    }
}

enum Outcome {
    Text(String),
    Busy { status: u16, wait: Option<Duration> },
}

impl Model for MessagesApi {
    fn answer(&self, system: &str, turns: &[Turn]) -> Result<String, ModelError> {
        let request = Request {
            model: &self.settings.model,
            max_tokens: ANSWER_TOKENS_MAX,
            system,
            messages: turns.iter().map(message).collect(),
        };
        let mut rests = self.settings.rests.iter();
        loop {
            match self.once(&request)? {
                Outcome::Text(text) => return Ok(text),
                Outcome::Busy { status, wait } => {
                    let Some(rest) = rests.next() else {
                        return Err(ModelError::Busy { status });
                    };
                    let rest = wait.unwrap_or(*rest);
                    if rest > WAIT_MAX {
                        return Err(ModelError::Busy { status });
                    }
                    tracing::info!(status, ?rest, "the model's API is busy");
                    std::thread::sleep(rest);
                }
            }
        }
    }
}

fn message(turn: &Turn) -> Message<'_> {
    Message {
        role: match turn.by {
            Speaker::User => "user",
            Speaker::Assistant => "assistant",
        },
        content: &turn.text,
    }
}

fn read_answer(body: &[u8]) -> Result<String, ModelError> {
    let answer: Answer =
        serde_json::from_slice(body).map_err(|error| ModelError::Unreadable(error.to_string()))?;
    if answer.stop_reason.as_deref() == Some("max_tokens") {
        return Err(ModelError::CutOff);
    }
    Ok(answer.content.into_iter().map(|block| block.text).collect())
}

/// The message of an API error, for people; never the key.
fn message_of(body: &[u8]) -> String {
    let text = match serde_json::from_slice::<Refusal>(body) {
        Ok(refusal) => refusal.error.message,
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    };
    let clean = text.chars().filter(|c| !c.is_control());
    clean.take(ERROR_CHARS_MAX).collect()
}

/// Whether the address is safe to send the key to: HTTPS, or this machine.
fn is_private(url: &str) -> bool {
    if url.starts_with("https://") {
        return true;
    }
    let Some(rest) = url.strip_prefix("http://") else {
        return false;
    };
    let host = rest.split('/').next().unwrap_or_default();
    let name = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name == "localhost"
        || name
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_does_not_travel_in_the_open() {
        for (url, private) in [
            ("https://api.example.org", true),
            ("http://127.0.0.1:8080/v", true),
            ("http://localhost:1", true),
            ("http://[::1]:80", true),
            ("http://example.org", false),
            ("http://127.0.0.1.example.org", false),
            ("http://localhost@example.org", false),
            ("ftp://x", false),
        ] {
            assert_eq!(is_private(url), private, "{url}");
            let mut settings = ApiSettings::new("k".into());
            settings.url = url.into();
            assert_eq!(MessagesApi::new(settings).is_ok(), private, "{url}");
        }
        let none = MessagesApi::new(ApiSettings::new(" ".into()));
        assert!(matches!(none, Err(ModelError::NoKey)));
    }
}
