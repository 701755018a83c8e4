//! Monitors whether the database stores writes. Failed writes and commits are reported here; if
//! there are none, a small write of our own probes the database, the first one at once: a platform
//! may start on a disk that is full or read-only. `/readyz` and `/metrics` report the state.

use std::io::ErrorKind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::AnyPool;
use tokio::time::Instant;

use crate::core::Core;
use crate::core::db::{self, DbErrorKind};
use crate::core::metrics::Counter;

/// A probe is due after this time without a commit.
const PROBE_INTERVAL: Duration = Duration::from_secs(5);
/// Interval between probes while writes fail.
const FAULT_PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// A file is written by the first probe, by probes during a fault, and otherwise after this time:
/// syncing a file is too expensive for each probe of an idle platform.
const FILE_PROBE_INTERVAL: Duration = Duration::from_secs(60);
/// A slower probe counts as a fault as well.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// A small write may still fit on a disk where a large one does not. Therefore a commit ends a
/// fault only if nothing has failed for this time.
const QUIET: Duration = Duration::from_secs(2);

const TOO_SLOW: &str = "the database takes too long to store data";

/// State of writes to the database.
pub struct WriteHealth {
    state: Mutex<State>,
    failures: Counter,
}

struct State {
    fault: Option<Fault>,
    /// None before the first one.
    last_commit: Option<Instant>,
    /// The last successful write of a file by a probe. None before the first one.
    last_file: Option<Instant>,
}

/// Reason why the database cannot store data at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Description for operators.
    pub reason: &'static str,
    /// Start of the fault.
    pub since: Instant,
    last_failure: Instant,
}

impl Default for WriteHealth {
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                fault: None,
                last_commit: None,
                last_file: None,
            }),
            failures: Counter::default(),
        }
    }
}

impl WriteHealth {
    /// Records a failed query. An error caused by the data of one request is not a fault.
    pub fn failed(&self, error: &sqlx::Error) {
        if let Some(reason) = fault_of(error) {
            self.note(reason, Instant::now());
        }
    }

    /// Records a fault because of which a request failed.
    pub fn note_fault(&self, reason: &'static str) {
        self.note(reason, Instant::now());
    }

    /// Records a committed transaction.
    pub fn committed(&self) {
        self.note_commit(Instant::now());
    }

    /// The current fault, if any.
    pub fn fault(&self) -> Option<Fault> {
        self.state().fault
    }

    /// The state in the Prometheus text format.
    pub fn prometheus(&self) -> String {
        let (fault, failures) = (u8::from(self.fault().is_some()), self.failures.value());
        format!(
            "# HELP frolic_persistence_fault 1 while the database cannot store data\n\
             # TYPE frolic_persistence_fault gauge\n\
             frolic_persistence_fault {fault}\n\
             # HELP frolic_persistence_failures_total Writes and queries that failed because the database could not store data\n\
             # TYPE frolic_persistence_failures_total counter\n\
             frolic_persistence_failures_total {failures}\n"
        )
    }

    fn note(&self, reason: &'static str, now: Instant) {
        self.failures.add(1);
        let mut state = self.state();
        let since = state.fault.map_or(now, |fault| fault.since);
        if state.fault.is_none() {
            tracing::error!(reason, "the database cannot store data");
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
            tracing::info!(seconds, "the database stores data again");
        }
    }

    /// Whether writes fail or no commit was reported for a while.
    fn is_probe_due(&self, now: Instant) -> bool {
        let state = self.state();
        let is_old = |commit: Instant| now.duration_since(commit) >= PROBE_INTERVAL;
        state.fault.is_some() || state.last_commit.is_none_or(is_old)
    }

    /// Whether the next probe writes a file.
    fn is_file_due(&self, now: Instant) -> bool {
        let state = self.state();
        let is_old = |file: Instant| now.duration_since(file) >= FILE_PROBE_INTERVAL;
        state.fault.is_some() || state.last_file.is_none_or(is_old)
    }

    fn note_file(&self, now: Instant) {
        self.state().last_file = Some(now);
    }

