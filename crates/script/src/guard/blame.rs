//! Records which script was running when a world's process ended.
//!
//! Two things end it: a script that nothing inside the VM can stop, and a crash
//! of the VM itself. The process that restarts the world reads the name from
//! the file given to [`keep_in`] and disables that script.
//!
//! One VM per process: a process without a file keeps no record and is never
//! ended.

use std::ffi::c_int;
use std::os::fd::IntoRawFd;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering};

/// The exit status of a process that was ended for a script.
pub const EXIT_STATUS: c_int = 86;

/// Limit of script names; a game has a few hundred.
const NAMES_MAX: usize = 4096;

/// Signals of a VM crash. Luau's assertions trap.
const CRASHES: [c_int; 5] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGABRT,
];

/// File descriptor for the name; -1: none.
static FILE: AtomicI32 = AtomicI32::new(-1);
/// Address of the running script's number; null outside the VM.
static RUNNING: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());
/// Names by number, never freed: a signal handler may read them at any time.
static NAMES: [AtomicPtr<&'static str>; NAMES_MAX] =
    [const { AtomicPtr::new(ptr::null_mut()) }; NAMES_MAX];

/// Keeps a record of the running script and, when the process crashes, writes
/// its path into `file`.
pub fn keep_in(file: std::fs::File) {
    FILE.store(file.into_raw_fd(), Ordering::Relaxed);
    for signal in CRASHES {
        // SAFETY: the handler calls only `write`, `signal` and `raise`. It runs
        // on the alternate stack that Rust gives its threads, so a stack
        // overflow is reported as well.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_crash as *const () as usize;
            action.sa_flags = libc::SA_ONSTACK | libc::SA_NODEFER;
            libc::sigaction(signal, &action, ptr::null_mut());
        }
    }
}

/// Whether this process was given a file.
fn is_kept() -> bool {
    FILE.load(Ordering::Relaxed) >= 0
}

/// Registers the name of a script under the scheduler's number.
pub(crate) fn name(number: u32, path: &str) {
    let place = usize::try_from(number).ok().and_then(|at| NAMES.get(at));
    if let Some(place) = place.filter(|_| is_kept()) {
        let path: &'static str = Box::leak(path.to_owned().into_boxed_str());
        place.store(Box::leak(Box::new(path)), Ordering::Release);
    }
}

/// Marks the VM as running; the word holds the running script's number.
pub(super) fn enter(script: &AtomicU32) {
    RUNNING.store(ptr::from_ref(script).cast_mut(), Ordering::Relaxed);
}

/// Marks the host as in control again.
pub(super) fn leave() {
    RUNNING.store(ptr::null_mut(), Ordering::Relaxed);
}

/// Ends the process for a script that cannot be stopped.
pub(super) fn end_process(script: u32) {
    if is_kept() {
        write_name("stuck", script);
        // SAFETY: `_exit` runs no destructor: the VM's thread is still inside.
        unsafe { libc::_exit(EXIT_STATUS) }
    }
}

/// Uses only functions that are allowed inside a signal handler.
extern "C" fn on_crash(signal: c_int) {
    let running = RUNNING.load(Ordering::Relaxed);
    if !running.is_null() {
        // SAFETY: set while a guarded call runs, and the VM outlives it.
        write_name("crash", unsafe { (*running).load(Ordering::Relaxed) });
    }
    // SAFETY: the default action ends the process as if we had not been here.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// `reason path`, in one line.
fn write_name(reason: &str, number: u32) {
    let name = usize::try_from(number).ok().and_then(|at| NAMES.get(at));
    let name = name.map_or(ptr::null_mut(), |place| place.load(Ordering::Acquire));
    if name.is_null() {
        return;
    }
    // SAFETY: names are never freed.
    let name = unsafe { *name };
    for part in [reason, " ", name, "\n"] {
        // SAFETY: a live string; `write` may be called in a signal handler.
        // Nothing can be done about a failure.
        let _ = unsafe {
            libc::write(
                FILE.load(Ordering::Relaxed),
                part.as_ptr().cast(),
                part.len(),
            )
        };
    }
}
