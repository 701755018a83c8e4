//! A bad connection: relays UDP packets late, out of order, not all of them,
//! and only at a limited rate.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use frolic_sim::random::Random;
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

/// Longer than any packet.
const PACKET_BYTES_MAX: usize = 2048;

/// The quality of one direction of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Quality {
    /// How long a packet takes at least.
    pub delay: Duration,
    /// By how much more at the most.
    pub jitter: Duration,
    /// The share of packets that are lost.
    pub loss: f32,
    /// Capacity in bytes per second; none: unlimited.
    pub bytes_per_s: Option<u32>,
    /// Longest queue in bytes; packets beyond it are lost.
    pub queue_bytes: u32,
}

impl Quality {
    pub const GOOD: Quality = Quality {
        delay: Duration::from_millis(10),
        jitter: Duration::ZERO,
        loss: 0.0,
        bytes_per_s: None,
        queue_bytes: 0,
    };
    /// 200 ms round trip, 5 % loss, 30 ms jitter.
    pub const BAD: Quality = Quality {
        delay: Duration::from_millis(85),
        jitter: Duration::from_millis(30),
        loss: 0.05,
        ..Quality::GOOD
    };
}

/// A relay to a server for one client. It ends when this is dropped.
pub struct Relay {
    /// Where the client finds it.
    pub port: u16,
    ways: [JoinHandle<()>; 2],
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.ways.iter().for_each(JoinHandle::abort);
    }
}

impl Relay {
    /// Starts a relay to a port of this machine, with a quality for each
    /// direction.
    pub async fn start(server_port: u16, up: Quality, down: Quality, seed: u64) -> Self {
        let home = || UdpSocket::bind(("127.0.0.1", 0));
        let front = Arc::new(home().await.expect("a port"));
        let back = Arc::new(home().await.expect("a port"));
        back.connect(("127.0.0.1", server_port))
            .await
            .expect("an address");
        let port = front.local_addr().expect("an address").port();
        let (found, client) = tokio::sync::watch::channel(None);
        let up = Way::new(up, seed).carry_up(front.clone(), back.clone(), found);
        let down = Way::new(down, seed ^ 1).carry_down(back, front, client);
        Self {
            port,
            ways: [tokio::spawn(up), tokio::spawn(down)],
        }
    }
}

/// One direction.
struct Way {
    quality: Quality,
    random: Random,
    /// When everything is through that waits for its turn.
    free_at: Instant,
    /// Packets in flight, by time of arrival.
    flying: BTreeMap<(Instant, u64), Vec<u8>>,
    count: u64,
}

impl Way {
    fn new(quality: Quality, seed: u64) -> Self {
        Self {
            quality,
            random: Random::new(seed),
            free_at: Instant::now(),
            flying: BTreeMap::new(),
            count: 0,
        }
    }

    async fn carry_up(
        mut self,
        from: Arc<UdpSocket>,
        to: Arc<UdpSocket>,
        client: tokio::sync::watch::Sender<Option<SocketAddr>>,
    ) {
        let mut buffer = [0; PACKET_BYTES_MAX];
        loop {
            tokio::select! {
                received = from.recv_from(&mut buffer) => {
                    let Ok((bytes, address)) = received else { continue };
                    client.send_replace(Some(address));
                    self.take(&buffer[..bytes]);
                }
                packet = arrival(&mut self.flying) => {
                    let _ = to.send(&packet).await;
                }
            }
        }
    }

    async fn carry_down(
        mut self,
        from: Arc<UdpSocket>,
        to: Arc<UdpSocket>,
        client: tokio::sync::watch::Receiver<Option<SocketAddr>>,
    ) {
        let mut buffer = [0; PACKET_BYTES_MAX];
        loop {
            tokio::select! {
                received = from.recv(&mut buffer) => {
                    let Ok(bytes) = received else { continue };
                    self.take(&buffer[..bytes]);
                }
                packet = arrival(&mut self.flying) => {
                    let address = *client.borrow();
                    if let Some(address) = address {
                        let _ = to.send_to(&packet, address).await;
                    }
                }
            }
        }
    }

    fn take(&mut self, packet: &[u8]) {
        let now = Instant::now();
        let mut leaves = now;
        if let Some(bytes_per_s) = self.quality.bytes_per_s {
            let takes = |bytes: f64| Duration::from_secs_f64(bytes / f64::from(bytes_per_s));
            let begins = self.free_at.max(now);
            if begins - now > takes(f64::from(self.quality.queue_bytes)) {
                return;
            }
            leaves = begins + takes(packet.len() as f64);
            self.free_at = leaves;
        }
        let late = self.quality.jitter.mul_f32(self.random.unit());
        if self.random.unit() >= self.quality.loss {
            self.count += 1;
            let arrives = leaves + self.quality.delay + late;
            self.flying.insert((arrives, self.count), packet.to_vec());
        }
    }
}

/// The next packet, when it arrives. Nothing is lost when this is dropped.
async fn arrival(flying: &mut BTreeMap<(Instant, u64), Vec<u8>>) -> Vec<u8> {
    let Some(first) = flying.first_entry() else {
        return std::future::pending().await;
    };
    sleep_until(first.key().0).await;
    first.remove()
}
