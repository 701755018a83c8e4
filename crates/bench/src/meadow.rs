//! A flat world of a given size, with people spread all over it.

use anyhow::{Result, anyhow};
use serde_json::json;

use crate::tools;

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
        let at = [place(column), 0.1, place(row)];
        entities.push(tools::spawn_point(index as usize + 2, at));
    }
    let files = tools::files("meadow", &tools::scene(entities), &[])?;
    tools::package(files.clone())?;
    frolic_package::pack(&files).map_err(|error| anyhow!("{error}"))
}
