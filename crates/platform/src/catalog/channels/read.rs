//! Channels as shown to creators.

use sqlx::{AnyPool, Row};

use crate::api::{Channel, ChannelInfo, GameChannels, Release};
use crate::catalog::games::{GameRow, Rollout};
use crate::core::clock::rfc3339;
use crate::core::db::{from_row, to_u32};

const RELEASES_SHOWN: i64 = 50;

/// The state of a channel.
///
/// # Errors
/// When the database fails.
pub async fn find(
    db: &AnyPool,
    game_id: &str,
    channel: Channel,
) -> Result<Option<(String, Option<Rollout>)>, sqlx::Error> {
    let row = sqlx::query(
        "SELECT revision, next_revision, rollout_pct FROM game_channels
         WHERE game_id = $1 AND channel = $2",
    )
    .bind(game_id)
    .bind(channel.name())
    .fetch_optional(db)
    .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    let next: String = row.try_get("next_revision")?;
    let pct = to_u32(row.try_get("rollout_pct")?);
    let rollout = (!next.is_empty()).then_some(Rollout {
        revision: next,
        pct,
    });
    Ok(Some((row.try_get("revision")?, rollout)))
}

/// The beta version, if it differs from the stable version.
///
/// # Errors
/// When the database fails.
pub async fn beta_version(db: &AnyPool, game: &GameRow) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT v.version FROM game_channels c
         JOIN game_versions v ON v.game_id = c.game_id AND v.revision = c.revision
         WHERE c.game_id = $1 AND c.channel = 'beta' AND c.revision <> $2",
    )
    .bind(&game.game_id)
    .bind(&game.revision)
    .fetch_optional(db)
    .await
}

/// The channels that have a version.
///
/// # Errors
/// When the database fails.
pub async fn of_game(db: &AnyPool, game_id: &str) -> Result<Vec<ChannelInfo>, sqlx::Error> {
    let rows = sqlx::query(
        "SELECT c.channel, c.revision, c.next_revision, c.rollout_pct, c.past, c.changed_at,
           COALESCE(v.version, '') AS version, COALESCE(n.version, '') AS next_version
         FROM game_channels c
         LEFT JOIN game_versions v ON v.game_id = c.game_id AND v.revision = c.revision
         LEFT JOIN game_versions n ON n.game_id = c.game_id AND n.revision = c.next_revision
         WHERE c.game_id = $1",
    )
    .bind(game_id)
    .fetch_all(db)
    .await?;
    let mut channels = Vec::new();
    for row in &rows {
        let next: String = row.try_get("next_revision")?;
        let past: String = row.try_get("past")?;
        let past: Vec<String> = serde_json::from_str(&past).unwrap_or_default();
        let revision: String = row.try_get("revision")?;
        let version: String = row.try_get("version")?;
        let rolling_out = !next.is_empty();
        channels.push(ChannelInfo {
            channel: Channel::from_name(row.try_get("channel")?),
            rollback_version: match past.last() {
                // Rolling back a rollout restores the version that the other players still
                // have.
                _ if rolling_out => Some(version.clone()),
                Some(before) => version_of(db, game_id, before).await?,
                None => None,
            },
            next_version: match rolling_out {
                true => Some(row.try_get("next_version")?),
                false => None,
            },
            next_revision: rolling_out.then_some(next),
            rollout_pct: to_u32(row.try_get("rollout_pct")?),
            changed_at: rfc3339(row.try_get("changed_at")?),
            revision,
            version,
        });
    }
    let place = |info: &ChannelInfo| Channel::ALL.iter().position(|all| *all == info.channel);
    channels.sort_by_key(place);
    Ok(channels)
}

async fn version_of(
    db: &AnyPool,
    game_id: &str,
    revision: &str,
) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar("SELECT version FROM game_versions WHERE game_id = $1 AND revision = $2")
        .bind(game_id)
        .bind(revision)
        .fetch_optional(db)
        .await
}

from_row!(Release {
    at: "released_at" => rfc3339, by: "username", channel => Channel::from_name, action, revision,
    version, rollout_pct => to_u32
});

/// Channels and their history.
///
/// # Errors
/// When the database fails.
pub async fn page(db: &AnyPool, game: &GameRow) -> Result<GameChannels, sqlx::Error> {
    let releases = sqlx::query_as(
        "SELECT r.released_at, r.channel, r.action, r.revision, r.rollout_pct,
           COALESCE(v.version, '') AS version, COALESCE(u.username, '') AS username
         FROM game_releases r LEFT JOIN users u ON u.user_id = r.released_by
         LEFT JOIN game_versions v ON v.game_id = r.game_id AND v.revision = r.revision
         WHERE r.game_id = $1 ORDER BY r.released_at DESC, r.release_id LIMIT $2",
    )
    .bind(&game.game_id)
    .bind(RELEASES_SHOWN)
    .fetch_all(db)
    .await?;
    Ok(GameChannels {
        game_id: game.game_id.clone(),
        edition: game.edition,
        channels: of_game(db, &game.game_id).await?,
        releases,
    })
}
