//! Request bodies and queries whose refusals have the platform's error form.

use axum::extract::{
    FromRequest, FromRequestParts, Path, Query, Request, rejection::BytesRejection,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::Bytes;
use serde::de::{Deserialize as _, DeserializeOwned, Deserializer, Error as _, IgnoredAny};
use serde_json::json;

use crate::error::ApiError;

/// A JSON body; an empty one, or `null`, means all defaults.
pub struct OptionalJson<T>(pub T);

impl<S, T> FromRequest<S> for OptionalJson<T>
where
    S: Send + Sync,
    T: DeserializeOwned + Default,
{
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, Self::Rejection> {
        check_media_type(request.headers())?;
        let bytes = read_body(request, state).await?;
        match bytes.trim_ascii() {
            b"" | b"null" => Ok(Self(T::default())),
            body => parse(body).map(Self),
        }
    }
}

/// A JSON body that must be there.
pub struct ApiJson<T>(pub T);

impl<S, T> FromRequest<S> for ApiJson<T>
where
    S: Send + Sync,
    T: DeserializeOwned,
{
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, Self::Rejection> {
        check_media_type(request.headers())?;
        let bytes = read_body(request, state).await?;
        parse(&bytes).map(Self)
    }
}

/// The whole body as bytes, within the limit of the route.
pub struct ApiBytes(pub Bytes);

impl<S: Send + Sync> FromRequest<S> for ApiBytes {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, Self::Rejection> {
        read_body(request, state).await.map(Self)
    }
}

/// A part of the path.
pub struct ApiPath<T>(pub T);

impl<S, T> FromRequestParts<S> for ApiPath<T>
where
    S: Send + Sync,
    T: DeserializeOwned + Send,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        if has_zero(parts.uri.path()) {
            return Err(ApiError::bad_request("invalid_path", NO_ZERO));
        }
        Path::from_request_parts(parts, state)
            .await
            .map(|Path(path)| Self(path))
            .map_err(|rejection| ApiError::bad_request("invalid_path", rejection.body_text()))
    }
}

/// The query string.
pub struct ApiQuery<T>(pub T);

impl<S, T> FromRequestParts<S> for ApiQuery<T>
where
    S: Send + Sync,
    T: DeserializeOwned,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        if parts.uri.query().is_some_and(has_zero) {
            return Err(ApiError::bad_request("invalid_query", NO_ZERO));
        }
        Query::from_request_parts(parts, state)
            .await
            .map(|Query(query)| Self(query))
            .map_err(|rejection| ApiError::bad_request("invalid_query", rejection.body_text()))
    }
}

/// Refuses what says of itself that it is something else than JSON. The types
/// that tools send when nobody told them (`curl -d`) count as nothing said.
fn check_media_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(given) = headers.get(header::CONTENT_TYPE) else {
        return Ok(());
    };
    let given = given.to_str().unwrap_or("?");
    let kind = given.split(';').next().unwrap_or_default();
    let kind = kind.trim().to_ascii_lowercase();
    let unsaid = [
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/octet-stream",
    ];
    if kind == "application/json" || kind.ends_with("+json") || unsaid.contains(&kind.as_str()) {
        return Ok(());
    }
    Err(ApiError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "unsupported_media_type",
        "this endpoint takes JSON; send the header 'Content-Type: application/json'",
    ))
}

/// Postgres keeps no text with a zero character, so nothing has one.
const NO_ZERO: &str = "the address has a zero character (%00); leave it out";

fn has_zero(encoded: &str) -> bool {
    encoded.contains("%00")
}

async fn read_body<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, ApiError> {
    Bytes::from_request(request, state)
        .await
        .map_err(|rejection: BytesRejection| {
            if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
                ApiError::new(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "payload_too_large",
                    "the request body is larger than this endpoint takes",
                )
            } else {
                ApiError::bad_request("invalid_body", "the request body could not be read")
            }
        })
}

/// A JSON object within a body, and nothing else: see [`parse`].
pub fn object<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<T, D::Error> {
    let fields = serde_json::Map::deserialize(from)?;
    T::deserialize(serde_json::Value::Object(fields)).map_err(D::Error::custom)
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    let object = bytes.trim_ascii_start().first() == Some(&b'{');
    let parsed = if object {
        serde_json::from_slice(bytes)
    } else {
        // Serde would also fill a struct from an array, in the order of its
        // fields; nobody means that.
        serde_json::from_slice::<IgnoredAny>(bytes)
            .and_then(|_| Err(serde_json::Error::custom("expected a JSON object")))
    };
    parsed.map_err(|error| {
        let code = if error.is_data() {
            "invalid_field"
        } else {
            "invalid_json"
        };
        ApiError::bad_request(
            code,
            format!("the body is not what this endpoint takes: {error}"),
        )
        .with_details(json!({ "line": error.line(), "column": error.column() }))
    })
}
