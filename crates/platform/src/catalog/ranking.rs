//! The Popular order: a documented formula, and the score of each game.
//!
//! Plays and likes decay exponentially. Instead of decaying every row continuously, a
//! new play adds 2^((now - epoch) / half-life), and the sum is divided by the current
//! weight when it is read. So rows change only on events, and counting a play is one
//! `UPDATE … + x`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;

use super::access::{self, OptionalSession};
use crate::api::{RankingBreakdown, RankingFormula, RankingPart, RankingShare};
use crate::catalog::Catalog;
use crate::core::error::ApiError;
use crate::core::extract::ApiPath;

/// 2026-01-01: plays at this time have the weight 1. A double does not overflow for a
/// thousand half-lives.
const EPOCH_MS: i64 = 1_767_225_600_000;
const DAY_MS: f64 = 86_400_000.0;
const PLAY_HALF_LIFE_DAYS: f64 = 7.0;
const LIKE_HALF_LIFE_DAYS: f64 = 30.0;
/// Points for each doubling of the count.
const PLAYERS_WEIGHT: f64 = 10.0;
const PLAYS_WEIGHT: f64 = 4.0;
const LIKES_WEIGHT: f64 = 6.0;

/// What a play at `at_ms` adds to `play_heat`.
pub fn play_heat(at_ms: i64) -> f64 {
    weight(at_ms, PLAY_HALF_LIFE_DAYS)
}

/// What a like at `at_ms` adds to `like_heat`.
pub fn like_heat(at_ms: i64) -> f64 {
    weight(at_ms, LIKE_HALF_LIFE_DAYS)
}

fn weight(at_ms: i64, half_life_days: f64) -> f64 {
    let days = at_ms.saturating_sub(EPOCH_MS) as f64 / DAY_MS;
    (days / half_life_days).clamp(-1_000.0, 1_000.0).exp2()
}

/// The inputs of the formula for one game.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RankingInputs {
    /// Players in its worlds.
    pub players: u32,
    /// Sum of [`play_heat`].
    pub play_heat: f64,
    /// Sum of [`like_heat`].
    pub like_heat: f64,
}

impl RankingInputs {
    /// The score at `now_ms`.
    pub fn score(&self, now_ms: i64) -> f64 {
        let shares = self.values(now_ms);
        shares
            .iter()
            .map(|(value, weight)| points(*value, *weight))
            .sum()
    }

    /// Players, decayed plays and decayed likes, each with its weight.
    fn values(&self, now_ms: i64) -> [(f64, f64); 3] {
        // Removing a like may leave a tiny negative rest, by rounding.
        let faded = |heat: f64, now: f64| (heat / now).max(0.0);
        [
            (f64::from(self.players), PLAYERS_WEIGHT),
            (faded(self.play_heat, play_heat(now_ms)), PLAYS_WEIGHT),
            (faded(self.like_heat, like_heat(now_ms)), LIKES_WEIGHT),
        ]
    }
}

fn points(value: f64, weight: f64) -> f64 {
    weight * (1.0 + value).log2()
}

fn parts() -> [RankingPart; 3] {
    let part = |name: &str, label: &str, weight, half_life_days, meaning: &str| RankingPart {
        name: name.to_owned(),
        label: label.to_owned(),
        weight,
        half_life_days,
        meaning: meaning.to_owned(),
    };
    [
        part(
            "players",
            "Players now",
            PLAYERS_WEIGHT,
            None,
            "players currently in the game's worlds",
        ),
        part(
            "plays",
            "Recent plays",
            PLAYS_WEIGHT,
            Some(PLAY_HALF_LIFE_DAYS),
            "joins; a join one week ago counts half, two weeks ago a quarter",
        ),
        part(
            "likes",
            "Recent likes",
            LIKES_WEIGHT,
            Some(LIKE_HALF_LIFE_DAYS),
            "likes, one per person; a like 30 days ago counts half",
        ),
    ]
}

/// The formula of the Popular order.
#[utoipa::path(
    get, path = "/api/ranking", tag = "store",
    responses((status = 200, body = RankingFormula))
)]
pub async fn formula() -> Json<RankingFormula> {
    let terms = parts().map(|part| format!("{} × log2(1 + {})", part.weight, part.name));
    Json(RankingFormula {
        formula: format!(
            "score = {}; equal scores: the newer game first",
            terms.join(" + ")
        ),
        parts: parts().to_vec(),
    })
}

/// The rank of a game in Popular, and how its score is computed.
///
/// # Errors
/// 404 when the game does not exist.
#[utoipa::path(
    get, path = "/api/games/{id}/ranking", tag = "store",
    responses((status = 200, body = RankingBreakdown)),
    security((), ("bearer" = []))
)]
pub async fn breakdown(
    State(catalog): State<Arc<Catalog>>,
    viewer: OptionalSession,
    ApiPath(game_id): ApiPath<String>,
) -> Result<Json<RankingBreakdown>, ApiError> {
    access::visible(&catalog.core.db, &game_id, &viewer).await?;
    let view = catalog.cache.view(&catalog).await?;
    // Unlisted games have no rank and no score to compare.
    let (rank, counted) = match view.rank(&game_id) {
        Some((rank, counted)) => (Some(rank), counted),
        None => (None, RankingInputs::default()),
    };
    let shares = parts().into_iter().zip(counted.values(view.now_ms));
    let parts: Vec<RankingShare> = shares
        .map(|(part, (value, weight))| RankingShare {
            name: part.name,
            label: part.label,
            value,
            weight,
            points: points(value, weight),
        })
        .collect();
    Ok(Json(RankingBreakdown {
        game_id,
        score: parts.iter().map(|share| share.points).sum(),
        rank,
        of: view.listed(),
        parts,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEEK_MS: i64 = 7 * 86_400_000;

    #[test]
    fn plays_fade_by_half_in_a_week() {
        let counted = RankingInputs {
            play_heat: 8.0 * play_heat(EPOCH_MS),
            ..RankingInputs::default()
        };
        for (weeks, plays) in [(0, 8.0), (1, 4.0), (2, 2.0)] {
            let [_, (value, _), _] = counted.values(EPOCH_MS + weeks * WEEK_MS);
            assert!((value - plays).abs() < 1e-9, "{weeks}: {value}");
        }
    }

    #[test]
    fn points_are_what_the_formula_says() {
        let counted = RankingInputs {
            players: 3,
            play_heat: 7.0 * play_heat(EPOCH_MS),
            like_heat: like_heat(EPOCH_MS),
        };
        // 10 × log2(4) + 4 × log2(8) + 6 × log2(2)
        assert!((counted.score(EPOCH_MS) - 38.0).abs() < 1e-9);
        assert_eq!(RankingInputs::default().score(EPOCH_MS), 0.0);
    }

    #[test]
    fn no_moment_breaks_the_sums() {
        for at in [i64::MIN, 0, EPOCH_MS, i64::MAX] {
            assert!(play_heat(at).is_finite() && play_heat(at) > 0.0);
            let counted = RankingInputs {
                players: u32::MAX,
                play_heat: play_heat(at),
                like_heat: -1.0,
            };
            assert!(counted.score(at).is_finite());
        }
    }
}
