//! `frolic serve`: the whole platform from one binary.

use std::ffi::OsString;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, bail};
use clap::Args;
use frolic_platform::fleet::ProcessLauncher;
use frolic_platform::{Clock, Parts, Platform, Settings, bind};

use crate::config::{self, Layer};

/// Run the platform: store, login, joining, and a game server per world
#[derive(Args, Debug)]
pub struct ServeArgs {
    /// Settings file [default: frolic.toml, where there is one]
    #[arg(long)]
    config: Option<PathBuf>,
    #[command(flatten)]
    layer: Layer,
}

/// Runs until Ctrl-C or SIGTERM.
///
/// # Errors
/// A sentence that says what to do.
pub async fn run(args: ServeArgs) -> anyhow::Result<()> {
    let started = Instant::now();
    let layer = config::load(args.layer, args.config.as_deref())?;
    let settings = layer.into_settings()?;
    println!("Frolic {}: create, share, play", env!("CARGO_PKG_VERSION"));
    // The port first: the most likely problem is reported before any work.
    let listener = bind(settings.host, settings.port).await?;
    let listens_on = listener.local_addr()?;
    let in_use = "stop it, or choose another folder with --data-dir";
    let _lock = lock_data_dir(&settings.data_dir, in_use)?;
    println!("  data      {}", settings.data_dir.display());
    let admin = settings.admin_token.is_some();
    let scheme = if settings.tls.is_some() {
        "https"
    } else {
        "http"
    };
    let platform = open(settings, listens_on).await?;
    println!("  database  ready");
    publish_samples(&platform).await;
    println!(
        "  admin     {}",
        if admin {
            "open with ADMIN_TOKEN"
        } else {
            "closed (set ADMIN_TOKEN to open it)"
        }
    );
    println!(
        "\nReady after {:.1} s. Play at {}  (Ctrl-C stops)",
        started.elapsed().as_secs_f64(),
        address(scheme, listens_on)
    );
    platform.serve(listener, stop_requested()).await;
    println!("Stopped. All data is saved for the next start.");
    Ok(())
}

pub async fn open(settings: Settings, listens_on: SocketAddr) -> anyhow::Result<Platform> {
    let program = std::env::current_exe().context("could not find the path of this program")?;
    // The documented place of compiled scripts.
    let scripts = settings.data_dir.join("server").join("scripts");
    let mut args: Vec<OsString> = vec![
        "gameserver".into(),
        "--script-folder".into(),
        scripts.into(),
    ];
    if let Some(folder) = &settings.record_dir {
        args.extend(["--record".into(), folder.into()]);
    }
    if let Some(bytes) = settings.client_bytes_per_second {
        args.extend(["--client-bytes-per-second".into(), bytes.to_string().into()]);
    }
    let parts = Parts {
        launcher: Box::new(ProcessLauncher {
            program,
            args,
            env: Vec::new(),
        }),
        spell_compiler: crate::spells::workshop(),
        script_checker: Arc::new(frolic_lint::compile_errors),
        site: Box::new(frolic_assets::site_file),
        clock: Clock::system(),
        listens_on,
    };
    Ok(Platform::open(settings, parts).await?)
}

/// Publishes the games inside the binary. A broken one must not prevent the
/// others from being played.
pub async fn publish_samples(platform: &Platform) {
    for (folder, files) in frolic_assets::sample_games() {
        let archive = match frolic_package::pack(&files) {
            Ok(archive) => archive,
            Err(error) => {
                tracing::error!("sample game '{folder}' could not be packed: {error}");
                continue;
            }
        };
        match platform.publish_sample(archive.into()).await {
            Ok(game) if game.new_revision => {
                println!("  game      {} {} published", game.game_id, game.version)
            }
            Ok(game) => println!("  game      {} {}", game.game_id, game.version),
            Err(error) => tracing::error!("sample game '{folder}' could not be published: {error}"),
        }
    }
}

/// Two platforms on one data folder would run the same worlds twice. `advice` is
/// what to do when there is another.
pub(super) fn lock_data_dir(data_dir: &Path, advice: &str) -> anyhow::Result<File> {
    let path = data_dir.join("lock");
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .with_context(|| format!("could not write in the data folder {}", data_dir.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => bail!(
            "another frolic already runs with the data folder {}; {advice}",
            data_dir.display()
        ),
        Err(std::fs::TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("could not lock {}", path.display()))
        }
    }
}

fn address(scheme: &str, listens_on: SocketAddr) -> String {
    let local = frolic_platform::address::local_ip(listens_on.ip());
    let url = format!("{scheme}://{}", SocketAddr::new(local, listens_on.port()));
    if listens_on.ip().is_unspecified() {
        format!("{url} (and at every other address of this machine)")
    } else {
        url
    }
}

/// Completes at the first Ctrl-C or SIGTERM. A second one ends the program at
/// once.
pub async fn stop_requested() {
    signal().await;
    println!("\nStopping: notifying players, stopping game servers… (Ctrl-C again to force)");
    tokio::spawn(async {
        signal().await;
        std::process::exit(130);
    });
}

#[cfg(unix)]
async fn signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        let _ = tokio::signal::ctrl_c().await;
        return;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}

#[cfg(not(unix))]
async fn signal() {
    let _ = tokio::signal::ctrl_c().await;
}
