//! API keys: bearer tokens for the command line and other programs. A key has at most the rights of
//! a creator, is valid until revoked, and is stored as a hash.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use sqlx::Row;

use crate::api::limits::KEY_NAME_CHARS_MAX;
use crate::api::{ApiKey, ApiKeyList, CreateKeyRequest, CreatedKey};
use crate::community::Community;
use crate::community::auth::{AuthMethod, Role, Session};
use crate::core::clock::rfc3339;
use crate::core::db::{from_row, to_u32};
use crate::core::error::ApiError;
use crate::core::extract::{ApiJson, ApiPath};
use crate::core::ids;

/// Distinguishes a key from a session token, and lets secret scanners recognise one.
const PREFIX: &str = "frolic_key_";
/// API keys per account.
const KEYS_MAX: i64 = 20;
const HINT_CHARS: usize = 4;
/// Minimum interval between writes of a key's last use, because a program may make a thousand calls
/// a minute.
const USE_WRITTEN_EVERY_MS: i64 = 60_000;

/// Whether the token has the form of an API key.
pub fn is_api_key(token: &str) -> bool {
    token.starts_with(PREFIX)
}

/// Session of the key's owner. A key never carries the rights of moderators and admins: those
/// require a person who logs in.
///
/// # Errors
/// 401 when the key is unknown.
pub async fn find(community: &Community, token: &str) -> Result<Session, ApiError> {
    let row = sqlx::query(
        "SELECT u.user_id, u.username, u.kind, u.role, k.key_id, k.last_used_at FROM api_keys k
         JOIN users u ON u.user_id = k.user_id WHERE k.token_sha256 = $1",
    )
    .bind(ids::sha256_hex(token.as_bytes()))
    .fetch_optional(&community.core.db)
    .await?
    .ok_or_else(|| {
        ApiError::unauthorized(
            "invalid_token",
            "this API key is unknown or was revoked; create a new one in your account",
        )
    })?;
    let now = community.core.clock.now_ms();
    let written: i64 = row.try_get("last_used_at")?;
    if now.saturating_sub(written) >= USE_WRITTEN_EVERY_MS {
        sqlx::query(
            "UPDATE api_keys SET last_used_at = $1 WHERE key_id = $2 AND last_used_at < $3",
        )
        .bind(now)
        .bind(row.try_get::<String, _>("key_id")?)
        .bind(now)
        .execute(&community.core.db)
        .await?;
    }
    let mut session = Session::from_row(&row, AuthMethod::ApiKey, None, token)?;
    session.role = session.role.min(Role::Creator);
    Ok(session)
}

from_row!(ApiKey {
    key_id, name, hint, created_at => rfc3339,
    last_used_at => |at: i64| (at > 0).then(|| rfc3339(at))
});

/// Your API keys.
#[utoipa::path(
    get, path = "/api/me/keys", tag = "accounts", security(("bearer" = [])),
    responses((status = 200, body = ApiKeyList))
)]
pub async fn list(
    State(community): State<Arc<Community>>,
    session: Session,
) -> Result<Json<ApiKeyList>, ApiError> {
    let keys: Vec<ApiKey> = sqlx::query_as(
        "SELECT key_id, name, hint, created_at, last_used_at FROM api_keys WHERE user_id = $1
         ORDER BY created_at DESC, key_id LIMIT $2",
    )
    .bind(&session.user_id)
    .bind(KEYS_MAX)
    .fetch_all(&community.core.db)
    .await?;
    Ok(Json(ApiKeyList {
        total: to_u32(i64::try_from(keys.len()).unwrap_or(0)),
        keys,
    }))
}

/// Creates an API key. The response is the only place where it is shown.
#[utoipa::path(
    post, path = "/api/me/keys", tag = "accounts", security(("bearer" = [])),
    request_body = CreateKeyRequest,
    responses(
        (status = 201, body = CreatedKey),
        (status = 400, description = "Invalid name"),
        (status = 403, description = "The caller is a guest or used an API key"),
        (status = 409, description = "The account has the maximum number of keys"),
    )
)]
pub async fn create(
    State(community): State<Arc<Community>>,
    session: Session,
    ApiJson(request): ApiJson<CreateKeyRequest>,
) -> Result<(StatusCode, Json<CreatedKey>), ApiError> {
    session.require_person()?;
    session.require_account()?;
    let name = key_name(&request.name)?;
    let api_key = format!("{PREFIX}{}", ids::new_token());
    let key_id = ids::new_id("key");
    let hint = &api_key[api_key.len() - HINT_CHARS..];
    let now = community.core.clock.now_ms();
    let mut transaction = crate::core::db::begin(&community.core.db).await?;
    // This update locks the row, so that concurrent requests of one user count correctly.
    sqlx::query("UPDATE users SET last_seen_at = $1 WHERE user_id = $2")
        .bind(now)
        .bind(&session.user_id)
        .execute(&mut *transaction)
        .await?;
    let count: i64 =
        sqlx::query_scalar("SELECT COUNT(*) AS total FROM api_keys WHERE user_id = $1")
            .bind(&session.user_id)
            .fetch_one(&mut *transaction)
            .await?;
    if count >= KEYS_MAX {
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "too_many_keys",
            format!("an account can have at most {KEYS_MAX} API keys; revoke one that is not used"),
        ));
    }
    sqlx::query(
        "INSERT INTO api_keys (key_id, user_id, name, token_sha256, hint, created_at, last_used_at)
         VALUES ($1, $2, $3, $4, $5, $6, 0)",
    )
    .bind(&key_id)
    .bind(&session.user_id)
    .bind(&name)
    .bind(ids::sha256_hex(api_key.as_bytes()))
    .bind(hint)
    .bind(now)
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await?;
    let key = ApiKey {
        key_id,
        name,
        hint: hint.to_owned(),
        created_at: rfc3339(now),
        last_used_at: None,
    };
    Ok((StatusCode::CREATED, Json(CreatedKey { api_key, key })))
}

/// Revokes an API key.
#[utoipa::path(
    delete, path = "/api/me/keys/{key_id}", tag = "accounts", security(("bearer" = [])),
    responses(
        (status = 204),
        (status = 403, description = "The caller used an API key"),
        (status = 404, description = "You have no such key"),
    )
)]
pub async fn revoke(
    State(community): State<Arc<Community>>,
    session: Session,
    ApiPath(key_id): ApiPath<String>,
) -> Result<StatusCode, ApiError> {
    session.require_person()?;
    let revoked = sqlx::query("DELETE FROM api_keys WHERE key_id = $1 AND user_id = $2")
        .bind(&key_id)
        .bind(&session.user_id)
        .execute(&community.core.db)
        .await?;
    if revoked.rows_affected() == 0 {
        return Err(ApiError::not_found(
            "key_not_found",
            "you have no such API key; it may already have been revoked",
        ));
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Accepts any printable text of bounded length.
fn key_name(typed: &str) -> Result<String, ApiError> {
    let name: String = typed
        .chars()
        .filter(|c| c.is_alphanumeric() || c.is_ascii_punctuation() || *c == ' ')
        .take(KEY_NAME_CHARS_MAX + 1)
        .collect();
    let name = name.trim();
    if name.is_empty() || name.chars().count() > KEY_NAME_CHARS_MAX {
        return Err(ApiError::bad_request(
            "invalid_name",
            format!("name the key with 1 to {KEY_NAME_CHARS_MAX} characters"),
        ));
    }
    Ok(name.to_owned())
}
