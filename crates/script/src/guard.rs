//! Time and memory limits of a VM: the only unsafe code of this crate.
//!
//! A watchdog thread checks every few milliseconds the slice of work that runs
//! and, when it has used its CPU time, stores Luau's raw interrupt callback,
//! which raises an error at every safe point until the host is back in control:
//! no `pcall` survives that. `Lua::set_interrupt` is not used: it costs on
//! every call, and slows down without bound after caught errors.
//!
//! Memory has two limits. The soft one arms the same interrupt after an
//! allocation; at the next safe point a full collection decides. The hard one
//! is mlua's allocator limit, twice as high: failing allocations are what Luau
//! survives least well, so they must not be the first defence. Memory is
//! counted by script (Luau's memory categories): when memory gets short, the
//! running script is stopped only if no other script holds more.
//!
//! Time is the CPU time of the VM's thread where the system has such a clock,
//! because a busy machine must not look like a busy script. A single jump of
//! that clock counts as a part of a slice only, and the interrupt confirms on
//! the VM's thread that the slice it was meant for still runs. Tests and
//! fuzzers limit a slice by its safe points instead, which is reproducible.
//!
//! Code without any safe point (thousands of operations on huge strings in a
//! row) is not affected by the interrupt. A world that has a process of its own
//! lets the watchdog end that process then; see [`blame`].
#![allow(unsafe_code)]

pub mod blame;
mod clock;
mod meter;

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_int, c_void};
use std::fmt::Write as _;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use mlua::{Buffer, Lua, ffi};

use self::clock::Clock;
use self::meter::Meter;
use crate::limits::VmLimits;

/// Polling interval of the watchdog while a script runs. A slice may overrun by
/// this plus [`IDLE_POLL`].
const POLL: Duration = Duration::from_millis(2);
/// Polling interval while no script runs: waking up costs more than most
/// scripts do, and a slice is much longer.
const IDLE_POLL: Duration = Duration::from_millis(16);

/// Offsets of the words shared with `builtin/common/scheduler.luau`.
const SLICE: usize = 0;
const INSTANCE: usize = 8;
const PAUSE: usize = 12;
const CATEGORY: usize = 16;
const SCRIPT: usize = 20;
/// The slice that the watchdog wants to stop; the scheduler does not use it.
const CONDEMNED: usize = 24;
const SLOT_BYTES: usize = 32;

/// Requests to the scheduler in [`PAUSE`]: to return to the host, and to pause
/// the scripts that took much of this tick.
const COME_BACK: u32 = 1;
const SPARE_OTHERS: u32 = 2;

const OUT_OF_TIME: &CStr = c"script stopped: out of time";

/// Stack levels in the report of a stop.
const TRACE_LEVELS_MAX: c_int = 16;

/// Flags that keep Luau memory-safe at its limits; off by default.
const SAFETY_FLAGS: [&str; 4] = [
    // A failing allocation while a table shrinks corrupts the heap without it.
    "LuauTableRobustOom",
    // `table.move` over 2^31 elements never returns without it.
    "LuauTableMoveTimeoutFix",
    "LuauTableArrayAdjustCheck",
    "LuauSandboxFreezesVectorMetatable",
];

/// Sets the flags; must happen before the first VM of the process.
///
/// # Errors
/// The name of a flag that this Luau does not have: it is not the version that
/// was tested.
pub fn set_safety_flags() -> Result<(), &'static str> {
    SAFETY_FLAGS
        .into_iter()
        .try_for_each(|flag| Lua::set_fflag(flag, true).map_err(|()| flag))
}

/// The limit that was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The slice's time.
    Time,
    /// The world's script memory.
    Memory,
}

/// A report on work that was stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The limit.
    pub reason: StopReason,
    /// The script instance that ran.
    pub instance: u32,
    /// Where it was, one `path:line function` per line.
    pub traceback: String,
}

/// How a guarded call failed.
#[derive(Debug)]
pub enum Failure {
    /// It exceeded a limit.
    Stopped(Stop),
    /// Luau raised an error that was not caught.
    Error(mlua::Error),
}

