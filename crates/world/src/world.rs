//! The world itself: load, join, step, replicate.

mod as_seen;
pub mod input;
mod observe;
mod presence;
pub mod replay;
mod replication;
mod saved;
mod scripts;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use frolic_fleet_api::ops::LoggedOp;
use frolic_fleet_api::persist::SavedWorld;
use frolic_fleet_api::remote_commands::CastNews;
use frolic_package::Package;
use frolic_protocol::ServerMessage;
use frolic_scene::{Components, Scene};
use frolic_script::{
    CompileError, Engine, LogLevel, ScriptEvent, ScriptLog, Vm, VmError, VmLimits, compile,
};
use frolic_sim::{CharacterParams, CharacterState, Vec3};

use crate::fingerprint::Fingerprint;
use crate::interest::Replication;
use crate::outbox::Outgoing;
use crate::player::PlayerNumber;
use crate::policy::InterestPolicy;
use crate::reload::{Code, Watch, compile_log};
use crate::stage::Stopwatch;
use crate::state::WorldState;
use crate::string_quota::StringQuota;
use crate::updates::UpdateRule;
use replay::{Ending, Record, RecordOptions, Recorder, RecordingHeader, ScriptLimits};

pub use as_seen::AsSeen;
pub use input::{ChatRefusal, StepReport};
pub use observe::EntityRecord;

/// Settings of a world besides its package.
#[derive(Clone, Debug)]
pub struct WorldOptions {
    /// Seed of everything random.
    pub seed: u64,
    /// Limits of its scripts.
    pub scripts: VmLimits,
    /// Scripts that must not run, because an earlier process of this world had
    /// to be terminated for them.
    pub disabled_scripts: Vec<String>,
    /// Overrides the package's simulation rate.
    pub tick_hz: Option<u32>,
    /// Overrides the package's rate of updates to clients.
    pub snapshot_hz: Option<u32>,
    /// Overrides what the package replicates to clients.
    pub interest: Option<InterestPolicy>,
    /// Overrides the byte limit for cells per client and second, where there is
    /// one.
    pub client_bytes_per_s: Option<u32>,
    /// The wall-clock time at the start, in milliseconds since the start of
    /// 1970; see
    /// [`WallClock`](input::WallClock).
    pub started_unix_ms: u64,
    /// The state that earlier processes of this world left; restored before its
    /// scripts start.
    pub saved: Option<SavedWorld>,
    /// Records everything that enters the world; see [`replay`].
    pub record: Option<RecordOptions>,
    /// Measures the stages of each step.
    pub stopwatch: Option<Stopwatch>,
}

impl Default for WorldOptions {
    fn default() -> Self {
        Self {
            seed: 1,
            // A process that runs a world for players sets time limits.
            scripts: VmLimits::untimed(),
            disabled_scripts: Vec::new(),
            tick_hz: None,
            snapshot_hz: None,
            interest: None,
            client_bytes_per_s: None,
            started_unix_ms: 0,
            saved: None,
            record: None,
            stopwatch: None,
        }
    }
}

/// Why a world could not be created.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Luau did not start.
    #[error("the script engine did not start: {0}")]
    Vm(#[from] VmError),
}

/// The state of a world, for metrics.
#[derive(Clone, Copy, Debug, Default)]
pub struct WorldFigures {
    /// Entities, including characters.
    pub entities: usize,
    /// Queued inputs of all players.
    pub waiting_inputs: usize,
    /// Ticks so far that repeated a player's last input, because the next one
    /// had not arrived.
    pub repeated_inputs: u64,
}

/// One running world.
pub struct World {
    state: Rc<RefCell<WorldState>>,
    vm: Vm,
    /// The scripts that run, and those before the last reload.
    code: Code,
    previous: Option<Code>,
    script_version: u32,
    watch: Watch,
    /// Script errors that the reload watch has processed.
    judged_errors: u64,
    compile_errors: Vec<CompileError>,
    replication: Replication,
    next_player: PlayerNumber,
    inbox: Vec<ScriptEvent>,
    /// Events of each player since the last step.
    inbox_counts: HashMap<PlayerNumber, usize>,
    words: StringQuota,
    /// Fingerprint of all messages that the host took.
    sent: Fingerprint,
    recorder: Option<Recorder>,
    stopwatch: Option<Stopwatch>,
    /// Whether it is closing.
    closing: bool,
}

