//! The error type of the REST API: status, code and a message that says what to do,
//! as `{error: {code, message, details?}}`.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use crate::api::{ErrorBody, ErrorInfo};
use crate::core::db::DbErrorKind;
use crate::core::write_health::fault_of;

/// An error response of the REST API.
#[derive(Debug, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
    details: Option<Value>,
    retry_after_s: Option<u64>,
    /// The database fault that caused this error, if any.
    database_fault: Option<DatabaseFault>,
}

/// Response extension that marks a failure caused by the database, for the health
/// check's count.
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

    /// 400: the request is invalid.
    pub fn bad_request(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    /// 401: the request is not authenticated.
    pub fn unauthorized(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, code, message)
    }

    /// 403: authenticated, but not allowed.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    /// 404 with a code that names what was not found.
    pub fn not_found(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, message)
    }

    /// 503: valid request, but it cannot be served now.
    pub fn unavailable(code: &'static str, message: impl Into<String>, retry_after_s: u64) -> Self {
        Self {
            retry_after_s: Some(retry_after_s.max(1)),
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, code, message)
        }
    }

    /// 503: the database is unreachable or rejects writes.
    fn database_unavailable(fault: &'static str) -> Self {
        let message = "the database is unavailable; try again soon";
        Self {
            database_fault: Some(DatabaseFault(fault)),
            ..Self::unavailable("database_unavailable", message, 5)
        }
    }

    /// 429 with the number of seconds to wait.
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

    /// Sets `Retry-After`.
    pub fn with_retry_after(mut self, seconds: u64) -> Self {
        self.retry_after_s = Some(seconds);
        self
    }

    /// Whether this error has the given code.
    pub fn is(&self, code: &str) -> bool {
        self.code == code
    }

    /// Whether the status is 404.
    pub fn is_not_found(&self) -> bool {
        self.status == StatusCode::NOT_FOUND
    }

    /// Adds machine-readable details.
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// The stable code for programs.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// The message for people.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether a retry may succeed: the failure is on the server's side.
    pub fn is_transient(&self) -> bool {
        self.status.is_server_error()
    }

    /// 500: the cause is logged and never sent to the client.
    fn internal(cause: &(dyn std::error::Error + 'static)) -> Self {
        tracing::error!(error = cause, "request failed");
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "internal server error; try again, and contact the operator if it persists",
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
            tracing::error!(%error, "database unavailable");
            return Self::database_unavailable(fault);
        }
        match DbErrorKind::of(&error) {
            DbErrorKind::Conflict => {
                tracing::warn!(%error, "database conflict, retries exhausted");
                Self::unavailable("busy", "the server is busy; try again", 1)
            }
            DbErrorKind::InvalidText => Self::bad_request(
                "invalid_text",
                "a text in this request contains a character that cannot be stored",
            ),
            DbErrorKind::Unavailable | DbErrorKind::Internal => Self::internal(&error),
        }
    }
}

impl From<std::io::Error> for ApiError {
    fn from(error: std::io::Error) -> Self {
        // The blob store reports `NotConnected` when its server is unreachable.
        if error.kind() == std::io::ErrorKind::NotConnected {
            tracing::error!(%error, "blob store unavailable");
            let message = "file storage is unavailable; try again soon";
            return Self::unavailable("files_unavailable", message, 5);
        }
        // The disk is full or has no free inodes; it lasts until the operator frees
        // space.
        if matches!(
            error.kind(),
            std::io::ErrorKind::StorageFull
                | std::io::ErrorKind::QuotaExceeded
                | std::io::ErrorKind::ReadOnlyFilesystem
        ) {
            tracing::error!(%error, "cannot write to the blob store");
            let message = "file storage is full or read-only; try again later";
            return Self::unavailable("files_unavailable", message, 5);
        }
        Self::internal(&error)
    }
}

/// Turns a lower-case error fragment into a sentence. A file or setting name at the
/// beginning stays as it is.
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
