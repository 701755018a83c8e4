//! Light players: a load that is not the bottleneck. All of them share one
//! thread and one epoll; each sends its inputs at its own point of the beat,
//! so that the load is even and what arrives is read, and timed, at once.

mod frame;
mod player;
mod upgrade;
mod wire;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, anyhow};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use tokio::sync::mpsc;

use crate::door::Entry;
use crate::outcome::Outcome;
use crate::run_clock::RunClock;
use player::Player;
use wire::Eye;

/// Turns taken before sockets are looked at again.
const TURNS_AT_ONCE: usize = 32;
/// How long to sleep at most: orders come without waking us.
const NAP: Duration = Duration::from_millis(1);
/// Limit of the bytes queued for a socket; a player over it skips turns.
const OUT_BYTES_MAX: usize = 64 * 1024;
/// The part of the beat between one player and the next: the golden ratio
/// spreads any number of them evenly.
const PHASE: f64 = 0.618_033_988_749_895;

/// A message to the thread.
pub enum Order {
    /// A player joins.
    Join(Box<Arrival>),
    /// All are in: what happens now counts.
    Measure,
    /// Time to go.
    Leave,
}

/// A joining player.
pub struct Arrival {
    pub number: u32,
    pub entry: Entry,
    pub address: SocketAddr,
    /// When it asked for the way.
    pub began: Instant,
    /// Let go of once it is in, or has failed; none for one who comes late.
    pub joined: Option<mpsc::Sender<u32>>,
}

/// How they play.
#[derive(Clone, Copy)]
pub struct LightSettings {
    pub input_hz: u32,
    pub roam_m: Option<f32>,
}

/// The combined figures of all players.
pub struct LightReport {
    pub outcomes: Vec<Result<Outcome>>,
    /// How late turns were taken: what the load adds to what it measures.
    pub turns_late_ms: Vec<f32>,
}

/// Starts the thread, which ends after [`Order::Leave`].
///
/// # Errors
/// When there can be no thread or no epoll.
pub fn start(settings: LightSettings, orders: Receiver<Order>) -> Result<JoinHandle<LightReport>> {
    let crowd = Crowd {
        poll: Poll::new().context("opening epoll")?,
        settings,
        eye: Eye::new(),
        bots: Vec::new(),
        turns: BinaryHeap::new(),
        buffer: vec![0; 64 * 1024],
        clock: RunClock::start(),
        measuring: false,
        report: LightReport {
            outcomes: Vec::new(),
            turns_late_ms: Vec::new(),
        },
    };
    let thread = std::thread::Builder::new().name("light players".into());
    Ok(thread.spawn(move || crowd.run(&orders))?)
}

struct Crowd {
    poll: Poll,
    settings: LightSettings,
    eye: Eye,
    /// By token; none once a player has failed.
    bots: Vec<Option<Bot>>,
    /// When each takes its next turn, in microseconds, and which.
    turns: BinaryHeap<Reverse<(u64, usize)>>,
    buffer: Vec<u8>,
    clock: RunClock,
    measuring: bool,
    report: LightReport,
}

struct Bot {
    player: Player,
    socket: TcpStream,
    joined: Option<mpsc::Sender<u32>>,
    late: bool,
}

impl Crowd {
    fn run(mut self, orders: &Receiver<Order>) -> LightReport {
        let mut events = Events::with_capacity(1024);
        loop {
            loop {
                match orders.try_recv() {
                    Ok(Order::Join(arrival)) => self.join(*arrival),
                    Ok(Order::Measure) => self.measure(),
                    Err(TryRecvError::Empty) => break,
                    Ok(Order::Leave) | Err(TryRecvError::Disconnected) => return self.leave(),
                }
            }
            let wait = if self.take_turns() {
                Duration::ZERO
            } else {
                NAP
            };
            match self.poll.poll(&mut events, Some(wait)) {
                Err(error) if error.kind() != ErrorKind::Interrupted => {
                    self.report.outcomes.push(Err(error.into()));
                    return self.leave();
                }
                _ => {}
            }
            for event in &events {
                let index = event.token().0;
                if event.is_writable() {
                    self.write(index);
                }
                if event.is_readable() || event.is_error() {
                    self.read(index);
                }
            }
        }
    }

    fn now_ms(&mut self) -> f64 {
        self.clock.elapsed().as_secs_f64() * 1000.0
    }

    fn join(&mut self, arrival: Arrival) {
        let index = self.bots.len();
        let number = arrival.number;
        match self.connect(arrival, Token(index)) {
            Ok(bot) => {
                self.bots.push(Some(bot));
                let phase = (f64::from(number) * PHASE).fract();
                let now = self.clock.elapsed().as_micros() as u64;
                let first = now + (phase * self.beat_us() as f64) as u64;
                self.turns.push(Reverse((first, index)));
            }
            Err(error) => self.report.outcomes.push(Err(error)),
        }
    }

