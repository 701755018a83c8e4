//! The OpenAPI document, generated from the handlers' annotations, so that every
//! documented operation exists.

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use utoipa::OpenApi;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Ref, ResponseBuilder};
use utoipa_axum::router::OpenApiRouter;

use crate::api::{ErrorBody, ErrorInfo};
use crate::core::ids;

/// General information and shared definitions.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Frolic",
        description = "The control plane of a Frolic platform: accounts, store, worlds, joining, spells. \
                       Errors are `{\"error\": {\"code\", \"message\", \"details\"?}}`; times are RFC 3339.",
        license(name = "MIT OR Apache-2.0")
    ),
    components(schemas(ErrorBody, ErrorInfo)),
    modifiers(&BearerTokens)
)]
pub struct Document;

/// The security scheme: bearer tokens.
struct BearerTokens;

impl utoipa::Modify for BearerTokens {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let components = document.components.get_or_insert_with(Default::default);
        components.add_security_scheme(
            "bearer",
            SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)),
        );
    }
}

/// Responses that every operation may have, unless it describes them itself.
const ANYWHERE: [(&str, &str); 5] = [
    ("400", "Invalid request; the message says why"),
    ("408", "The request timed out"),
    (
        "429",
        "Too many requests from this address; see Retry-After",
    ),
    ("500", "Internal server error"),
    (
        "503",
        "The database or file storage is unavailable; see Retry-After",
    ),
];
/// Additional response of operations that require a token.
const WITH_TOKEN: (&str, &str) = ("401", "The token is missing or invalid");
/// Additional responses of operations with a body.
const WITH_BODY: [(&str, &str); 2] = [
    ("413", "The body is too large for this operation"),
    ("415", "Unsupported media type of the body"),
];

/// Adds `GET /api/openapi.json` to the router and drops the annotations.
pub fn publish(router: OpenApiRouter) -> axum::Router {
    let (router, mut document) = router.split_for_parts();
    complete(&mut document);
    // The document never changes while this process runs.
    let json = serde_json::to_vec(&document).unwrap_or_default();
    let etag = format!("\"{}\"", &ids::sha256_hex(&json)[..32]);
    let json = Bytes::from(json);
    router.route(
        "/api/openapi.json",
        get(move |request: HeaderMap| {
            let (json, etag) = (json.clone(), etag.clone());
            async move { answer(json, etag, &request) }
        }),
    )
}

fn answer(json: Bytes, etag: String, request: &HeaderMap) -> Response {
    let known = request.get(header::IF_NONE_MATCH);
    let unchanged = known.is_some_and(|known| known.as_bytes() == etag.as_bytes());
    let headers = [
        (header::CACHE_CONTROL, "no-cache".to_owned()),
        (header::ETAG, etag),
    ];
    if unchanged {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    let content_type = [(header::CONTENT_TYPE, "application/json")];
    (headers, content_type, json).into_response()
}

/// Names every operation after its method and path, and adds the common responses.
fn complete(document: &mut utoipa::openapi::OpenApi) {
    for (path, item) in &mut document.paths.paths {
        let operations = [
            ("get", &mut item.get),
            ("post", &mut item.post),
            ("put", &mut item.put),
            ("delete", &mut item.delete),
            ("patch", &mut item.patch),
        ];
        for (method, operation) in operations {
            let Some(operation) = operation else {
                continue;
            };
            operation.operation_id = Some(operation_id(method, path));
            let body = operation.request_body.iter().flat_map(|_| WITH_BODY);
            let ways = operation.security.as_ref();
            let secured = ways.is_some_and(|ways| !ways.contains(&SecurityRequirement::default()));
            let token = secured.then_some(WITH_TOKEN);
            for (status, text) in ANYWHERE.into_iter().chain(body).chain(token) {
                let responses = &mut operation.responses.responses;
                responses
                    .entry(status.to_owned())
                    .or_insert_with(|| failure(text).into());
            }
        }
    }
}

/// `get_api_games_id` for `GET /api/games/{id}`. Names of handlers repeat: many modules have a `list`.
fn operation_id(method: &str, path: &str) -> String {
    let words = path.split(|letter: char| !letter.is_ascii_alphanumeric());
    let words = words.filter(|word| !word.is_empty());
    std::iter::once(method)
        .chain(words)
        .collect::<Vec<_>>()
        .join("_")
}

fn failure(text: &str) -> utoipa::openapi::Response {
    let schema = Ref::from_schema_name("ErrorBody");
    ResponseBuilder::new()
        .description(text)
        .content(
            "application/json",
            ContentBuilder::new().schema(Some(schema)).build(),
        )
        .build()
}
