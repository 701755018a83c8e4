//! Writes the recorder's batches, each in one transaction, and deletes old records.

use std::collections::BTreeMap;

use sqlx::{AnyConnection, AnyPool, Row};

use super::{DAY_MS, ErrorCount, ErrorKey, Pending, Play};
use crate::catalog::ranking;

/// Maximum number of stored errors per game, the latest.
const ERRORS_PER_GAME_MAX: i64 = 200;
const SAMPLES_KEEP_MS: i64 = 91 * DAY_MS;
const DAYS_KEEP: i64 = 400;

/// Increments for one day of a game.
#[derive(Default)]
struct DayIncrements {
    plays: i64,
    players: i64,
    new_players: i64,
    back_after_1: i64,
    back_after_7: i64,
    peak_players: i64,
    script_errors: i64,
}

/// Writes the whole batch or nothing.
///
/// # Errors
/// When the database fails.
pub async fn batch(db: &AnyPool, pending: &Pending) -> Result<(), sqlx::Error> {
    let mut transaction = crate::core::db::begin(db).await?;
    let mut days: BTreeMap<(&str, i64), DayIncrements> = BTreeMap::new();
    let mut by_game: BTreeMap<&str, Vec<&Play>> = BTreeMap::new();
    for play in &pending.plays {
        by_game.entry(&play.game_id).or_default().push(play);
    }
    for (game_id, plays) in by_game {
        if !count_plays(&mut transaction, game_id, &plays).await? {
            continue; // the game was deleted
        }
        for play in plays {
            let day = play.at_ms.div_euclid(DAY_MS);
            let increments = days.entry((game_id, day)).or_default();
            increments.plays += 1;
            let back = count_player(&mut transaction, play, day, increments).await?;
            // Retention is counted on the player's first day, which may be in this very
            // batch.
            if let Some((first_day, after)) = back {
                let first = days.entry((game_id, first_day)).or_default();
                match after {
                    ReturnVisit::NextDay => first.back_after_1 += 1,
                    ReturnVisit::AfterAWeek => first.back_after_7 += 1,
                }
            }
        }
    }
    // Errors reported by clients are shown but not added up: one client could
    // otherwise falsify the plots.
    let of_servers = pending.errors.iter().filter(|(place, _)| !place.in_client);
    for (place, count) in of_servers {
        let day = count.last_ms.div_euclid(DAY_MS);
        let increments = days.entry((&place.game_id, day)).or_default();
        increments.script_errors = increments.script_errors.saturating_add(count.times);
    }
    for ((game_id, at_ms), players) in &pending.peaks {
        let increments = days.entry((game_id, at_ms.div_euclid(DAY_MS))).or_default();
        increments.peak_players = increments.peak_players.max(i64::from(*players));
    }
    for ((game_id, day), increments) in &days {
        add_to_day(&mut transaction, game_id, *day, increments).await?;
    }
    for ((game_id, at_ms), players) in &pending.peaks {
        upsert_sample(&mut transaction, game_id, *at_ms, i64::from(*players)).await?;
    }
    for (place, count) in &pending.errors {
        upsert_error(&mut transaction, place, count).await?;
    }
    let mut games: Vec<&str> = pending.errors.keys().map(|p| p.game_id.as_str()).collect();
    games.sort_unstable();
    games.dedup();
    for game_id in games {
        delete_old_errors(&mut transaction, game_id).await?;
    }
    transaction.commit().await
}

/// Whether the game exists.
async fn count_plays(
    connection: &mut AnyConnection,
    game_id: &str,
    plays: &[&Play],
) -> Result<bool, sqlx::Error> {
    let heat: f64 = plays
        .iter()
        .map(|play| ranking::play_heat(play.at_ms))
        .sum();
    let counted = sqlx::query(
        "UPDATE games SET plays = plays + $1, play_heat = play_heat + $2 WHERE game_id = $3",
    )
    .bind(i64::try_from(plays.len()).unwrap_or(0))
    .bind(heat)
    .bind(game_id)
    .execute(connection)
    .await?;
    Ok(counted.rows_affected() > 0)
}

/// Records a player's activity; on the first play of a day, also whether they are new
/// or returned.
async fn count_player(
    connection: &mut AnyConnection,
    play: &Play,
    day: i64,
    increments: &mut DayIncrements,
) -> Result<Option<(i64, ReturnVisit)>, sqlx::Error> {
    let new = sqlx::query(
        "INSERT INTO game_players (game_id, user_id, first_day, last_day, plays)
         VALUES ($1, $2, $3, $3, 1) ON CONFLICT (game_id, user_id) DO NOTHING",
    )
    .bind(&play.game_id)
    .bind(&play.user_id)
    .bind(day)
    .execute(&mut *connection)
    .await?;
    if new.rows_affected() == 1 {
        increments.players += 1;
        increments.new_players += 1;
        return Ok(None);
    }
    let first_today = sqlx::query(
        "UPDATE game_players SET last_day = $1, plays = plays + 1
         WHERE game_id = $2 AND user_id = $3 AND last_day < $1",
    )
    .bind(day)
    .bind(&play.game_id)
    .bind(&play.user_id)
    .execute(&mut *connection)
    .await?;
    if first_today.rows_affected() == 0 {
        sqlx::query(
            "UPDATE game_players SET plays = plays + 1 WHERE game_id = $1 AND user_id = $2",
        )
        .bind(&play.game_id)
        .bind(&play.user_id)
        .execute(connection)
        .await?;
        return Ok(None);
    }
    increments.players += 1;
    let row = sqlx::query("SELECT first_day FROM game_players WHERE game_id = $1 AND user_id = $2")
        .bind(&play.game_id)
        .bind(&play.user_id)
        .fetch_one(&mut *connection)
        .await?;
    let first_day: i64 = row.try_get("first_day")?;
    Ok(match day - first_day {
        1 => Some((first_day, ReturnVisit::NextDay)),
        7 => Some((first_day, ReturnVisit::AfterAWeek)),
        _ => None,
    })
}

