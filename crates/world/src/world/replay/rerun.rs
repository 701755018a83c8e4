//! Repeats a recording and compares fingerprints.

use frolic_package::Package;
use frolic_script::VmLimits;

use super::record::{Ending, Record, RecordReader, RecordingError, RecordingHeader};
use crate::player::PlayerNumber;
use crate::world::input::{Effect, Input};
use crate::world::{LoadError, World, WorldOptions};

/// Concurrent players in a recording: far above the capacity of a world. A
/// forged file must not exhaust memory.
const PLAYERS_MAX: usize = 20_000;
/// Calls on a world between two ticks; a host makes far fewer.
const RECORDS_PER_TICK_MAX: usize = 200_000;
/// Scripts of the largest world.
const SCRIPT_BYTES_MAX: u64 = 4 << 30;

/// Why a recording cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// It cannot be read.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// It ends before the header.
    #[error("the recording ends within its header")]
    NoHeader,
    /// It belongs to another version of the game.
    #[error("the recording is of package {wanted}, and this one is {found}")]
    OtherPackage {
        /// Revision in the recording.
        wanted: String,
        /// Revision of the package.
        found: String,
    },
    /// The world did not load.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A sequence of records that no host produces.
    #[error("the recording is not of a session: {0}")]
    Nonsense(&'static str),
}

/// Where a replay diverged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The tick of the first fingerprint that differs.
    pub tick: u32,
    /// The fingerprint in the recording.
    pub recorded: u64,
    /// The fingerprint of the replay.
    pub replayed: u64,
    /// The last tick with equal fingerprints.
    pub same_until: Option<u32>,
}

/// The result of a replay.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ReplayReport {
    /// Ticks that were replayed.
    pub ticks: u32,
    /// Fingerprints that were equal.
    pub same_hashes: u32,
    /// The first one that was not.
    pub difference: Option<Difference>,
    /// Where a limit first interrupted scripts in the session; a difference
    /// after it may not be significant.
    pub cut_at: Option<u32>,
    /// Where a limit first interrupted scripts in the replay.
    pub replay_cut_at: Option<u32>,
    /// How the recording ends; none if it was truncated.
    pub ending: Option<Ending>,
}

/// A session that is replayed record by record.
pub struct Replay {
    world: World,
    report: ReplayReport,
    same_until: Option<u32>,
    records_since_step: usize,
}

impl Replay {
    /// Creates the world as it was at the start.
    ///
    /// # Errors
    /// If the package differs, or the world does not load.
    pub fn new(package: &Package, header: &RecordingHeader) -> Result<Self, ReplayError> {
        if package.revision != header.revision {
            return Err(ReplayError::OtherPackage {
                wanted: header.revision.clone(),
                found: package.revision.clone(),
            });
        }
        let limits = &header.scripts;
        if limits.memory_bytes > SCRIPT_BYTES_MAX {
            return Err(ReplayError::Nonsense("it allows scripts too much memory"));
        }
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let options = WorldOptions {
            seed: header.seed,
            tick_hz: Some(header.tick_hz),
            started_unix_ms: header.started_unix_ms,
            snapshot_hz: Some(header.snapshot_hz),
            interest: Some(header.interest),
            scripts: VmLimits {
                memory_bytes: size(limits.memory_bytes),
                offences_max: limits.offences_max,
                log_lines_per_second: limits.log_lines_per_second,
                spawns_per_tick: limits.spawns_per_tick,
                spawns_per_script_tick: limits.spawns_per_script_tick,
                entities_per_script: limits.entities_per_script,
                send_bytes_per_tick: size(limits.send_bytes_per_tick),
                // The recording contains which scripts a limit stopped.
                ..VmLimits::untimed()
            },
            disabled_scripts: header.disabled_scripts.clone(),
            saved: Some(header.saved.clone()),
            ..WorldOptions::default()
        };
        Ok(Self {
            world: World::load(package, options)?,
            report: ReplayReport::default(),
            same_until: None,
            records_since_step: 0,
        })
    }

    /// Replays one record. After a difference or the end there is nothing more
    /// to learn; see [`Replay::is_over`].
    ///
    /// # Errors
    /// If no host would have recorded this.
    pub fn apply(&mut self, record: Record) -> Result<(), ReplayError> {
        self.records_since_step += 1;
        if self.records_since_step > RECORDS_PER_TICK_MAX {
            return Err(ReplayError::Nonsense("too much happens between two ticks"));
        }
        match record {
            Record::Input(input) => self.repeat(input)?,
            Record::Hash(recorded) => self.compare(recorded),
            Record::Cut => {
                let tick = self.world.tick();
                self.report.cut_at.get_or_insert(tick);
            }
            Record::End(ending) => self.report.ending = Some(ending),
        }
        Ok(())
    }

    fn repeat(&mut self, input: Input) -> Result<(), ReplayError> {
        let world = &mut self.world;
        let absent = |player: &PlayerNumber| world.entity_of(*player).is_none();
        if input.player().as_ref().is_some_and(absent) {
            let why = "it names a player who is not there";
            return Err(ReplayError::Nonsense(why));
        }
        match input {
            Input::Join(_) if world.player_count() >= PLAYERS_MAX => {
                return Err(ReplayError::Nonsense("there are too many players"));
            }
            Input::Step(_) => {
                self.records_since_step = 0;
                self.report.ticks += 1;
            }
            _ => {}
        }
        world.apply(input);
        if world.script_cuts() > 0 {
            let tick = world.tick();
            self.report.replay_cut_at.get_or_insert(tick);
        }
        // There are no clients, and messages must not accumulate.
        world.take_outbox();
        world.take_logs();
        world.take_store_requests();
        world.take_ops();
        world.take_casts();
        world.take_reconnected();
        Ok(())
    }

    fn compare(&mut self, recorded: u64) {
        let (tick, replayed) = (self.world.tick(), self.world.state_hash());
        if self.report.difference.is_some() {
            return;
        }
        if recorded == replayed {
            self.report.same_hashes += 1;
            self.same_until = Some(tick);
        } else {
            self.report.difference = Some(Difference {
                tick,
                recorded,
                replayed,
                same_until: self.same_until,
            });
        }
    }

    /// Whether the rest of the recording can add nothing.
    pub fn is_over(&self) -> bool {
        self.report.difference.is_some() || self.report.ending.is_some()
    }

    /// The findings so far.
    pub fn report(&self) -> &ReplayReport {
        &self.report
    }

    /// The world in its current state.
    pub fn world(&self) -> &World {
        &self.world
    }
}

/// Replays a whole recording in memory.
///
/// # Errors
/// If it cannot be read, or belongs to another package.
pub fn replay(package: &Package, recording: &[u8]) -> Result<ReplayReport, ReplayError> {
    let mut reader = RecordReader::default();
    reader.push(recording);
    let header = reader.header()?.ok_or(ReplayError::NoHeader)?;
    let mut replay = Replay::new(package, &header)?;
    while !replay.is_over()
        && let Some(record) = reader.record()?
    {
        replay.apply(record)?;
    }
    Ok(replay.report)
}
