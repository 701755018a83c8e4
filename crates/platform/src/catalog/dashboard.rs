//! The creator's dashboard: plays, concurrent players, retention, script errors.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use sqlx::{AnyPool, Row};

use super::access;
use super::recorder::DAY_MS;
use crate::api::{
    DashboardDay, DashboardTotals, GameDashboard, PlayerSample, Retention, ScriptErrorInfo,
};
use crate::catalog::Catalog;
use crate::community::auth::Session;
use crate::core::clock::rfc3339;
use crate::core::db::{from_row, to_u32};
use crate::core::error::ApiError;
use crate::core::extract::{ApiPath, ApiQuery};

const DAYS: u32 = 28;
const DAYS_MAX: u32 = 90;
const ERRORS_SHOWN: i64 = 100;
/// Row limit; more than the number of spans in 90 days.
const SAMPLES_MAX: i64 = 30_000;

/// Query of the dashboard.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct DashboardQuery {
    /// Number of days including today; default 28.
    #[param(minimum = 1, maximum = 90)]
    days: Option<u32>,
}

/// Statistics of your game.
///
/// # Errors
/// 404 for a game you cannot see, 403 for another creator's.
#[utoipa::path(
    get, path = "/api/creator/games/{id}/dashboard", tag = "creator",
    params(DashboardQuery),
    responses(
        (status = 200, body = GameDashboard),
        (status = 403),
    ),
    security(("bearer" = []))
)]
pub async fn show(
    State(catalog): State<Arc<Catalog>>,
    session: Session,
    ApiPath(game_id): ApiPath<String>,
    ApiQuery(query): ApiQuery<DashboardQuery>,
) -> Result<Json<GameDashboard>, ApiError> {
    let count = query.days.unwrap_or(DAYS);
    if !(1..=DAYS_MAX).contains(&count) {
        return Err(ApiError::bad_request(
            "invalid_query",
            format!("days must be from 1 to {DAYS_MAX}"),
        ));
    }
    let db = &catalog.core.db;
    let game = access::owned(db, &game_id, &session).await?;
    catalog.recorder.flush(db).await?;
    let now = catalog.core.clock.now_ms();
    let days = days(db, &game_id, now, count).await?;
    let span_ms = span_ms(count);
    Ok(Json(GameDashboard {
        totals: totals(&catalog, &game_id).await?,
        retention: retention(&days),
        sample_s: u32::try_from(span_ms / 1000).unwrap_or(u32::MAX),
        concurrent: samples(db, &game_id, now, count, span_ms).await?,
        errors: errors(db, &game_id).await?,
        days,
        name: game.name,
        game_id,
    }))
}

async fn totals(catalog: &Catalog, game_id: &str) -> Result<DashboardTotals, sqlx::Error> {
    let row = sqlx::query("SELECT plays, likes FROM games WHERE game_id = $1")
        .bind(game_id)
        .fetch_one(&catalog.core.db)
        .await?;
    let servers = catalog.fleet.all();
    let of_game = servers.iter().filter(|s| s.spec.game_id == game_id);
    let (worlds_now, players_now) = of_game.fold((0, 0_u32), |(worlds, players), server| {
        (worlds + 1, players.saturating_add(server.players()))
    });
    Ok(DashboardTotals {
        plays: to_u32(row.try_get("plays")?),
        likes: to_u32(row.try_get("likes")?),
        players_now,
        worlds_now,
    })
}

from_row!(DashboardDay {
    day => date, plays => to_u32, players => to_u32, new_players => to_u32,
    back_after_1 => to_u32, back_after_7 => to_u32, peak_players => to_u32,
    script_errors => to_u32
});

/// Every day of the period, including days without plays.
async fn days(
    db: &AnyPool,
    game_id: &str,
    now: i64,
    count: u32,
) -> Result<Vec<DashboardDay>, sqlx::Error> {
    let today = now.div_euclid(DAY_MS);
    let first = today - i64::from(count) + 1;
    let stored: Vec<DashboardDay> = sqlx::query_as(
        "SELECT day, plays, players, new_players, back_after_1, back_after_7, peak_players,
           script_errors FROM game_days WHERE game_id = $1 AND day >= $2 AND day <= $3",
    )
    .bind(game_id)
    .bind(first)
    .bind(today)
    .fetch_all(db)
    .await?;
    let named = stored.into_iter().map(|day| (day.day.clone(), day));
    let mut by_day: HashMap<String, DashboardDay> = named.collect();
    let nothing = |day| DashboardDay {
        day: date(day),
        plays: 0,
        players: 0,
        new_players: 0,
        back_after_1: 0,
        back_after_7: 0,
        peak_players: 0,
        script_errors: 0,
    };
    let days = first..=today;
    Ok(days
        .map(|day| by_day.remove(&date(day)).unwrap_or_else(|| nothing(day)))
        .collect())
}

/// Formats a day number since 1970 as `2026-11-16`.
fn date(day: i64) -> String {
    let moment = rfc3339(day.saturating_mul(DAY_MS));
    moment.get(..10).unwrap_or("1970-01-01").to_owned()
}

