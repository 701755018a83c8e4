//! The addresses of the game: the creator's own link, the address for other
//! devices, and the browser.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::{Command, Stdio};

use frolic_platform::Platform;

/// The link that a browser is opened with is among the arguments of a program,
/// which other users of this machine can read: it must be used at once.
const OPENED_LINK_MS: i64 = 60 * 1000;
/// The printed link is read in the terminal, so it is valid for longer.
const PRINTED_LINK_MS: i64 = 30 * 24 * 60 * 60 * 1000;

/// The ways into the game that is being made.
#[derive(Clone)]
pub struct Doors {
    pub platform: Platform,
    pub listens_on: SocketAddr,
    pub game_id: String,
    pub creator_id: String,
}

impl Doors {
    /// Prints the addresses, and a new link for the creator whenever one was
    /// used: each signs one browser in.
    pub async fn announce(self) {
        let mut used = self.platform.sign_ins();
        println!("Play at {}", self.link(PRINTED_LINK_MS));
        if let Some(address) = self.for_other_devices() {
            println!("Other devices on your network: {address}");
            println!("  (everyone there can play; only the link above makes a creator)");
        }
        let console = format!("/create/{}/console", self.game_id);
        println!("Console: {}", self.at(&console));
        while used.changed().await.is_ok() {
            println!(
                "A browser signed in as the creator. The link for another one: {}",
                self.link(PRINTED_LINK_MS)
            );
        }
    }

    /// As good as it goes: a machine without a browser plays elsewhere.
    pub fn open_browser(&self) {
        let address = self.link(OPENED_LINK_MS);
        let mut command = if cfg!(windows) {
            let mut command = Command::new("cmd");
            command.args(["/C", "start", "", &address]);
            command
        } else {
            let program = if cfg!(target_os = "macos") {
                "open"
            } else {
                "xdg-open"
            };
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

    /// Behind the #, which no browser sends to any server or names as a referrer.
    fn link(&self, lifetime_ms: i64) -> String {
        let key = self.platform.sign_in_key(&self.creator_id, lifetime_ms);
        format!("{}#key={key}", self.at(&self.play_path()))
    }

    fn play_path(&self) -> String {
        format!("/play/{}", self.game_id)
    }

    fn at(&self, path: &str) -> String {
        let local = frolic_platform::address::local_ip(self.listens_on.ip());
        format!(
            "http://{}{path}",
            SocketAddr::new(local, self.listens_on.port())
        )
    }

    fn for_other_devices(&self) -> Option<String> {
        let ip = self.listens_on.ip();
        if ip.is_loopback() {
            return None;
        }
        let ip = if ip.is_unspecified() {
            network_ip()?
        } else {
            ip
        };
        let address = SocketAddr::new(ip, self.listens_on.port());
        Some(format!("http://{address}{}", self.play_path()))
    }
}

/// This machine's address as its network knows it. Connecting a datagram socket
/// sends nothing; it only has the system choose the way out.
fn network_ip() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let ip = socket.local_addr().ok()?.ip();
    (!ip.is_loopback() && !ip.is_unspecified()).then_some(ip)
}