    fn connect(&mut self, arrival: Arrival, token: Token) -> Result<Bot> {
        let address = arrival.address;
        // Negative where the way was asked for before this thread began.
        let ago_ms = arrival.began.elapsed().as_secs_f64() * 1000.0;
        let began_ms = self.now_ms() - ago_ms;
        let roam_m = self.settings.roam_m;
        let player = Player::new(arrival.number, arrival.entry, roam_m, began_ms)?;
        let mut socket =
            TcpStream::connect(address).with_context(|| format!("connecting to {address}"))?;
        socket.set_nodelay(true)?;
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll
            .registry()
            .register(&mut socket, token, interest)?;
        Ok(Bot {
            player,
            socket,
            late: arrival.joined.is_none(),
            joined: arrival.joined,
        })
    }

    fn beat_us(&self) -> u64 {
        1_000_000 / u64::from(self.settings.input_hz.max(1))
    }

    /// Takes turns that are due; returns whether more wait.
    fn take_turns(&mut self) -> bool {
        for _ in 0..TURNS_AT_ONCE {
            let now = self.clock.elapsed().as_micros() as u64;
            let Some(&Reverse((due, index))) = self.turns.peek() else {
                return false;
            };
            if due > now {
                return false;
            }
            self.turns.pop();
            let now_ms = now as f64 / 1000.0;
            let Some(Some(bot)) = self.bots.get_mut(index) else {
                continue;
            };
            if self.measuring {
                let late_ms = (now - due) as f32 / 1000.0;
                self.report.turns_late_ms.push(late_ms);
            }
            if bot.player.out.len() < OUT_BYTES_MAX {
                match bot.player.turn(now_ms) {
                    Ok(()) => self.write(index),
                    Err(error) => self.fail(index, error),
                }
            }
            // A player who is a whole beat late skips turns instead of catching
            // up.
            let beat = self.beat_us();
            self.turns.push(Reverse(((due + beat).max(now), index)));
        }
        true
    }

    fn write(&mut self, index: usize) {
        let Some(Some(bot)) = self.bots.get_mut(index) else {
            return;
        };
        if let Err(error) = bot.write() {
            self.fail(index, error);
        }
    }

    fn read(&mut self, index: usize) {
        let clock = &mut self.clock;
        let Some(Some(bot)) = self.bots.get_mut(index) else {
            return;
        };
        let outcome = loop {
            match bot.socket.read(&mut self.buffer) {
                Ok(0) => break Err(anyhow!("connection closed")),
                Ok(count) => {
                    let now_ms = clock.elapsed().as_secs_f64() * 1000.0;
                    let bytes = &self.buffer[..count];
                    if let Err(error) = bot.player.receive(&self.eye, bytes, now_ms) {
                        break Err(error);
                    }
                    // epoll reports only new bytes; a read that does not fill
                    // the buffer has drained the socket.
                    if count < self.buffer.len() {
                        break Ok(());
                    }
                }
                Err(error) if is_later(&error) => break Ok(()),
                Err(error) => break Err(Error::new(error).context("connection lost")),
            }
        };
        // Joined: dropping this end notifies the waiting task.
        if bot.player.is_in()
            && let Some(joined) = bot.joined.take()
        {
            let _ = joined.try_send(index as u32);
        }
        // Handshakes and pongs.
        match outcome.and_then(|()| bot.write()) {
            Ok(()) => {}
            Err(error) => self.fail(index, error),
        }
    }

    fn fail(&mut self, index: usize, error: Error) {
        if let Some(bot) = self.bots.get_mut(index)
            && bot.take().is_some()
        {
            self.report.outcomes.push(Err(error));
        }
    }

    fn measure(&mut self) {
        self.measuring = true;
        let now_ms = self.now_ms();
        for bot in self.bots.iter_mut().flatten() {
            bot.player.measure(now_ms);
        }
    }

    fn leave(mut self) -> LightReport {
        let now_ms = self.now_ms();
        for mut bot in std::mem::take(&mut self.bots).into_iter().flatten() {
            let late = bot.late;
            let outcome = bot.player.leave(now_ms).map(|(farewell, outcome)| {
                // One attempt: a server that does not read needs no goodbye.
                let _ = bot.socket.write(&farewell);
                Outcome { late, ..outcome }
            });
            self.report.outcomes.push(outcome);
        }
        self.report
    }
}

impl Bot {
    /// Writes as much as the socket takes.
    fn write(&mut self) -> Result<()> {
        while !self.player.out.is_empty() {
            match self.socket.write(&self.player.out) {
                Ok(count) => {
                    self.player.out.drain(..count);
                }
                Err(error) if is_later(&error) => return Ok(()),
                Err(error) => return Err(Error::new(error).context("sending")),
            }
        }
        Ok(())
    }
}

/// Not an error: nothing there yet, or not even connected.
fn is_later(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::NotConnected | ErrorKind::Interrupted
    )
}
