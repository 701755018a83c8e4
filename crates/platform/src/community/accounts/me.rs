//! The caller's account: show it, rename it, change its password.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use sqlx::{AnyConnection, Row};
use tokio::time::Instant;

use super::register::{account_name, taken_or_failed};
use super::{passwords, sessions};
use crate::api::{Account, ChangePasswordRequest, RenameRequest};
use crate::community::Community;
use crate::community::auth::{Kind, Session};
use crate::core::clock::rfc3339;
use crate::core::error::ApiError;
use crate::core::extract::ApiJson;
use crate::core::limits::ClientAddress;
use crate::core::names;

/// Your account.
#[utoipa::path(
    get, path = "/api/me", tag = "accounts", security(("bearer" = [])),
    responses((status = 200, body = Account))
)]
pub async fn show(
    State(community): State<Arc<Community>>,
    session: Session,
) -> Result<Json<Account>, ApiError> {
    Ok(Json(account(&community, session).await?))
}

async fn account(community: &Community, session: Session) -> Result<Account, ApiError> {
    let row = sqlx::query(
        "SELECT u.created_at, p.user_id AS has_password, i.issuer FROM users u
         LEFT JOIN passwords p ON p.user_id = u.user_id
         LEFT JOIN identities i ON i.user_id = u.user_id WHERE u.user_id = $1 LIMIT 1",
    )
    .bind(&session.user_id)
    .fetch_one(&community.core.db)
    .await?;
    let password: Option<String> = row.try_get("has_password")?;
    Ok(Account {
        client_id: session.user_id,
        username: session.username,
        kind: session.kind.name().to_owned(),
        role: session.role.name().to_owned(),
        has_password: password.is_some(),
        identity_issuer: row.try_get("issuer")?,
        means: session.method.name().to_owned(),
        created_at: rfc3339(row.try_get("created_at")?),
        expires_at: session.expires_at.map(rfc3339),
    })
}

/// Changes your name.
#[utoipa::path(
    patch, path = "/api/me", tag = "accounts", security(("bearer" = [])),
    request_body = RenameRequest,
    responses(
        (status = 200, body = Account),
        (status = 400, description = "Invalid name"),
        (status = 403, description = "The caller used an API key"),
        (status = 409, description = "The name is taken"),
    )
)]
pub async fn rename(
    State(community): State<Arc<Community>>,
    mut session: Session,
    ApiJson(request): ApiJson<RenameRequest>,
) -> Result<Json<Account>, ApiError> {
    session.require_person()?;
    let username = account_name(&community, &request.username)?;
    sqlx::query("UPDATE users SET username = $1, username_key = $2 WHERE user_id = $3")
        .bind(&username)
        .bind(names::key(&username))
        .bind(&session.user_id)
        .execute(&community.core.db)
        .await
        .map_err(taken_or_failed)?;
    session.username = username;
    Ok(Json(account(&community, session).await?))
}

/// Changes your password and ends all your other sessions. API keys stay.
#[utoipa::path(
    put, path = "/api/me/password", tag = "accounts", security(("bearer" = [])),
    request_body = ChangePasswordRequest,
    responses(
        (status = 204),
        (status = 400, description = "The new password is not acceptable"),
        (status = 403, description = "Wrong current password, or the caller is a guest or used an API key"),
        (status = 409, description = "The password was changed by another request"),
        (status = 503, description = "Too many password checks at the same time"),
    )
)]
pub async fn change_password(
    State(community): State<Arc<Community>>,
    session: Session,
    ClientAddress(address): ClientAddress,
    ApiJson(request): ApiJson<ChangePasswordRequest>,
) -> Result<StatusCode, ApiError> {
    session.require_person()?;
    session.require_account()?;
    passwords::check(&request.new_password, &session.username)?;
    let before = verify_password(&community, &session, address, request.current_password).await?;
    let hash = community.passwords.hash(request.new_password).await?;
    let mut transaction = crate::core::db::begin(&community.core.db).await?;
    let now = community.core.clock.now_ms();
    if !replace(&mut transaction, &session.user_id, before, &hash, now).await? {
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "password_changed",
            "the password was changed by another session; log in again",
        ));
    }
    sessions::end_all(&mut transaction, &session.user_id, Some(&session.token)).await?;
    transaction.commit().await?;
    tracing::info!(user_id = session.user_id, "password changed");
    Ok(StatusCode::NO_CONTENT)
}

/// Replaces the hash `before` by `hash`. Returns `false` if another hash is stored by now.
async fn replace(
    connection: &mut AnyConnection,
    user_id: &str,
    before: Option<String>,
    hash: &str,
    now_ms: i64,
) -> Result<bool, sqlx::Error> {
    let query = match &before {
        Some(_) => sqlx::query(
            "UPDATE passwords SET hash = $1, changed_at = $2 WHERE user_id = $3 AND hash = $4",
        ),
        None => sqlx::query(
            "INSERT INTO passwords (hash, changed_at, user_id) VALUES ($1, $2, $3)
             ON CONFLICT (user_id) DO NOTHING",
        ),
    };
    let mut query = query.bind(hash).bind(now_ms).bind(user_id);
    if let Some(before) = before {
        query = query.bind(before);
    }
    let replaced = query.execute(connection).await?;
    Ok(replaced.rows_affected() == 1)
}

/// Verifies the password of an account that has one, because a session left open on a shared
/// machine must not be enough to take over the account. Returns the hash that it was verified
/// against.
///
/// # Errors
/// 403 when the password is wrong or missing, 429 after too many attempts.
pub async fn verify_password(
    community: &Community,
    session: &Session,
    address: Option<std::net::IpAddr>,
    password: Option<String>,
) -> Result<Option<String>, ApiError> {
    let row = sqlx::query("SELECT hash FROM passwords WHERE user_id = $1")
        .bind(&session.user_id)
        .fetch_optional(&community.core.db)
        .await?;
    let Some(row) = row.filter(|_| session.kind == Kind::Account) else {
        return Ok(None);
    };
    let hash: String = row.try_get("hash")?;
    let wrong = || {
        ApiError::new(
            StatusCode::FORBIDDEN,
            "wrong_password",
            "Your current password is wrong. Check it and try again.",
        )
    };
    let password = password.filter(|password| passwords::is_plausible(password));
    let password = password.ok_or_else(wrong)?;
    let key = names::key(&session.username);
    community
        .attempts
        .take(&key, address, Instant::now())
        .await?;
    let matched = community.passwords.matches(password, Some(hash.clone()));
    if !matched.await? {
        return Err(wrong());
    }
    community.attempts.reset(&key).await;
    Ok(Some(hash))
}
