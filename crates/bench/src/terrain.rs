//! `frolic bench terrain`: loading, changing, drawing and packing voxel
//! terrain of 512 × 128 × 512 blocks.

use std::time::Instant;

use anyhow::Result;
use clap::Args;
use frolic_sim::random::Random;
use frolic_sim::{
    Buttons, CharacterInput, CharacterParams, CharacterState, CollisionWorld, StepCache, Vec3,
    step_character_with,
};
use frolic_terrain::mesh::mesh;
use frolic_terrain::{
    Action, ChunkPos, Clearing, Generator, Material, Op, Settings, Shape, Terrain, codec,
};
use serde::Serialize;

/// Measure voxel terrain: load, edit, mesh, encode, walk
#[derive(Args, Debug)]
pub struct TerrainArgs {
    /// Print one JSON array
    #[arg(long)]
    json: bool,
    /// Blocks along x and z
    #[arg(long, default_value_t = 512)]
    side: u32,
}

#[derive(Serialize)]
struct Row {
    #[serde(rename = "scene")]
    what: &'static str,
    /// How many of it were done.
    count: usize,
    /// All together, in milliseconds.
    ms: f64,
    /// One of them, in microseconds.
    us_each: f64,
    /// The results: bytes, or triangles.
    amount: u64,
    unit: &'static str,
}

/// Runs all of it and prints a table, or JSON.
pub fn run(args: TerrainArgs) -> Result<()> {
    let rows = measure(args.side.clamp(64, 2048) / 32 * 32);
    if args.json {
        println!("{}", serde_json::to_string(&rows)?);
        return Ok(());
    }
    for row in rows {
        println!(
            "{:<34} {:>6} × {:>9.2} µs = {:>9.2} ms   {:>12} {}",
            row.what, row.count, row.us_each, row.ms, row.amount, row.unit
        );
    }
    Ok(())
}

fn settings(side: u32) -> Settings {
    let hills = Generator::Hills {
        seed: 2026,
        height: 40,
        amplitude: 22,
        scale: 110,
        water: 37,
        snow: 68,
        trees: 0.6,
        clearing: Some(Clearing {
            center: [0, 0],
            radius: 20,
            height: 42,
        }),
    };
    Settings::new([side, 128, side], hills)
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let began = Instant::now();
    let result = work();
    (result, began.elapsed().as_secs_f64() * 1e3)
}

fn row(what: &'static str, count: usize, ms: f64, amount: u64, unit: &'static str) -> Row {
    Row {
        what,
        count,
        ms,
        us_each: ms * 1e3 / count.max(1) as f64,
        amount,
        unit,
    }
}

fn measure(side: u32) -> Vec<Row> {
    let (mut terrain, empty_ms) = timed(|| Terrain::new(&settings(side)));
    let count = terrain.grid().chunk_count();
    let ((), make_ms) = timed(|| terrain.make_all());
    let memory = terrain.heap_bytes() as u64;
    let mut rows = vec![
        row("open a world", 1, empty_ms, 0, "bytes"),
        row(
            "make every chunk",
            count,
            make_ms,
            memory,
            "bytes of memory",
        ),
    ];
    let mut random = Random::new(7);
    let ops: Vec<Op> = (0..2000)
        .map(|_| edit(&mut random, side as f32 * 0.45))
        .collect();
    let (changed, edit_ms) = timed(|| ops.iter().map(|op| terrain.apply(op).len()).sum::<usize>());
    rows.push(row(
        "edit (ball of 2.5 m)",
        ops.len(),
        edit_ms,
        changed as u64,
        "chunks changed",
    ));

    let edited: Vec<ChunkPos> = terrain.edited().map(|at| at.chunk).collect();
    let chunks = || edited.iter().filter_map(|at| terrain.chunk(*at));
    let (packed, pack_ms) = timed(|| chunks().map(codec::pack).collect::<Vec<_>>());
    let bytes = packed.iter().map(Vec::len).sum::<usize>() as u64;
    rows.push(row(
        "encode a changed chunk",
        packed.len(),
        pack_ms,
        bytes,
        "bytes",
    ));
    let (good, unpack_ms) = timed(|| packed.iter().filter(|p| codec::unpack(p).is_ok()).count());
    rows.push(row(
        "decode it",
        packed.len(),
        unpack_ms,
        good as u64,
        "chunks",
    ));

    let all: Vec<ChunkPos> = (0..count).map(|at| terrain.grid().chunk_at(at)).collect();
    let (triangles, mesh_ms) = timed(|| {
        all.iter()
            .map(|at| mesh(&terrain, *at).indices.len() / 3)
            .sum::<usize>()
    });
    rows.push(row(
        "mesh a chunk",
        count,
        mesh_ms,
        triangles as u64,
        "triangles",
    ));
    let drawn: Vec<&ChunkPos> = edited.iter().take(200).collect();
    let (triangles, mesh_ms) = timed(|| {
        drawn
            .iter()
            .map(|at| mesh(&terrain, **at).indices.len() / 3)
            .sum::<usize>()
    });
    rows.push(row(
        "mesh a changed chunk",
        drawn.len(),
        mesh_ms,
        triangles as u64,
        "triangles",
    ));

    let steps = 20_000;
    let (feet, walk_ms) = timed(|| walk(terrain, steps));
    rows.push(row(
        "character step on blocks",
        steps,
        walk_ms,
        feet.abs() as u64,
        "m away",
    ));
    rows
}

fn edit(random: &mut Random, reach: f32) -> Op {
    let action = if random.below(2) == 0 {
        Action::Add
    } else {
        Action::Subtract
    };
    Op {
        action,
        center: [
            random.range(-reach, reach),
            random.range(30.0, 60.0),
            random.range(-reach, reach),
        ],
        shape: Shape::Sphere { radius: 2.5 },
        material: match action {
            Action::Subtract => Material::AIR,
            _ => Material::STONE,
        },
    }
}

fn walk(terrain: Terrain, steps: usize) -> f32 {
    let mut world = CollisionWorld::new();
    world.set_terrain(Some(terrain));
    let params = CharacterParams::default();
    let mut state = CharacterState::at(Vec3::new(0.5, 90.0, 0.5));
    let mut cache = StepCache::default();
    let mut random = Random::new(3);
    let mut input = CharacterInput::default();
    for step in 0..steps {
        if step % 40 == 0 {
            let yaw = random.range(-3.0, 3.0);
            input = CharacterInput::new(0.0, 1.0, yaw, 0.0, Buttons(random.below(4) as u8));
        }
        step_character_with(&mut cache, &world, &params, &mut state, &input, 1.0 / 60.0);
    }
    state.feet.length()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_measured() {
        let rows = measure(64);
        assert_eq!(rows.len(), 8);
        assert!(rows.iter().all(|row| row.ms >= 0.0 && row.count > 0));
        assert_eq!(
            rows[3].count as u64, rows[4].amount,
            "what is packed unpacks"
        );
    }
}
