//! `frolic bench script`: what scripts cost in a real world, each beside the
//! same work in plain mlua in the same run.
//!
//! Rounds of both alternate and the best of each counts: whatever else the
//! machine does makes a round slower, never faster.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use clap::Args;
use frolic_protocol::{Args as EventArgs, Value};
use frolic_world::{PlayerNumber, World, WorldOptions, input};
use mlua::{Function, Lua, UserData, UserDataFields, Vector};
use serde::Serialize;

use crate::tools;

/// Instances of a script with an `OnTick`.
const TICKERS: u32 = 10_000;
/// Accesses in one handler.
const ACCESSES: u32 = 100_000;
/// Handlers of one signal.
const HANDLERS: u32 = 200;
/// Events per tick: what one player may send within the highest rate.
const EVENTS: u32 = 16;

/// Measure what scripts cost, against plain mlua
#[derive(Args, Debug)]
pub struct ScriptArgs {
    /// Rounds of each measurement; the best counts
    #[arg(long, default_value_t = 30)]
    rounds: u32,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

/// One kind of work, here and in plain mlua.
#[derive(Serialize)]
struct Row {
    scene: &'static str,
    /// How often it is done in a tick.
    count: u32,
    ns: f64,
    plain_ns: f64,
    ratio: f64,
    ms_per_tick: f64,
}

/// Runs every measurement and prints a table, or JSON.
pub fn run(args: ScriptArgs) -> Result<()> {
    if !(1..=10_000).contains(&args.rounds) {
        bail!("--rounds takes 1 to 10000");
    }
    if cfg!(debug_assertions) {
        tracing::warn!("this is not a release build: the figures mean nothing");
    }
    let rows = measure_all(args.rounds)?;
    if args.json {
        println!("{}", serde_json::to_string(&rows)?);
        return Ok(());
    }
    println!(
        "{:<34} {:>8} {:>10} {:>10} {:>7} {:>10}",
        "work", "per tick", "here", "plain mlua", "ratio", "tick"
    );
    for row in rows {
        println!(
            "{:<34} {:>8} {:>7.0} ns {:>7.0} ns {:>7.2} {:>7.3} ms",
            row.scene, row.count, row.ns, row.plain_ns, row.ratio, row.ms_per_tick
        );
    }
    Ok(())
}

fn measure_all(rounds: u32) -> Result<Vec<Row>> {
    Ok(vec![
        compare(
            "OnTick handler",
            TICKERS,
            rounds,
            Here::new(TICKERS, "function OnTick(dt) end")?,
            Plain::new("return function(dt) end", Calls::FromHost(TICKERS))?,
        )?,
        compare(
            "entity.Position read",
            ACCESSES,
            rounds,
            Here::new(1, &looped("local p = entity.Position"))?,
            Plain::new(&looped_plain("local p = entity.Position"), Calls::Once)?,
        )?,
        compare(
            "entity.Velocity write",
            ACCESSES,
            rounds,
            Here::new(1, &looped("entity.Velocity = v"))?,
            Plain::new(&looped_plain("entity.Velocity = v"), Calls::Once)?,
        )?,
        compare(
            "signal to handler",
            HANDLERS,
            rounds,
            Here::new(
                1,
                &format!(
                    "local s, n = Signal.new(), 0\n\
                     for i = 1, {HANDLERS} do s:Connect(function(x) n += x end) end\n\
                     function OnTick() s:Fire(1) end"
                ),
            )?,
            Plain::new(
                "local n = 0 return function(x) n += 1 end",
                Calls::FromHost(HANDLERS),
            )?,
        )?,
        compare(
            "client event, answered",
            EVENTS,
            rounds,
            Here::with_events(
                "Network.Declare('Ping', {'n: number'}, {rate = 1000, burst = 1000})\n\
                 Network.OnClientEvent('Ping', function(player, n) Network.FireClient(player, 'Pong', n) end)",
            )?,
            Plain::new(
                "local send = send return function(n) send('Pong', n) end",
                Calls::FromHost(EVENTS),
            )?,
        )?,
    ])
}

fn looped(work: &str) -> String {
    format!(
        "local entity, v = entity, Vector3.new(0, 0, 0)\n\
         function OnTick() for i = 1, {ACCESSES} do {work} end end"
    )
}

fn looped_plain(work: &str) -> String {
    format!(
        "local entity, v = entity, vector.create(0, 0, 0)\n\
         return function() for i = 1, {ACCESSES} do {work} end end"
    )
}

fn compare(
    scene: &'static str,
    count: u32,
    rounds: u32,
    mut here: Here,
    plain: Plain,
) -> Result<Row> {
    let (mut best, mut best_plain) = (Duration::MAX, Duration::MAX);
    for _ in 0..rounds {
        best = best.min(here.round()?);
        best_plain = best_plain.min(plain.round().map_err(as_text)?);
    }
    let each = |time: Duration| time.as_nanos() as f64 / f64::from(count);
    Ok(Row {
        scene,
        count,
        ns: each(best),
        plain_ns: each(best_plain),
        ratio: best.as_secs_f64() / best_plain.as_secs_f64(),
        ms_per_tick: best.as_secs_f64() * 1e3,
    })
}

/// A world with one script, on one or many entities.
struct Here {
    world: World,
    events_of: Option<PlayerNumber>,
}

impl Here {
    fn new(entities: u32, script: &str) -> Result<Self> {
        let entities: Vec<serde_json::Value> = (1..=entities)
            .map(|id| {
                serde_json::json!({
                    "id": id, "name": format!("E{id}"),
                    "components": {"Transform": {}, "Script": {"path": "Workspace/Work.luau"}},
                })
            })
            .collect();
        let scene = serde_json::json!({"format": 1, "prefabs": {}, "entities": entities});
        Self::load(scene, "scripts/Workspace/Work.luau", script)
    }

