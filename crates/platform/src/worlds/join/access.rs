//! Access rules of worlds, shared by `POST /join` and Socket.IO.

use sqlx::{AnyPool, Row};

use crate::catalog::access;
use crate::catalog::games::{self, GameRow};
use crate::community::auth::Principal;
use crate::community::auth::Role;
use crate::community::sanctions;
use crate::core::error::ApiError;
use crate::worlds::Worlds;
use crate::worlds::{self, WorldRow, helpers};

/// How a user addressed a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// By its id, which is not secret.
    Id,
    /// By its room code or an invitation, which a player in the world shared.
    Code,
}

/// Checks whether a user may enter a world. Rejects private worlds, games that are hidden or taken
/// down, and users whom the world's owner has blocked. Suspended users are rejected earlier, during
/// authentication. The player limit is not checked here.
///
/// # Errors
/// 404 when the user may not learn that the world exists, 403 for a game that was taken down.
pub async fn may_enter(
    worlds: &Worlds,
    actor: &Principal,
    world: &WorldRow,
    via: Via,
) -> Result<GameRow, ApiError> {
    let (db, user_id) = (&worlds.core.db, &actor.user_id);
    let trusted = world.is_owned_by(user_id) || actor.is_admin();
    let known = !world.spec.private || via == Via::Code;
    // Helpers are queried last, because nearly every join needs only the row that is already
    // loaded.
    if !trusted
        && (!known || is_blocked(db, world.owner_id(), user_id).await?)
        && !helpers::is_helper(db, &world.spec.world_id, user_id).await?
    {
        return Err(worlds::unknown_world());
    }
    open_game(worlds, actor, &world.spec.game_id).await
}

/// The game, if the user may play it.
///
/// # Errors
/// 404 for a game that the user may not see, 403 for one that moderators took down.
pub async fn open_game(
    worlds: &Worlds,
    actor: &Principal,
    game_id: &str,
) -> Result<GameRow, ApiError> {
    let game = games::find(&worlds.core.db, game_id).await?;
    let game = game.filter(|game| access::may_see_as(game, &actor.user_id, actor.role));
    let game = game.ok_or_else(games::unknown_game)?;
    sanctions::refuse_taken_down(&worlds.core.db, &game.game_id).await?;
    Ok(game)
}

/// Whether a block by the owner of the world keeps the player out, by the rules of [`may_enter`]:
/// the block still exists, and the player is neither a helper of the world nor an administrator.
///
/// # Errors
/// When the database fails.
pub async fn shuts_out(
    db: &AnyPool,
    world: &WorldRow,
    player_id: &str,
) -> Result<bool, sqlx::Error> {
    Ok(is_blocked(db, world.owner_id(), player_id).await?
        && !helpers::is_helper(db, &world.spec.world_id, player_id).await?
        && role_of(db, player_id).await? < Role::Admin)
}

async fn role_of(db: &AnyPool, user_id: &str) -> Result<Role, sqlx::Error> {
    let row = sqlx::query("SELECT role FROM users WHERE user_id = $1")
        .bind(user_id)
        .fetch_optional(db)
        .await?;
    match row {
        Some(row) => Ok(Role::from_name(row.try_get("role")?)),
        None => Ok(Role::Player),
    }
}

/// Whether the owner of a world has blocked this user.
///
/// # Errors
/// When the database fails.
pub async fn is_blocked(db: &AnyPool, owner_id: &str, user_id: &str) -> Result<bool, sqlx::Error> {
    if owner_id.is_empty() {
        return Ok(false);
    }
    let row = sqlx::query("SELECT 1 AS one FROM blocks WHERE user_id = $1 AND blocked_id = $2")
        .bind(owner_id)
        .bind(user_id)
        .fetch_optional(db)
        .await?;
    Ok(row.is_some())
}
