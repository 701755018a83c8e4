//! `frolic health`: whether the platform on this machine can serve. Containers
//! without a shell check themselves with it.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use frolic_platform::address;

use crate::config::{self, Layer};

const PATIENCE: Duration = Duration::from_secs(5);

/// Ask the platform on this machine whether it is ready; fails when it is not
#[derive(Args, Debug)]
pub struct HealthArgs {
    /// Address of the platform [default: as HOST and PORT say]
    #[arg(long)]
    url: Option<String>,
}

/// Asks `/readyz`.
///
/// # Errors
/// When there is no answer, or a bad one.
pub async fn run(args: HealthArgs) -> anyhow::Result<()> {
    let url = match args.url {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => own_address(config::load(Layer::default(), None)?),
    };
    let client = reqwest::Client::builder()
        .timeout(PATIENCE)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()?;
    let answer = client.get(format!("{url}/readyz")).send().await;
    let answer = answer.with_context(|| format!("{url} does not answer"))?;
    let status = answer.status();
    // A port with TLS sends plain requests elsewhere: it serves, and more is not
    // known without its name.
    if !status.is_success() && !status.is_redirection() {
        let said = answer.text().await.unwrap_or_default();
        bail!("{url} is not ready ({status}): {said}");
    }
    println!("ready");
    Ok(())
}

fn own_address(layer: Layer) -> String {
    let host = layer.host.and_then(|host| host.parse().ok());
    let host = address::local_ip(host.unwrap_or(IpAddr::from([127, 0, 0, 1])));
    let port = layer.port.unwrap_or(5000);
    format!("http://{}", SocketAddr::new(host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_addresses_are_reached_at_this_machine() {
        let at = |host: Option<&str>| {
            own_address(Layer {
                host: host.map(str::to_owned),
                port: Some(81),
                ..Layer::default()
            })
        };
        assert_eq!(at(None), "http://127.0.0.1:81");
        assert_eq!(at(Some("0.0.0.0")), "http://127.0.0.1:81");
        assert_eq!(at(Some("::")), "http://[::1]:81");
        assert_eq!(at(Some("10.0.0.7")), "http://10.0.0.7:81");
    }
}
