//! Administration of users: list them, assign roles, reset passwords. Only admins assign roles; the
//! holder of ADMIN_TOKEN appoints the first admin.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;

use crate::Platform;
use crate::api::{GiveRoleRequest, NewPassword, RoleName, UserInfo, UserList};
use crate::community::accounts::roles::{lock_admins, refuse_last_admin};
use crate::community::accounts::sessions;
use crate::community::auth::Admin;
use crate::community::auth::Role;
use crate::core::clock::rfc3339;
use crate::core::db::{from_row, to_u32};
use crate::core::error::ApiError;
use crate::core::extract::{ApiJson, ApiPath, ApiQuery};
use crate::core::ids;
use crate::core::paging::{PER_PAGE, Page};

const QUERY_CHARS_MAX: usize = 64;
const SELECT: &str = "SELECT u.user_id, u.username, u.kind, u.role, u.created_at, u.last_seen_at,
       (SELECT COUNT(*) FROM games g WHERE g.creator_id = u.user_id) AS games FROM users u";

from_row!(UserInfo {
    client_id: "user_id", username, kind, role, games => to_u32, created_at => rfc3339,
    last_seen_at => rfc3339
});

impl From<RoleName> for Role {
    fn from(name: RoleName) -> Self {
        match name {
            RoleName::Player => Role::Player,
            RoleName::Creator => Role::Creator,
            RoleName::Moderator => Role::Moderator,
            RoleName::Admin => Role::Admin,
        }
    }
}

/// Query of `GET /admin/users`.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct UsersQuery {
    /// Part of a name, or a whole id.
    #[serde(default)]
    q: Option<String>,
    /// Only users with this role.
    #[serde(default)]
    #[param(inline)]
    role: Option<RoleName>,
    /// Include guests and deleted accounts.
    #[serde(default)]
    guests: bool,
    /// Page number, from 1.
    #[param(minimum = 1, maximum = 10000)]
    page: Option<u32>,
    /// Entries on a page.
    #[param(minimum = 1, maximum = 100)]
    per_page: Option<u32>,
}

/// Users, newest first.
#[utoipa::path(
    get, path = "/admin/users", tag = "admin", security(("bearer" = [])),
    params(UsersQuery),
    responses(
        (status = 200, body = UserList),
        (status = 403, description = "Not an admin"),
    )
)]
pub async fn list(
    State(platform): State<Platform>,
    _: Admin,
    ApiQuery(query): ApiQuery<UsersQuery>,
) -> Result<Json<UserList>, ApiError> {
    let page = Page::of(query.page, query.per_page, PER_PAGE)?;
    let typed = query.q.unwrap_or_default();
    let role = query.role.map(|role| Role::from(role).name());
    let kinds = if query.guests {
        "'account', 'house', 'guest', 'deleted'"
    } else {
        "'account', 'house'"
    };
    let filter = format!(
        "u.kind IN ({kinds}) AND (u.username_key LIKE $1 ESCAPE '!' OR u.user_id = $2)
         AND ($3 = '' OR u.role = $3)"
    );
    let count = format!("SELECT COUNT(*) AS total FROM users u WHERE {filter}");
    let total: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(count))
        .bind(like_pattern(&typed))
        .bind(typed.trim())
        .bind(role.unwrap_or_default())
        .fetch_one(&platform.core.db)
        .await?;
    let select =
        format!("{SELECT} WHERE {filter} ORDER BY u.created_at DESC, u.user_id LIMIT $4 OFFSET $5");
    let users = sqlx::query_as(sqlx::AssertSqlSafe(select))
        .bind(like_pattern(&typed))
        .bind(typed.trim())
        .bind(role.unwrap_or_default())
        .bind(page.limit())
        .bind(page.offset())
        .fetch_all(&platform.core.db)
        .await?;
    Ok(Json(UserList {
        users,
        total: to_u32(total),
        page: page.page,
        per_page: page.per_page,
    }))
}

