//! How a game server comes to life: a program on this machine today, another
//! machine's agent later, a task of the test in tests.

use std::ffi::OsString;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::Stdio;
use std::time::Duration;

use frolic_protocol::fleet::{TICKET_KEY_ENV, WORLD_TOKEN_ENV};
use frolic_protocol::ticket::TicketKey;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};

/// A future that can be kept behind a trait object.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a game server is told at its start. It learns the rest from
/// `/internal`, and holds no secret of any other world.
#[derive(Clone, Debug)]
pub struct LaunchRequest {
    /// The world to run.
    pub world_id: String,
    /// Where `/internal` is, such as `http://127.0.0.1:5000`.
    pub control_plane: String,
    /// Address its transports listen on.
    pub host: IpAddr,
    /// Bearer for `/internal`, good for this launch only.
    pub world_token: String,
    /// Checks tickets of this world.
    pub ticket_key: TicketKey,
}

/// Starts game servers.
pub trait Launcher: Send + Sync + 'static {
    /// Starts one; returns as soon as it exists, not when it is ready.
    fn launch(&self, request: LaunchRequest) -> BoxFuture<'_, io::Result<Box<dyn GameServer>>>;
}

/// A game server that was started. Dropping it ends it.
pub trait GameServer: Send {
    /// Completes when it has ended. Cancel safe.
    fn wait(&mut self) -> BoxFuture<'_, ServerExit>;
    /// Asks it to tell its players and end.
    fn terminate(&mut self);
    /// Ends it at once.
    fn kill(&mut self);
}

/// How a game server ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerExit {
    /// Whether it ended as programs do that meant to.
    pub success: bool,
    /// For logs and error messages.
    pub description: String,
    /// The script it had to end for, as `ScriptService/Name.luau`.
    pub blamed: Option<String>,
}

/// Runs `program args… --port 0 --world … --control-plane …` as a child.
#[derive(Clone, Debug)]
pub struct ProcessLauncher {
    /// The program, usually the running `frolic` itself.
    pub program: PathBuf,
    /// What comes before the arguments of the world, such as `gameserver`.
    pub args: Vec<OsString>,
    /// Extra environment.
    pub env: Vec<(OsString, OsString)>,
}

/// Variables that a game server may see.
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
            // It runs code of strangers: nothing of the platform's environment
            // reaches it but what it needs to run at all.
            command.env_clear();
            let kept = INHERITED.iter();
            command
                .envs(kept.filter_map(|name| Some((name, std::env::var_os(name)?))))
                .envs(self.env.iter().map(|(name, value)| (name, value)))
                .env(WORLD_TOKEN_ENV, &request.world_token)
                .env(TICKET_KEY_ENV, hex::encode(request.ticket_key))
                .stdin(Stdio::null())
                // Its logs come on stderr. On stdout it says which script was
                // running when it had to end.
                .stdout(Stdio::piped())
                .kill_on_drop(true);
            // Ctrl-C in the terminal is for the control plane, which then
            // drains its servers in order.
            #[cfg(unix)]
            command.process_group(0);
            let child = command.spawn()?;
            let last_words = Vec::new();
            Ok(Box::new(ChildServer { child, last_words }) as Box<dyn GameServer>)
        })
    }
}

struct ChildServer {
    child: Child,
    last_words: Vec<u8>,
}

/// What a game server may say on stdout, all in all: a line when it is ready
/// and one when it ends for a script.
const LAST_WORDS_BYTES_MAX: u64 = 16 * 1024;

impl ChildServer {
    /// The script that the child named before it ended.
    async fn blamed(&mut self) -> Option<String> {
        let stdout = self.child.stdout.as_mut()?;
        // Into `self`, so that nothing is lost when the caller turns away.
        let mut stdout = stdout.take(LAST_WORDS_BYTES_MAX);
        let read = stdout.read_to_end(&mut self.last_words);
        // Grandchildren could hold the pipe open: there are none, but a wait
        // without end is not worth it.
        tokio::time::timeout(Duration::from_secs(1), read)
            .await
            .ok()?
            .ok()?;
        let said = String::from_utf8_lossy(&self.last_words);
        let line = said.lines().last()?;
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
                    description: format!("could not be watched: {error}"),
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
            // The child is not reaped yet, so the id is still its own.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        // Elsewhere the answer to the next heartbeat asks it to stop.
    }

    fn kill(&mut self) {
        if let Err(error) = self.child.start_kill() {
            tracing::debug!(%error, "game server was gone before it could be killed");
        }
    }
}
