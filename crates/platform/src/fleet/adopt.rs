//! Adopts game servers that survived a restart of the control plane. They are found by their lease
//! in the database, so that their players stay connected and no world runs twice.

use std::sync::Arc;
use std::time::Duration;

use super::launcher::{BoxFuture, GameServer, ServerExit};
use super::process::WorldProcess;
use super::{Fleet, supervise};
use crate::fleet::lease;

/// Time within which an adopted process has to call: a few heartbeats.
pub(super) const ADOPTION_TIMEOUT: Duration = Duration::from_secs(7);
/// Interval at which the end of the process is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

impl Fleet {
    /// Adopts the processes that the last control plane left running, before the first join. Leases
    /// of processes that have ended are closed.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn adopt_running_servers(&self) -> Result<(), sqlx::Error> {
        for lease in lease::open(&self.0.db).await? {
            let world_id = lease.world.world_id.clone();
            let Some(process) = AdoptedProcess::find(lease.pid, &world_id) else {
                lease::end(&self.0.db, &world_id, lease.epoch).await?;
                continue;
            };
            tracing::info!(
                world = world_id,
                pid = lease.pid,
                "adopting a running game server"
            );
            let server = Arc::new(WorldProcess::adopted(&lease));
            self.servers().insert(world_id, server.clone());
            tokio::spawn(supervise::supervise(
                self.clone(),
                server,
                Some(Box::new(process)),
            ));
        }
        Ok(())
    }
}

/// A running game server that is not our child process.
struct AdoptedProcess {
    #[cfg(target_os = "linux")]
    handle: rustix::fd::OwnedFd,
}

#[cfg(target_os = "linux")]
impl AdoptedProcess {
    /// Opens the process with this id if it runs this world.
    fn find(pid: u32, world_id: &str) -> Option<Self> {
        use rustix::process::{Pid, PidfdFlags, pidfd_open};
        let raw = i32::try_from(pid).ok().filter(|pid| *pid > 1)?;
        let handle = pidfd_open(Pid::from_raw(raw)?, PidfdFlags::empty()).ok()?;
        // The handle refers to exactly one process. Process ids are reused, so its command line
        // must name the world.
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let mut words = command.split(|byte| *byte == 0);
        let ours = words.any(|word| word == world_id.as_bytes());
        let adopted_process = Self { handle };
        (ours && !adopted_process.has_ended()).then_some(adopted_process)
    }

    fn has_ended(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut fds = [PollFd::new(&self.handle, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let sent = rustix::process::pidfd_send_signal(&self.handle, signal);
        if let Err(error) = sent {
            tracing::debug!(%error, "a game server ended before it received a signal");
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl AdoptedProcess {
    /// Without pidfd a process cannot be identified reliably. The old process is rejected at its
    /// next heartbeat and ends.
    fn find(_pid: u32, _world_id: &str) -> Option<Self> {
        None
    }

    fn has_ended(&self) -> bool {
        true
    }
}

impl GameServer for AdoptedProcess {
    fn wait(&mut self) -> BoxFuture<'_, ServerExit> {
        Box::pin(async move {
            while !self.has_ended() {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
            ServerExit {
                success: false,
                description: "exit status unknown: the platform was restarted while it ran"
                    .to_owned(),
                blamed: None,
            }
        })
    }

    fn terminate(&mut self) {
        #[cfg(target_os = "linux")]
        self.signal(rustix::process::Signal::TERM);
    }

    fn kill(&mut self) {
        #[cfg(target_os = "linux")]
        self.signal(rustix::process::Signal::KILL);
    }
}
