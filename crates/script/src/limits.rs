//! Limits of scripts. Each is measured or justified where it is defined;
//! operators may change [`VmLimits`].

use std::time::Duration;

/// Larger coordinates and speeds are refused: `f32` still resolves centimetres
/// here, and physics stays finite.
pub const COORDINATE_MAX: f64 = 1.0e6;

/// Bytes of one source file. At -O1 this compiles in under 140 ms.
pub const SOURCE_BYTES_MAX: usize = 256 * 1024;

/// Bytes of a name: entity, tag, attribute, event, prefab.
pub const NAME_BYTES_MAX: usize = 64;

/// Bytes of one error or log text.
pub const TEXT_BYTES_MAX: usize = 1024;

/// Safe points of a slice under [`VmLimits::untimed`]: about forty times what
/// fits into the slice of a world that people play in.
const UNTIMED_STEPS: u64 = 100_000_000;

/// Limits shared by all scripts of one world.
#[derive(Clone, Debug)]
pub struct VmLimits {
    /// Memory of all scripts of the world. Exceeding it stops the running
    /// script; the allocator refuses at [`VmLimits::memory_hard_bytes`].
    pub memory_bytes: usize,
    /// CPU time after which a handler is interrupted.
    pub slice: Duration,
    /// Safe points (calls, returns, loop iterations) after which a handler is
    /// interrupted: a limit that does not depend on a clock, for tests, fuzzers
    /// and replays. Counting costs time at every safe point, so worlds that
    /// people play in are limited by time alone.
    pub slice_steps: Option<u64>,
    /// CPU time of all handlers of one tick; the remaining ones are deferred.
    pub tick_budget: Duration,
    /// Average CPU time of all handlers of a tick. A world accumulates up to
    /// [`VmLimits::savings`] of it; beyond that the script that used most is
    /// paused.
    pub average: Duration,
    /// See [`VmLimits::average`].
    pub savings: Duration,
    /// How often a script may be paused before it is disabled, unless it stayed
    /// within the budget for [`VmLimits::forgive`] in between.
    pub pauses_max: u32,
    /// See [`VmLimits::pauses_max`].
    pub forgive: Duration,
    /// How long after its slice code that reaches no safe point may continue
    /// before the process is ended; see [`blame`](crate::guard::blame). `None`
    /// if the process is not the world's own.
    pub kill_after: Option<Duration>,
    /// How often a script may be interrupted before it is disabled.
    pub offences_max: u32,
    /// Lines that scripts may log per second of world time.
    pub log_lines_per_second: u32,
    /// Entities that all scripts together may spawn per tick.
    pub spawns_per_tick: u32,
    /// Entities that one script may spawn per tick, over all entities it runs
    /// on.
    pub spawns_per_script_tick: u32,
    /// Concurrent entities spawned by one script.
    pub entities_per_script: u32,
    /// Bytes of remote events that scripts may send per tick.
    pub send_bytes_per_tick: usize,
}

impl Default for VmLimits {
    fn default() -> Self {
        Self {
            memory_bytes: 64 * 1024 * 1024,
            slice: Duration::from_millis(50),
            slice_steps: None,
            tick_budget: Duration::from_millis(100),
            average: Duration::from_millis(4),
            savings: Duration::from_millis(100),
            pauses_max: 20,
            forgive: Duration::from_secs(10),
            kill_after: None,
            offences_max: 5,
            log_lines_per_second: 100,
            spawns_per_tick: 512,
            spawns_per_script_tick: 256,
            entities_per_script: 10_000,
            send_bytes_per_tick: 256 * 1024,
        }
    }
}

impl VmLimits {
    /// Limits that in practice do not depend on a clock: for worlds that are
    /// stepped by a test, a fuzzer or a replay, where the same inputs must give
    /// the same result even on a busy machine. CPU time is not reproducible: in
    /// a virtual machine it includes time taken by the host. A script that
    /// never ends is still stopped, after a number of safe points, or some
    /// seconds where it reaches few of them.
    pub fn untimed() -> Self {
        let never = Duration::from_secs(10);
        Self {
            slice: never / 2,
            slice_steps: Some(UNTIMED_STEPS),
            tick_budget: never,
            average: never,
            ..Self::default()
        }
    }

    /// The allocator's limit. Far enough above the soft limit that the stop
    /// (which waits for the next safe point) nearly always comes first: a
    /// refused allocation may leave the VM unusable.
    pub fn memory_hard_bytes(&self) -> usize {
        self.memory_bytes.saturating_mul(2)
    }
}
