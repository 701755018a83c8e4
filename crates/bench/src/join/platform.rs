//! A whole platform for the time of a benchmark, and the requests made of it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use frolic_platform::ids;
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde::Deserialize;
use serde_json::json;

use crate::process::{CpuTimes, Process};

/// How long the platform may take to stop its game servers and itself.
const STOP_PATIENCE: Duration = Duration::from_secs(15);
/// How long a request waits that came too fast.
const TOO_FAST: Duration = Duration::from_millis(500);
/// Lines the platform prints before it is ready, at most.
const LINES_MAX: usize = 200;

/// `frolic serve` on a free port, with a data folder that goes away with it.
pub struct Platform {
    process: Process,
    url: String,
    admin_token: String,
    client: Client,
    _folder: Folder,
}

/// Where to.
#[derive(Clone, Copy)]
pub enum Target<'id> {
    /// A world that does not exist yet: no game server runs for it.
    NewWorld,
    /// One that does.
    World(&'id str),
}

#[derive(Deserialize)]
struct LoggedIn {
    session_token: String,
}

/// The answer to a join.
#[derive(Deserialize)]
pub struct Joined {
    pub server_address: String,
    pub world_id: String,
    pub ticket: String,
}

#[derive(Deserialize)]
struct Servers {
    servers: Vec<Server>,
}

#[derive(Deserialize)]
struct Server {
    world_id: String,
}

impl Platform {
    /// Starts it and waits until it is ready.
    pub async fn start() -> Result<Self> {
        let folder = Folder::new()?;
        let admin_token = ids::new_token();
        let data_dir = folder.path().join("data").display().to_string();
        let args = ["serve", "--port", "0", "--data-dir", &data_dir];
        let args = args.map(str::to_owned);
        let env = [("ADMIN_TOKEN", admin_token.as_str())];
        let mut process = Process::start_in(folder.path(), &env, &args)?;
        let url = wait_until_ready(&mut process)?;
        Ok(Self {
            process,
            url,
            admin_token,
            client: Client::new(),
            _folder: folder,
        })
    }

    /// Where it is.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Memory it holds, in MiB.
    pub fn rss_mb(&self) -> Result<f64> {
        self.process.rss_mb()
    }

    /// Processor time it has used.
    pub fn cpu(&self) -> Result<CpuTimes> {
        self.process.cpu()
    }

    /// A new guest's session.
    pub async fn log_in(&self, name: &str) -> Result<String> {
        let login = self.client.post(format!("{}/login", self.url));
        let login = login.json(&json!({ "username": name }));
        let (answer, _) = patiently(login).await.context("logging in")?;
        let LoggedIn { session_token } = answer.json().await?;
        Ok(session_token)
    }

    /// Requests a place in a world; returns the answer and when the request was
    /// sent.
    pub async fn join(&self, session: &str, target: Target<'_>) -> Result<(Joined, Instant)> {
        let wish = match target {
            Target::NewWorld => json!({}),
            Target::World(id) => json!({ "world_id": id }),
        };
        let join = self.client.post(format!("{}/join", self.url));
        let join = join.bearer_auth(session).json(&wish);
        let (answer, asked) = patiently(join).await.context("joining")?;
        Ok((answer.json().await?, asked))
    }

    /// Stops a world's game server, and returns when it is gone.
    pub async fn stop_world(&self, world_id: &str) -> Result<()> {
        let servers = format!("{}/admin/servers", self.url);
        let admin = |request: RequestBuilder| request.bearer_auth(&self.admin_token);
        let stop = self.client.delete(format!("{servers}/{world_id}"));
        admin(stop).send().await?.error_for_status()?;
        let asked = Instant::now();
        while asked.elapsed() < STOP_PATIENCE {
            let list = admin(self.client.get(&servers)).send().await?;
            let list: Servers = list.error_for_status()?.json().await?;
            if !list
                .servers
                .iter()
                .any(|server| server.world_id == world_id)
            {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        bail!("the game server of {world_id} did not stop")
    }

    /// Ends it, its game servers first.
    pub async fn end(&mut self) -> Result<()> {
        if tokio::task::block_in_place(|| self.process.ask_to_end(STOP_PATIENCE)) {
            Ok(())
        } else {
            bail!("the platform did not stop and was killed; a game server may go on for a minute")
        }
    }
}

fn wait_until_ready(process: &mut Process) -> Result<String> {
    for _ in 0..LINES_MAX {
        if let Some(url) = ready_address(&process.line()?) {
            return Ok(url);
        }
    }
    bail!("the platform did not say where it is")
}

/// The address in the line that says that the platform is ready.
fn ready_address(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("Play at ")?;
    let address = rest.split_whitespace().next()?;
    Some(address.trim_end_matches('/').to_owned())
}

/// Sends a request, and again later while the platform asks the client to
/// retry. Returns when the answered request was sent.
async fn patiently(request: RequestBuilder) -> Result<(Response, Instant)> {
    loop {
        let again = request.try_clone().context("a request to repeat")?;
        let asked = Instant::now();
        let answer = again.send().await?;
        if answer.status() != StatusCode::TOO_MANY_REQUESTS {
            return Ok((answer.error_for_status()?, asked));
        }
        tokio::time::sleep(TOO_FAST).await;
    }
}

/// A folder that goes away with this value.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(ids::new_id("frolic-bench-join"));
        std::fs::create_dir_all(&path).with_context(|| format!("making {}", path.display()))?;
        Ok(Self(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_found_in_the_ready_line() {
        let line = "Ready after 0.1 s. Play at http://127.0.0.1:5000  (Ctrl-C stops)";
        assert_eq!(
            ready_address(line).as_deref(),
            Some("http://127.0.0.1:5000")
        );
        assert_eq!(ready_address("  game      obby 1.0.0"), None);
    }
}