    /// Whether any write has succeeded or failed so far.
    fn is_known(&self) -> bool {
        let state = self.state();
        state.fault.is_some() || state.last_commit.is_some()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reason that affects every write; `None` if the error concerns one request only.
pub fn fault_of(error: &sqlx::Error) -> Option<&'static str> {
    match DbErrorKind::of(error) {
        DbErrorKind::Unavailable => Some(reason_of(error)),
        DbErrorKind::Conflict | DbErrorKind::InvalidText | DbErrorKind::Internal => None,
    }
}

fn reason_of(error: &sqlx::Error) -> &'static str {
    let sqlx::Error::Database(error) = error else {
        return "the database does not respond";
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
            _ => "the database does not respond",
        },
    }
}

/// Probes the database for as long as the future is polled.
pub async fn watch(core: Arc<Core>) {
    let health = &core.write_health;
    let mut every = tokio::time::interval(FAULT_PROBE_INTERVAL);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        if health.is_probe_due(Instant::now()) {
            probe_with_timeout(&core).await;
        }
    }
}

/// Probes the database, unless a write has succeeded or failed already.
pub async fn settle(core: &Core) {
    let health = &core.write_health;
    if health.is_known() {
        return;
    }
    match tokio::time::timeout(PROBE_TIMEOUT, probe(core)).await {
        Ok(outcome) => note_probe(health, outcome),
        Err(_) => health.note_fault(TOO_SLOW),
    }
}

fn note_probe(health: &WriteHealth, outcome: Result<(), &'static str>) {
    match outcome {
        Ok(()) => health.committed(),
        Err(reason) => health.note_fault(reason),
    }
}

/// Runs one probe. A probe that hangs is reported and still waited for, so that at most one runs.
async fn probe_with_timeout(core: &Core) {
    let health = &core.write_health;
    let mut probe = std::pin::pin!(probe(core));
    loop {
        match tokio::time::timeout(PROBE_TIMEOUT, probe.as_mut()).await {
            Ok(outcome) => return note_probe(health, outcome),
            Err(_) => health.note_fault(TOO_SLOW),
        }
    }
}

/// Writes a row, and a file if one is due. On a full disk the row alone may fit into space that
/// the database has allocated already.
async fn probe(core: &Core) -> Result<(), &'static str> {
    if let Err(error) = write_row(&core.db).await {
        tracing::warn!(%error, "a probe write to the database failed");
        return Err(fault_of(&error).unwrap_or("the database refuses a small write"));
    }
    let health = &core.write_health;
    if !health.is_file_due(Instant::now()) {
        return Ok(());
    }
    if let Err(error) = core.blobs.try_write().await {
        tracing::warn!(%error, "a probe write to the data folder failed");
        return Err(match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "the data folder's disk is full",
            ErrorKind::ReadOnlyFilesystem => "the data folder's disk is read-only",
            _ => "the data folder takes no files",
        });
    }
    health.note_file(Instant::now());
    Ok(())
}

/// Updates a single row.
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
    fn a_fault_ends_with_a_commit_after_a_quiet_period() {
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
        assert!(
            health.is_probe_due(at(1001)),
            "a probe is due during a fault"
        );
        health.note_commit(at(2900));
        assert!(
            health.fault().is_some(),
            "a commit within the quiet period must not end the fault"
        );
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
    fn a_file_is_written_first_during_a_fault_and_once_a_minute() {
        let health = WriteHealth::default();
        let began = Instant::now();
        let at = |s| began + Duration::from_secs(s);
        assert!(health.is_file_due(at(0)), "the first probe");
        health.note_file(at(0));
        assert!(!health.is_file_due(at(59)));
        assert!(health.is_file_due(at(60)));
        health.note("full", at(1));
        assert!(health.is_file_due(at(2)), "a fault");
    }

    #[test]
    fn only_errors_that_affect_all_writes_are_faults() {
        assert!(fault_of(&sqlx::Error::PoolTimedOut).is_some());
        assert_eq!(fault_of(&sqlx::Error::RowNotFound), None);
    }
}
