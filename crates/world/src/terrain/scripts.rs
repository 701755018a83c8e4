//! The terrain API of scripts; called from `engine.rs`.

use frolic_script::{EngineError, TerrainHit, TerrainInfo};
use frolic_terrain::{Material, Op, Terrain};

use super::Ground;
use crate::history::History;
use crate::space::Space;

fn terrain_of(space: &Space) -> Result<&Terrain, EngineError> {
    space.collision.terrain().ok_or_else(|| {
        EngineError::Refused("this world has no terrain: give scene.json one".to_owned())
    })
}

pub(crate) fn info(space: &Space) -> Result<TerrainInfo, EngineError> {
    let terrain = terrain_of(space)?;
    let [min, max] = terrain.grid().bounds_m();
    let block_size = terrain.grid().block_m();
    Ok(TerrainInfo {
        min,
        max,
        block_size,
    })
}

pub(crate) fn block(space: &Space, at: [f32; 3]) -> Result<Material, EngineError> {
    let terrain = terrain_of(space)?;
    Ok(terrain.block(terrain.grid().block_at(at)))
}

pub(crate) fn height(space: &Space, x: f32, z: f32) -> Result<Option<f32>, EngineError> {
    Ok(terrain_of(space)?.height_at(x, z))
}

pub(crate) fn raycast(
    space: &Space,
    origin: [f32; 3],
    direction: [f32; 3],
    distance_max: f32,
) -> Result<Option<TerrainHit>, EngineError> {
    let terrain = terrain_of(space)?;
    let hit = terrain.raycast(origin, direction, distance_max);
    Ok(hit.map(|hit| TerrainHit::new(terrain.grid(), &hit, origin, direction)))
}

impl Ground {
    /// Executes an operation of a script; false if it changed nothing.
    pub fn terraform_by_script(
        &mut self,
        space: &mut Space,
        history: &mut History,
        op: &Op,
    ) -> Result<bool, EngineError> {
        terrain_of(space)?;
        self.spend_script_use(space, history, op)
            .map_err(EngineError::Limit)?;
        Ok(self.terraform(space, history, None, op).is_some())
    }
}
