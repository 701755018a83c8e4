//! The OpenAPI document: put together from the handlers' own descriptions, so
//! that a call that is described is a call that exists.

use axum::Json;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use utoipa::OpenApi;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;

use crate::Platform;
use crate::api::{ErrorBody, ErrorInfo};

/// What is said once for all calls.
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

/// The one way to say who is asking.
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

/// Adds `GET /api/openapi.json` to what `router` answers, and forgets the
/// descriptions.
pub fn publish(router: OpenApiRouter<Platform>) -> axum::Router<Platform> {
    let (router, document) = router.split_for_parts();
    let document = Json(document);
    router.route(
        "/api/openapi.json",
        get(move || {
            let answer = ([(header::CACHE_CONTROL, "no-cache")], document.clone());
            async move { answer.into_response() }
        }),
    )
}
