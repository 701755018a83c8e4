//! Keys and values of the data store.

use crate::core::db::from_row;
use frolic_fleet_api::store::{PAGE_MAX, StoreKey, check_number, value_of_text, value_text};
use frolic_protocol::{Args, Value};
use sqlx::Row;

use super::{Game, Outcome, StoreError};

from_row!(Entry {
    text: "value",
    version
});

/// A stored value as text, and its version.
struct Entry {
    text: String,
    version: i64,
}

impl Game<'_> {
    pub(super) async fn get(&mut self, at: &StoreKey) -> Result<Vec<Value>, StoreError> {
        let entry = self.entry(at).await?;
        Ok(match entry {
            Some(entry) => vec![
                value_of_text(&entry.text),
                Value::Number(entry.version as f64),
            ],
            None => vec![Value::Nil, Value::Number(0.0)],
        })
    }

    /// Writes a key. With a version, writes only if the stored value still has that version.
    pub(super) async fn set(
        &mut self,
        at: &StoreKey,
        value: &Args,
        version: Option<u64>,
    ) -> Result<Outcome, StoreError> {
        let text = value_text(value)?;
        let before = self.entry(at).await?;
        let found = before.as_ref().map_or(0, |entry| entry.version);
        if version.is_some_and(|version| i64::try_from(version) != Ok(found)) {
            return Ok(Outcome::Conflict);
        }
        self.put(at, before.as_ref(), &text).await?;
        Ok(Outcome::Done)
    }

    pub(super) async fn increment(
        &mut self,
        at: &StoreKey,
        by: f64,
    ) -> Result<Outcome, StoreError> {
        let before = self.entry(at).await?;
        let number = match before.as_ref().map(|entry| value_of_text(&entry.text)) {
            None => 0.0,
            Some(Value::Number(number)) => number,
            Some(_) => {
                let key = &at.key;
                let text = format!(
                    "\"{key}\" does not hold a number and cannot be incremented; use Update"
                );
                return Err(StoreError::Refused(text));
            }
        };
        let sum = check_number(number + by)?;
        let text = value_text(&Args(vec![Value::Number(sum)]))?;
        self.put(at, before.as_ref(), &text).await?;
        Ok(Outcome::Number(sum))
    }

    pub(super) async fn remove(&mut self, at: &StoreKey) -> Result<Outcome, StoreError> {
        let Some(entry) = self.entry(at).await? else {
            return Ok(Outcome::Was(false));
        };
        self.charge(-1, -size(at, &entry.text))?;
        sqlx::query("DELETE FROM store_entries WHERE game_id = $1 AND player = $2 AND key = $3")
            .bind(self.game_id)
            .bind(player(at))
            .bind(&at.key)
            .execute(&mut *self.connection)
            .await?;
        Ok(Outcome::Was(true))
    }

    pub(super) async fn list(
        &mut self,
        prefix: &StoreKey,
        after: Option<&str>,
    ) -> Result<Vec<Value>, StoreError> {
        let characters = i64::try_from(prefix.key.chars().count()).unwrap_or(i64::MAX);
        let rows = sqlx::query(
            "SELECT key FROM store_entries WHERE game_id = $1 AND player = $2
               AND key >= $3 AND substr(key, 1, CAST($4 AS INTEGER)) = $3 AND key > $5
             ORDER BY key LIMIT $6",
        )
        .bind(self.game_id)
        .bind(player(prefix))
        .bind(&prefix.key)
        .bind(characters)
        .bind(after.unwrap_or_default())
        .bind(i64::from(PAGE_MAX) + 1)
        .fetch_all(&mut *self.connection)
        .await?;
        let more = rows.len() > PAGE_MAX as usize;
        let keys = rows.iter().take(PAGE_MAX as usize);
        let keys: Vec<Value> = keys
            .map(|row| row.try_get("key").map(Value::String))
            .collect::<Result<_, sqlx::Error>>()?;
        let next = keys.last().filter(|_| more).cloned().unwrap_or_default();
        Ok(vec![Value::List(keys), next])
    }

    async fn entry(&mut self, at: &StoreKey) -> Result<Option<Entry>, sqlx::Error> {
        sqlx::query_as("SELECT value, version FROM store_entries WHERE game_id = $1 AND player = $2 AND key = $3",
        )
        .bind(self.game_id)
        .bind(player(at))
        .bind(&at.key)
        .fetch_optional(&mut *self.connection)
        .await
    }

    async fn put(
        &mut self,
        at: &StoreKey,
        before: Option<&Entry>,
        text: &str,
    ) -> Result<(), StoreError> {
        let freed = before.map_or(0, |entry| size(at, &entry.text));
        self.charge(i64::from(before.is_none()), size(at, text) - freed)?;
        sqlx::query(
            "INSERT INTO store_entries (game_id, player, key, value, version, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (game_id, player, key) DO UPDATE SET value = excluded.value,
               version = excluded.version, updated_at = excluded.updated_at",
        )
        .bind(self.game_id)
        .bind(player(at))
        .bind(&at.key)
        .bind(text)
        .bind(self.usage.changes)
        .bind(self.now_ms)
        .execute(&mut *self.connection)
        .await?;
        Ok(())
    }
}

fn player(at: &StoreKey) -> &str {
    at.player.as_deref().unwrap_or_default()
}

fn size(at: &StoreKey, text: &str) -> i64 {
    let bytes = at.key.len() + player(at).len() + text.len();
    i64::try_from(bytes).unwrap_or(i64::MAX / 4)
}
