//! The floor: what it costs to move the same messages with nothing behind them.
//!
//! One thread, epoll, every socket read once per tick and written once per
//! update: the cheapest form we know. A real server is measured against it.

use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use serde::{Deserialize, Serialize};

use crate::bots::RunClock;
use crate::open_files;

/// Serve messages of a fixed size
#[derive(Args, Debug)]
pub struct ServerArgs {
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

/// What its clients saw.
#[derive(Debug, Serialize, Deserialize)]
pub struct FloorReport {
    /// Updates per client and second.
    pub update_hz: f64,
}

const LISTENER: Token = Token(usize::MAX);
/// Inputs sent before sockets are read again, and the longest sleep: as the
/// crowd's load does it.
const INPUTS_AT_ONCE: u64 = 32;
const NAP: Duration = Duration::from_millis(1);
/// Ticks that are caught up on, as a game server does it.
const CATCH_UP_TICKS: u32 = 5;

/// Tells at which ticks an update is due, also where one rate is not a
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

/// Reads each socket once per tick and writes each once per update, for ever.
pub fn serve(args: ServerArgs) -> Result<()> {
    open_files::raise_limit();
    let mut listener = TcpListener::bind("127.0.0.1:0".parse()?)?;
    let mut poll = Poll::new()?;
    poll.registry()
        .register(&mut listener, LISTENER, Interest::READABLE)?;
    println!("{}", listener.local_addr()?.port());
    let mut events = Events::with_capacity(16 * 1024);
    let mut clients: Vec<Option<TcpStream>> = Vec::new();
    let message = vec![7u8; args.bytes];
    let step = Duration::from_secs(1) / args.tick_hz.max(1);
    let mut updates = Updates::new(args.update_hz, args.tick_hz);
    let mut next = Instant::now();
    let mut buffer = vec![0u8; 64 * 1024];
    loop {
        next += step;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        // Most likely it was stopped in its sleep.
        let late = next.elapsed();
        if late > step * CATCH_UP_TICKS {
            // Who was stopped goes on in the same beat, and sends nothing that
            // was due meanwhile.
            let missed = late.as_nanos() / step.as_nanos().max(1);
            next += step * u32::try_from(missed).unwrap_or(u32::MAX);
            continue;
        }
        look(&mut poll, &mut events, Duration::ZERO)?;
        for event in &events {
            if event.token() == LISTENER {
                while let Ok((mut stream, _)) = listener.accept() {
                    stream.set_nodelay(true)?;
                    let token = Token(clients.len());
                    poll.registry()
                        .register(&mut stream, token, Interest::READABLE)?;
                    clients.push(Some(stream));
                }
            } else if let Some(client) = clients.get_mut(event.token().0) {
                drain(client, &mut buffer);
            }
        }
        if updates.is_due() {
            for client in &mut clients {
                let gone = client.as_mut().is_some_and(|stream| {
                    matches!(stream.write(&message), Err(error) if error.kind() != ErrorKind::WouldBlock)
                });
                if gone {
                    *client = None;
                }
            }
        }
    }
}

/// Waits for something to read. Whoever was stopped in between has waited.
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
        match stream.read(buffer) {
            Ok(count) if count > 0 => {
                bytes += count as u64;
                if count < buffer.len() {
                    break;
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            _ => *client = None,
        }
    }
    bytes
}

/// Connects, sends inputs, reads updates, and ends after the given time.
pub fn clients(args: ClientArgs) -> Result<()> {
    open_files::raise_limit();
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], args.port));
    let mut poll = Poll::new()?;
    let mut buffer = vec![0u8; 64 * 1024];
    let mut sockets = Vec::new();
    for index in 0..args.players as usize {
        let stream = std::net::TcpStream::connect(address).context("connecting to the floor")?;
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let mut stream = TcpStream::from_std(stream);
        poll.registry()
            .register(&mut stream, Token(index), Interest::READABLE)?;
        sockets.push(Some(stream));
    }
    // What came while the others connected does not count.
    for socket in &mut sockets {
        drain(socket, &mut buffer);
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
            if let Some(Some(socket)) = sockets.get_mut(index) {
                let _ = socket.write(&message);
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

    #[test]
    fn updates_keep_their_rate_at_any_rate_of_ticks() {
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
