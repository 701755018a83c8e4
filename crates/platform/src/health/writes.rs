//! Whether the database stores what it is given. Every write that fails is noted
//! here, and so is every commit; while there are none, a small write of our own
//! finds out, the first one at once: a platform may start on a disk that is full
//! or read-only. `/readyz` and `/metrics` report it.

use std::io::ErrorKind;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::AnyPool;
use tokio::time::Instant;

use crate::Platform;
use crate::db::{self, Trouble};
use crate::metrics::Counter;

/// A platform without any commit for so long tries one itself.
const PROBE_EVERY: Duration = Duration::from_secs(5);
/// The same while writes fail.
const PROBE_AGAIN: Duration = Duration::from_secs(1);
/// One that takes longer is a fault as well.
const PROBE_PATIENCE: Duration = Duration::from_secs(5);
/// A small write may still fit where a large one does not. So a commit ends a
/// fault only when nothing has failed for this long.
const QUIET: Duration = Duration::from_secs(2);

const TOO_LONG: &str = "the database takes too long to store anything";

/// What is known about writes to the database.
pub struct WriteHealth {
    state: Mutex<State>,
    failures: Counter,
}

struct State {
    fault: Option<Fault>,
    /// None before the first one.
    last_commit: Option<Instant>,
}

/// Why nothing can be stored at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// For operators.
    pub reason: &'static str,
    /// When it began.
    pub since: Instant,
    last_failure: Instant,
}

impl Default for WriteHealth {
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                fault: None,
                last_commit: None,
            }),
            failures: Counter::default(),
        }
    }
}

impl WriteHealth {
    /// A query failed. What the database refuses for what is in it is no fault.
    pub fn failed(&self, error: &sqlx::Error) {
        if let Some(reason) = fault_of(error) {
            self.note(reason, Instant::now());
        }
    }

    /// A request could not be answered for this reason.
    pub fn note_fault(&self, reason: &'static str) {
        self.note(reason, Instant::now());
    }

    /// A transaction was committed.
    pub fn committed(&self) {
        self.note_commit(Instant::now());
    }

    /// Why nothing can be stored; none while everything can.
    pub fn fault(&self) -> Option<Fault> {
        self.state().fault
    }

    /// In the Prometheus text format.
    pub fn prometheus(&self) -> String {
        let (fault, failures) = (u8::from(self.fault().is_some()), self.failures.value());
        format!(
            "# HELP frolic_persistence_fault 1 while nothing can be stored\n\
             # TYPE frolic_persistence_fault gauge\n\
             frolic_persistence_fault {fault}\n\
             # HELP frolic_persistence_failures_total Writes and queries that failed because nothing could be stored\n\
             # TYPE frolic_persistence_failures_total counter\n\
             frolic_persistence_failures_total {failures}\n"
        )
    }

    fn note(&self, reason: &'static str, now: Instant) {
        self.failures.add(1);
        let mut state = self.state();
        let since = state.fault.map_or(now, |fault| fault.since);
        if state.fault.is_none() {
            tracing::error!(reason, "the database does not store anything now");
        }
        state.fault = Some(Fault {
            reason,
            since,
            last_failure: now,
        });
    }

    fn note_commit(&self, now: Instant) {
        let mut state = self.state();
        state.last_commit = Some(now);
        let is_over = |fault: &mut Fault| now.duration_since(fault.last_failure) >= QUIET;
        if let Some(fault) = state.fault.take_if(is_over) {
            let seconds = now.duration_since(fault.since).as_secs_f64();
            tracing::info!(seconds, "the database stores everything again");
        }
    }

    /// Whether there is no news, or bad news.
    fn is_probe_due(&self, now: Instant) -> bool {
        let state = self.state();
        let is_old = |commit: Instant| now.duration_since(commit) >= PROBE_EVERY;
        state.fault.is_some() || state.last_commit.is_none_or(is_old)
    }

