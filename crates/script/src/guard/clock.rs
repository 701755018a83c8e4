//! The clock of time budgets: CPU time of the VM's thread, or wall time where
//! threads have no clock of their own.

use std::time::Duration;

/// The VM thread's CPU clock, readable from the watchdog's thread.
#[cfg(target_os = "linux")]
pub(super) struct Clock(libc::clockid_t);

#[cfg(target_os = "linux")]
impl Clock {
    pub(super) fn of_this_thread() -> Clock {
        let mut id = libc::CLOCK_MONOTONIC;
        // SAFETY: writes one integer; on failure wall time remains.
        unsafe {
            if libc::pthread_getcpuclockid(libc::pthread_self(), &mut id) != 0 {
                id = libc::CLOCK_MONOTONIC;
            }
        }
        Clock(id)
    }

    pub(super) fn now(&self) -> Duration {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: writes one struct. Fails if the thread has ended, in which
        // case time appears to stand still.
        unsafe { libc::clock_gettime(self.0, &mut time) };
        Duration::new(
            u64::try_from(time.tv_sec).unwrap_or(0),
            u32::try_from(time.tv_nsec).unwrap_or(0),
        )
    }
}

/// Wall time, where threads have no clock of their own.
#[cfg(not(target_os = "linux"))]
pub(super) struct Clock(std::time::Instant);

#[cfg(not(target_os = "linux"))]
impl Clock {
    pub(super) fn of_this_thread() -> Clock {
        Clock(std::time::Instant::now())
    }

    pub(super) fn now(&self) -> Duration {
        self.0.elapsed()
    }
}
