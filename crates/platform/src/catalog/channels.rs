//! Release channels: dev for the creator, beta by choice of the player, stable for
//! everyone. A new version can go to a percentage of the players first, and one call
//! rolls back.
//!
//! A running world keeps its version: a channel change affects only later joins, so
//! an update disconnects no player.

mod change;
mod read;

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use sqlx::AnyPool;

use super::games::GameRow;
use super::{access, edition_conflict, game_changed, versions};
use crate::api::{AtEdition, Channel, GameChannels, SetChannel};
use crate::catalog::Catalog;
use crate::community::auth::{Role, Session};
use crate::community::sanctions::ActiveSession;
use crate::core::error::ApiError;
use crate::core::extract::{ApiJson, ApiPath};
use crate::core::ids;

pub use change::{ChannelChange, apply, bump_edition, refresh_visibility};
pub use read::{beta_version, find as given, of_game};

/// The version of a game for a joining player, by channel and rollout percentage.
///
/// # Errors
/// 404 for a channel without a version, 403 for another creator's dev channel.
pub async fn for_player(
    db: &AnyPool,
    game: GameRow,
    session: &Session,
    channel: Option<Channel>,
) -> Result<GameRow, ApiError> {
    let channel = channel.unwrap_or_default();
    let (revision, rollout) = match channel {
        Channel::Stable => (game.revision.clone(), game.rollout.clone()),
        Channel::Beta | Channel::Dev => {
            if channel == Channel::Dev
                && game.creator_id != session.user_id
                && session.role < Role::Moderator
            {
                return Err(ApiError::forbidden(
                    "only the creator may join the dev version of a game; join without a channel",
                ));
            }
            let found = read::find(db, &game.game_id, channel).await?;
            found.ok_or_else(|| {
                ApiError::not_found(
                    "channel_empty",
                    format!(
                        "this game has no {} version; join without a channel",
                        channel.name()
                    ),
                )
            })?
        }
    };
    let wanted = match &rollout {
        Some(next) if is_in_share(&game.game_id, &next.revision, &session.user_id, next.pct) => {
            next.revision.clone()
        }
        _ => revision,
    };
    let game = GameRow {
        channel,
        rollout,
        ..game
    };
    if wanted == game.revision {
        return Ok(game);
    }
    let version = versions::find(db, &game.game_id, &wanted).await?;
    let version = version.ok_or_else(versions::unknown_version)?;
    Ok(GameRow {
        revision: version.revision,
        max_players: version.max_players,
        idle_stop_s: version.idle_stop_s,
        persistent: version.persistent,
        ..game
    })
}

/// Whether a player is in the first `pct` percent for a revision. The result is
/// deterministic, and a player stays included when the percentage grows.
fn is_in_share(game_id: &str, revision: &str, user_id: &str, pct: u32) -> bool {
    let hash = ids::secret_digest(&format!("{game_id}\n{revision}\n{user_id}"));
    let [a, b, c, d, ..] = hash;
    u32::from_le_bytes([a, b, c, d]) % 100 < pct
}

/// The channels of your game and their history.
///
/// # Errors
/// 404 for a game you cannot see, 403 for another creator's.
#[utoipa::path(
    get, path = "/api/creator/games/{id}/channels", tag = "creator",
    responses(
        (status = 200, body = GameChannels),
        (status = 403),
    ),
    security(("bearer" = []))
)]
pub async fn show(
    State(catalog): State<Arc<Catalog>>,
    session: Session,
    ApiPath(game_id): ApiPath<String>,
) -> Result<Json<GameChannels>, ApiError> {
    let game = access::owned(&catalog.core.db, &game_id, &session).await?;
    Ok(Json(read::page(&catalog.core.db, &game).await?))
}

/// Releases a version to a channel, for all players or a percentage.
///
/// # Errors
/// 404 for an unknown version, 409 when the game was changed in the meantime or there
/// is nothing to roll out.
#[utoipa::path(
    put, path = "/api/games/{id}/channels/{channel}", tag = "creator",
    params(
        ("channel" = Channel, Path, description = "Channel")
    ),
    request_body = SetChannel,
    responses(
        (status = 200, body = GameChannels),
        (status = 403), (status = 409),
    ),
    security(("bearer" = []))
)]
pub async fn set(
    State(catalog): State<Arc<Catalog>>,
    ActiveSession(session): ActiveSession,
    ApiPath((game_id, channel)): ApiPath<(String, Channel)>,
    ApiJson(request): ApiJson<SetChannel>,
) -> Result<Json<GameChannels>, ApiError> {
    let pct = request.rollout_pct.unwrap_or(100);
    if !(1..=100).contains(&pct) {
        return Err(ApiError::bad_request(
            "invalid_field",
            "rollout_pct must be from 1 to 100",
        ));
    }
    let change = match pct {
        100 => ChannelChange::Release(&request.revision),
        pct => ChannelChange::RollOut(&request.revision, pct),
    };
    changed(
        &catalog,
        &session,
        &game_id,
        channel,
        request.edition,
        change,
    )
    .await
}

/// Rolls back: ends a rollout, or restores the previous version.
///
/// # Errors
/// 409 when the game was changed in the meantime, or there is nothing to roll back
/// to.
#[utoipa::path(
    post, path = "/api/games/{id}/channels/{channel}/rollback", tag = "creator",
    params(
        ("channel" = Channel, Path, description = "Channel")
    ),
    request_body = AtEdition,
    responses(
        (status = 200, body = GameChannels),
        (status = 403), (status = 409),
    ),
    security(("bearer" = []))
)]
pub async fn roll_back(
    State(catalog): State<Arc<Catalog>>,
    session: Session,
    ApiPath((game_id, channel)): ApiPath<(String, Channel)>,
    ApiJson(request): ApiJson<AtEdition>,
) -> Result<Json<GameChannels>, ApiError> {
    let edition = request.edition;
    changed(
        &catalog,
        &session,
        &game_id,
        channel,
        edition,
        ChannelChange::RollBack,
    )
    .await
}

async fn changed(
    catalog: &Catalog,
    session: &Session,
    game_id: &str,
    channel: Channel,
    edition: u32,
    change: ChannelChange<'_>,
) -> Result<Json<GameChannels>, ApiError> {
    let db = &catalog.core.db;
    let game = access::owned(db, game_id, session).await?;
    let now = catalog.core.clock.now_ms();
    let mut transaction = crate::core::db::begin(db).await?;
    if !bump_edition(&mut transaction, game_id, Some(edition), now).await? {
        return Err(edition_conflict(game.edition));
    }
    apply(
        &mut transaction,
        game_id,
        channel,
        change,
        &session.user_id,
        now,
    )
    .await?;
    transaction.commit().await?;
    game_changed(catalog, game_id).await?;
    let game = access::owned(db, game_id, session).await?;
    Ok(Json(read::page(db, &game).await?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_about_that_share_and_only_grows() {
        let users: Vec<String> = (0..2_000).map(|n| format!("user_{n}")).collect();
        let share = |pct| {
            let in_share = users.iter();
            in_share
                .filter(|user| is_in_share("game", "rev", user, pct))
                .collect::<Vec<_>>()
        };
        let (ten, half) = (share(10), share(50));
        assert!((120..280).contains(&ten.len()), "{}", ten.len());
        assert!((850..1_150).contains(&half.len()), "{}", half.len());
        assert!(ten.iter().all(|user| half.contains(user)));
        assert_eq!((share(0).len(), share(100).len()), (0, 2_000));
    }
}
