//! A flat world of a given size, with people spread all over it.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow};
use frolic_package::{Limits, Package};
use serde_json::json;

/// Spawn points per side: a crowd starts spread out, not in a heap.
const SPAWNS_PER_SIDE: u32 = 20;

/// Packs a meadow of `area_m` metres a side.
pub fn pack(area_m: f32) -> Result<Vec<u8>> {
    let mut entities = vec![json!({
        "id": 1, "name": "Ground",
        "components": {
            "Transform": { "position": [0.0, -0.5, 0.0] },
            "Shape": { "type": "box", "size": [area_m + 40.0, 1.0, area_m + 40.0] },
            "Material": { "color": "#7cbf5a", "pattern": "grass" },
        },
    })];
    let pitch = area_m / SPAWNS_PER_SIDE as f32;
    for index in 0..SPAWNS_PER_SIDE * SPAWNS_PER_SIDE {
        let (column, row) = (index % SPAWNS_PER_SIDE, index / SPAWNS_PER_SIDE);
        let place = |n: u32| (n as f32 + 0.5) * pitch - area_m / 2.0;
        entities.push(json!({
            "id": index + 2, "name": format!("Spawn{index}"),
            "components": {
                "Transform": { "position": [place(column), 0.1, place(row)] },
                "SpawnPoint": {},
            },
        }));
    }
    let scene = json!({ "format": 1, "prefabs": {}, "entities": entities });
    let manifest = "[game]\nid = \"meadow\"\nname = \"Meadow\"\nversion = \"1.0.0\"\n";
    let files = BTreeMap::from([
        ("game.toml".to_owned(), manifest.as_bytes().to_vec()),
        ("scene.json".to_owned(), serde_json::to_vec(&scene)?),
    ]);
    Package::from_files(files.clone(), &Limits::default()).map_err(|report| anyhow!("{report}"))?;
    frolic_package::pack(&files).map_err(|error| anyhow!("{error}"))
}