/// Retention rates over the players for whom enough days have passed. `days` ends
/// today.
fn retention(days: &[DashboardDay]) -> Retention {
    let share = |after: usize, back: fn(&DashboardDay) -> u32| {
        let could = days.get(..days.len().saturating_sub(after)).unwrap_or(&[]);
        let new: u32 = could.iter().map(|day| day.new_players).sum();
        let came: u32 = could.iter().map(back).sum();
        let pct = (new > 0).then(|| 100.0 * f64::from(came) / f64::from(new));
        (new, pct)
    };
    let (d1_of, d1_pct) = share(1, |day| day.back_after_1);
    let (d7_of, d7_pct) = share(7, |day| day.back_after_7);
    Retention {
        d1_of,
        d1_pct,
        d7_of,
        d7_pct,
    }
}

/// Interval between plotted points: fine enough to be useful, coarse enough to render
/// fast.
fn span_ms(days: u32) -> i64 {
    let minutes = match days {
        ..=1 => 5,
        2..=7 => 30,
        8..=31 => 2 * 60,
        _ => 6 * 60,
    };
    minutes * 60 * 1000
}

async fn samples(
    db: &AnyPool,
    game_id: &str,
    now: i64,
    days: u32,
    span_ms: i64,
) -> Result<Vec<PlayerSample>, sqlx::Error> {
    let last = now.div_euclid(span_ms);
    let first = last - i64::from(days) * DAY_MS / span_ms + 1;
    let rows = sqlx::query(
        "SELECT sampled_at, players FROM game_samples WHERE game_id = $1 AND sampled_at >= $2
         ORDER BY sampled_at LIMIT $3",
    )
    .bind(game_id)
    .bind(first * span_ms)
    .bind(SAMPLES_MAX)
    .fetch_all(db)
    .await?;
    let mut peaks: HashMap<i64, u32> = HashMap::new();
    for row in &rows {
        let at: i64 = row.try_get("sampled_at")?;
        let players = to_u32(row.try_get("players")?);
        let peak = peaks.entry(at.div_euclid(span_ms)).or_default();
        *peak = players.max(*peak);
    }
    Ok((first..=last)
        .map(|span| PlayerSample {
            at: rfc3339(span * span_ms),
            players: peaks.get(&span).copied().unwrap_or(0),
        })
        .collect())
}

/// The latest server errors and, equally many, browser errors: a client that makes up
/// errors must not hide real ones.
async fn errors(db: &AnyPool, game_id: &str) -> Result<Vec<ScriptErrorInfo>, sqlx::Error> {
    let mut errors = errors_of(db, game_id, "e.browser = ''").await?;
    errors.extend(errors_of(db, game_id, "e.browser <> ''").await?);
    // RFC 3339 timestamps in one time zone sort as text.
    errors.sort_by(|a, b| b.last_at.cmp(&a.last_at));
    Ok(errors)
}

async fn errors_of(
    db: &AnyPool,
    game_id: &str,
    side: &str,
) -> Result<Vec<ScriptErrorInfo>, sqlx::Error> {
    let query = format!(
        "SELECT e.script, e.line, e.message, e.revision, e.times, e.first_at, e.last_at, e.browser,
           COALESCE(v.version, '') AS version
         FROM script_errors e
         LEFT JOIN game_versions v ON v.game_id = e.game_id AND v.revision = e.revision
         WHERE e.game_id = $1 AND {side} ORDER BY e.last_at DESC, e.error_key LIMIT $2"
    );
    let rows = sqlx::query(sqlx::AssertSqlSafe(query))
        .bind(game_id)
        .bind(ERRORS_SHOWN)
        .fetch_all(db)
        .await?;
    rows.iter()
        .map(|row| {
            let line = to_u32(row.try_get("line")?);
            let browser: String = row.try_get("browser")?;
            Ok(ScriptErrorInfo {
                browser: (!browser.is_empty()).then_some(browser),
                script: row.try_get("script")?,
                line: (line > 0).then_some(line),
                message: row.try_get("message")?,
                version: row.try_get("version")?,
                revision: row.try_get("revision")?,
                count: to_u32(row.try_get("times")?),
                first_at: rfc3339(row.try_get("first_at")?),
                last_at: rfc3339(row.try_get("last_at")?),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(new_players: u32, back_after_1: u32, back_after_7: u32) -> DashboardDay {
        DashboardDay {
            day: String::new(),
            plays: 0,
            players: 0,
            new_players,
            back_after_1,
            back_after_7,
            peak_players: 0,
            script_errors: 0,
        }
    }

    #[test]
    fn only_those_count_who_could_have_come_back() {
        let mut days = vec![day(0, 0, 0); 8];
        days[0] = day(10, 5, 2);
        days[6] = day(10, 1, 0);
        days[7] = day(100, 0, 0);
        let retention = retention(&days);
        assert_eq!((retention.d1_of, retention.d1_pct), (20, Some(30.0)));
        assert_eq!((retention.d7_of, retention.d7_pct), (10, Some(20.0)));
        assert_eq!(super::retention(&days[7..]).d1_pct, None);
    }

    #[test]
    fn plots_have_a_few_hundred_points() {
        for days in 1..=DAYS_MAX {
            let points = i64::from(days) * DAY_MS / span_ms(days);
            assert!((80..=400).contains(&points), "{days}: {points}");
        }
        assert_eq!(date(20_408), "2025-11-16");
    }
}
