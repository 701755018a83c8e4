//! Deletes an account. Personal data is deleted at once; the row stays without a name, because
//! games, worlds and reports of other users reference it.

use axum::extract::State;
use axum::http::StatusCode;
use sqlx::AnyConnection;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::Platform;
use crate::api::DeleteAccountRequest;
use crate::community::accounts::me::verify_password;
use crate::community::accounts::roles::{lock_admins, refuse_last_admin};
use crate::community::auth::{Role, Session};
use crate::core::error::ApiError;
use crate::core::extract::ApiJson;
use crate::core::ids;
use crate::core::limits::ClientAddress;
use crate::worlds::datastore;

/// Statements that delete the data of one user and of no one else.
const PERSONAL: [&str; 14] = [
    "DELETE FROM sessions WHERE user_id = $1",
    "DELETE FROM passwords WHERE user_id = $1",
    "DELETE FROM identities WHERE user_id = $1",
    "DELETE FROM api_keys WHERE user_id = $1",
    "DELETE FROM active_characters WHERE user_id = $1",
    "DELETE FROM characters WHERE user_id = $1",
    "DELETE FROM player_checkpoints WHERE player_id = $1",
    "DELETE FROM blocks WHERE user_id = $1",
    "DELETE FROM invites WHERE inviter_id = $1",
    "DELETE FROM companions WHERE user_id = $1",
    "DELETE FROM companions WHERE companion_id = $1",
    "DELETE FROM game_likes WHERE user_id = $1",
    "DELETE FROM game_players WHERE user_id = $1",
    "DELETE FROM uploads WHERE user_id = $1",
];

/// The route, which has the rate limit of logins.
pub fn rated_routes() -> OpenApiRouter<Platform> {
    OpenApiRouter::new().routes(routes!(delete))
}

/// Deletes your account: name, password, sessions, keys, characters and the data that games stored
/// about you. Your games are removed from the store.
#[utoipa::path(
    post, path = "/api/me/delete", tag = "accounts", security(("bearer" = [])),
    request_body = DeleteAccountRequest,
    responses(
        (status = 204),
        (status = 400, description = "The name is not yours"),
        (status = 403, description = "Wrong password, or the caller used an API key"),
        (status = 409, description = "This is the last admin account"),
        (status = 503, description = "Too many password checks at the same time"),
    )
)]
pub async fn delete(
    State(platform): State<Platform>,
    session: Session,
    ClientAddress(address): ClientAddress,
    ApiJson(request): ApiJson<DeleteAccountRequest>,
) -> Result<StatusCode, ApiError> {
    session.require_person()?;
    if request.username.trim() != session.username {
        return Err(ApiError::bad_request(
            "name_differs",
            format!(
                "type your own name, '{}', to delete the account",
                session.username
            ),
        ));
    }
    verify_password(&platform.community, &session, address, request.password).await?;
    let mut transaction = crate::core::db::begin(&platform.core.db).await?;
    lock_admins(&mut transaction).await?;
    if !take_name_away(&mut transaction, &session.user_id).await? {
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "already_deleted",
            "this account has already been deleted",
        ));
    }
    if session.role == Role::Admin {
        refuse_last_admin(&platform.core, &mut transaction).await?;
    }
    for statement in PERSONAL {
        sqlx::query(statement)
            .bind(&session.user_id)
            .execute(&mut *transaction)
            .await?;
    }
    sqlx::query("UPDATE games SET published = 0, visibility = 'private' WHERE creator_id = $1")
        .bind(&session.user_id)
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await?;
    platform.catalog.cache.invalidate();
    datastore::forget_player(&platform.worlds, &session.user_id).await?;
    tracing::info!(user_id = session.user_id, "account deleted");
    Ok(StatusCode::NO_CONTENT)
}

async fn take_name_away(
    connection: &mut AnyConnection,
    user_id: &str,
) -> Result<bool, sqlx::Error> {
    let placeholder = ids::new_id("deleted");
    let changed = sqlx::query(
        "UPDATE users SET username = $1, username_key = $2, kind = 'deleted', role = 'player'
         WHERE user_id = $3 AND kind IN ('guest', 'account')",
    )
    .bind(&placeholder)
    .bind(&placeholder)
    .bind(user_id)
    .execute(connection)
    .await?;
    Ok(changed.rows_affected() == 1)
}
