//! Repeats a recording and compares fingerprints.

use std::borrow::Cow;

use frolic_fleet_api::store::StoreAnswer;
use frolic_package::Package;
use frolic_script::VmLimits;

use super::record::{Ending, Record, RecordReader, RecordingError, RecordingHeader};
use crate::player::PlayerNumber;
use crate::reload::Changes;
use crate::world::{LoadError, World, WorldOptions};

/// Concurrent players in a recording: far above the capacity of a world. A
/// forged file must not exhaust memory.
const PLAYERS_MAX: usize = 20_000;
/// Calls on a world between two ticks; a host makes far fewer.
const RECORDS_PER_TICK_MAX: usize = 200_000;
/// Sources of one reload; a package unpacks to less.
const RELOAD_BYTES_MAX: usize = 256 << 20;
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
    /// Scripts of the reload that is being read.
    changes: Changes,
    changes_bytes: usize,
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
            changes: Changes::new(),
            changes_bytes: 0,
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
        let world = &mut self.world;
        match record {
            Record::Step => {
                world.step();
                self.records_since_step = 0;
                self.report.ticks += 1;
            }
            Record::Inputs { player, inputs } => {
                here(world, player)?;
                world.receive_inputs(player, &inputs);
            }
            Record::Join { id, name } => {
                if world.player_count() >= PLAYERS_MAX {
                    return Err(ReplayError::Nonsense("there are too many players"));
                }
                world.join(id.into_owned(), name.into_owned());
            }
            Record::JoinAgain { id, name, saved } => {
                if world.player_count() >= PLAYERS_MAX {
                    return Err(ReplayError::Nonsense("there are too many players"));
                }
                world.join_again(id.into_owned(), name.into_owned(), &saved);
            }
            Record::Close => world.close(),
            Record::Leave { player } => {
                here(world, player)?;
                world.leave(player);
            }
            Record::Reconnect { player } => {
                here(world, player)?;
                world.reconnect(player);
            }
            Record::Event { player, name, args } => {
                here(world, player)?;
                world.receive_event(player, name.into_owned(), args.into_owned());
            }
            Record::Invoke {
                player,
                id,
                name,
                args,
            } => {
                here(world, player)?;
                world.receive_invoke(player, id, name.into_owned(), args.into_owned());
            }
            Record::Shown {
                player,
                tick,
                fraction,
            } => {
                here(world, player)?;
                world.note_shown(player, tick, fraction);
            }
            Record::RoundTrip { player, ms } => {
                here(world, player)?;
                world.note_round_trip(player, ms);
            }
            Record::WallClock { unix_ms } => world.set_wall_clock(unix_ms),
            Record::Cast {
                player,
                spell,
                revision,
                params,
            } => {
                here(world, player)?;
                // A refused call is refused again.
                let _ = world.cast(player, &spell, revision.as_deref(), params.into_owned());
            }
            Record::OpsPersisted { up_to } => world.ops_persisted(up_to),
            Record::Learn {
                name,
                revision,
                settings,
                forgotten,
            } => world.learned(&name, &revision, settings, forgotten),
            Record::Forget { name } => world.forgotten(&name),
            Record::CastFromOutside {
                by,
                spell,
                revision,
                params,
            } => {
                let params = params.into_owned();
                let _ = world.cast_from_outside(&by, &spell, revision.as_deref(), params);
            }
            Record::TerraformFromOutside { by, op } => {
                let _ = world.terraform_from_outside(&by, &op);
            }
            Record::Clear { by } => {
                let _ = world.clear(&by);
            }
            Record::Chat { player, text } => {
                here(world, player)?;
                let said = world.receive_chat(player, &text);
                said.map_err(|_| ReplayError::Nonsense("it has a line that no world takes"))?;
            }
            Record::Dress { player, looks } => {
                here(world, player)?;
                world.set_avatar(player, looks);
            }
            Record::Beside { player, friend } => {
                here(world, player)?;
                here(world, friend)?;
                world.spawn_beside(player, friend);
            }
            Record::Teleport { player, place } => {
                here(world, player)?;
                world.teleport(player, place.into());
            }
            Record::Terraform { player, op } => {
                here(world, player)?;
                // A refused call is refused again.
                let _ = world.terraform(player, &op);
            }
            Record::StoreAnswer { id, result } => {
                let result = result.map(Cow::into_owned).map_err(Cow::into_owned);
                world.store_answer(StoreAnswer { id, result });
            }
            Record::Hash(recorded) => self.compare(recorded),
            Record::Cut => {
                let tick = self.world.tick();
                self.report.cut_at.get_or_insert(tick);
            }
            Record::End(ending) => self.report.ending = Some(ending),
            Record::Script { path, text } => self.gather(&path, &text)?,
            Record::Reload { revision, removed } => self.reload(&revision, removed)?,
            Record::SwapBack => {
                let done = world.swap_back("as it was recorded");
                done.ok_or(ReplayError::Nonsense("nothing is there to swap back to"))?;
            }
        }
        if self.world.script_cuts() > 0 {
            let tick = self.world.tick();
            self.report.replay_cut_at.get_or_insert(tick);
        }
        // There are no clients, and messages must not accumulate.
        self.world.take_outbox();
        self.world.take_logs();
        self.world.take_store_requests();
        self.world.take_ops();
        Ok(())
    }

    fn gather(&mut self, path: &str, text: &str) -> Result<(), ReplayError> {
        self.changes_bytes += path.len() + text.len();
        if self.changes_bytes > RELOAD_BYTES_MAX {
            return Err(ReplayError::Nonsense("a reload is larger than any package"));
        }
        let source = self.changes.entry(path.to_owned()).or_default();
        source.get_or_insert_default().push_str(text);
        Ok(())
    }

    fn reload(&mut self, revision: &str, removed: Vec<String>) -> Result<(), ReplayError> {
        let mut changes = std::mem::take(&mut self.changes);
        self.changes_bytes = 0;
        changes.extend(removed.into_iter().map(|path| (path, None)));
        match self.world.apply(revision, changes) {
            Ok(Some(_)) => Ok(()),
            _ => Err(ReplayError::Nonsense("a reload does not compile")),
        }
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

fn here(world: &World, player: PlayerNumber) -> Result<(), ReplayError> {
    match world.entity_of(player) {
        Some(_) => Ok(()),
        None => Err(ReplayError::Nonsense("it names a player who is not there")),
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
