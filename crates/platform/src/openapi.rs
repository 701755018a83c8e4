//! The OpenAPI document, generated from the handlers' annotations, so that every
//! documented operation exists.

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use utoipa::OpenApi;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Ref, RefOr, Required, ResponseBuilder};
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
/// Additional responses of operations with a body.
const WITH_BODY: [(&str, &str); 2] = [
    ("413", "The body is too large for this operation"),
    ("415", "Unsupported media type of the body"),
];
/// Additional response of operations that read a token.
const WITH_TOKEN: (&str, &str) = ("401", "The token is missing, invalid or expired");
/// Additional response of operations with an id in their path.
const WITH_ID: (&str, &str) = ("404", "Nothing with this id exists for the caller");
/// Texts of failures that an operation lists without a description.
const TEXTS: [(&str, &str); 4] = [
    ("403", "The caller may not do this"),
    ("404", "Not found"),
    ("409", "Conflicts with the current state or a later edit"),
    ("422", "The content is not valid; the message says why"),
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
            add_parameters(operation, path);
            add_failures(operation, path);
        }
    }
}

/// Declares the parameters in the path that the handler does not describe: they are ids.
fn add_parameters(operation: &mut Operation, path: &str) {
    let parameters = operation.parameters.get_or_insert_default();
    let names = path.split('/').filter_map(|segment| {
        let name = segment.strip_prefix('{')?;
        name.strip_suffix('}')
    });
    for name in names {
        let declared =
            |known: &RefOr<Parameter>| matches!(known, RefOr::T(known) if known.name == name);
        if !parameters.iter().any(declared) {
            let parameter = ParameterBuilder::new()
                .name(name)
                .parameter_in(ParameterIn::Path)
                .required(Required::True)
                .schema(Some(<String as utoipa::PartialSchema>::schema()));
            parameters.push(RefOr::T(parameter.build()));
        }
    }
}

/// Adds the common failures. The body of every failure is an [`ErrorBody`].
fn add_failures(operation: &mut Operation, path: &str) {
    let mut common = ANYWHERE.to_vec();
    if operation.request_body.is_some() {
        common.extend(WITH_BODY);
    }
    let anyone = SecurityRequirement::default();
    let mut accepted = operation.security.iter().flatten();
    if accepted.any(|requirement| *requirement != anyone) {
        common.push(WITH_TOKEN);
    }
    if path.contains('{') {
        common.push(WITH_ID);
    }
    let responses = &mut operation.responses.responses;
    for (status, text) in common {
        let response = ResponseBuilder::new().description(text).build();
        let entry = responses.entry(status.to_owned());
        entry.or_insert_with(|| response.into());
    }
    for (status, response) in responses {
        let RefOr::T(response) = response else {
            continue;
        };
        if !status.starts_with(['4', '5']) {
            continue;
        }
        let schema = Ref::from_schema_name("ErrorBody");
        let content = ContentBuilder::new().schema(Some(schema)).build();
        response.content =
            std::iter::once(("application/json".to_owned(), RefOr::T(content))).collect();
        let text = TEXTS.iter().find(|(known, _)| known == status);
        if let Some((_, text)) = text
            && response.description.is_empty()
        {
            response.description = (*text).to_owned();
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
