//! `frolic login`: checks an API key and stores it for `frolic publish`.

use std::io::{BufRead, IsTerminal, Write};

use anyhow::{Context, bail};
use clap::Args;
use frolic_platform::api::Account;

use super::publish::{DEFAULT_SERVER, refusal};
use crate::credentials::{Credentials, KEY_VARIABLE, server_address};

/// Longest line that is accepted as a key.
const KEY_BYTES_MAX: u64 = 1024;

/// Log in to a platform with an API key
#[derive(Args, Debug)]
#[command(
    after_help = "The key is read from FROLIC_API_KEY or from standard input. \
Make one on the page /account of the platform."
)]
pub struct LoginArgs {
    /// Address of the platform; the one on this machine when left out
    #[arg(long, env = "FROLIC_SERVER")]
    server: Option<String>,
}

/// Runs `frolic login`.
///
/// # Errors
/// When the platform does not know the key, or it cannot be stored.
pub async fn run(args: LoginArgs) -> anyhow::Result<()> {
    let given = args.server.filter(|server| !server.is_empty());
    let server = server_address(given.as_deref().unwrap_or(DEFAULT_SERVER))?;
    let key = read_key(&server)?;
    let response = reqwest::Client::new()
        .get(format!("{server}/api/me"))
        .bearer_auth(&key)
        .send()
        .await
        .with_context(|| format!("{server} does not answer"))?;
    if response.status() == reqwest::StatusCode::UNAUTHORIZED {
        bail!("{server} does not know this API key; make one at {server}/account");
    }
    if !response.status().is_success() {
        return Err(refusal(response).await);
    }
    let account: Account = response
        .json()
        .await
        .with_context(|| format!("{server} is not a Frolic platform"))?;
    if account.means != "api_key" {
        bail!("this is not an API key; make one at {server}/account");
    }
    let path = Credentials::load()?.store(&server, &key)?;
    println!(
        "Logged in to {server} as {}. The key is in {}.",
        account.username,
        path.display()
    );
    Ok(())
}

fn read_key(server: &str) -> anyhow::Result<String> {
    if let Ok(key) = std::env::var(KEY_VARIABLE)
        && !key.trim().is_empty()
    {
        return Ok(key.trim().to_owned());
    }
    let input = std::io::stdin();
    if input.is_terminal() {
        print!("API key (make one at {server}/account): ");
        std::io::stdout().flush()?;
    }
    let mut line = String::new();
    let mut input = std::io::Read::take(input.lock(), KEY_BYTES_MAX);
    input.read_line(&mut line)?;
    let key = line.trim();
    if key.is_empty() {
        bail!("no key was given");
    }
    Ok(key.to_owned())
}
