//! Every failure that a client can see: its status, its code and a message
//! that says what to do, as `{error: {code, message, details?}}`.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use crate::api::{ErrorBody, ErrorInfo};
use crate::db::Trouble;
use crate::fleet::FleetError;
use crate::health::fault_of;

/// An error on its way to a client.
#[derive(Debug, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
    details: Option<Value>,
    retry_after_s: Option<u64>,
    /// Why the database stores nothing at the moment, if that is the cause.
    database_fault: Option<DatabaseFault>,
}

/// Goes with a response that says that the database is at fault, for whoever
/// counts those.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DatabaseFault(pub &'static str);

impl ApiError {
    /// An error with a stable `code` for programs and a `message` for people.
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: sentence(message.into()),
            details: None,
            retry_after_s: None,
            database_fault: None,
        }
    }

    /// 400: the request itself is wrong.
    pub fn bad_request(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    /// 401: who is asking is unknown.
    pub fn unauthorized(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, code, message)
    }

    /// 403: known, but not allowed.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    /// 404 with a code that names what was looked for.
    pub fn not_found(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, message)
    }

    /// 503: right request, wrong moment.
    pub fn unavailable(code: &'static str, message: impl Into<String>, retry_after_s: u64) -> Self {
        Self {
            retry_after_s: Some(retry_after_s.max(1)),
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, code, message)
        }
    }

    /// 503: the database does not answer, or stores nothing.
    fn database_unavailable(fault: &'static str) -> Self {
        let message = "the database does not answer now; try again soon";
        Self {
            database_fault: Some(DatabaseFault(fault)),
            ..Self::unavailable("database_unavailable", message, 5)
        }
    }

    /// 429, with the seconds to wait.
    pub fn rate_limited(retry_after_s: u64) -> Self {
        Self {
            retry_after_s: Some(retry_after_s.max(1)),
            ..Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "rate_limited",
                format!(
                    "too many requests from your address; try again in {} s",
                    retry_after_s.max(1)
                ),
            )
        }
    }

    /// Says when asking again may help.
    pub fn with_retry_after(mut self, seconds: u64) -> Self {
        self.retry_after_s = Some(seconds);
        self
    }

    /// Whether it is the error with this code.
    pub fn is(&self, code: &str) -> bool {
        self.code == code
    }

    /// Whether what was asked for is not there.
    pub fn is_not_found(&self) -> bool {
        self.status == StatusCode::NOT_FOUND
    }

    /// Adds something a program can use.
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// The stable word for programs.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// The sentence for people.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether asking again may help: a failure of ours, or a bad moment.
    pub fn is_passing(&self) -> bool {
        self.status.is_server_error()
    }

    /// A failure of ours: the cause goes to the log, never to the client.
    fn internal(cause: &(dyn std::error::Error + 'static)) -> Self {
        tracing::error!(error = cause, "request failed");
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "something went wrong on the server; try again, and tell the operator if it stays",
        )
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = ErrorBody {
            error: ErrorInfo {
                code: self.code.to_owned(),
                message: self.message,
                details: self.details,
            },
        };
        let mut response = (self.status, Json(body)).into_response();
        if let Some(fault) = self.database_fault {
            response.extensions_mut().insert(fault);
        }
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after_s {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<sqlx::Error> for ApiError {
    fn from(error: sqlx::Error) -> Self {
        if let Some(fault) = fault_of(&error) {
            tracing::error!(%error, "the database does not answer");
            return Self::database_unavailable(fault);
        }
        match Trouble::of(&error) {
            Trouble::Busy => {
                tracing::warn!(%error, "others were faster");
                Self::unavailable("busy", "the server is busy; try again", 1)
            }
            Trouble::Text => Self::bad_request(
                "invalid_text",
                "a text in this request has a character that cannot be kept",
            ),
            Trouble::Away | Trouble::Ours => Self::internal(&error),
        }
    }
}

impl From<std::io::Error> for ApiError {
    fn from(error: std::io::Error) -> Self {
        // What the blob store says when the server behind it is away.
        if error.kind() == std::io::ErrorKind::NotConnected {
            tracing::error!(%error, "the blob store does not answer");
            let message = "the store of files does not answer now; try again soon";
            return Self::unavailable("files_unavailable", message, 5);
        }
        // No room (or no more files) for blobs: it ends when the operator makes room.
        if matches!(
            error.kind(),
            std::io::ErrorKind::StorageFull
                | std::io::ErrorKind::QuotaExceeded
                | std::io::ErrorKind::ReadOnlyFilesystem
        ) {
            tracing::error!(%error, "files cannot be stored");
            let message = "the platform cannot store files now; try again later";
            return Self::unavailable("files_unavailable", message, 5);
        }
        Self::internal(&error)
    }
}

impl From<FleetError> for ApiError {
    fn from(error: FleetError) -> Self {
        let message = error.to_string();
        match error {
            FleetError::WorldFull { .. } => Self::new(StatusCode::CONFLICT, "world_full", message),
            FleetError::Draining => Self::new(StatusCode::CONFLICT, "world_closing", message),
            FleetError::StartFailed { .. } => Self::unavailable("server_failed", message, 2),
            FleetError::StartTimeout => Self::unavailable("server_starting", message, 2),
            FleetError::CrashLoop { retry_after } => {
                Self::unavailable("server_crashing", message, retry_after.as_secs() + 1)
            }
            FleetError::TooManyServers => Self::unavailable("fleet_full", message, 30),
            FleetError::ShuttingDown => Self::unavailable("shutting_down", message, 5),
        }
    }
}

/// Errors of libraries are fragments, so that they can be put together; people
/// read sentences. Names of files and settings at the beginning stay as they
/// are.
fn sentence(mut text: String) -> String {
    let first = text.split([' ', ',', ';', ':']).next().unwrap_or_default();
    let is_word = !first.is_empty() && first.chars().all(|c| c.is_ascii_lowercase() || c == '\'');
    if is_word && let Some(letter) = text.get_mut(..1) {
        letter.make_ascii_uppercase();
    }
    if text
        .ends_with(|c: char| c.is_alphanumeric() || matches!(c, ')' | '\'' | '"' | '`' | '’' | '”'))
    {
        text.push('.');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_a_fault_that_passes() {
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        let error = ApiError::from(full).into_response();
        assert_eq!(error.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(error.headers().contains_key("retry-after"));
    }

    #[test]
    fn people_read_sentences() {
        for (fragment, expected) in [
            ("there is no such game", "There is no such game."),
            ("a game has at most 8", "A game has at most 8."),
            ("that name is taken.", "That name is taken."),
            ("what now?", "What now?"),
            ("don't do that", "Don't do that."),
            ("game.toml has no name", "game.toml has no name."),
            ("scene.json: bad", "scene.json: bad."),
            ("SOUL_API_KEY is not set", "SOUL_API_KEY is not set."),
            ("'x' is unknown", "'x' is unknown."),
            ("über", "über."),
            ("", ""),
        ] {
            let error = ApiError::bad_request("x", fragment);
            assert_eq!(error.message(), expected);
        }
    }
}