thread_local! {
    /// The soft memory limit of the VM that runs on this thread.
    static SOFT_BYTES: Cell<usize> = const { Cell::new(usize::MAX) };
    /// The raised soft limit while another script is responsible.
    static RELAXED_BYTES: Cell<usize> = const { Cell::new(usize::MAX) };
    /// The memory category that held most when memory got short.
    static HOARDER: Cell<Option<u32>> = const { Cell::new(None) };
    static SLOT: Cell<*const u8> = const { Cell::new(ptr::null()) };
    /// The interrupt while no limit is exceeded: none, or `count_steps`.
    static RESTING: Cell<*mut c_void> = const { Cell::new(ptr::null_mut()) };
    /// Safe points of the running slice.
    static STEPS: Cell<Steps> = const { Cell::new(Steps { max: 0, slice: 0, left: 0 }) };
    /// Set by the interrupt when it first raises.
    static TRIPPED: Cell<Option<StopReason>> = const { Cell::new(None) };
    static TRACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Counts the safe points of a slice.
#[derive(Clone, Copy)]
struct Steps {
    max: u64,
    /// The slice that `left` belongs to.
    slice: u64,
    left: u64,
}

/// Guards one VM. Dropping it ends the watchdog.
pub struct Guard {
    lua: Lua,
    /// Keeps the shared words alive; Luau never moves a buffer.
    slot: Buffer,
    shared: Arc<Shared>,
    soft_bytes: usize,
    relaxed_bytes: usize,
    slice_steps: Option<u64>,
    watchdog: Option<JoinHandle<()>>,
}

/// Shared between the VM's thread and the watchdog.
struct Shared {
    state: Mutex<Watch>,
    wake: Condvar,
    /// `&lua_callbacks(L)->interrupt`.
    interrupt: *const AtomicPtr<c_void>,
    /// The shared words.
    slot: *const u8,
    clock: Clock,
    slice: Duration,
    tick_budget: Duration,
    /// Microseconds of the tick that earlier calls have used.
    tick_used_us: AtomicU64,
    kill_after: Option<Duration>,
}

// SAFETY: the pointers lead into the VM's memory, which outlives the watchdog
// (`Guard::drop` joins it before the `Lua` handle goes), and are used through
// atomics only.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

#[derive(Default)]
struct Watch {
    /// Counts guarded calls; `None` while the host is in control.
    call: Option<u64>,
    calls: u64,
    ended: bool,
}

impl Guard {
    /// Starts guarding a VM.
    ///
    /// # Errors
    /// If the VM is out of memory already, or no thread can be started.
    pub fn new(lua: &Lua, limits: &VmLimits) -> mlua::Result<Guard> {
        lua.set_memory_limit(limits.memory_hard_bytes())?;
        let slot = lua.create_buffer_with_capacity(SLOT_BYTES)?;
        let mut words = ptr::null::<u8>();
        // SAFETY: reads the address of the buffer that was just pushed.
        unsafe {
            lua.exec_raw::<()>(slot.clone(), |state| {
                let mut length = 0;
                words = ffi::lua_tobuffer(state, -1, &mut length).cast();
                ffi::lua_settop(state, 0);
            })?;
        }
        // SAFETY: the callbacks live as long as the state. Addresses shown to
        // scripts are scrambled with keys they cannot know.
        let interrupt = unsafe {
            let callbacks = ffi::lua_callbacks(lua.state());
            (*callbacks).onallocate = Some(on_allocate);
            (*callbacks).preresume = Some(before_resume);
            let [a, b, c, d] = scramble_keys();
            ffi::lua_setpointerencodekey(lua.state(), a, b, c, d);
            &raw const (*callbacks).interrupt
        };
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            wake: Condvar::new(),
            interrupt: interrupt.cast(),
            slot: words,
            clock: Clock::of_this_thread(),
            slice: limits.slice,
            tick_budget: limits.tick_budget,
            tick_used_us: AtomicU64::new(0),
            kill_after: limits.kill_after,
        });
        let for_thread = Arc::clone(&shared);
        let watchdog = std::thread::Builder::new()
            .name("script-watchdog".to_owned())
            .spawn(move || for_thread.watch())
            .map_err(mlua::Error::external)?;
        Ok(Guard {
            lua: lua.clone(),
            slot,
            shared,
            soft_bytes: limits.memory_bytes,
            relaxed_bytes: limits.memory_bytes + limits.memory_bytes / 2,
            slice_steps: limits.slice_steps,
            watchdog: Some(watchdog),
        })
    }

    /// The words shared with the scheduler.
    pub fn slot(&self) -> &Buffer {
        &self.slot
    }

    /// CPU time of this thread; only differences are meaningful.
    pub fn now(&self) -> Duration {
        self.shared.clock.now()
    }

    /// Begins a tick: all calls until the next one share its time budget.
    pub fn begin_tick(&self) {
        self.shared.tick_used_us.store(0, Ordering::Relaxed);
    }

    /// Calls into the VM under the limits.
    ///
    /// # Errors
    /// When a limit stopped it or Luau raised an error.
    pub fn run<R>(&self, call: impl FnOnce() -> mlua::Result<R>) -> Result<R, Failure> {
        let began = self.now();
        self.arm();
        let result = call();
        self.disarm();
        let took = self.now().saturating_sub(began).as_micros();
        let took = u64::try_from(took).unwrap_or(u64::MAX);
        self.shared.tick_used_us.fetch_add(took, Ordering::Relaxed);
        if let Some(reason) = TRIPPED.take() {
            return Err(Failure::Stopped(Stop {
                reason,
                instance: self.shared.word(INSTANCE).load(Ordering::Relaxed),
                traceback: TRACE.take(),
            }));
        }
        result.map_err(Failure::Error)
    }

    /// Bytes in a script's memory category.
    pub fn memory_of(&self, category: u8) -> usize {
        // SAFETY: reads a counter of a live state.
        unsafe { ffi::lua_totalbytes(self.lua.state(), c_int::from(category)) }
    }

    /// The memory category (script) that held most when memory last got short
    /// while another ran.
    pub fn take_hoarder(&self) -> Option<u32> {
        HOARDER.take()
    }

    /// Microseconds of CPU time that calls have taken since the tick began.
    pub fn tick_used_us(&self) -> u64 {
        self.shared.tick_used_us.load(Ordering::Relaxed)
    }

    /// Whether the scheduler was asked in the last call to return to the host
    /// or to pause some scripts; it may have left work for the next tick.
    pub fn was_paused(&self) -> bool {
        self.shared.word(PAUSE).load(Ordering::Relaxed) != 0
    }

    fn arm(&self) {
        SOFT_BYTES.set(self.soft_bytes);
        RELAXED_BYTES.set(self.relaxed_bytes);
        SLOT.set(self.shared.slot);
        TRIPPED.set(None);
        let asked = self.shared.asked_after(Duration::ZERO);
        self.shared.word(PAUSE).store(asked, Ordering::Relaxed);
        let resting = match self.slice_steps {
            Some(max) => {
                let slice = self.shared.slice_number();
                STEPS.set(Steps {
                    max,
                    slice,
                    left: max,
                });
                count_steps as *mut c_void
            }
            None => ptr::null_mut(),
        };
        RESTING.set(resting);
        self.shared.interrupt().store(resting, Ordering::Relaxed);
        blame::enter(self.shared.word(SCRIPT));
        let mut watch = self.shared.lock();
        watch.calls += 1;
        watch.call = Some(watch.calls);
    }

    fn disarm(&self) {
        // Under the lock, so that the watchdog cannot interrupt us afterwards.
        let mut watch = self.shared.lock();
        watch.call = None;
        self.shared
            .interrupt()
            .store(ptr::null_mut(), Ordering::Relaxed);
        SOFT_BYTES.set(usize::MAX);
        RESTING.set(ptr::null_mut());
        SLOT.set(ptr::null());
        blame::leave();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.wake.notify_all();
        if let Some(watchdog) = self.watchdog.take() {
            // A panic of the watchdog is irrelevant now.
            let _ = watchdog.join();
        }
        // SAFETY: the state is alive while `self.lua` is.
        unsafe {
            let callbacks = ffi::lua_callbacks(self.lua.state());
            (*callbacks).onallocate = None;
            (*callbacks).preresume = None;
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Watch> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn interrupt(&self) -> &AtomicPtr<c_void> {
        // SAFETY: aligned, alive (see `Shared`), and a nullable function
        // pointer has the layout of a pointer.
        unsafe { &*self.interrupt }
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: the slot is alive (see `Shared`) and the offset inside it.
        unsafe { shared_word(self.slot, offset) }
    }

    fn slice_number(&self) -> u64 {
        // SAFETY: as `word`.
        unsafe { shared_number(self.slot, SLICE) }.load(Ordering::Relaxed)
    }

    /// Stops a slice at its next safe point. The caller holds the lock, so that
    /// the call has not ended; the slice may have: `out_of_time` looks again.
    fn condemn(&self, slice: u64) {
        // SAFETY: as `word`.
        unsafe { shared_number(self.slot, CONDEMNED) }.store(slice, Ordering::Relaxed);
        self.interrupt()
            .store(out_of_time as *mut c_void, Ordering::Release);
    }

    /// Requests to the scheduler once the running call has taken this long. One
    /// script may use half of the budget; the rest is for the others.
    fn asked_after(&self, ran: Duration) -> u32 {
        let used = Duration::from_micros(self.tick_used_us.load(Ordering::Relaxed)) + ran;
        match () {
            () if used > self.tick_budget => COME_BACK | SPARE_OTHERS,
            () if used > self.tick_budget / 2 => SPARE_OTHERS,
            () => 0,
        }
    }

    /// The watchdog's loop.
    fn watch(&self) {
        let mut seen = (0, 0);
        let mut call_began = Duration::ZERO;
        let mut meter = Meter::new(self.slice);
        let mut pause = IDLE_POLL;
        loop {
            let watch = self.lock();
            let (watch, _) = self
                .wake
                .wait_timeout(watch, pause)
                .unwrap_or_else(PoisonError::into_inner);
            if watch.ended {
                return;
            }
            let Some(call) = watch.call else {
                pause = IDLE_POLL;
                continue;
            };
            pause = POLL;
            let now = self.clock.now();
            let slice = self.slice_number();
            if seen.0 != call {
                call_began = now;
            }
            if seen != (call, slice) {
                seen = (call, slice);
                meter.begin(now);
            }
            let asked = self.asked_after(now.saturating_sub(call_began));
            self.word(PAUSE).fetch_or(asked, Ordering::Relaxed);
            let ran = meter.advance(now);
            if self
                .kill_after
                .is_some_and(|after| ran > self.slice + after)
            {
                blame::end_process(self.word(SCRIPT).load(Ordering::Relaxed));
            }
            if ran > self.slice {
                self.condemn(slice);
            }
        }
    }
}

/// Raised at every safe point until `disarm`.
unsafe extern "C-unwind" fn out_of_time(state: *mut ffi::lua_State, gc: c_int) {
    if gc >= 0 {
        return;
    }
    // SAFETY: called by the VM at a safe point, while a guarded call runs.
    unsafe {
        if TRIPPED.get().is_none() && !is_condemned() {
            // The watchdog was delayed between its look at the slice and the
            // interrupt, which another slice must not pay for.
            let _ = interrupt_of(state).compare_exchange(
                out_of_time as *mut c_void,
                RESTING.get(),
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            return;
        }
        raise(state, StopReason::Time, OUT_OF_TIME);
    }
}

/// Whether the running slice is the one that the watchdog wants to stop.
unsafe fn is_condemned() -> bool {
    let slot = SLOT.get();
    if slot.is_null() {
        return false;
    }
    // SAFETY: `SLOT` is set while a guarded call runs.
    unsafe {
        let condemned = shared_number(slot, CONDEMNED).load(Ordering::Relaxed);
        condemned == shared_number(slot, SLICE).load(Ordering::Relaxed)
    }
}

/// Stops a slice after a number of safe points.
unsafe extern "C-unwind" fn count_steps(state: *mut ffi::lua_State, gc: c_int) {
    let slot = SLOT.get();
    if gc >= 0 || slot.is_null() {
        return;
    }
    let mut steps = STEPS.get();
    // SAFETY: `SLOT` is set while a guarded call runs.
    let slice = unsafe { shared_number(slot, SLICE).load(Ordering::Relaxed) };
    if slice != steps.slice && TRIPPED.get().is_none() {
        steps = Steps {
            slice,
            left: steps.max,
            ..steps
        };
    }
    steps.left = steps.left.saturating_sub(1);
    STEPS.set(steps);
    if steps.left == 0 || TRIPPED.get().is_some() {
        // SAFETY: called by the VM at a safe point.
        unsafe { raise(state, StopReason::Time, OUT_OF_TIME) }
    }
}

/// Decides at a safe point whether memory is really short, and which script is
/// responsible.
unsafe extern "C-unwind" fn out_of_memory(state: *mut ffi::lua_State, gc: c_int) {
    if gc >= 0 {
        return;
    }
    // SAFETY: called by the VM at a safe point, where a collection may run.
    unsafe {
        if TRIPPED.get().is_none() {
            ffi::lua_gc(state, ffi::LUA_GCCOLLECT, 0);
            if ffi::lua_totalbytes(state, -1) <= SOFT_BYTES.get() || spare_the_innocent(state) {
                // The watchdog may have stored its callback in between.
                let _ = interrupt_of(state).compare_exchange(
                    out_of_memory as *mut c_void,
                    RESTING.get(),
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                );
                return;
            }
        }
        raise(state, StopReason::Memory, c"script stopped: out of memory");
    }
}

/// If another script holds most of the memory, lets the running one continue
/// for now and asks the scheduler to return to the host, which handles the
/// other.
unsafe fn spare_the_innocent(state: *mut ffi::lua_State) -> bool {
    let slot = SLOT.get();
    if slot.is_null() || SOFT_BYTES.get() >= RELAXED_BYTES.get() {
        return false;
    }
    // SAFETY: `SLOT` is set while a guarded call runs; counters are read.
    let (hoarder, running) = unsafe {
        let held = |category| ffi::lua_totalbytes(state, category);
        let hoarder = (1..=255).max_by_key(|&c| held(c)).unwrap_or(0);
        (
            hoarder.unsigned_abs(),
            shared_word(slot, CATEGORY).load(Ordering::Relaxed),
        )
    };
    if hoarder == running {
        return false;
    }
    HOARDER.set(Some(hoarder));
    SOFT_BYTES.set(RELAXED_BYTES.get());
    // SAFETY: as above.
    unsafe { shared_word(slot, PAUSE).fetch_or(COME_BACK, Ordering::Relaxed) };
    true
}

/// Luau's hook before a thread runs: attributes its memory to the script of the
/// current slice.
unsafe extern "C-unwind" fn before_resume(state: *mut ffi::lua_State) {
    let slot = SLOT.get();
    if !slot.is_null() {
        // SAFETY: `SLOT` is set while a guarded call runs; sets one byte.
        unsafe {
            let category = shared_word(slot, CATEGORY).load(Ordering::Relaxed);
            ffi::lua_setmemcat(state, (category & 255).cast_signed());
        }
    }
}

/// # Safety
/// `slot` is the live buffer of `SLOT_BYTES`, which Luau aligns to 8, and
/// `offset` one of the constants above.
unsafe fn shared_word<'a>(slot: *const u8, offset: usize) -> &'a AtomicU32 {
    // SAFETY: the caller's promise.
    unsafe { &*slot.add(offset).cast() }
}

/// # Safety
/// As `shared_word`, for one of the numbers of 8 bytes.
unsafe fn shared_number<'a>(slot: *const u8, offset: usize) -> &'a AtomicU64 {
    // SAFETY: the caller's promise.
    unsafe { &*slot.add(offset).cast() }
}

/// Records the first stop and raises. No Rust value lives across the raise.
unsafe fn raise(state: *mut ffi::lua_State, reason: StopReason, text: &CStr) {
    if TRIPPED.get().is_none() {
        TRIPPED.set(Some(reason));
        // SAFETY: `state` is the running thread.
        unsafe { note_trace(state) };
    }
    // SAFETY: leaves by Luau's own exception, which passes our frames.
    unsafe {
        ffi::lua_rawcheckstack(state, 4);
        ffi::luaL_error(state, text.as_ptr());
    }
}

/// Records the stack of the running thread.
unsafe fn note_trace(state: *mut ffi::lua_State) {
    TRACE.with_borrow_mut(|trace| {
        trace.clear();
        for level in 0..TRACE_LEVELS_MAX {
            // SAFETY: plain data, filled by `lua_getinfo` when it returns non-zero.
            let mut info: ffi::lua_Debug = unsafe { std::mem::zeroed() };
            // SAFETY: `state` is the running thread; the strings it leaves are
            // C strings or null.
            unsafe {
                if ffi::lua_getinfo(state, level, c"sln".as_ptr(), &mut info) == 0 {
                    break;
                }
                if info.short_src.is_null() {
                    continue;
                }
                let source = CStr::from_ptr(info.short_src).to_string_lossy();
                let _ = write!(trace, "{source}:{}", info.currentline);
                if !info.name.is_null() {
                    let name = CStr::from_ptr(info.name).to_string_lossy();
                    let _ = write!(trace, " function {name}");
                }
            }
            trace.push('\n');
        }
    });
}

/// Luau's allocation hook: arms the interrupt above the soft limit.
unsafe extern "C-unwind" fn on_allocate(
    state: *mut ffi::lua_State,
    _block: *mut c_void,
    old_bytes: usize,
    new_bytes: usize,
    _category: u8,
    _kind: c_int,
    _tag: c_int,
) {
    // SAFETY: reads a counter and writes a callback of the running VM.
    unsafe {
        if new_bytes > old_bytes && ffi::lua_totalbytes(state, -1) > SOFT_BYTES.get() {
            let _ = interrupt_of(state).compare_exchange(
                RESTING.get(),
                out_of_memory as *mut c_void,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
    }
}

unsafe fn interrupt_of<'a>(state: *mut ffi::lua_State) -> &'a AtomicPtr<c_void> {
    // SAFETY: the callbacks of a live state; see `Shared::interrupt`.
    unsafe { &*(&raw const (*ffi::lua_callbacks(state)).interrupt).cast() }
}

/// Keys that scramble addresses; they only need to be unpredictable.
fn scramble_keys() -> [u64; 4] {
    use std::hash::{BuildHasher, RandomState};
    [0, 1, 2, 3].map(|n: u64| RandomState::new().hash_one(n))
}

#[cfg(test)]
mod tests;
