//! Shared parts of the benchmarks of worlds: a clock, and games made of
//! entities.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Instant;

use anyhow::{Result, anyhow};
use frolic_package::{Limits, Package};
use serde_json::{Value, json};

/// Microseconds since the first call: the stopwatch of a world.
pub fn stopwatch() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let start = START.get_or_init(Instant::now);
    u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// The mean of what was measured.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// A box that stays where it is.
pub fn solid(id: usize, name: &str, position: [f32; 3], size: [f32; 3]) -> Value {
    json!({
        "id": id, "name": name,
        "components": {
            "Transform": { "position": position },
            "Shape": { "type": "box", "size": size },
        },
    })
}

/// A place to come into the world.
pub fn spawn_point(id: usize, position: [f32; 3]) -> Value {
    json!({
        "id": id, "name": format!("Spawn{id}"),
        "components": { "Transform": { "position": position }, "SpawnPoint": {} },
    })
}

/// A scene of these entities alone.
pub fn scene(entities: Vec<Value>) -> Value {
    json!({ "format": 1, "prefabs": {}, "entities": entities })
}

/// The files of a game with this scene; `scripts` by their paths.
pub fn files(
    id: &str,
    scene: &Value,
    scripts: &[(&str, &str)],
) -> Result<BTreeMap<String, Vec<u8>>> {
    let manifest = format!("[game]\nid = \"{id}\"\nname = \"{id}\"\nversion = \"1.0.0\"\n");
    let mut files = BTreeMap::from([
        ("game.toml".to_owned(), manifest.into_bytes()),
        ("scene.json".to_owned(), serde_json::to_vec(scene)?),
    ]);
    let scripts = scripts.iter();
    files.extend(scripts.map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())));
    Ok(files)
}

/// A game out of its files, checked as any other is.
pub fn package(files: BTreeMap<String, Vec<u8>>) -> Result<Package> {
    Package::from_files(files, &Limits::default()).map_err(|report| anyhow!("{report}"))
}
