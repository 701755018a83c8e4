//! `frolic dev`: the whole platform for one folder, which is watched: what is
//! saved is live for everybody who plays, within half a second (DIST-5, CLI-1).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use frolic_package::{Limits, Package, Problem};
use frolic_platform::{Platform, bind};
use frolic_protocol::fleet::{ReloadReply, ReloadRequest};

use super::{check, serve};
use crate::config::Layer;
use crate::folder::{self, Look};
use crate::open_files;

/// Play a game while you make it: what you save is live at once
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  frolic dev                 the game in this folder
  frolic dev games/obby --port 8080 --no-open

Scripts keep their state through OnSave and OnReload; see docs/hot-reload.md.")]
pub struct DevArgs {
    /// The game's folder
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// Port of the site; 0 takes a free one
    #[arg(long, default_value_t = 5000)]
    port: u16,
    /// Do not open a browser
    #[arg(long)]
    no_open: bool,
}

/// Everything that is kept; names with a dot are no part of a game.
const DATA_FOLDER: &str = ".frolic";
/// How often the folder is looked at. A file counts as saved when two looks
/// in a row find it the same, so that no half-written one is taken.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Runs until Ctrl-C.
///
/// # Errors
/// A sentence that says what to do.
pub async fn run(args: DevArgs) -> Result<()> {
    open_files::raise_limit();
    let folder = args
        .folder
        .canonicalize()
        .with_context(|| format!("there is no folder {}", args.folder.display()))?;
    if !folder.join("game.toml").is_file() {
        bail!(
            "{} has no game.toml; give the folder of a game: frolic dev FOLDER",
            args.folder.display()
        );
    }
    let look = Look::at(&folder, &Limits::default())?;
    let build = match read(&folder)? {
        Ok(build) => build,
        Err(problems) => {
            tell_problems(&folder, &problems);
            bail!("the game has problems; mend them and start again");
        }
    };
    let settings = Layer {
        port: Some(args.port),
        data_dir: Some(folder.join(DATA_FOLDER)),
        ..Layer::default()
    }
    .into_settings()?;
    let listener = bind(settings.host, settings.port).await?;
    let listens_on = listener.local_addr()?;
    let _lock = serve::lock_data_dir(&settings.data_dir)?;
    let platform = serve::open(settings, listens_on).await?;
    platform.publish_draft(build.archive.clone().into()).await?;
    let game = &build.package.manifest.game;
    let address = play_address(listens_on, &game.id);
    println!("{} {} is live. Play at {address}", game.name, game.version);
    println!("Watching {}  (Ctrl-C stops)", folder.display());
    if !args.no_open {
        open_browser(&address);
    }
    let workshop = Workshop {
        folder,
        platform: platform.clone(),
        http: reqwest::Client::new(),
        build,
    };
    let watching = tokio::spawn(workshop.watch(look));
    platform.serve(listener, serve::stop_requested()).await;
    watching.abort();
    Ok(())
}

/// A folder that was read, checked and packed.
struct Build {
    package: Package,
    archive: Vec<u8>,
}

/// Reads and checks a folder. The inner error is what is wrong with the game.
fn read(folder: &Path) -> Result<Result<Build, Vec<Problem>>> {
    let limits = Limits::default();
    let files = folder::read(folder, &limits)?;
    let scripts = check::script_problems(&files, &limits);
    if scripts.has_errors() {
        return Ok(Err(scripts.problems));
    }
    Ok(match Package::build(files, &limits) {
        Ok((package, archive)) => Ok(Build { package, archive }),
        Err(report) => Err(report.problems),
    })
}

/// The running game and where it comes from.
struct Workshop {
    folder: PathBuf,
    platform: Platform,
    http: reqwest::Client,
    /// What everybody plays now.
    build: Build,
}

