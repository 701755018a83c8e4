//! Who may be in a world: one set of rules for `POST /join` and for Socket.IO.

use sqlx::AnyPool;

use crate::Platform;
use crate::auth::Role;
use crate::error::ApiError;
use crate::games::{self, GameRow};
use crate::moderation;
use crate::spells::Actor;
use crate::store::access;
use crate::worlds::{self, WorldRow, helpers};

/// How somebody came to know of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// By its id, which is no secret.
    Id,
    /// By its room code or an invitation, which somebody inside gave away.
    Code,
}

/// Refuses those who may not be in a world: private worlds, games that are hidden or taken down,
/// and people whom the world's owner has blocked. Suspended people are refused before, where they
/// say who they are. Whether the world has room is not asked here.
///
/// # Errors
/// 404 where they may not know of the world, 403 for a game that was taken down.
pub async fn may_enter(
    platform: &Platform,
    actor: &Actor,
    world: &WorldRow,
    via: Via,
) -> Result<GameRow, ApiError> {
    let (db, user_id) = (platform.db(), &actor.user_id);
    let trusted = world.is_owned_by(user_id) || actor.role >= Role::Admin;
    let known = !world.spec.private || via == Via::Code;
    // Helpers are looked up last: nearly every join needs no more than the row it has.
    if !trusted
        && (!known || is_blocked(db, world.owner_id(), user_id).await?)
        && !helpers::is_one(db, &world.spec.world_id, user_id).await?
    {
        return Err(worlds::unknown_world());
    }
    open_game(platform, actor, &world.spec.game_id).await
}

/// The game, for those who may play it.
///
/// # Errors
/// 404 for a game they may not see, 403 for one that moderators took down.
pub async fn open_game(
    platform: &Platform,
    actor: &Actor,
    game_id: &str,
) -> Result<GameRow, ApiError> {
    let game = games::find(platform.db(), game_id).await?;
    let game = game.filter(|game| access::may_see_as(game, &actor.user_id, actor.role));
    let game = game.ok_or_else(games::unknown_game)?;
    moderation::refuse_taken_down(platform.db(), &game.game_id).await?;
    Ok(game)
}

/// Whether a world belongs to `owner_id`, whose block then counts in it, unless
/// the player helps there.
///
/// # Errors
/// When the database refuses.
pub async fn shuts_out(
    db: &AnyPool,
    world_id: &str,
    owner_id: &str,
    player_id: &str,
) -> Result<bool, sqlx::Error> {
    let world = worlds::find(db, world_id).await?;
    let is_theirs = world.is_some_and(|world| world.is_owned_by(owner_id));
    Ok(is_theirs && !helpers::is_one(db, world_id, player_id).await?)
}

/// Whether the owner of a world wants nothing to do with this person.
async fn is_blocked(db: &AnyPool, owner_id: &str, user_id: &str) -> Result<bool, sqlx::Error> {
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
