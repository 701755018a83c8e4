//! Records plays, concurrent players and script errors of games. Events are buffered
//! in memory and written in batches by one task, so that a join does not wait for the
//! write.

mod write;

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use frolic_fleet_api::console::{ConsoleLine, FromClients, REPORT_LINES_MAX};
use frolic_protocol::client_log::ConsoleLevel;
use sqlx::AnyPool;
use tokio::sync::Notify;

use crate::catalog::Catalog;
use crate::core::error::ApiError;
use crate::core::ids;

pub use write::sweep;

/// A day in milliseconds.
pub const DAY_MS: i64 = 86_400_000;
/// Length of the spans in which peak players are recorded.
pub const SPAN_MS: i64 = 5 * 60 * 1000;
/// How long events are collected before a batch is written.
const BATCH_WINDOW: Duration = Duration::from_millis(200);
/// Delay before a failed write is retried.
const RETRY_DELAY: Duration = Duration::from_secs(2);
/// How often the players of each game are sampled.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(60);
/// Buffer limits. When the database is unavailable for long, statistics are dropped
/// to bound memory.
const PLAYS_MAX: usize = 50_000;
const ERRORS_MAX: usize = 2_000;
const PEAKS_MAX: usize = 20_000;
const MESSAGE_CHARS_MAX: usize = 300;
const SCRIPT_CHARS_MAX: usize = 200;

/// Buffers events until they are written.
#[derive(Default)]
pub struct Recorder {
    pending: Mutex<Pending>,
    writing: tokio::sync::Mutex<()>,
    wake: Notify,
}

#[derive(Default)]
struct Pending {
    plays: Vec<Play>,
    errors: HashMap<ErrorKey, ErrorCount>,
    /// Peak players by game and span.
    peaks: HashMap<(String, i64), u32>,
}

/// A join.
struct Play {
    game_id: String,
    user_id: String,
    at_ms: i64,
}

/// Identity of a script error: a repeated error only increments the count.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ErrorKey {
    game_id: String,
    revision: String,
    script: String,
    line: u32,
    message: String,
    /// Whether it happened in a player's browser.
    in_client: bool,
}

struct ErrorCount {
    times: i64,
    /// The last browser that reported it; empty for a server.
    browser: String,
    first_ms: i64,
    last_ms: i64,
}

impl Recorder {
    /// Counts a join.
    pub fn record_play(&self, game_id: &str, user_id: &str, at_ms: i64) {
        let mut pending = self.pending();
        if pending.plays.len() < PLAYS_MAX {
            pending.plays.push(Play {
                game_id: game_id.to_owned(),
                user_id: user_id.to_owned(),
                at_ms,
            });
        }
        drop(pending);
        self.wake.notify_one();
    }

    /// Counts the errors among a world's console lines. The lines are untrusted:
    /// neither length nor number is bounded.
    pub fn record_lines(&self, game_id: &str, lines: &[ConsoleLine], at_ms: i64) {
        let errors = lines.iter().take(REPORT_LINES_MAX);
        let mut errors = errors
            .filter(|line| line.level == ConsoleLevel::Error)
            .peekable();
        if errors.peek().is_none() {
            return;
        }
        let mut pending = self.pending();
        for line in errors {
            let place = ErrorKey::of(game_id, line);
            let client = line.client.as_ref();
            let times = client.map_or(1, |client| i64::from(client.count));
            let browser = client.map(browser_name).unwrap_or_default();
            if let Some(count) = pending.errors.get_mut(&place) {
                count.times = count.times.saturating_add(times);
                count.last_ms = at_ms;
                count.browser = browser;
            } else if pending.errors.len() < ERRORS_MAX {
                let count = ErrorCount {
                    times,
                    browser,
                    first_ms: at_ms,
                    last_ms: at_ms,
                };
                pending.errors.insert(place, count);
            }
        }
        drop(pending);
        self.wake.notify_one();
    }

    /// Records the current number of players of a game.
    pub fn record_players(&self, game_id: &str, players: u32, at_ms: i64) {
        let span = at_ms.div_euclid(SPAN_MS) * SPAN_MS;
        let mut pending = self.pending();
        let full = pending.peaks.len() >= PEAKS_MAX;
        let key = (game_id.to_owned(), span);
        if let Some(peak) = pending.peaks.get_mut(&key) {
            *peak = players.max(*peak);
        } else if !full {
            pending.peaks.insert(key, players);
        }
    }

