//! `frolic dev`: the whole platform for one folder, which is watched: a saved
//! change is live for all players within half a second.

mod address;
mod notes;
mod workshop;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use frolic_package::{Limits, Package, Report};
use frolic_platform::bind;

use self::workshop::Workshop;
use super::{check, serve};
use crate::config::Layer;
use crate::folder::{self, FolderState};

/// Play a game while you make it: what you save is live at once
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  frolic dev                 the game in this folder
  frolic dev games/obby --port 8080 --no-open
  frolic dev --host 0.0.0.0  also for other devices on your network

Scripts keep their state through OnSave and OnReload; see docs/create/hot-reload.md.")]
pub struct DevArgs {
    /// The game's folder
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// Port of the site; 0 takes a free one
    #[arg(long, default_value_t = 5000)]
    port: u16,
    /// Address to listen on. 0.0.0.0 lets other devices on your network play;
    /// they are ordinary players, you alone are the creator
    #[arg(long, default_value = "127.0.0.1")]
    host: String,
    /// Do not open a browser
    #[arg(long)]
    no_open: bool,
}

/// The data folder; names with a dot are no part of a game.
const DATA_FOLDER: &str = ".frolic";
/// The creator has no password to sign in with again, so a session lasts.
const SESSION_LIFETIME: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Runs until Ctrl-C.
///
/// # Errors
/// A sentence that says what to do.
pub async fn run(args: DevArgs) -> Result<()> {
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
    let state = FolderState::at(&folder, &Limits::default())?;
    let build = match read(&folder)? {
        Ok(build) => build,
        Err(report) => {
            notes::print_problems(&folder, &report);
            bail!("the game has errors; correct them and start again");
        }
    };
    notes::print_problems(&folder, &build.package.warnings);
    let mut settings = Layer {
        host: Some(args.host.clone()),
        port: Some(args.port),
        data_dir: Some(folder.join(DATA_FOLDER)),
        ..Layer::default()
    }
    .into_settings()?;
    settings.session_lifetime = SESSION_LIFETIME;
    settings.client_prints = true;
    let listener = bind(settings.host, settings.port).await?;
    let listens_on = listener.local_addr()?;
    let in_use = "stop the other `frolic dev` of this game first";
    let _lock = serve::lock_data_dir(&settings.data_dir, in_use)?;
    let platform = serve::open(settings, listens_on).await?;
    let creator_id = platform.local_creator().await?;
    let game = build.package.manifest.game.clone();
    platform
        .publish_draft(build.archive.clone().into(), &game.id, &creator_id)
        .await?;
    let doors = address::Doors {
        platform: platform.clone(),
        listens_on,
        game_id: game.id.clone(),
        creator_id: creator_id.clone(),
    };
    println!("{} {} is live.", game.name, game.version);
    let signing_in = tokio::spawn(doors.clone().announce());
    println!("Watching {}  (Ctrl-C stops)", folder.display());
    if !args.no_open {
        doors.open_browser();
    }
    let workshop = Workshop::new(folder, platform.clone(), creator_id, build);
    let watching = tokio::spawn(workshop.watch(state));
    platform.serve(listener, serve::stop_requested()).await;
    watching.abort();
    signing_in.abort();
    Ok(())
}

/// A folder that was read, checked and packed.
struct Build {
    /// With everything that deserves a warning.
    package: Package,
    archive: Vec<u8>,
}

/// Reads and checks a folder. The inner error is what is wrong with the game.
fn read(folder: &Path) -> Result<Result<Build, Report>> {
    let limits = Limits::default();
    let files = folder::read(folder, &limits)?;
    let built = check::build(files, &limits);
    Ok(built.map(|(package, archive)| Build { package, archive }))
}
