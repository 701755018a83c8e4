//! Re-reads the rows of all games continuously, in small steps.
//!
//! Code that changes a game refreshes its row at once. The sweep finds all other
//! changes: by another program, or in a referenced row (the creator's name). Reading
//! ten thousand rows in one query would delay concurrent requests.

use std::sync::Arc;
use std::time::Duration;

use super::{CatalogCache, GAMES_MAX, GameEntry, Inner, select};
use crate::catalog::Catalog;

/// Rows per step, and the pause after it.
const STEP_ROWS: u16 = 50;
const STEP_PAUSE: Duration = Duration::from_millis(100);
/// Pause between two rounds.
const ROUND_PAUSE: Duration = Duration::from_secs(10);

/// Progress of the current round.
pub(super) struct Sweep {
    /// Round number, from 1; rows read before the first round have 0.
    round: u32,
    /// The last game id that this round read.
    after: String,
    /// Start of the current pause.
    paused_at_ms: i64,
    pause: Duration,
}

impl Sweep {
    /// State right after all games were read.
    pub(super) fn new(now_ms: i64) -> Self {
        Self {
            round: 1,
            after: String::new(),
            paused_at_ms: now_ms,
            pause: ROUND_PAUSE,
        }
    }

    pub(super) fn round(&self) -> u32 {
        self.round
    }

    /// Whether the pause is over.
    pub(super) fn is_due(&self, now_ms: i64) -> bool {
        // The absolute difference: a clock that was set back must not stop the sweep.
        let passed = now_ms.abs_diff(self.paused_at_ms);
        Duration::from_millis(passed) >= self.pause
    }

    fn pause_for(&mut self, now_ms: i64, pause: Duration) {
        self.paused_at_ms = now_ms;
        self.pause = pause;
    }
}

impl CatalogCache {
    /// Runs one step in the background while the current rows are served.
    pub(super) fn sweep_in_background(&self, catalog: &Arc<Catalog>) {
        let Ok(doing) = self.sweeping.clone().try_lock_owned() else {
            return;
        };
        let catalog = catalog.clone();
        tokio::spawn(async move {
            let _doing = doing;
            let cache = &catalog.cache;
            if let Err(error) = cache.sweep_step(&catalog).await {
                tracing::warn!(%error, "catalog sweep failed");
                // Retry after the pause; the cached rows remain usable.
                if let Some(sweep) = &mut cache.inner().sweep {
                    sweep.pause_for(catalog.core.clock.now_ms(), ROUND_PAUSE);
                }
            }
        });
    }

    async fn sweep_step(&self, catalog: &Catalog) -> Result<(), sqlx::Error> {
        let _turn = self.loading.lock().await;
        let sweep = self
            .inner()
            .sweep
            .as_ref()
            .map(|s| (s.round, s.after.clone()));
        let Some((round, after)) = sweep else {
            return Ok(());
        };
        let query = select("AND g.game_id > $1 ORDER BY g.game_id LIMIT $2");
        let rows = sqlx::query(sqlx::AssertSqlSafe(query))
            .bind(after)
            .bind(i64::from(STEP_ROWS))
            .fetch_all(&catalog.core.db)
            .await?;
        let read = rows.iter().map(|row| GameEntry::read(row, round));
        let seen = read.collect::<Result<Vec<GameEntry>, _>>()?;
        self.inner().store_step(seen, catalog.core.clock.now_ms());
        Ok(())
    }
}

impl Inner {
    /// Stores the rows of a step; fewer rows than requested end the round.
    fn store_step(&mut self, seen: Vec<GameEntry>, now_ms: i64) {
        // The rows were dropped in the meantime and will all be read again.
        let Some(sweep) = &mut self.sweep else {
            return;
        };
        let round = sweep.round;
        let is_last = seen.len() < usize::from(STEP_ROWS);
        match seen.last() {
            Some(last) if !is_last => {
                sweep.after.clone_from(&last.card.summary.id);
                sweep.pause_for(now_ms, STEP_PAUSE);
            }
            _ => {
                sweep.after.clear();
                sweep.round = round.wrapping_add(1);
                sweep.pause_for(now_ms, ROUND_PAUSE);
            }
        }
        let mut changed = false;
        for entry in seen {
            let is_room = self.games.len() < GAMES_MAX as usize;
            if is_room || self.games.contains_key(&entry.card.summary.id) {
                changed |= self.put(entry);
            }
        }
        if is_last {
            let listed = self.games.len();
            self.games.retain(|_, entry| entry.round == round);
            changed |= self.games.len() < listed;
        }
        self.stale = true;
        if changed {
            self.games_changed();
        }
    }
}
