//! The floor: what it costs to move the same messages with nothing behind them.
//!
//! One thread, epoll, every socket read once per tick and written once per
//! update, without libc's cancellation points: the cheapest form we know. A
//! real server is measured against it.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, listen, recv, send};
use serde::{Deserialize, Serialize};

use frolic_bots::RunClock;

/// Serve messages of a fixed size
#[derive(Args, Debug)]
pub struct ServerArgs {
    /// Clients to wait for before the first tick
    #[arg(long)]
    players: u32,
    #[arg(long)]
    tick_hz: u32,
    #[arg(long)]
    update_hz: f64,
    #[arg(long)]
    bytes: usize,
}

/// Be the clients of the floor
#[derive(Args, Debug)]
pub struct ClientArgs {
    #[arg(long)]
    port: u16,
    #[arg(long)]
    players: u32,
    #[arg(long)]
    input_hz: f64,
    /// Of one input
    #[arg(long)]
    bytes: usize,
    /// Of one update
    #[arg(long)]
    update_bytes: usize,
    #[arg(long)]
    seconds: u64,
}

/// The figures of its clients.
#[derive(Debug, Serialize, Deserialize)]
pub struct FloorReport {
    /// Updates per client and second.
    pub update_hz: f64,
}

/// Clients that may wait to be let in. With the usual 128, the others of a
/// crowd would try again after a second, and so would most of those.
const BACKLOG: i32 = 4096;
/// Inputs sent before sockets are read again, and the longest sleep: as the
/// crowd's load does it.
const INPUTS_AT_ONCE: u64 = 32;
const NAP: Duration = Duration::from_millis(1);
/// Ticks that are caught up on, as a game server does it.
const CATCH_UP_TICKS: u32 = 5;

/// Computes the ticks at which an update is due, also where one rate is not a
/// multiple of the other.
struct Updates {
    per_tick: f64,
    owed: f64,
}

impl Updates {
    fn new(update_hz: f64, tick_hz: u32) -> Self {
        Self {
            per_tick: (update_hz / f64::from(tick_hz.max(1))).clamp(0.0, 1.0),
            owed: 0.0,
        }
    }

    fn is_due(&mut self) -> bool {
        self.owed += self.per_tick;
        let due = self.owed >= 1.0 - 1e-9;
        if due {
            self.owed -= 1.0;
        }
        due
    }
}

/// Accepts all clients, then reads each socket once per tick and writes each
/// once per update, forever.
pub fn serve(args: ServerArgs) -> Result<()> {
    let listener = open()?;
    println!("{}", listener.local_addr()?.port());
    let mut floor = Floor::let_in(&listener, args.players)?;
    let message = vec![7u8; args.bytes];
    let step = Duration::from_secs(1) / args.tick_hz.max(1);
    let mut updates = Updates::new(args.update_hz, args.tick_hz);
    let mut next = Instant::now();
    loop {
        next += step;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        // Most likely it was stopped in its sleep.
        let late = next.elapsed();
        if late > step * CATCH_UP_TICKS {
            // A server that was paused continues in the same beat, and sends
            // nothing that was due meanwhile.
            let missed = late.as_nanos() / step.as_nanos().max(1);
            next += step * u32::try_from(missed).unwrap_or(u32::MAX);
            continue;
        }
        floor.read()?;
        if updates.is_due() {
            floor.send(&message);
        }
    }
}

fn open() -> io::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    // To listen once more changes nothing but the backlog.
    listen(&listener, BACKLOG)?;
    Ok(listener)
}

/// The server's side.
struct Floor {
    poll: Poll,
    events: Events,
    /// By token; none once a client has gone.
    clients: Vec<Option<TcpStream>>,
    buffer: Vec<u8>,
}

impl Floor {
    /// Waits until all are connected: a client that receives updates while
    /// others still connect would read them later, when they count.
    fn let_in(listener: &TcpListener, players: u32) -> Result<Self> {
        let poll = Poll::new()?;
        let mut clients = Vec::new();
        for index in 0..players as usize {
            let (stream, _) = listener.accept().context("letting clients in")?;
            clients.push(Some(registered(stream, &poll, index)?));
        }
        Ok(Self {
            poll,
            events: Events::with_capacity(16 * 1024),
            clients,
            buffer: vec![0; 64 * 1024],
        })
    }

    fn read(&mut self) -> io::Result<()> {
        look(&mut self.poll, &mut self.events, Duration::ZERO)?;
        for event in &self.events {
            if let Some(client) = self.clients.get_mut(event.token().0) {
                drain(client, &mut self.buffer);
            }
        }
        Ok(())
    }

    fn send(&mut self, message: &[u8]) {
        for client in &mut self.clients {
            let sent = client.as_ref().map(|stream| write(stream, message));
            if sent.is_some_and(|sent| sent.is_err_and(|error| error != Errno::AGAIN)) {
                *client = None;
            }
        }
    }
}

