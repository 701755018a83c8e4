//! `frolic publish`: packs a game and uploads it to a platform.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use frolic_package::{Limits, pack};
use frolic_platform::api::{ErrorBody, PublishResponse};

use super::{check, soul};
use crate::credentials::{Credentials, server_address};

/// The platform on this machine.
pub const DEFAULT_SERVER: &str = "http://127.0.0.1:5000";
/// As long as the platform lets an upload take.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// Publish a game on a platform
#[derive(Args, Debug)]
#[command(after_help = "The API key is the one that `frolic login` stored, or FROLIC_API_KEY.")]
pub struct PublishArgs {
    /// The game's folder or its .game file
    #[arg(default_value = ".")]
    game: PathBuf,
    /// Address of the platform; the one of the last login when left out
    #[arg(long, env = "FROLIC_SERVER")]
    server: Option<String>,
    /// Channel: dev (you), beta (players who opt in) or stable (everyone)
    #[arg(long, default_value = "stable", value_parser = ["dev", "beta", "stable"])]
    channel: String,
    /// Release notes for players
    #[arg(long, default_value = "")]
    notes: String,
}

/// Runs `frolic publish`.
///
/// # Errors
/// When the game has errors, or the platform refuses it.
pub async fn run(args: PublishArgs) -> anyhow::Result<()> {
    let credentials = Credentials::load()?;
    // A variable that is set to nothing says nothing.
    let given = args.server.filter(|server| !server.is_empty());
    let server = given.or_else(|| credentials.server.clone());
    let server = server_address(server.as_deref().unwrap_or(DEFAULT_SERVER))?;
    // Before any work: without a key nothing can be published.
    let key = credentials.key_for(&server)?;
    let archive = archive_of(&args.game)?;
    let bytes = archive.len();
    let wishes = [("channel", &args.channel), ("notes", &args.notes)];
    let url = reqwest::Url::parse_with_params(&format!("{server}/api/games"), wishes)?;
    let response = reqwest::Client::new()
        .post(url)
        .bearer_auth(key)
        .timeout(UPLOAD_TIMEOUT)
        .body(archive)
        .send()
        .await
        .with_context(|| format!("{server} does not answer"))?;
    if !response.status().is_success() {
        return Err(refusal(response).await);
    }
    let published: PublishResponse = response
        .json()
        .await
        .with_context(|| format!("{server} is not a Frolic platform"))?;
    let PublishResponse {
        game_id, version, ..
    } = &published;
    if published.new_revision {
        let channel = &args.channel;
        println!(
            "Published {game_id} {version} on {channel}, {bytes} bytes: {server}/games/{game_id}"
        );
    } else {
        println!("{game_id} {version} already exists: {server}/games/{game_id}");
    }
    Ok(())
}

/// The bytes to upload: of a folder, packed as `frolic pack` does it.
fn archive_of(game: &Path) -> anyhow::Result<Vec<u8>> {
    if game.is_dir() {
        soul::bring_up_to_date(game)?;
    }
    let package = match check::load(game, &Limits::default())? {
        Ok(package) => package,
        Err(report) => {
            check::print_report(&report);
            bail!("{} has errors and was not published", game.display());
        }
    };
    check::print_report(&package.warnings);
    if game.is_dir() {
        return Ok(pack(&package.files)?);
    }
    fs::read(game).with_context(|| format!("cannot read {}", game.display()))
}

/// The platform's objection, in its own words.
pub(super) async fn refusal(response: reqwest::Response) -> anyhow::Error {
    let (url, status) = (response.url().clone(), response.status());
    match response.json::<ErrorBody>().await {
        Ok(body) => anyhow!("{}", body.error.message),
        Err(_) => anyhow!("{url} answered with status {status}"),
    }
}