impl Workshop {
    async fn watch(mut self, mut taken: Look) {
        let mut last = taken.clone();
        let mut every = tokio::time::interval(LOOK_EVERY);
        every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            every.tick().await;
            let folder = self.folder.clone();
            let look = tokio::task::spawn_blocking(move || Look::at(&folder, &Limits::default()));
            // A folder that is being moved or written cannot be read now and then.
            let Ok(Ok(look)) = look.await else {
                continue;
            };
            let settled = look == last;
            last = look;
            if settled && last != taken {
                taken = last.clone();
                if let Err(error) = self.take_in().await {
                    eprintln!("nothing changed: {error:#}");
                }
            }
        }
    }

    /// Brings everybody to what the folder holds now; nothing changes when
    /// something in it is wrong.
    async fn take_in(&mut self) -> Result<()> {
        let began = Instant::now();
        let folder = self.folder.clone();
        let build = match tokio::task::spawn_blocking(move || read(&folder)).await?? {
            Ok(build) => build,
            Err(problems) => {
                tell_problems(&self.folder, &problems);
                eprintln!("nothing changed; everybody goes on with what was there before");
                return Ok(());
            }
        };
        let old = std::mem::replace(&mut self.build, build);
        if old.package.files == self.build.package.files {
            return Ok(());
        }
        let archive = self.build.archive.clone();
        self.platform.publish_draft(archive.into()).await?;
        if rest_of(&old.package) == rest_of(&self.build.package) {
            self.reload(began).await;
        } else {
            self.restart();
        }
        Ok(())
    }

    /// Only scripts have changed: the running worlds take them in.
    async fn reload(&self, began: Instant) {
        let package = &self.build.package;
        let scripts = package.scripts();
        let request = ReloadRequest {
            revision: package.revision.clone(),
            scripts: scripts
                .map(|(path, source)| (path.to_owned(), source.to_owned()))
                .collect(),
        };
        let targets = self
            .platform
            .fleet()
            .reload_targets(&package.manifest.game.id);
        if targets.is_empty() {
            println!("changed; nobody is playing");
        }
        for target in targets {
            let answer = self
                .http
                .post(&target.url)
                .bearer_auth(&target.token)
                .json(&request)
                .send()
                .await
                .and_then(reqwest::Response::error_for_status);
            let reply = match answer {
                Ok(answer) => answer.json::<ReloadReply>().await,
                Err(error) => Err(error),
            };
            match reply {
                Ok(reply) if reply.errors.is_empty() => {
                    let adopted = self
                        .platform
                        .adopt_revision(&target.world_id, &package.revision)
                        .await;
                    if let Err(error) = adopted {
                        eprintln!("the platform did not note the new version: {error}");
                    }
                    println!("{}", summary(&reply, &package.revision, began.elapsed()));
                }
                Ok(reply) => reply.errors.iter().for_each(|error| eprintln!("{error}")),
                Err(error) => eprintln!("a world did not take the change: {error}"),
            }
        }
    }

    /// The scene or the rules changed: worlds begin anew.
    fn restart(&self) {
        let game_id = &self.build.package.manifest.game.id;
        let worlds = self.platform.fleet().all().into_iter();
        let worlds = worlds.filter(|server| server.spec.game_id == *game_id);
        let mut stopped = 0;
        for server in worlds {
            stopped += u32::from(self.platform.fleet().stop(&server.spec.world_id));
        }
        println!(
            "more than scripts changed: {stopped} running worlds begin anew; press Play again"
        );
    }
}

/// Every file but the scripts.
fn rest_of(package: &Package) -> BTreeMap<&str, &[u8]> {
    let files = package.files.iter();
    files
        .filter(|(path, _)| !path.starts_with("scripts/"))
        .map(|(path, bytes)| (path.as_str(), bytes.as_slice()))
        .collect()
}

fn summary(reply: &ReloadReply, revision: &str, took: Duration) -> String {
    let names = |list: &[String]| match list {
        [] => "nothing".to_owned(),
        [one] => one.clone(),
        [one, rest @ ..] => format!("{one} and {} more", rest.len()),
    };
    let mut text = format!("reloaded {}", names(&reply.changed));
    if !reply.removed.is_empty() {
        text += &format!(", removed {}", names(&reply.removed));
    }
    let revision = revision.get(..8).unwrap_or(revision);
    let version = reply.version;
    format!(
        "{text} in {} ms (version {version}, revision {revision})",
        took.as_millis()
    )
}

/// Each problem with its place and, where there is one, the line itself.
fn tell_problems(folder: &Path, problems: &[Problem]) {
    for problem in problems {
        let place = match problem.line {
            Some(line) => format!("{}:{line}", problem.file),
            None => problem.file.clone(),
        };
        eprintln!("error: {place}: {}", problem.message);
        let text = std::fs::read_to_string(folder.join(&problem.file)).unwrap_or_default();
        let line = problem.line.and_then(|line| usize::try_from(line).ok());
        let line = line.and_then(|line| text.lines().nth(line.checked_sub(1)?));
        if let Some(line) = line.map(str::trim).filter(|line| !line.is_empty()) {
            let line: String = line.chars().take(200).collect();
            eprintln!("    {line}");
        }
    }
}

fn play_address(listens_on: SocketAddr, game_id: &str) -> String {
    let local = frolic_platform::address::local_ip(listens_on.ip());
    let address = SocketAddr::new(local, listens_on.port());
    format!("http://{address}/play/{game_id}")
}

/// As good as it goes: a machine without a browser plays elsewhere.
fn open_browser(address: &str) {
    let program = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let mut command = if cfg!(windows) {
        let mut command = Command::new("cmd");
        command.args(["/C", "start", "", address]);
        command
    } else {
        let mut command = Command::new(program);
        command.arg(address);
        command
    };
    let quiet = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Err(error) = quiet.spawn() {
        tracing::debug!(%error, "no browser could be opened");
    }
}