/// Assigns a role to an account. It applies to the account's open sessions at once.
#[utoipa::path(
    post, path = "/admin/users/{user_id}/role", tag = "admin", security(("bearer" = [])),
    request_body = GiveRoleRequest,
    responses(
        (status = 200, body = UserInfo),
        (status = 403, description = "Not an admin"),
        (status = 404, description = "No such account"),
        (status = 409, description = "The role was changed by another request, or this is the last admin"),
    )
)]
pub async fn give_role(
    State(platform): State<Platform>,
    admin: Admin,
    ApiPath(user_id): ApiPath<String>,
    ApiJson(request): ApiJson<GiveRoleRequest>,
) -> Result<Json<UserInfo>, ApiError> {
    let role = Role::from(request.role);
    let was = request.was.map(|was| Role::from(was).name());
    let mut transaction = crate::core::db::begin(&platform.core.db).await?;
    if role < Role::Admin {
        lock_admins(&mut transaction).await?;
    }
    let given = sqlx::query(
        "UPDATE users SET role = $1 WHERE user_id = $2 AND kind = 'account' AND ($3 = '' OR role = $3)",
    )
    .bind(role.name())
    .bind(&user_id)
    .bind(was.unwrap_or_default())
    .execute(&mut *transaction)
    .await?;
    let user: Option<UserInfo> = sqlx::query_as(sqlx::AssertSqlSafe(format!(
        "{SELECT} WHERE u.user_id = $1"
    )))
    .bind(&user_id)
    .fetch_optional(&mut *transaction)
    .await?;
    let user = user
        .filter(|user| user.kind == "account")
        .ok_or_else(unknown_account)?;
    if given.rows_affected() == 0 {
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "role_changed",
            format!(
                "the role was changed to '{}' in the meantime; reload and try again",
                user.role
            ),
        ));
    }
    if role < Role::Admin {
        refuse_last_admin(&platform.core, &mut transaction).await?;
    }
    transaction.commit().await?;
    tracing::info!(by = admin.name(), user_id, role = role.name(), "role given");
    Ok(Json(user))
}

/// Generates a new password for an account and ends its sessions. The platform sends no e-mail; the
/// operator hands the password over.
#[utoipa::path(
    post, path = "/admin/users/{user_id}/password", tag = "admin", security(("bearer" = [])),
    responses(
        (status = 200, body = NewPassword),
        (status = 403, description = "Not an admin"),
        (status = 404, description = "No such account"),
        (status = 503, description = "Too many password checks at the same time"),
    )
)]
pub async fn reset_password(
    State(platform): State<Platform>,
    admin: Admin,
    ApiPath(user_id): ApiPath<String>,
) -> Result<Json<NewPassword>, ApiError> {
    let password = ids::new_id("frolic");
    let hash = platform.community.passwords.hash(password.clone()).await?;
    let now = platform.core.clock.now_ms();
    let mut transaction = crate::core::db::begin(&platform.core.db).await?;
    let found = sqlx::query("UPDATE users SET kind = kind WHERE user_id = $1 AND kind = 'account'")
        .bind(&user_id)
        .execute(&mut *transaction)
        .await?;
    if found.rows_affected() == 0 {
        return Err(unknown_account());
    }
    sqlx::query(
        "INSERT INTO passwords (user_id, hash, changed_at) VALUES ($1, $2, $3)
         ON CONFLICT (user_id) DO UPDATE SET hash = excluded.hash, changed_at = excluded.changed_at",
    )
    .bind(&user_id)
    .bind(hash)
    .bind(now)
    .execute(&mut *transaction)
    .await?;
    sessions::end_all(&mut transaction, &user_id, None).await?;
    transaction.commit().await?;
    tracing::info!(by = admin.name(), user_id, "password reset");
    Ok(Json(NewPassword { password }))
}

fn unknown_account() -> ApiError {
    ApiError::not_found(
        "user_not_found",
        "there is no such account; guests have to register first",
    )
}

/// A LIKE pattern that finds `typed` anywhere in a name's key.
fn like_pattern(typed: &str) -> String {
    let mut pattern = String::from("%");
    let typed = typed.trim().chars().take(QUERY_CHARS_MAX);
    for c in typed.flat_map(char::to_lowercase) {
        if matches!(c, '%' | '_' | '!') {
            pattern.push('!');
        }
        pattern.push(c);
    }
    pattern.push('%');
    pattern
}
