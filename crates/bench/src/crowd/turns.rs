//! Crowd and floor in turns of a second each: the machine is not the same from
//! one minute to the next, and what they cost is compared.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::look::Work;
use super::report::{Traffic, Turns};
use super::{CrowdArgs, LOAD_CORE, SERVER_CORE, Server, last_word, option, start_load, words};
use crate::floor::FloorReport;
use crate::process::Process;

/// How long crowd and floor run in each of their turns, after a moment in which
/// they find back to their beat. A server that goes on begins with a tick: at
/// 30 and at 60 Hz the counted second begins, and ends, well between two.
const TURN: Duration = Duration::from_secs(1);
const SETTLE: Duration = Duration::from_millis(240);
/// More turns give no better figures, and take two and a half seconds each.
const TURNS_MAX: u64 = 30;
/// How long the server may take to be at ease once all are in, and how often we
/// look whether it is.
const EASE_WITHIN: Duration = Duration::from_secs(15);
const EASE_EVERY: Duration = Duration::from_millis(250);
/// The crowd's load stays this much longer than all turns take: the floor's
/// clients join meanwhile. It is ended by a signal, not by the clock.
const LOAD_SPARE: Duration = Duration::from_secs(120);
/// The floor's clients stay this much longer than their own turns take.
const FLOOR_SPARE: Duration = Duration::from_secs(2);

/// The number of turns in a measurement of this length.
fn turns_for(seconds: u64) -> u64 {
    seconds.min(TURNS_MAX)
}

/// The time that each of the two runs in this number of turns.
fn running_time(turns: u64) -> Duration {
    (TURN + SETTLE).mul_f64(turns as f64)
}

/// A server and its load; only one of several runs at a time.
struct Pair<'a> {
    server: &'a Process,
    load: &'a Process,
    /// Processor time in the turns so far.
    server_s: f64,
    load_s: f64,
}

impl<'a> Pair<'a> {
    fn new(server: &'a Process, load: &'a Process) -> Self {
        Self {
            server,
            load,
            server_s: 0.0,
            load_s: 0.0,
        }
    }

    fn pause(&self) -> Result<()> {
        // Messages sent while the load's clock is stopped would count double.
        self.server.pause()?;
        self.load.pause()
    }

    fn resume(&self) -> Result<()> {
        self.load.resume()?;
        self.server.resume()
    }

    /// Runs for a turn; `look` is called right before and right after the
    /// second that counts, so that what it costs does not.
    fn take_turn(&mut self, mut look: impl FnMut() -> Result<()>) -> Result<()> {
        self.resume()?;
        std::thread::sleep(SETTLE);
        look()?;
        let (server, load) = (self.server.cpu()?, self.load.cpu()?);
        std::thread::sleep(TURN);
        self.server_s += self.server.cpu()?.s_since(&server)?;
        self.load_s += self.load.cpu()?.s_since(&load)?;
        look()?;
        self.pause()
    }
}

/// Lets crowd and floor take turns.
pub fn take_turns(args: &CrowdArgs, server: &Server, traffic: &Traffic) -> Result<Turns> {
    let turns = turns_for(args.seconds);
    let both = running_time(turns) * 2 + LOAD_SPARE;
    let load = start_load(args, server, 0, both.as_secs())?;
    wait_for_ease(server)?;
    let mut crowd = Pair::new(&server.process, &load);
    crowd.pause()?;

    let (floor_server, mut floor_load) = start_floor(args, traffic, turns)?;
    let mut floor = Pair::new(&floor_server, &floor_load);
    floor.pause()?;
    let mut looks = Vec::new();
    for _ in 0..turns {
        crowd.take_turn(|| {
            looks.push(server.look()?);
            Ok(())
        })?;
        floor.take_turn(|| Ok(()))?;
    }
    floor.resume()?;
    crowd.resume()?;
    let players = server.look()?.players();
    ensure!(
        players == args.players,
        "of {} players {players} were there in the end",
        args.players,
    );
    let mut work = Work::default();
    for counted in looks.chunks_exact(2) {
        work.add(&counted[0], &counted[1]);
    }
    let turns_s = TURN.as_secs_f64() * turns as f64;
    let [server_cpu, floor_cpu, floor_load_cpu] =
        [crowd.server_s, floor.server_s, floor.load_s].map(|cpu_s| cpu_s / turns_s);
    let FloorReport { update_hz } = last_word(&mut floor_load)?;
    Ok(Turns {
        server_cpu_s_per_s: server_cpu,
        work,
        floor_cpu_s_per_s: floor_cpu,
        floor_load_cpu_s_per_s: floor_load_cpu,
        floor_update_hz: update_hz,
    })
}

/// A joining crowd puts the server under pressure, which takes seconds to fall;
/// meanwhile it sends less, and would seem cheaper than it is. A server that is
/// too slow for its crowd stays under pressure: a warning is printed then.
fn wait_for_ease(server: &Server) -> Result<()> {
    let began = Instant::now();
    while server.look()?.pressure() > 0 && began.elapsed() < EASE_WITHIN {
        std::thread::sleep(EASE_EVERY);
    }
    Ok(())
}

/// The floor's server and clients, all of whom are in.
fn start_floor(args: &CrowdArgs, traffic: &Traffic, turns: u64) -> Result<(Process, Process)> {
    let mut server_args = words(&["bench", "floor-server"]);
    option(&mut server_args, "players", args.players);
    option(&mut server_args, "tick-hz", args.tick_hz);
    option(&mut server_args, "update-hz", traffic.update_hz);
    option(&mut server_args, "bytes", traffic.update_bytes);
    let mut server = Process::start(Some(SERVER_CORE), &server_args)?;
    let port = server.line()?;
    let stays = running_time(turns) + FLOOR_SPARE;
    let mut load_args = words(&["bench", "floor-clients"]);
    option(&mut load_args, "port", port);
    option(&mut load_args, "players", args.players);
    option(&mut load_args, "input-hz", traffic.input_hz);
    option(&mut load_args, "bytes", traffic.input_bytes);
    option(&mut load_args, "update-bytes", traffic.update_bytes);
    option(&mut load_args, "seconds", stays.as_secs());
    let mut load = Process::start(Some(LOAD_CORE), &load_args)?;
    ensure!(
        load.line()? == "settled",
        "the floor's clients did not settle"
    );
    Ok((server, load))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run that is asked to be long is not one that fails after an hour.
    #[test]
    fn any_run_ends_while_its_load_is_there() {
        assert_eq!(turns_for(10), 10);
        assert_eq!(turns_for(600), TURNS_MAX);
        let longest = running_time(turns_for(600)) * 2;
        assert!(longest < Duration::from_secs(80), "{longest:?}");
    }

    /// Else a burst of updates more or less is in the second, by chance.
    #[test]
    fn the_counted_second_begins_between_two_ticks() {
        for tick_hz in [30.0, 60.0] {
            let phase = (SETTLE.as_secs_f64() * tick_hz).fract();
            assert!((0.15..0.85).contains(&phase), "{phase} at {tick_hz} Hz");
        }
    }
}