    /// Whether it is known yet if writes are stored.
    fn is_known(&self) -> bool {
        let state = self.state();
        state.fault.is_some() || state.last_commit.is_some()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a database error means for everybody who wants something stored; none
/// when it is about one request only.
pub(crate) fn fault_of(error: &sqlx::Error) -> Option<&'static str> {
    match Trouble::of(error) {
        Trouble::Away => Some(reason_of(error)),
        Trouble::Busy | Trouble::Text | Trouble::Ours => None,
    }
}

fn reason_of(error: &sqlx::Error) -> &'static str {
    let sqlx::Error::Database(error) = error else {
        return "the database does not answer";
    };
    let code = error.code().unwrap_or_default();
    let sqlite = Some(&code).filter(|code| code.len() < 5);
    match sqlite.and_then(|code| code.parse::<u32>().ok()) {
        Some(code) => match code & 0xff {
            8 => "the database's disk is read-only",
            10 => "the database's disk reports an I/O error",
            13 => "the database's disk is full",
            _ => "the database's file cannot be opened",
        },
        None => match code.as_ref() {
            "53100" => "the database's disk is full",
            "25006" => "the database is read-only",
            code if code.starts_with("58") => "the database's disk reports an I/O error",
            _ => "the database does not answer",
        },
    }
}

/// Looks whether writes are stored, for as long as it is polled.
pub async fn watch(platform: Platform) {
    let health = platform.write_health();
    let mut every = tokio::time::interval(PROBE_AGAIN);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        if health.is_probe_due(Instant::now()) {
            probe_in_time(&platform).await;
        }
    }
}

/// Finds out whether writes are stored, unless that is known.
pub async fn settle(platform: &Platform) {
    let health = platform.write_health();
    if health.is_known() {
        return;
    }
    match tokio::time::timeout(PROBE_PATIENCE, probe(platform)).await {
        Ok(outcome) => note_probe(health, outcome),
        Err(_) => health.note_fault(TOO_LONG),
    }
}

fn note_probe(health: &WriteHealth, outcome: Result<(), &'static str>) {
    match outcome {
        Ok(()) => health.committed(),
        Err(reason) => health.note_fault(reason),
    }
}

/// One probe at a time: one that hangs is waited for, and reported meanwhile.
async fn probe_in_time(platform: &Platform) {
    let health = platform.write_health();
    let mut probe = std::pin::pin!(probe(platform));
    loop {
        match tokio::time::timeout(PROBE_PATIENCE, probe.as_mut()).await {
            Ok(outcome) => return note_probe(health, outcome),
            Err(_) => health.note_fault(TOO_LONG),
        }
    }
}

/// Writes a row, and a file where files of the platform are. The row alone may
/// fit into room that the database has already when the disk is full.
async fn probe(platform: &Platform) -> Result<(), &'static str> {
    if let Err(error) = write_row(platform.db()).await {
        tracing::warn!(%error, "a write to try the database failed");
        return Err(fault_of(&error).unwrap_or("the database refuses a small write"));
    }
    if let Err(error) = platform.blobs().try_write().await {
        tracing::warn!(%error, "a write to try the data folder failed");
        return Err(match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "the data folder's disk is full",
            ErrorKind::ReadOnlyFilesystem => "the data folder's disk is read-only",
            _ => "the data folder takes no files",
        });
    }
    Ok(())
}

/// A row that is written again and again.
async fn write_row(db: &AnyPool) -> Result<(), sqlx::Error> {
    let mut transaction = db::begin(db).await?;
    sqlx::query(
        "INSERT INTO write_probe (id, writes) VALUES (1, 1)
         ON CONFLICT (id) DO UPDATE SET writes = write_probe.writes + 1",
    )
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_ends_with_a_commit_after_which_nothing_failed() {
        let health = WriteHealth::default();
        let began = Instant::now();
        let at = |ms| began + Duration::from_millis(ms);
        assert_eq!(health.fault(), None);
        assert!(
            health.is_probe_due(at(0)) && !health.is_known(),
            "it just started"
        );
        health.note_commit(at(0));
        assert!(!health.is_probe_due(at(10)) && health.is_known());
        assert!(health.is_probe_due(at(6000)));
        health.note("full", at(0));
        health.note_commit(at(100));
        health.note("full", at(1000));
        assert_eq!(health.fault().map(|fault| fault.since), Some(at(0)));
        assert!(health.is_probe_due(at(1001)), "until it is over");
        health.note_commit(at(2900));
        assert!(health.fault().is_some(), "others may still fail");
        health.note_commit(at(3000));
        assert_eq!(health.fault(), None);
        let text = health.prometheus();
        for line in [
            "frolic_persistence_fault 0",
            "frolic_persistence_failures_total 2",
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "{line} is not in\n{text}"
            );
        }
    }

    #[test]
    fn only_what_concerns_everybody_is_a_fault() {
        assert!(fault_of(&sqlx::Error::PoolTimedOut).is_some());
        assert_eq!(fault_of(&sqlx::Error::RowNotFound), None);
    }
}
