//! Channel changes. They run in a transaction that holds a lock on the game's row,
//! which serializes changes of one game.

use axum::http::StatusCode;
use sqlx::{AnyConnection, Row};

use crate::api::Channel;
use crate::catalog::versions;
use crate::core::error::ApiError;
use crate::core::ids;

/// Maximum length of the rollback history.
const HISTORY_MAX: usize = 50;

/// A change of a channel.
#[derive(Clone, Copy, Debug)]
pub enum ChannelChange<'a> {
    /// Release this revision to everyone.
    Release(&'a str),
    /// Roll this revision out to a percentage of the players.
    RollOut(&'a str, u32),
    /// Restore the previous state.
    RollBack,
}

/// A channel's database row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ChannelState {
    revision: String,
    next_revision: String,
    rollout_pct: u32,
    past: Vec<String>,
}

impl ChannelState {
    /// The state after the change, and the name of the change in the history.
    fn after(mut self, change: ChannelChange<'_>) -> Result<(Self, &'static str), ApiError> {
        let conflict = |code, message| ApiError::new(StatusCode::CONFLICT, code, message);
        let action = match change {
            ChannelChange::Release(revision) => {
                if !self.revision.is_empty() && self.revision != revision {
                    self.past.push(self.revision);
                }
                self.revision = revision.to_owned();
                "release"
            }
            ChannelChange::RollOut(revision, pct) => {
                if self.revision.is_empty() {
                    return Err(conflict(
                        "nothing_to_roll_out_from",
                        "this channel has no version yet; release a version to everyone first",
                    ));
                }
                if self.revision == revision {
                    return Err(conflict(
                        "already_released",
                        "everyone on this channel has this version already",
                    ));
                }
                self.next_revision = revision.to_owned();
                self.rollout_pct = pct;
                return Ok((self, "rollout"));
            }
            ChannelChange::RollBack if !self.next_revision.is_empty() => "rollback",
            ChannelChange::RollBack => {
                self.revision = self.past.pop().ok_or_else(|| {
                    conflict(
                        "nothing_to_roll_back_to",
                        "this channel has no earlier version to roll back to",
                    )
                })?;
                "rollback"
            }
        };
        self.next_revision = String::new();
        self.rollout_pct = 100;
        let too_many = self.past.len().saturating_sub(HISTORY_MAX);
        self.past.drain(..too_many);
        Ok((self, action))
    }
}

/// Locks the game's row and increments its edition; false when `seen` is given and is
/// outdated.
///
/// # Errors
/// When the database fails.
pub async fn bump_edition(
    connection: &mut AnyConnection,
    game_id: &str,
    seen: Option<u32>,
    now_ms: i64,
) -> Result<bool, sqlx::Error> {
    let seen = seen.map_or(-1, i64::from);
    let bumped = sqlx::query(
        "UPDATE games SET edition = edition + 1, updated_at = $1
         WHERE game_id = $2 AND ($3 < 0 OR edition = $3)",
    )
    .bind(now_ms)
    .bind(game_id)
    .bind(seen)
    .execute(connection)
    .await?;
    Ok(bumped.rows_affected() > 0)
}

