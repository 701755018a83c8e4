//! Keeps at least one admin: without ADMIN_TOKEN, another could not be appointed.

use axum::http::StatusCode;
use sqlx::AnyConnection;

use crate::core::Core;
use crate::core::error::ApiError;

/// Locks the rows of all admins. Transactions that may remove an admin are serialized by this,
/// because otherwise each could rely on the admin that the other removes.
///
/// # Errors
/// When the database refuses.
pub async fn lock_admins(connection: &mut AnyConnection) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE users SET role = role WHERE role = 'admin'")
        .execute(connection)
        .await?;
    Ok(())
}

/// Prevents a lockout: without ADMIN_TOKEN there must be at least one admin. Call this inside the
/// transaction that removes one.
///
/// # Errors
/// 409 when no admin is left.
pub async fn refuse_last_admin(
    core: &Core,
    connection: &mut AnyConnection,
) -> Result<(), ApiError> {
    if core.settings.admin_token.is_some() {
        return Ok(());
    }
    let admins: i64 = sqlx::query_scalar(
        "SELECT COUNT(*) AS total FROM users WHERE role = 'admin' AND kind = 'account'",
    )
    .fetch_one(connection)
    .await?;
    if admins == 0 {
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "last_admin",
            "this is the last admin of the platform; make another account admin first",
        ));
    }
    Ok(())
}