impl World {
    /// Creates a world from a package and starts its scripts. Scripts that do
    /// not compile are skipped and reported in the log.
    ///
    /// # Errors
    /// If the script engine does not start.
    pub fn load(package: &Package, options: WorldOptions) -> Result<Self, LoadError> {
        let mut state = WorldState::load(package);
        if let Some(tick_hz) = options.tick_hz {
            state.space.tick_hz = tick_hz.clamp(1, 240);
        }
        state.wall_clock = (options.started_unix_ms, 0);
        let mut code = Code {
            revision: package.revision.clone(),
            ..Code::default()
        };
        let mut compile_errors = Vec::new();
        for (path, source) in package.scripts() {
            match compile(path, source) {
                Ok(script) => {
                    code.scripts.insert(path.to_owned(), script);
                }
                Err(error) => {
                    Engine::log(&mut state, compile_log(&error, source));
                    code.broken.insert(path.to_owned(), source.to_owned());
                    compile_errors.push(error);
                }
            }
        }
        for path in &options.disabled_scripts {
            Engine::log(&mut state, disabled_log(path));
        }
        if let Some(saved) = &options.saved {
            state.restore(saved);
        }
        let settings = &package.manifest.simulation;
        let radius = settings.interest_radius;
        let mut interest = options.interest.unwrap_or(InterestPolicy {
            radius,
            ..InterestPolicy::default()
        });
        if let Some(limit) = &mut interest.bytes_per_s {
            *limit = options.client_bytes_per_s.unwrap_or(*limit);
        }
        let tick_hz = state.space.tick_hz;
        let snapshot_hz = options.snapshot_hz.unwrap_or(settings.snapshot_hz);
        let snapshot_hz = snapshot_hz.clamp(1, tick_hz);
        state.space.updates = UpdateRule {
            policy: interest,
            ticks_per_update: tick_hz as f32 / snapshot_hz as f32,
        };
        let recorder = options.record.map(|record| {
            let header = RecordingHeader {
                revision: package.revision.clone(),
                seed: options.seed,
                tick_hz,
                snapshot_hz,
                interest,
                hash_every_ticks: record.hash_every_ticks.unwrap_or(tick_hz).max(1),
                scripts: ScriptLimits::from(&options.scripts),
                disabled_scripts: options.disabled_scripts.clone(),
                started_unix_ms: options.started_unix_ms,
                saved: options.saved.unwrap_or_default(),
                made_by: replay::this_build(),
            };
            Recorder::new(&header, record)
        });
        let made_up_from = state.definitions.first_extra();
        let state = Rc::new(RefCell::new(state));
        let mut vm = Vm::new(state.clone(), options.scripts, options.seed)?;
        let of_prefabs = scripts_of_prefabs(&package.scene);
        vm.disable(options.disabled_scripts);
        vm.grant(package.manifest.capabilities.names().map(str::to_owned));
        for (name, remote) in &package.remotes {
            vm.declare(name, &remote.args, remote.rate, remote.burst);
        }
        let mut world = Self {
            state,
            vm,
            code,
            previous: None,
            script_version: 1,
            watch: Watch::default(),
            judged_errors: 0,
            compile_errors,
            replication: Replication::new(
                interest,
                snapshot_hz,
                tick_hz,
                &package.scene,
                made_up_from,
            ),
            next_player: 1,
            inbox: Vec::new(),
            inbox_counts: HashMap::new(),
            words: StringQuota::default(),
            sent: Fingerprint::default(),
            recorder,
            stopwatch: options.stopwatch,
            closing: false,
        };
        world.start_scripts(of_prefabs);
        Ok(world)
    }

    fn start_scripts(&mut self, of_prefabs: Vec<String>) {
        self.stamp();
        let attachments = self.attachments();
        let scripts = self.code.scripts.values().cloned().collect();
        self.vm.attach_only(of_prefabs);
        self.vm.start(scripts, &attachments);
        self.note_cuts();
        let state = self.state.borrow();
        let console = &state.space.console;
        let lines = console.lines().iter();
        let errors = lines.filter(|line| line.level == LogLevel::Error);
        let failed = errors.map(|line| line.script.clone()).collect();
        self.watch = Watch::new(state.space.tick_hz, failed);
        self.judged_errors = console.errors();
    }

    /// Delivers events to scripts. Events that they cause are delivered in the
    /// next round, for a bounded number of rounds; the rest in the next tick.
    fn dispatch_events(&mut self) {
        for _ in 0..4 {
            let events = std::mem::take(&mut self.state.borrow_mut().space.events);
            if events.is_empty() {
                break;
            }
            for event in events {
                self.vm.dispatch(event);
            }
        }
    }

    fn note(&mut self, record: Record) {
        if let Some(recorder) = &mut self.recorder {
            recorder.note(record);
        }
    }