    /// Writes all buffered events.
    ///
    /// # Errors
    /// When the database fails; the events stay buffered.
    pub async fn flush(&self, db: &AnyPool) -> Result<(), sqlx::Error> {
        let _turn = self.writing.lock().await;
        let taken = mem::take(&mut *self.pending());
        if taken.is_empty() {
            return Ok(());
        }
        let written = write::batch(db, &taken).await;
        if written.is_err() {
            self.pending().restore(taken);
        }
        written
    }

    /// Ensures that a game's buffered events are in the database.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn flush_game(&self, catalog: &Catalog, game_id: &str) -> Result<(), ApiError> {
        let unwritten = {
            let pending = self.pending();
            let plays = pending.plays.iter().any(|play| play.game_id == game_id);
            plays || pending.errors.keys().any(|place| place.game_id == game_id)
        };
        if unwritten {
            self.flush(&catalog.core.db).await?;
        } else {
            // Another flush may have taken the records and not committed them yet.
            drop(self.writing.lock().await);
        }
        Ok(())
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pending {
    fn is_empty(&self) -> bool {
        self.plays.is_empty() && self.errors.is_empty() && self.peaks.is_empty()
    }

    /// Puts back events that could not be written, in front of newer ones.
    fn restore(&mut self, mut older: Pending) {
        older.plays.append(&mut self.plays);
        older.plays.truncate(PLAYS_MAX);
        self.plays = older.plays;
        for (place, count) in older.errors {
            let full = self.errors.len() >= ERRORS_MAX;
            match self.errors.get_mut(&place) {
                Some(newer) => {
                    newer.times = newer.times.saturating_add(count.times);
                    newer.first_ms = count.first_ms;
                }
                None if !full => {
                    self.errors.insert(place, count);
                }
                None => {}
            }
        }
        for (span, players) in older.peaks {
            let full = self.peaks.len() >= PEAKS_MAX;
            match self.peaks.get_mut(&span) {
                Some(peak) => *peak = players.max(*peak),
                None if !full => {
                    self.peaks.insert(span, players);
                }
                None => {}
            }
        }
    }
}

impl ErrorKey {
    fn of(game_id: &str, line: &ConsoleLine) -> Self {
        let cut = |text: &str, max| text.chars().take(max).collect::<String>();
        Self {
            game_id: game_id.to_owned(),
            // Drop anything that is not a package hash.
            revision: match ids::is_sha256_hex(&line.revision) {
                true => line.revision.clone(),
                false => String::new(),
            },
            script: cut(&line.script, SCRIPT_CHARS_MAX),
            line: line.line.unwrap_or(0),
            message: cut(&line.message, MESSAGE_CHARS_MAX),
            in_client: line.client.is_some(),
        }
    }

    fn key(&self) -> String {
        let side = if self.in_client { "\nclient" } else { "" };
        let text = format!(
            "{}\n{}\n{}\n{}{side}",
            self.revision, self.script, self.line, self.message
        );
        ids::sha256_hex(text.as_bytes())
    }
}

/// The browser that ran the scripts; never empty, because empty means a server.
fn browser_name(client: &FromClients) -> String {
    let name: String = client.browser.chars().take(SCRIPT_CHARS_MAX).collect();
    match name.trim().is_empty() {
        true => "a browser".to_owned(),
        false => name,
    }
}

/// Counts a join, in the listings at once and in the database soon.
pub fn record_play(catalog: &Catalog, game_id: &str, user_id: &str) {
    let now = catalog.core.clock.now_ms();
    catalog.cache.count_play(game_id, now);
    catalog.recorder.record_play(game_id, user_id, now);
}

/// Records the current players of each game.
pub fn sample_players(catalog: &Catalog) {
    let now = catalog.core.clock.now_ms();
    let mut players: HashMap<String, u32> = HashMap::new();
    for server in catalog.fleet.all() {
        let sum = players.entry(server.spec.game_id.clone()).or_default();
        *sum = sum.saturating_add(server.players());
    }
    for (game_id, players) in players {
        catalog.recorder.record_players(&game_id, players, now);
    }
    catalog.recorder.wake.notify_one();
}

/// Writes and samples until the task is dropped.
pub async fn record_forever(catalog: Arc<Catalog>) {
    let recorder = &catalog.recorder;
    let mut sampling = tokio::time::interval(SAMPLE_INTERVAL);
    loop {
        tokio::select! {
            () = recorder.wake.notified() => tokio::time::sleep(BATCH_WINDOW).await,
            _ = sampling.tick() => sample_players(&catalog),
        }
        if let Err(error) = recorder.flush(&catalog.core.db).await {
            tracing::warn!(%error, "could not write game statistics; will retry");
            tokio::time::sleep(RETRY_DELAY).await;
            recorder.wake.notify_one();
        }
    }
}