/// Which return of a player is counted.
#[derive(Clone, Copy)]
enum ReturnVisit {
    NextDay,
    AfterAWeek,
}

async fn add_to_day(
    connection: &mut AnyConnection,
    game_id: &str,
    day: i64,
    increments: &DayIncrements,
) -> Result<(), sqlx::Error> {
    // Select from `games`, so that a deleted game adds no row and causes no error.
    sqlx::query(
        "INSERT INTO game_days (game_id, day, plays, players, new_players, back_after_1,
           back_after_7, peak_players, script_errors)
         SELECT game_id, CAST($1 AS BIGINT), CAST($2 AS BIGINT), CAST($3 AS BIGINT),
           CAST($4 AS BIGINT), CAST($5 AS BIGINT), CAST($6 AS BIGINT), CAST($7 AS BIGINT),
           CAST($8 AS BIGINT)
         FROM games WHERE game_id = $9
         ON CONFLICT (game_id, day) DO UPDATE SET plays = game_days.plays + excluded.plays,
           players = game_days.players + excluded.players,
           new_players = game_days.new_players + excluded.new_players,
           back_after_1 = game_days.back_after_1 + excluded.back_after_1,
           back_after_7 = game_days.back_after_7 + excluded.back_after_7,
           peak_players = CASE WHEN excluded.peak_players > game_days.peak_players
             THEN excluded.peak_players ELSE game_days.peak_players END,
           script_errors = game_days.script_errors + excluded.script_errors",
    )
    .bind(day)
    .bind(increments.plays)
    .bind(increments.players)
    .bind(increments.new_players)
    .bind(increments.back_after_1)
    .bind(increments.back_after_7)
    .bind(increments.peak_players)
    .bind(increments.script_errors)
    .bind(game_id)
    .execute(connection)
    .await?;
    Ok(())
}

async fn upsert_sample(
    connection: &mut AnyConnection,
    game_id: &str,
    at_ms: i64,
    players: i64,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO game_samples (game_id, sampled_at, players)
         SELECT game_id, CAST($1 AS BIGINT), CAST($2 AS BIGINT) FROM games WHERE game_id = $3
         ON CONFLICT (game_id, sampled_at) DO UPDATE SET
           players = CASE WHEN excluded.players > game_samples.players
             THEN excluded.players ELSE game_samples.players END",
    )
    .bind(at_ms)
    .bind(players)
    .bind(game_id)
    .execute(connection)
    .await?;
    Ok(())
}

async fn upsert_error(
    connection: &mut AnyConnection,
    place: &ErrorKey,
    count: &ErrorCount,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO script_errors (game_id, error_key, revision, script, line, message, times,
           first_at, last_at, browser)
         SELECT game_id, CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS BIGINT),
           CAST($5 AS TEXT), CAST($6 AS BIGINT), CAST($7 AS BIGINT), CAST($8 AS BIGINT),
           CAST($9 AS TEXT)
         FROM games WHERE game_id = $10
         ON CONFLICT (game_id, error_key) DO UPDATE SET
           times = script_errors.times + excluded.times, last_at = excluded.last_at,
           browser = excluded.browser",
    )
    .bind(place.key())
    .bind(&place.revision)
    .bind(without_nul(&place.script))
    .bind(i64::from(place.line))
    .bind(without_nul(&place.message))
    .bind(count.times)
    .bind(count.first_ms)
    .bind(count.last_ms)
    .bind(without_nul(&count.browser))
    .bind(&place.game_id)
    .execute(connection)
    .await?;
    Ok(())
}

/// Removes NUL, which Postgres text cannot store.
fn without_nul(text: &str) -> String {
    text.replace('\0', "")
}

async fn delete_old_errors(
    connection: &mut AnyConnection,
    game_id: &str,
) -> Result<(), sqlx::Error> {
    // Separate limits: a client that makes up errors must not evict server errors.
    for of_servers in ["browser = ''", "browser <> ''"] {
        let query = format!(
            "DELETE FROM script_errors WHERE game_id = $1 AND {of_servers} AND error_key NOT IN
               (SELECT error_key FROM script_errors WHERE game_id = $2 AND {of_servers}
                ORDER BY last_at DESC, error_key LIMIT $3)"
        );
        sqlx::query(sqlx::AssertSqlSafe(query))
            .bind(game_id)
            .bind(game_id)
            .bind(ERRORS_PER_GAME_MAX)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// Deletes old statistics, and play records of deleted users.
///
/// # Errors
/// When the database fails.
pub async fn sweep(db: &AnyPool, now_ms: i64) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM game_samples WHERE sampled_at < $1")
        .bind(now_ms.saturating_sub(SAMPLES_KEEP_MS))
        .execute(db)
        .await?;
    sqlx::query("DELETE FROM game_days WHERE day < $1")
        .bind(now_ms.div_euclid(DAY_MS) - DAYS_KEEP)
        .execute(db)
        .await?;
    sqlx::query(
        "DELETE FROM game_players WHERE NOT EXISTS
           (SELECT 1 FROM users u WHERE u.user_id = game_players.user_id)",
    )
    .execute(db)
    .await?;
    // The likes of deleted users were deleted with the users.
    sqlx::query(
        "UPDATE games SET likes = (SELECT COUNT(*) FROM game_likes l WHERE l.game_id = games.game_id)
         WHERE likes <> (SELECT COUNT(*) FROM game_likes l WHERE l.game_id = games.game_id)",
    )
    .execute(db)
    .await?;
    Ok(())
}