/// A non-blocking connection, known to epoll by its index.
fn registered(stream: std::net::TcpStream, poll: &Poll, index: usize) -> io::Result<TcpStream> {
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    let mut stream = TcpStream::from_std(stream);
    poll.registry()
        .register(&mut stream, Token(index), Interest::READABLE)?;
    Ok(stream)
}

/// Straight through the kernel, as the game server does it: `send` of libc is
/// a place at which a thread can be cancelled, and prepares for that.
fn write(stream: &TcpStream, message: &[u8]) -> rustix::io::Result<usize> {
    // Without the flag, a closed connection would end the process.
    send(stream, message, SendFlags::NOSIGNAL)
}

/// Waits for something to read. An interrupted wait counts as a wait.
fn look(poll: &mut Poll, events: &mut Events, wait: Duration) -> io::Result<()> {
    match poll.poll(events, Some(wait)) {
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
        outcome => outcome,
    }
}

/// Reads what is there and says how much it was; epoll is edge-triggered, so
/// until nothing is left.
fn drain(client: &mut Option<TcpStream>, buffer: &mut [u8]) -> u64 {
    let mut bytes = 0;
    while let Some(stream) = client {
        match recv(&*stream, &mut *buffer, RecvFlags::empty()) {
            Ok((count, _)) if count > 0 => {
                bytes += count as u64;
                if count < buffer.len() {
                    break;
                }
            }
            Err(Errno::AGAIN) => break,
            _ => *client = None,
        }
    }
    bytes
}

/// Connects, sends inputs, reads updates, and ends after the given time.
pub fn clients(args: ClientArgs) -> Result<()> {
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], args.port));
    let mut poll = Poll::new()?;
    let mut buffer = vec![0u8; 64 * 1024];
    let mut sockets = Vec::new();
    for index in 0..args.players as usize {
        let stream = std::net::TcpStream::connect(address).context("connecting to the floor")?;
        sockets.push(Some(registered(stream, &poll, index)?));
    }
    println!("settled");
    let message = vec![3u8; args.bytes];
    let mut events = Events::with_capacity(1024);
    let (mut bytes, mut sent) = (0, 0u64);
    let inputs_per_s = args.input_hz * f64::from(args.players);
    let mut clock = RunClock::start();
    let time = Duration::from_secs(args.seconds);
    while clock.elapsed() < time {
        let due = (clock.elapsed().as_secs_f64() * inputs_per_s) as u64;
        let batch = due.saturating_sub(sent).min(INPUTS_AT_ONCE);
        for turn in sent..sent + batch {
            let index = (turn % u64::from(args.players)) as usize;
            if let Some(Some(socket)) = sockets.get(index) {
                let _ = write(socket, &message);
            }
        }
        sent += batch;
        let wait = if sent < due { Duration::ZERO } else { NAP };
        look(&mut poll, &mut events, wait)?;
        for event in &events {
            if let Some(socket) = sockets.get_mut(event.token().0) {
                bytes += drain(socket, &mut buffer);
            }
        }
    }
    let updates = bytes as f64 / args.update_bytes.max(1) as f64;
    let client_s = clock.elapsed().as_secs_f64() * f64::from(args.players);
    let update_hz = updates / client_s;
    println!("{}", serde_json::to_string(&FloorReport { update_hz })?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// The test accepts no connection: one beyond the backlog would retry for a
    /// second or more, and here forever.
    #[test]
    fn a_whole_crowd_may_wait_at_the_door() {
        let listener = open().unwrap();
        let address = listener.local_addr().unwrap();
        let patience = Duration::from_secs(2);
        let connect = |_| std::net::TcpStream::connect_timeout(&address, patience);
        let waiting: Result<Vec<_>, _> = (0..300).map(connect).collect();
        assert_eq!(waiting.map(|waiting| waiting.len()).ok(), Some(300));
    }

    #[test]
    fn the_first_update_finds_all_clients_connected() {
        let listener = open().unwrap();
        let address = listener.local_addr().unwrap();
        let connect = |_| std::net::TcpStream::connect(address).unwrap();
        let mut clients: Vec<_> = (0..3).map(connect).collect();
        let mut floor = Floor::let_in(&listener, 3).unwrap();
        floor.send(b"one");
        drop(clients.pop());
        floor.send(b"two");
        for client in &mut clients {
            let mut seen = [0; 6];
            client.read_exact(&mut seen).unwrap();
            assert_eq!(&seen, b"onetwo");
        }
        floor.read().unwrap();
    }

    #[test]
    fn updates_have_their_rate_at_any_rate_of_ticks() {
        let in_ten_seconds = |update_hz: f64, tick_hz: u32| {
            let mut updates = Updates::new(update_hz, tick_hz);
            (0..tick_hz * 10).filter(|_| updates.is_due()).count()
        };
        assert_eq!(in_ten_seconds(20.0, 60), 200);
        assert_eq!(in_ten_seconds(20.0, 30), 200, "not 300");
        assert_eq!(in_ten_seconds(19.5, 60), 195);
        assert_eq!(in_ten_seconds(20.0, 20), 200);
        assert_eq!(in_ten_seconds(100.0, 20), 200, "not more than ticks");
    }
}
