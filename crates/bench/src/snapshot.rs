//! `frolic bench snapshot`: what it costs to pack and unpack a snapshot, and
//! how small it gets, against copying the same states unpacked.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::mem::size_of_val;
use std::time::Instant;

use anyhow::{Result, bail, ensure};
use clap::Args;
use frolic_protocol::entity::flags;
use frolic_protocol::snapshot::{
    self, CellKey, CellSource, CellVersion, KnownCells, SnapshotHeader,
};
use frolic_protocol::{EntityKind, EntityState, quantize};
use frolic_sim::random::Random;
use frolic_sim::{Angle, Vec3};
use serde::Serialize;

const TICK_HZ: u32 = 60;
/// Between two snapshots.
const TICKS: u32 = 3;
const CELL_M: f32 = 32.0;
const WARM_UP_ROUNDS: u32 = 20;

/// Measure packing and unpacking snapshots, per kind of movement: ns and bytes per entity
#[derive(Args, Debug)]
pub struct SnapshotArgs {
    /// Entities in a snapshot
    #[arg(long, default_value_t = 400)]
    entities: u32,
    /// Entities per cell
    #[arg(long, default_value_t = 16)]
    per_square: u32,
    /// How many snapshots to measure
    #[arg(long, default_value_t = 1000)]
    rounds: u32,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

/// The figures of one kind of movement.
#[derive(Serialize)]
struct KindReport {
    scene: &'static str,
    entities: u32,
    bytes_per_entity: f64,
    encode_ns_per_entity: f64,
    decode_ns_per_entity: f64,
    /// The floor: the same states copied as they are in memory.
    copy_ns_per_entity: f64,
    copy_bytes_per_entity: f64,
    encode_ratio_to_copy: f64,
    decode_ratio_to_copy: f64,
}

/// The movement of all characters between two snapshots.
#[derive(Clone, Copy)]
enum Kind {
    /// Seen for the first time.
    New,
    /// Walks straight on.
    Straight,
    /// Walks, and turns a little.
    Turning,
    /// One in twenty moves.
    Resting,
}

const KINDS: [(&str, Kind); 4] = [
    ("new", Kind::New),
    ("straight on", Kind::Straight),
    ("turning", Kind::Turning),
    ("mostly resting", Kind::Resting),
];

/// Measures every kind and prints a table, or JSON.
pub fn run(args: SnapshotArgs) -> Result<()> {
    if !(1..=100_000).contains(&args.entities) || !(1..=100_000).contains(&args.rounds) {
        bail!("--entities and --rounds take 1 to 100000");
    }
    if !(1..=10_000).contains(&args.per_square) {
        bail!("--per-square takes 1 to 10000");
    }
    if cfg!(debug_assertions) {
        tracing::warn!("this is not a release build: the figures mean nothing");
    }
    let mut reports = Vec::new();
    for (name, kind) in KINDS {
        reports.push(measure(name, kind, &args)?);
    }
    if args.json {
        println!("{}", serde_json::to_string(&reports)?);
        return Ok(());
    }
    println!(
        "{:<15} {:>9} {:>13} {:>11} {:>11} {:>9} {:>9} {:>9}",
        "movement", "entities", "bytes/entity", "encode", "decode", "copy", "x copy", "x copy"
    );
    for report in &reports {
        println!(
            "{:<15} {:>9} {:>13.2} {:>8.1} ns {:>8.1} ns {:>6.1} ns {:>9.1} {:>9.1}",
            report.scene,
            report.entities,
            report.bytes_per_entity,
            report.encode_ns_per_entity,
            report.decode_ns_per_entity,
            report.copy_ns_per_entity,
            report.encode_ratio_to_copy,
            report.decode_ratio_to_copy,
        );
    }
    Ok(())
}

fn measure(name: &'static str, kind: Kind, args: &SnapshotArgs) -> Result<KindReport> {
    let mut crowd = Crowd::new(args);
    let mut times = [const { Vec::new() }; 3];
    let (mut bytes, mut copied) = (0usize, 0usize);
    let mut packet = Vec::new();
    let mut copy: Vec<EntityState> = Vec::new();
    for round in 0..WARM_UP_ROUNDS + args.rounds {
        crowd.go_on(kind);
        let began = Instant::now();
        packet = crowd.encode(std::mem::take(&mut packet), kind);
        black_box(&mut packet);
        let encoding = began.elapsed();

        let began = Instant::now();
        let decoded = snapshot::decode(&packet, TICK_HZ, &crowd);
        let decoded = black_box(decoded);
        let decoding = began.elapsed();

        let began = Instant::now();
        copy.clear();
        for cell in crowd.cells.values() {
            copy.extend_from_slice(black_box(&cell.now));
        }
        black_box(&mut copy);
        let copying = began.elapsed();

        let decoded_cells = decoded?.cells;
        let same = decoded_cells
            .iter()
            .zip(crowd.cells.values())
            .all(|(cell, is)| {
                let content = cell.content.as_ref();
                content.is_some_and(|content| content.entities == is.now)
            });
        ensure!(same, "what was unpacked is not what was packed");
        if round < WARM_UP_ROUNDS {
            continue;
        }
        bytes += packet.len();
        copied += size_of_val(copy.as_slice());
        for (times, time) in times.iter_mut().zip([encoding, decoding, copying]) {
            times.push(time.as_nanos() as f64 / f64::from(args.entities));
        }
    }
    let [encode, decode, copy] = times.map(median);
    let updates = f64::from(args.entities) * f64::from(args.rounds);
    Ok(KindReport {
        scene: name,
        entities: args.entities,
        bytes_per_entity: bytes as f64 / updates,
        encode_ns_per_entity: encode,
        decode_ns_per_entity: decode,
        copy_ns_per_entity: copy,
        copy_bytes_per_entity: copied as f64 / updates,
        encode_ratio_to_copy: encode / copy.max(1e-3),
        decode_ratio_to_copy: decode / copy.max(1e-3),
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    let middle = values.len() / 2;
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}

/// Characters in cells, at two moments.
struct Crowd {
    random: Random,
    tick: u32,
    walkers: Vec<Walker>,
    cells: BTreeMap<CellKey, Cell>,
    per_square: usize,
}

struct Walker {
    id: u32,
    place: Vec3,
    yaw: f32,
    speed: f32,
}

#[derive(Default)]
struct Cell {
    before: Vec<EntityState>,
    now: Vec<EntityState>,
}

impl Crowd {
    fn new(args: &SnapshotArgs) -> Self {
        let mut random = Random::new(11);
        let walkers = (0..args.entities).map(|n| Walker {
            id: 1_000_000 + n,
            place: Vec3::new(random.range(0.0, CELL_M), 0.0, random.range(0.0, CELL_M)),
            yaw: random.range(-3.0, 3.0),
            speed: 5.0,
        });
        let walkers = walkers.collect();
        Self {
            random,
            tick: 1000,
            walkers,
            cells: BTreeMap::new(),
            per_square: args.per_square as usize,
        }
    }

    /// Moves all characters by the time between two snapshots.
    fn go_on(&mut self, kind: Kind) {
        self.tick += TICKS;
        for cell in self.cells.values_mut() {
            std::mem::swap(&mut cell.before, &mut cell.now);
            cell.now.clear();
        }
        let seconds = TICKS as f32 / TICK_HZ as f32;
        for (n, walker) in self.walkers.iter_mut().enumerate() {
            walker.speed = match kind {
                Kind::Resting if self.random.below(20) > 0 => 0.0,
                _ => 5.0,
            };
            if matches!(kind, Kind::Turning) {
                walker.yaw += self.random.range(-0.2, 0.2);
            }
            let (sin, cos) = Angle::from_radians(walker.yaw).sin_cos();
            let velocity = Vec3::new(sin, 0.0, cos) * walker.speed;
            walker.place += velocity * seconds;
            let key = CellKey::Grid {
                x: (n / self.per_square) as i16,
                z: 0,
            };
            let cell = self.cells.entry(key).or_default();
            cell.now.push(walker.state(velocity));
        }
    }

    fn encode(&self, mut packet: Vec<u8>, kind: Kind) -> Vec<u8> {
        packet.clear();
        let header = SnapshotHeader {
            scripts: 1,
            tick: self.tick,
            number: None,
            own: None,
        };
        packet = snapshot::write_header(packet, &header);
        for (key, cell) in &self.cells {
            let before = CellVersion {
                tick: self.tick - TICKS,
                entities: &cell.before,
            };
            let before = (!matches!(kind, Kind::New)).then_some(before);
            let now = CellVersion {
                tick: self.tick,
                entities: &cell.now,
            };
            packet = snapshot::write_cell(packet, self.tick, TICK_HZ, *key, before, now, self);
        }
        packet
    }
}

impl Walker {
    fn state(&self, velocity: Vec3) -> EntityState {
        let yaw = Angle::from_radians(self.yaw);
        EntityState {
            owner: self.id - 999_999,
            position: quantize::position(self.place),
            velocity: quantize::velocity(velocity),
            look: quantize::look(yaw.0, 0),
            flags: flags::GROUNDED,
            ..EntityState::new(self.id, EntityKind::Character)
        }
    }
}

impl CellSource for Crowd {
    fn details(&self, _: u32) -> Vec<u8> {
        Vec::new()
    }

    fn cell_of(&self, _: u32) -> Option<(i16, i16)> {
        None
    }
}

impl KnownCells for Crowd {
    fn entities(&self, key: CellKey, version: u32) -> Option<&[EntityState]> {
        let cell = self.cells.get(&key)?;
        (version == self.tick - TICKS).then_some(cell.before.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_can_be_measured_and_standing_still_costs_least() {
        let args = SnapshotArgs {
            entities: 40,
            per_square: 8,
            rounds: 10,
            json: false,
        };
        let bytes = KINDS.map(|(name, kind)| {
            let report = measure(name, kind, &args).unwrap();
            assert!(report.encode_ns_per_entity > 0.0, "{name}");
            assert!(report.decode_ns_per_entity > 0.0, "{name}");
            assert!(report.copy_bytes_per_entity > report.bytes_per_entity);
            report.bytes_per_entity
        });
        let [new, straight, turning, resting] = bytes;
        assert!(
            new > turning && turning > straight && straight > resting,
            "{bytes:?}"
        );
    }
}
