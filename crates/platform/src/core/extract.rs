//! Extractors for bodies, paths and queries whose rejections have the platform's
//! error format.

use axum::extract::{
    FromRequest, FromRequestParts, Path, Query, Request, rejection::BytesRejection,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::Bytes;
use serde::de::{DeserializeOwned, Error as _, IgnoredAny};
use serde_json::json;

use crate::core::error::ApiError;

/// An optional JSON body; an empty body or `null` means defaults.
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

/// A required JSON body.
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

/// The whole body as bytes, within the route's size limit.
pub struct ApiBytes(pub Bytes);

impl<S: Send + Sync> FromRequest<S> for ApiBytes {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, Self::Rejection> {
        read_body(request, state).await.map(Self)
    }
}

/// Path parameters.
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

/// Query parameters.
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

/// Rejects a body with a media type other than JSON. Default types of tools (`curl
/// -d`) count as unspecified.
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
        "this endpoint accepts JSON; send the header 'Content-Type: application/json'",
    ))
}

/// Postgres cannot store a NUL character in text, so no parameter may contain one.
const NO_ZERO: &str = "the URL contains a NUL character (%00); remove it";

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
                    "the request body is too large for this endpoint",
                )
            } else {
                ApiError::bad_request("invalid_body", "the request body could not be read")
            }
        })
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    let object = bytes.trim_ascii_start().first() == Some(&b'{');
    let parsed = if object {
        serde_json::from_slice(bytes)
    } else {
        // Serde also fills a struct from an array, in field order. Reject that: it
        // would make the order of fields part of the API.
        serde_json::from_slice::<IgnoredAny>(bytes)
            .and_then(|_| Err(serde_json::Error::custom("expected a JSON object")))
    };
    parsed.map_err(|error| {
        let code = if error.is_data() {
            "invalid_field"
        } else {
            "invalid_json"
        };
        ApiError::bad_request(code, format!("the request body is invalid: {error}"))
            .with_details(json!({ "line": error.line(), "column": error.column() }))
    })
}