/// Applies a change. The transaction must hold the game's row.
///
/// # Errors
/// 404 for an unknown revision, 409 for a change that is not possible now.
pub async fn apply(
    connection: &mut AnyConnection,
    game_id: &str,
    channel: Channel,
    change: ChannelChange<'_>,
    user_id: &str,
    now_ms: i64,
) -> Result<(), ApiError> {
    if let ChannelChange::Release(revision) | ChannelChange::RollOut(revision, _) = change {
        let version = versions::find(&mut *connection, game_id, revision).await?;
        version.ok_or_else(versions::unknown_version)?;
    }
    let before = read(connection, game_id, channel).await?;
    let first = before.revision.is_empty();
    let (after, action) = before.after(change)?;
    write(connection, game_id, channel, &after, now_ms).await?;
    let shown = match after.next_revision.as_str() {
        "" => &after.revision,
        next => next,
    };
    sqlx::query(
        "INSERT INTO game_releases (release_id, game_id, channel, action, revision, rollout_pct,
           released_by, released_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(ids::new_id("release"))
    .bind(game_id)
    .bind(channel.name())
    .bind(action)
    .bind(shown)
    .bind(i64::from(after.rollout_pct))
    .bind(user_id)
    .bind(now_ms)
    .execute(&mut *connection)
    .await?;
    if channel == Channel::Stable {
        sqlx::query(
            "UPDATE game_versions SET released_at = $1
             WHERE game_id = $2 AND revision = $3 AND released_at = 0",
        )
        .bind(now_ms)
        .bind(game_id)
        .bind(shown)
        .execute(&mut *connection)
        .await?;
        apply_stable_manifest(connection, game_id, &after.revision, first).await?;
    }
    Ok(())
}

async fn read(
    connection: &mut AnyConnection,
    game_id: &str,
    channel: Channel,
) -> Result<ChannelState, sqlx::Error> {
    let row = sqlx::query(
        "SELECT revision, next_revision, rollout_pct, past FROM game_channels
         WHERE game_id = $1 AND channel = $2",
    )
    .bind(game_id)
    .bind(channel.name())
    .fetch_optional(connection)
    .await?;
    let Some(row) = row else {
        return Ok(ChannelState::default());
    };
    let past: String = row.try_get("past")?;
    Ok(ChannelState {
        revision: row.try_get("revision")?,
        next_revision: row.try_get("next_revision")?,
        rollout_pct: crate::core::db::to_u32(row.try_get("rollout_pct")?),
        past: serde_json::from_str(&past).unwrap_or_default(),
    })
}

async fn write(
    connection: &mut AnyConnection,
    game_id: &str,
    channel: Channel,
    state: &ChannelState,
    now_ms: i64,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO game_channels (game_id, channel, revision, next_revision, rollout_pct, past, changed_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (game_id, channel) DO UPDATE SET revision = excluded.revision,
           next_revision = excluded.next_revision, rollout_pct = excluded.rollout_pct,
           past = excluded.past, changed_at = excluded.changed_at",
    )
    .bind(game_id)
    .bind(channel.name())
    .bind(&state.revision)
    .bind(&state.next_revision)
    .bind(i64::from(state.rollout_pct))
    .bind(serde_json::to_string(&state.past).unwrap_or_else(|_| "[]".to_owned()))
    .bind(now_ms)
    .execute(connection)
    .await?;
    Ok(())
}

/// Copies the stable version's manifest fields into the game's row, except the fields
/// that were edited on the site.
async fn apply_stable_manifest(
    connection: &mut AnyConnection,
    game_id: &str,
    revision: &str,
    first: bool,
) -> Result<(), sqlx::Error> {
    let row = sqlx::query(
        "SELECT version, name, description, tags, capabilities, thumbnail_sha256, max_players,
           idle_stop_s, persistent FROM game_versions WHERE game_id = $1 AND revision = $2",
    )
    .bind(game_id)
    .bind(revision)
    .fetch_one(&mut *connection)
    .await?;
    sqlx::query(
        "UPDATE games SET revision = $1, version = $2, capabilities = $3, max_players = $4,
           idle_stop_s = $5, persistent = $6,
           name = CASE WHEN edited LIKE '%\"name\"%' THEN name ELSE $7 END,
           description = CASE WHEN edited LIKE '%\"description\"%' THEN description ELSE $8 END,
           tags = CASE WHEN edited LIKE '%\"tags\"%' THEN tags ELSE $9 END,
           thumbnail_sha256 = CASE WHEN edited LIKE '%\"thumbnail\"%' THEN thumbnail_sha256 ELSE $10 END
         WHERE game_id = $11",
    )
    .bind(revision)
    .bind(row.try_get::<String, _>("version")?)
    .bind(row.try_get::<String, _>("capabilities")?)
    .bind(row.try_get::<i64, _>("max_players")?)
    .bind(row.try_get::<i64, _>("idle_stop_s")?)
    .bind(row.try_get::<i64, _>("persistent")?)
    .bind(row.try_get::<String, _>("name")?)
    .bind(row.try_get::<String, _>("description")?)
    .bind(row.try_get::<String, _>("tags")?)
    .bind(row.try_get::<String, _>("thumbnail_sha256")?)
    .bind(game_id)
    .execute(&mut *connection)
    .await?;
    if first {
        // The first stable version publishes the game.
        sqlx::query("UPDATE games SET published = 1 WHERE game_id = $1")
            .bind(game_id)
            .execute(&mut *connection)
            .await?;
        refresh_visibility(connection, game_id).await?;
    }
    Ok(())
}

/// Derives the effective visibility from the creator's choice, whether the game is
/// published, and whether moderators took it down.
///
/// # Errors
/// When the database fails.
pub async fn refresh_visibility(
    connection: &mut AnyConnection,
    game_id: &str,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE games SET visibility = CASE WHEN taken_down = 1 OR published = 0
           THEN 'private' ELSE chosen_visibility END WHERE game_id = $1",
    )
    .bind(game_id)
    .execute(connection)
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn revisions(state: &ChannelState) -> (&str, &str, u32) {
        (&state.revision, &state.next_revision, state.rollout_pct)
    }

    #[test]
    fn a_rollback_goes_back_step_by_step() {
        let mut state = ChannelState::default();
        for revision in ["a", "b", "c"] {
            state = state.after(ChannelChange::Release(revision)).unwrap().0;
        }
        for expected in ["b", "a"] {
            state = state.after(ChannelChange::RollBack).unwrap().0;
            assert_eq!(revisions(&state), (expected, "", 100));
        }
        assert!(state.after(ChannelChange::RollBack).is_err());
    }

    #[test]
    fn a_rollout_grows_ends_or_is_taken_back() {
        let start = ChannelState::default()
            .after(ChannelChange::Release("a"))
            .unwrap()
            .0;
        assert!(
            start
                .clone()
                .after(ChannelChange::RollOut("a", 10))
                .is_err()
        );
        assert!(
            ChannelState::default()
                .after(ChannelChange::RollOut("a", 10))
                .is_err()
        );
        let (ten, action) = start.after(ChannelChange::RollOut("b", 10)).unwrap();
        assert_eq!((revisions(&ten), action), (("a", "b", 10), "rollout"));
        let (half, _) = ten.after(ChannelChange::RollOut("b", 50)).unwrap();
        let (back, _) = half.clone().after(ChannelChange::RollBack).unwrap();
        assert_eq!(revisions(&back), ("a", "", 100));
        let (all, _) = half.after(ChannelChange::Release("b")).unwrap();
        assert_eq!(revisions(&all), ("b", "", 100));
        let (back, _) = all.after(ChannelChange::RollBack).unwrap();
        assert_eq!(revisions(&back), ("a", "", 100));
    }

    #[test]
    fn the_way_back_is_bounded() {
        let mut state = ChannelState::default();
        for number in 0..500 {
            let revision = number.to_string();
            state = state.after(ChannelChange::Release(&revision)).unwrap().0;
        }
        assert_eq!(state.past.len(), HISTORY_MAX);
        assert_eq!(state.past.last().map(String::as_str), Some("498"));
    }
}