    fn note_cuts(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.note_cuts(self.vm.usage().cuts);
        }
    }

    /// The recording since the last call; empty without
    /// [`WorldOptions::record`]. Complete records only.
    pub fn take_recording(&mut self) -> Vec<u8> {
        let recorder = self.recorder.as_mut();
        recorder.map(Recorder::take).unwrap_or_default()
    }

    /// Writes the last fingerprint and ends the recording.
    pub fn end_recording(&mut self, ending: Ending) {
        if self.recorder.is_some() {
            let hash = self.state_hash();
            self.note(Record::Hash(hash));
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.end(ending);
        }
    }

    /// Metrics for the operator. Iterates over the players.
    pub fn figures(&self) -> WorldFigures {
        let state = self.state.borrow();
        let players = state.space.players.values();
        WorldFigures {
            entities: state.space.entities.len(),
            waiting_inputs: players.map(|p| usize::from(p.inputs.queued())).sum(),
            repeated_inputs: state.characters.repeated_inputs,
        }
    }

    /// The number of players.
    pub fn player_count(&self) -> usize {
        self.state.borrow().space.players.len()
    }

    /// The number of awake rigid bodies, which determine the cost of physics.
    pub fn awake_bodies(&self) -> usize {
        self.state.borrow().bodies.awake().len()
    }

    /// The current tick.
    pub fn tick(&self) -> u32 {
        self.state.borrow().space.tick
    }

    /// Ticks per second.
    pub fn tick_hz(&self) -> u32 {
        self.state.borrow().space.tick_hz
    }

    /// How characters move.
    pub fn character_params(&self) -> CharacterParams {
        self.state.borrow().space.params
    }

    /// The entity of a player's character.
    pub fn entity_of(&self, player: PlayerNumber) -> Option<u32> {
        Some(self.state.borrow().space.players.get(&player)?.entity)
    }

    /// A player's character, exactly.
    pub fn character(&self, player: PlayerNumber) -> Option<CharacterState> {
        let state = self.state.borrow();
        let space = &state.space;
        let player = space.players.get(&player)?;
        Some(player.gait.at(space.feet_of(player)))
    }

    /// The place of the first entity with that name or tag.
    pub fn position_of(&self, name_or_tag: &str) -> Option<Vec3> {
        let state = self.state.borrow();
        state.space.entities.place_of(name_or_tag)
    }

    /// Messages for players since the last call.
    pub fn take_outbox(&mut self) -> Vec<Outgoing> {
        let outbox = self.state.borrow_mut().space.outbox.take();
        outbox
            .iter()
            .for_each(|outgoing| self.sent.outgoing(outgoing));
        outbox
    }

    /// Persistent operations since the last call, to be stored in this order.
    pub fn take_ops(&mut self) -> Vec<LoggedOp> {
        std::mem::take(self.state.borrow_mut().history.fresh())
    }

    /// Casts since the last call, for observers outside the world.
    pub fn take_casts(&mut self) -> Vec<CastNews> {
        std::mem::take(&mut self.state.borrow_mut().visitors.casts)
    }

    /// Number up to which operations are stored.
    pub fn persisted_op(&self) -> u64 {
        self.state.borrow().history.persisted()
    }

    /// Whether all closing handlers have finished, and no script waits for the
    /// store.
    pub fn has_closed(&self) -> bool {
        self.closing && self.vm.closing_left() == 0
    }

    /// The messages about weapons, and which player holds which, for a joining
    /// client, as far as they are sent regardless of what it sees.
    pub fn weapons(&self, player: PlayerNumber) -> Vec<ServerMessage> {
        let state = self.state.borrow();
        state.projectiles.messages(&state.space, player)
    }

    /// Shots in flight.
    pub fn projectiles(&self) -> usize {
        self.state.borrow().projectiles.flying.len()
    }

    #[cfg(test)]
    pub(crate) fn replication(&self) -> &Replication {
        &self.replication
    }

    /// A fingerprint of everything that determines the future, except the state
    /// inside scripts; their output is included.
    pub fn state_hash(&self) -> u64 {
        let state = self.state.borrow();
        let mut fingerprint = self.sent;
        for outgoing in state.space.outbox.iter() {
            fingerprint.outgoing(outgoing);
        }
        fingerprint.word(u64::from(self.next_player));
        fingerprint.word(self.inbox.len() as u64);
        fingerprint.word(state.store.count());
        fingerprint.state(&state);
        fingerprint.value()
    }
}

/// The scripts that prefabs and their children name.
fn scripts_of_prefabs(scene: &Scene) -> Vec<String> {
    let roots = scene.prefabs.values().map(|prefab| &prefab.components);
    let path = |components: &Components| {
        let script = components.script.as_ref();
        script.map(|script| script.path.clone())
    };
    let mut paths: Vec<String> = roots.filter_map(path).collect();
    for name in scene.prefabs.keys() {
        let parts = scene.prefab_parts(name);
        paths.extend(parts.iter().filter_map(|part| path(&part.components)));
    }
    paths
}

fn disabled_log(path: &str) -> ScriptLog {
    ScriptLog {
        level: LogLevel::Error,
        script: path.to_owned(),
        line: None,
        message: "disabled: it could not be stopped, so the world was restarted without it; look \
                  for long work on large strings without a loop or call in between"
            .to_owned(),
        source_line: None,
        traceback: String::new(),
        origin: None,
    }
}