    fn with_events(script: &str) -> Result<Self> {
        let scene = serde_json::json!({"format": 1, "prefabs": {}, "entities": []});
        let mut here = Self::load(scene, "scripts/ServerScriptService/Work.luau", script)?;
        let player = here.world.apply(input::Join::new("bench", "Bench"));
        here.events_of = Some(player);
        Ok(here)
    }

    fn load(scene: serde_json::Value, path: &str, script: &str) -> Result<Self> {
        let package = tools::package(tools::files("bench", &scene, &[(path, script)])?)?;
        let mut options = WorldOptions::default();
        // Debug builds take longer than a slice.
        options.scripts.slice = Duration::from_secs(60);
        options.scripts.tick_budget = Duration::from_secs(60);
        options.scripts.average = Duration::from_secs(60);
        let world = World::load(&package, options).map_err(as_text)?;
        Ok(Self {
            world,
            events_of: None,
        })
    }

    /// Time inside the VM in one tick.
    fn round(&mut self) -> Result<Duration> {
        if let Some(player) = self.events_of {
            for n in 0..EVENTS {
                let args = EventArgs(vec![Value::Number(f64::from(n))]);
                self.world.apply(input::Event::new(player, "Ping", args));
            }
        }
        // A step includes the time since the previous tick: that of the events
        // before it, and that of the tick itself one step later.
        let events = self.world.apply(input::Step);
        let tick = self.world.apply(input::Step);
        self.world.take_outbox();
        let report = if self.events_of.is_some() {
            events
        } else {
            tick
        };
        let problem = self.world.take_logs().into_iter().next();
        match problem {
            Some(line) => bail!("the script of this benchmark failed: {}", line.message),
            None => Ok(Duration::from_micros(report.scripts.last_tick_us)),
        }
    }
}

/// The same in plain mlua.
struct Plain {
    lua: Lua,
    work: Function,
    calls: Calls,
}

/// How the work is entered.
#[derive(Clone, Copy)]
enum Calls {
    /// Once; it loops by itself.
    Once,
    /// So often from Rust.
    FromHost(u32),
}

struct PlainEntity {
    position: [f32; 3],
    velocity: [f32; 3],
}

impl UserData for PlainEntity {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        let vector = |v: [f32; 3]| Vector::new(v[0], v[1], v[2]);
        fields.add_field_method_get("Position", move |_, this| Ok(vector(this.position)));
        fields.add_field_method_get("Velocity", move |_, this| Ok(vector(this.velocity)));
        fields.add_field_method_set("Velocity", |_, this, v: Vector| {
            this.velocity = [v.x(), v.y(), v.z()];
            Ok(())
        });
    }
}

/// Errors of Luau stay on their thread; their text may leave.
fn as_text(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("{error}")
}

impl Plain {
    fn new(source: &str, calls: Calls) -> Result<Self> {
        Self::load(source, calls).map_err(as_text)
    }

    fn load(source: &str, calls: Calls) -> mlua::Result<Self> {
        let lua = Lua::new();
        let entity = PlainEntity {
            position: [1.0, 2.0, 3.0],
            velocity: [0.0; 3],
        };
        lua.globals().set("entity", entity)?;
        let sent = std::cell::RefCell::new(Vec::new());
        let send = lua.create_function(move |_, (name, n): (String, f64)| {
            let mut sent = sent.borrow_mut();
            if sent.len() >= 1024 {
                sent.clear();
            }
            sent.push((name, n));
            Ok(())
        })?;
        lua.globals().set("send", send)?;
        lua.sandbox(true)?;
        let work = lua.load(source).eval()?;
        Ok(Self { lua, work, calls })
    }

    fn round(&self) -> mlua::Result<Duration> {
        let start = Instant::now();
        match self.calls {
            Calls::Once => self.work.call::<()>(())?,
            Calls::FromHost(count) => {
                for n in 0..count {
                    self.work.call::<()>(f64::from(n))?;
                }
            }
        }
        let took = start.elapsed();
        // As our own does between ticks.
        self.lua.gc_step()?;
        Ok(took)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_can_be_measured() {
        for row in measure_all(1).expect("the measurements run") {
            assert!(row.ns > 0.0 && row.plain_ns > 0.0, "{}", row.scene);
        }
    }
}
