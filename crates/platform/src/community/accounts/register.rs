//! Registration, login with a password, and logout.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use sqlx::{AnyConnection, Row};
use tokio::time::Instant;

use super::passwords;
use super::sessions::{self, SessionLifetime, User};
use crate::api::limits::USERNAME_CHARS_MAX;
use crate::api::{LoginResponse, PasswordLoginRequest, RegisterRequest};
use crate::community::Community;
use crate::community::auth::{AuthMethod, Kind, Role, Session};
use crate::core::error::ApiError;
use crate::core::extract::ApiJson;
use crate::core::limits::ClientAddress;
use crate::core::{ids, names};

/// Shorter account names are too easily confused.
const NAME_CHARS_MIN: usize = 3;

/// Creates an account. With a guest's token, that guest becomes the account with the same id, so
/// that games, worlds and characters stay with the user.
#[utoipa::path(
    post, path = "/api/register", tag = "accounts", security((), ("bearer" = [])),
    request_body = RegisterRequest,
    responses(
        (status = 201, body = LoginResponse),
        (status = 400, description = "Invalid name or password"),
        (status = 401, description = "Invalid token"),
        (status = 409, description = "The name is taken, or the caller already has an account"),
        (status = 503, description = "Too many password checks at the same time"),
    )
)]
pub async fn register(
    State(community): State<Arc<Community>>,
    session: Option<Session>,
    headers: HeaderMap,
    ApiJson(request): ApiJson<RegisterRequest>,
) -> Result<(StatusCode, Json<LoginResponse>), ApiError> {
    if session
        .as_ref()
        .is_some_and(|session| session.kind == Kind::Account)
    {
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "already_registered",
            "you are already logged in to an account; log out first to create another",
        ));
    }
    let stay = SessionLifetime::of(request.remember);
    let username = account_name(&community, &request.username)?;
    passwords::check(&request.password, &username)?;
    let hash = community.passwords.hash(request.password).await?;
    let now = community.core.clock.now_ms();
    let mut transaction = crate::core::db::begin(&community.core.db).await?;
    let user = match &session {
        Some(guest) => promote_guest(&mut transaction, &guest.user_id, &username).await?,
        None => sessions::insert_user(&mut transaction, &username, Kind::Account, now)
            .await?
            .ok_or_else(name_taken)?,
    };
    sqlx::query("INSERT INTO passwords (user_id, hash, changed_at) VALUES ($1, $2, $3)")
        .bind(&user.user_id)
        .bind(hash)
        .bind(now)
        .execute(&mut *transaction)
        .await?;
    // The guest's other sessions must not give access to the account.
    sessions::end_all(&mut transaction, &user.user_id, None).await?;
    let device = sessions::device(&headers);
    let response = sessions::open(&community, &mut transaction, &user, &device, stay).await?;
    transaction.commit().await?;
    community.core.metrics.logins.add(1);
    tracing::info!(user_id = user.user_id, "registered");
    Ok((StatusCode::CREATED, Json(response)))
}

/// Turns a guest into an account with this name.
///
/// # Errors
/// 409 when the name is taken, or the user is no longer a guest.
pub(super) async fn promote_guest(
    connection: &mut AnyConnection,
    user_id: &str,
    username: &str,
) -> Result<User, ApiError> {
    let promoted = sqlx::query(
        "UPDATE users SET username = $1, username_key = $2, kind = 'account', role = $3
         WHERE user_id = $4 AND kind = 'guest'",
    )
    .bind(username)
    .bind(names::key(username))
    .bind(sessions::first_role(Kind::Account).name())
    .bind(user_id)
    .execute(connection)
    .await
    .map_err(taken_or_failed)?;
    if promoted.rows_affected() == 0 {
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "already_registered",
            "this guest has already become an account; log in to it",
        ));
    }
    Ok(User {
        user_id: user_id.to_owned(),
        username: username.to_owned(),
        kind: Kind::Account,
        role: sessions::first_role(Kind::Account),
    })
}

