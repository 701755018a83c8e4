//! Game servers that outlived the control plane: found again by what the
//! database says of them, so that their players go on and no world runs twice.

use std::sync::Arc;
use std::time::Duration;

use super::launcher::{BoxFuture, GameServer, ServerExit};
use super::process::WorldProcess;
use super::{Fleet, supervise};
use crate::world_lease;

/// How long a process has to call in: a few heartbeats.
pub(super) const ADOPTION_PATIENCE: Duration = Duration::from_secs(7);
/// How often it is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

impl Fleet {
    /// Takes over what the last control plane left running; before anybody can
    /// join. Processes that are gone are noted as such.
    ///
    /// # Errors
    /// When the database refuses.
    pub async fn adopt_survivors(&self) -> Result<(), sqlx::Error> {
        for run in world_lease::open(&self.0.db).await? {
            let world_id = run.world.spec.world_id.clone();
            let Some(process) = Survivor::find(run.pid, &world_id) else {
                world_lease::end(&self.0.db, &world_id, run.epoch).await?;
                continue;
            };
            tracing::info!(
                world = world_id,
                pid = run.pid,
                "a game server outlived the platform"
            );
            let server = Arc::new(WorldProcess::adopted(&run));
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

/// A process that is not our child.
struct Survivor {
    #[cfg(target_os = "linux")]
    handle: rustix::fd::OwnedFd,
}

#[cfg(target_os = "linux")]
impl Survivor {
    /// The process with this id, if it is the one that runs this world.
    fn find(pid: u32, world_id: &str) -> Option<Self> {
        use rustix::process::{Pid, PidfdFlags, pidfd_open};
        let raw = i32::try_from(pid).ok().filter(|pid| *pid > 1)?;
        let handle = pidfd_open(Pid::from_raw(raw)?, PidfdFlags::empty()).ok()?;
        // From here on the handle means one process. Ids are used again, so it
        // has to say itself that it is ours.
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let mut words = command.split(|byte| *byte == 0);
        let ours = words.any(|word| word == world_id.as_bytes());
        let survivor = Self { handle };
        (ours && !survivor.has_ended()).then_some(survivor)
    }

    fn has_ended(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut fds = [PollFd::new(&self.handle, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let sent = rustix::process::pidfd_send_signal(&self.handle, signal);
        if let Err(error) = sent {
            tracing::debug!(%error, "a game server was gone before its signal");
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl Survivor {
    /// Nobody can be told apart for certain here: the old process is refused,
    /// and ends at its next heartbeat.
    fn find(_pid: u32, _world_id: &str) -> Option<Self> {
        None
    }

    fn has_ended(&self) -> bool {
        true
    }
}

impl GameServer for Survivor {
    fn wait(&mut self) -> BoxFuture<'_, ServerExit> {
        Box::pin(async move {
            while !self.has_ended() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
            ServerExit {
                success: false,
                description: "how is not known: the platform was restarted under it".to_owned(),
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
