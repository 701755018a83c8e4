//! Interface for starting game servers: a child process on this machine, or an in-process task in
//! tests.

use std::ffi::OsString;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::Stdio;
use std::time::Duration;

use frolic_fleet_api::process::{TICKET_KEY_ENV, WORLD_TOKEN_ENV};
use frolic_fleet_api::ticket::TicketKey;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};

/// A boxed future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Parameters of a new game server. It requests everything else from `/internal`, and gets no
/// secrets of other worlds.
#[derive(Clone, Debug)]
pub struct LaunchRequest {
    /// The world to run.
    pub world_id: String,
    /// Base URL of `/internal`, such as `http://127.0.0.1:5000`.
    pub control_plane: String,
    /// Address that its transports listen on.
    pub host: IpAddr,
    /// Bearer token for `/internal`, valid for this launch only.
    pub world_token: String,
    /// Key that verifies tickets of this world.
    pub ticket_key: TicketKey,
}

/// Starts game servers.
pub trait Launcher: Send + Sync + 'static {
    /// Starts a game server. Returns as soon as the process exists, not when it is ready.
    fn launch(&self, request: LaunchRequest) -> BoxFuture<'_, io::Result<Box<dyn GameServer>>>;
}

/// A started game server. Dropping it kills it.
pub trait GameServer: Send {
    /// Completes when the process has ended. Cancel safe.
    fn wait(&mut self) -> BoxFuture<'_, ServerExit>;
    /// Asks the process to disconnect its players and end.
    fn terminate(&mut self);
    /// Kills the process.
    fn kill(&mut self);
}

/// How a game server ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerExit {
    /// Whether the process ended with success.
    pub success: bool,
    /// Description for logs and error messages.
    pub description: String,
    /// The script because of which the process had to end, as `ScriptService/Name.luau`.
    pub blamed: Option<String>,
}

/// Runs `program args… --port 0 --world … --control-plane …` as a child process.
#[derive(Clone, Debug)]
pub struct ProcessLauncher {
    /// The program, usually the running `frolic` itself.
    pub program: PathBuf,
    /// Arguments before those of the world, such as `gameserver`.
    pub args: Vec<OsString>,
    /// Additional environment variables.
    pub env: Vec<(OsString, OsString)>,
}

/// Environment variables that a game server inherits.
const INHERITED: [&str; 6] = [
    "FROLIC_LOG",
    "PATH",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "TMPDIR",
    "TZ",
];

impl Launcher for ProcessLauncher {
    fn launch(&self, request: LaunchRequest) -> BoxFuture<'_, io::Result<Box<dyn GameServer>>> {
        Box::pin(async move {
            let mut command = Command::new(&self.program);
            command
                .args(&self.args)
                .args(["--port", "0", "--world", &request.world_id])
                .args(["--control-plane", &request.control_plane]);
            if !request.host.is_loopback() {
                command.arg("--host").arg(request.host.to_string());
            }
            // The process runs untrusted code, so it inherits only the variables that it needs.
            command.env_clear();
            let inherited = INHERITED.iter();
            command
                .envs(inherited.filter_map(|name| Some((name, std::env::var_os(name)?))))
                .envs(self.env.iter().map(|(name, value)| (name, value)))
                .env(WORLD_TOKEN_ENV, &request.world_token)
                .env(TICKET_KEY_ENV, hex::encode(request.ticket_key))
                .stdin(Stdio::null())
                // Logs are written to stderr. On stdout the process names the script that was
                // running when it had to end.
                .stdout(Stdio::piped())
                .kill_on_drop(true);
            // A separate process group: Ctrl-C in the terminal reaches only the control plane,
            // which then drains its servers in order.
            #[cfg(unix)]
            command.process_group(0);
            let child = command.spawn()?;
            let stdout = Vec::new();
            Ok(Box::new(ChildServer { child, stdout }) as Box<dyn GameServer>)
        })
    }
}

struct ChildServer {
    child: Child,
    stdout: Vec<u8>,
}

/// Maximum output of a game server on stdout: one line when it is ready and one when it ends
/// because of a script.
const STDOUT_BYTES_MAX: u64 = 16 * 1024;

impl ChildServer {
    /// The script that the process named before it ended.
    async fn blamed(&mut self) -> Option<String> {
        let pipe = self.child.stdout.as_mut()?;
        // Read into `self`, so that no output is lost when the caller cancels.
        let mut pipe = pipe.take(STDOUT_BYTES_MAX);
        let read = pipe.read_to_end(&mut self.stdout);
        // The timeout prevents an endless wait if a grandchild keeps the pipe open.
        tokio::time::timeout(Duration::from_secs(1), read)
            .await
            .ok()?
            .ok()?;
        let output = String::from_utf8_lossy(&self.stdout);
        let line = output.lines().last()?;
        let (_, script) = line
            .split_once(' ')
            .filter(|(reason, _)| ["stuck", "crash"].contains(reason))?;
        Some(script.to_owned())
    }
}

impl GameServer for ChildServer {
    fn wait(&mut self) -> BoxFuture<'_, ServerExit> {
        Box::pin(async move {
            match self.child.wait().await {
                Ok(status) => ServerExit {
                    success: status.success(),
                    description: status.to_string(),
                    blamed: self.blamed().await,
                },
                Err(error) => ServerExit {
                    success: false,
                    description: format!("could not wait for it: {error}"),
                    blamed: None,
                },
            }
        })
    }

    fn terminate(&mut self) {
        #[cfg(unix)]
        if let Some(pid) = self
            .child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(rustix::process::Pid::from_raw)
        {
            // The child is not reaped yet, so its id cannot have been reused.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        // On other systems, the response to the next heartbeat asks it to stop.
    }

    fn kill(&mut self) {
        if let Err(error) = self.child.start_kill() {
            tracing::debug!(%error, "the game server ended before it could be killed");
        }
    }
}
