//! Guest logins: a name for a few hours, without a password.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;

use super::sessions::{self, SessionLifetime};
use crate::api::{LoginRequest, LoginResponse};
use crate::community::Community;
use crate::community::auth::Kind;
use crate::core::error::ApiError;
use crate::core::extract::OptionalJson;
use crate::core::{ids, names};

/// Logs a guest in, without a password.
#[utoipa::path(
    post, path = "/login", tag = "accounts",
    request_body = Option<LoginRequest>,
    responses(
        (status = 200, body = LoginResponse),
        (status = 429, description = "Too many logins from this address"),
    )
)]
pub async fn login(
    State(community): State<Arc<Community>>,
    headers: HeaderMap,
    OptionalJson(request): OptionalJson<LoginRequest>,
) -> Result<Json<LoginResponse>, ApiError> {
    let wanted = request.username.as_deref().and_then(names::clean);
    let wanted = wanted.filter(|name| !names::is_reserved(name));
    let wanted =
        wanted.filter(|name| names::check_inoffensive(&community.core.settings, name).is_ok());
    let wanted = wanted.unwrap_or_else(|| names::generate(ids::random_bytes()));
    let mut transaction = crate::core::db::begin(&community.core.db).await?;
    let now = community.core.clock.now_ms();
    let user = sessions::create_user(&mut transaction, &wanted, Kind::Guest, now).await?;
    let device = sessions::device(&headers);
    let response = sessions::open(
        &community,
        &mut transaction,
        &user,
        &device,
        SessionLifetime::Short,
    )
    .await?;
    transaction.commit().await?;
    community.core.metrics.logins.add(1);
    Ok(Json(response))
}