/// Logs in to an account.
#[utoipa::path(
    post, path = "/api/login", tag = "accounts",
    request_body = PasswordLoginRequest,
    responses(
        (status = 200, body = LoginResponse),
        (status = 401, description = "Wrong name or password"),
        (status = 429, description = "Too many attempts for this account or from this address"),
        (status = 503, description = "Too many password checks at the same time"),
    )
)]
pub async fn login(
    State(community): State<Arc<Community>>,
    ClientAddress(address): ClientAddress,
    headers: HeaderMap,
    ApiJson(request): ApiJson<PasswordLoginRequest>,
) -> Result<Json<LoginResponse>, ApiError> {
    let stay = SessionLifetime::of(request.remember);
    let name = names::clean(&request.username).unwrap_or_default();
    let key = names::key(&name);
    community
        .attempts
        .take(&key, address, Instant::now())
        .await?;
    if !passwords::is_plausible(&request.password) {
        return Err(wrong_credentials());
    }
    let row = sqlx::query(
        "SELECT u.user_id, u.username, u.role, p.hash FROM users u
         JOIN passwords p ON p.user_id = u.user_id WHERE u.username_key = $1 AND u.kind = 'account'",
    )
    .bind(&key)
    .fetch_optional(&community.core.db)
    .await?;
    let hash: Option<String> = row.as_ref().map(|row| row.try_get("hash")).transpose()?;
    let matched = community.passwords.matches(request.password, hash.clone());
    let (true, Some(row), Some(hash)) = (matched.await?, row, hash) else {
        return Err(wrong_credentials());
    };
    community.attempts.reset(&key).await;
    let user = User {
        user_id: row.try_get("user_id")?,
        username: row.try_get("username")?,
        kind: Kind::Account,
        role: Role::from_name(row.try_get("role")?),
    };
    let mut transaction = crate::core::db::begin(&community.core.db).await?;
    // The password may have been changed while it was being verified: a login with the old one must
    // not outlive the change.
    let unchanged =
        sqlx::query("UPDATE passwords SET hash = hash WHERE user_id = $1 AND hash = $2")
            .bind(&user.user_id)
            .bind(hash)
            .execute(&mut *transaction)
            .await?;
    if unchanged.rows_affected() == 0 {
        return Err(wrong_credentials());
    }
    let device = sessions::device(&headers);
    let response = sessions::open(&community, &mut transaction, &user, &device, stay).await?;
    transaction.commit().await?;
    community.core.metrics.logins.add(1);
    Ok(Json(response))
}

/// Ends the session of the caller.
#[utoipa::path(
    post, path = "/logout", tag = "accounts", security(("bearer" = [])),
    responses(
        (status = 204),
        (status = 400, description = "The token is not a session token"),
    )
)]
pub async fn logout(
    State(community): State<Arc<Community>>,
    session: Session,
) -> Result<StatusCode, ApiError> {
    if session.method != AuthMethod::Session {
        return Err(ApiError::bad_request(
            "no_session",
            "only a session can be logged out; revoke an API key in the account instead",
        ));
    }
    sqlx::query("DELETE FROM sessions WHERE token_sha256 = $1")
        .bind(ids::sha256_hex(session.token.as_bytes()))
        .execute(&community.core.db)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Checks the name of an account and returns it as it was typed.
///
/// # Errors
/// 400 that names the violated rule.
pub(super) fn account_name(community: &Community, typed: &str) -> Result<String, ApiError> {
    let typed = typed.trim();
    let name = names::clean(typed).filter(|name| name == typed);
    let fits = |name: &String| name.chars().count() >= NAME_CHARS_MIN;
    let name = name.filter(fits).ok_or_else(|| {
        ApiError::bad_request(
            "invalid_username",
            format!(
                "Use {NAME_CHARS_MIN}–{} letters or numbers. You can put a space, _, - or . between them.",
                USERNAME_CHARS_MAX
            ),
        )
    })?;
    if names::is_reserved(&name) {
        return Err(name_taken());
    }
    names::check_inoffensive(&community.core.settings, &name)?;
    Ok(name)
}

/// 409 response for a taken name.
pub(super) fn name_taken() -> ApiError {
    ApiError::new(StatusCode::CONFLICT, "name_taken", "That name is taken.")
}

/// The unique key of names decides between concurrent requests.
pub(super) fn taken_or_failed(error: sqlx::Error) -> ApiError {
    match &error {
        sqlx::Error::Database(refused) if refused.is_unique_violation() => name_taken(),
        _ => error.into(),
    }
}

fn wrong_credentials() -> ApiError {
    ApiError::unauthorized(
        "wrong_credentials",
        "the name or the password is wrong; check both and try again",
    )
}
