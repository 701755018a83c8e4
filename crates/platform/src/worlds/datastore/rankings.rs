//! Leaderboards: scores by ranking and key.

use std::collections::BTreeMap;

use frolic_fleet_api::store::{Best, PAGE_MAX, RankKey, check_number};
use frolic_protocol::Value;
use sqlx::Row;

use super::{Game, Outcome, StoreError};

impl Game<'_> {
    pub(super) async fn rank_set(
        &mut self,
        at: &RankKey,
        score: f64,
    ) -> Result<Outcome, StoreError> {
        let score = check_number(score)?;
        let before = self.rank_entry(at).await?;
        self.put_rank_entry(at, before, score).await?;
        Ok(Outcome::Done)
    }

    pub(super) async fn rank_increment(
        &mut self,
        at: &RankKey,
        by: f64,
    ) -> Result<Outcome, StoreError> {
        let before = self.rank_entry(at).await?;
        let sum = check_number(before.map_or(0.0, |(score, _)| score) + by)?;
        self.put_rank_entry(at, before, sum).await?;
        Ok(Outcome::Number(sum))
    }

    pub(super) async fn rank_remove(&mut self, at: &RankKey) -> Result<Outcome, StoreError> {
        if self.rank_entry(at).await?.is_none() {
            return Ok(Outcome::Was(false));
        }
        self.charge(-1, -size(at))?;
        sqlx::query("DELETE FROM store_ranks WHERE game_id = $1 AND ranking = $2 AND key = $3")
            .bind(self.game_id)
            .bind(&at.ranking)
            .bind(&at.key)
            .execute(&mut *self.connection)
            .await?;
        Ok(Outcome::Was(true))
    }

    pub(super) async fn top(
        &mut self,
        ranking: &str,
        best: Best,
        count: u32,
    ) -> Result<Vec<Value>, StoreError> {
        let order = match best {
            Best::Highest => "DESC",
            Best::Lowest => "ASC",
        };
        let query = format!(
            "SELECT key, name, score FROM store_ranks WHERE game_id = $1 AND ranking = $2
             ORDER BY score {order}, reached_at, key LIMIT $3"
        );
        let rows = sqlx::query(sqlx::AssertSqlSafe(query))
            .bind(self.game_id)
            .bind(ranking)
            .bind(i64::from(count.clamp(1, PAGE_MAX)))
            .fetch_all(&mut *self.connection)
            .await?;
        let entries = rows.iter().enumerate().map(|(index, row)| {
            let key: String = row.try_get("key")?;
            let name: String = row.try_get("name")?;
            let name = if name.is_empty() { key.clone() } else { name };
            Ok(Value::Map(BTreeMap::from([
                ("Rank".to_owned(), Value::Number(index as f64 + 1.0)),
                ("Key".to_owned(), Value::String(key)),
                ("Name".to_owned(), Value::String(name)),
                ("Score".to_owned(), Value::Number(row.try_get("score")?)),
            ])))
        });
        let entries = entries.collect::<Result<Vec<_>, sqlx::Error>>()?;
        Ok(vec![Value::List(entries)])
    }

    pub(super) async fn rank_of(
        &mut self,
        at: &RankKey,
        best: Best,
    ) -> Result<Vec<Value>, StoreError> {
        let Some((score, reached_at)) = self.rank_entry(at).await? else {
            return Ok(vec![]);
        };
        let better = match best {
            Best::Highest => ">",
            Best::Lowest => "<",
        };
        let query = format!(
            "SELECT COUNT(*) AS ahead FROM store_ranks WHERE game_id = $1 AND ranking = $2
               AND (score {better} $3 OR (score = $3 AND (reached_at < $4
                 OR (reached_at = $4 AND key < $5))))"
        );
        let row = sqlx::query(sqlx::AssertSqlSafe(query))
            .bind(self.game_id)
            .bind(&at.ranking)
            .bind(score)
            .bind(reached_at)
            .bind(&at.key)
            .fetch_one(&mut *self.connection)
            .await?;
        let ahead: i64 = row.try_get("ahead").map_err(StoreError::Database)?;
        Ok(vec![
            Value::Number(ahead as f64 + 1.0),
            Value::Number(score),
        ])
    }

    /// The score, and the time at which it was reached.
    async fn rank_entry(&mut self, at: &RankKey) -> Result<Option<(f64, i64)>, sqlx::Error> {
        let row = sqlx::query(
            "SELECT score, reached_at FROM store_ranks
             WHERE game_id = $1 AND ranking = $2 AND key = $3",
        )
        .bind(self.game_id)
        .bind(&at.ranking)
        .bind(&at.key)
        .fetch_optional(&mut *self.connection)
        .await?;
        row.map(|row| Ok((row.try_get("score")?, row.try_get("reached_at")?)))
            .transpose()
    }

    async fn put_rank_entry(
        &mut self,
        at: &RankKey,
        before: Option<(f64, i64)>,
        score: f64,
    ) -> Result<(), StoreError> {
        let new = before.is_none();
        self.charge(i64::from(new), if new { size(at) } else { 0 })?;
        // Setting the same score again does not change the time at which it was reached.
        let same = before.filter(|(known, _)| known.to_bits() == score.to_bits());
        let reached_at = same.map_or(self.now_ms, |(_, reached_at)| reached_at);
        sqlx::query(
            "INSERT INTO store_ranks (game_id, ranking, key, name, score, reached_at)
             VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (game_id, ranking, key) DO UPDATE SET score = excluded.score,
               reached_at = excluded.reached_at,
               name = CASE WHEN excluded.name = '' THEN store_ranks.name ELSE excluded.name END",
        )
        .bind(self.game_id)
        .bind(&at.ranking)
        .bind(&at.key)
        .bind(at.name.as_deref().unwrap_or_default())
        .bind(score)
        .bind(reached_at)
        .execute(&mut *self.connection)
        .await?;
        Ok(())
    }
}

fn size(at: &RankKey) -> i64 {
    i64::try_from(entry_size(&at.ranking, &at.key)).unwrap_or(i64::MAX / 4)
}

/// Bytes that an entry of a ranking adds to the game's usage.
pub(super) fn entry_size(ranking: &str, key: &str) -> usize {
    ranking.len() + key.len() + 64
}
