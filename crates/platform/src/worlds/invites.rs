//! `/api/invites`: links that lead a friend into the same world, next to the player who created
//! them.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use sqlx::{AnyPool, Row};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::{Invite, InviteInfo, NewInvite};
use crate::community::auth::{Role, Session};
use crate::community::profiles::parse_looks;
use crate::core::clock::rfc3339;
use crate::core::db::{from_row, to_u32};
use crate::core::error::ApiError;
use crate::core::extract::{ApiJson, ApiPath};
use crate::core::ids;
use crate::worlds;
use crate::worlds::Worlds;

/// Lifetime of a link after it was last requested.
const LIFETIME_MS: i64 = 24 * 60 * 60 * 1000;

pub fn routes() -> OpenApiRouter<Arc<Worlds>> {
    OpenApiRouter::new()
        .routes(routes!(create))
        .routes(routes!(show))
}

/// Target of an invitation.
#[derive(Clone, Debug)]
pub struct Invitation {
    /// World that it leads to.
    pub world_id: String,
    /// User next to whom the friend spawns.
    pub inviter_id: String,
}

from_row!(Invitation {
    world_id,
    inviter_id
});

/// Invite a friend to the world you are in
#[utoipa::path(post, path = "/api/invites", tag = "social", security(("bearer" = [])),
    request_body = NewInvite,
    responses((status = 201, body = Invite), (status = 404)))]
async fn create(
    State(worlds): State<Arc<Worlds>>,
    session: Session,
    ApiJson(new): ApiJson<NewInvite>,
) -> Result<(StatusCode, Json<Invite>), ApiError> {
    let db = &worlds.core.db;
    let world = worlds::find(db, &new.world_id).await?;
    // Only the owner and admins may invite into a private world.
    world
        .filter(|world| {
            let open = !world.spec.private || world.is_owned_by(&session.user_id);
            open || session.role >= Role::Admin
        })
        .ok_or_else(worlds::unknown_world)?;
    let now = worlds.core.clock.now_ms();
    let expires_at = now.saturating_add(LIFETIME_MS);
    sqlx::query(
        "INSERT INTO invites (code, world_id, inviter_id, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (world_id, inviter_id) DO UPDATE SET expires_at = excluded.expires_at",
    )
    .bind(ids::new_invite_code())
    .bind(&new.world_id)
    .bind(&session.user_id)
    .bind(now)
    .bind(expires_at)
    .execute(db)
    .await?;
    let code: String =
        sqlx::query_scalar("SELECT code FROM invites WHERE world_id = $1 AND inviter_id = $2")
            .bind(&new.world_id)
            .bind(&session.user_id)
            .fetch_one(db)
            .await?;
    let invite = Invite {
        path: format!("/i/{code}"),
        code,
        expires_at: rfc3339(expires_at),
    };
    Ok((StatusCode::CREATED, Json(invite)))
}

/// Target of an invitation
#[utoipa::path(get, path = "/api/invites/{code}", tag = "social",
    responses((status = 200, body = InviteInfo)))]
async fn show(
    State(worlds): State<Arc<Worlds>>,
    ApiPath(code): ApiPath<String>,
) -> Result<Json<InviteInfo>, ApiError> {
    let row = sqlx::query(
        "SELECT i.code, i.world_id, i.expires_at, u.username, c.looks, g.game_id, g.name, g.thumbnail_sha256,
                w.max_players
         FROM invites i JOIN users u ON u.user_id = i.inviter_id
         JOIN worlds w ON w.world_id = i.world_id JOIN games g ON g.game_id = w.game_id
         LEFT JOIN active_characters a ON a.user_id = i.inviter_id
         LEFT JOIN characters c ON c.user_id = a.user_id AND c.character_id = a.character_id
         WHERE i.code = $1 AND i.expires_at > $2",
    )
    .bind(code.trim().to_ascii_uppercase())
    .bind(worlds.core.clock.now_ms())
    .fetch_optional(&worlds.core.db)
    .await?
    .ok_or_else(unknown_invite)?;
    let world_id: String = row.try_get("world_id")?;
    let game_id: String = row.try_get("game_id")?;
    let picture: Option<String> = row.try_get("thumbnail_sha256")?;
    let looks: Option<String> = row.try_get("looks")?;
    let server = worlds.fleet.server(&world_id);
    Ok(Json(InviteInfo {
        code: row.try_get("code")?,
        inviter: row.try_get("username")?,
        looks: parse_looks(looks.as_deref().unwrap_or("{}")),
        thumbnail_url: picture.map(|_| format!("/api/games/{game_id}/thumbnail")),
        game_id,
        game_name: row.try_get("name")?,
        running: server.is_some(),
        players: server.map_or(0, |server| server.players()),
        max_players: to_u32(row.try_get("max_players")?),
        expires_at: rfc3339(row.try_get("expires_at")?),
    }))
}

/// Resolves an invitation code for the user who joins.
///
/// # Errors
/// 404 when the code is unknown or has expired, or the inviter has blocked the user.
pub async fn resolve(
    db: &AnyPool,
    code: &str,
    user_id: &str,
    now_ms: i64,
) -> Result<Invitation, ApiError> {
    let invitation = sqlx::query_as("SELECT world_id, inviter_id FROM invites i WHERE code = $1 AND expires_at > $2
           AND NOT EXISTS (SELECT 1 FROM blocks b WHERE b.user_id = i.inviter_id AND b.blocked_id = $3)",
    )
    .bind(code.trim().to_ascii_uppercase())
    .bind(now_ms)
    .bind(user_id)
    .fetch_optional(db)
    .await?;
    invitation.ok_or_else(unknown_invite)
}

/// Deletes expired invitations.
///
/// # Errors
/// When the database fails.
pub async fn delete_expired(db: &AnyPool, now_ms: i64) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM invites WHERE expires_at <= $1")
        .bind(now_ms)
        .execute(db)
        .await?;
    Ok(())
}

/// 404 response for an invitation.
pub fn unknown_invite() -> ApiError {
    ApiError::not_found(
        "invite_not_found",
        "This invite has expired. Ask your friend for a new link.",
    )
}
