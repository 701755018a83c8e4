//! The terrain API of scripts; called from `engine.rs`.

use frolic_script::{EngineError, TerrainHit, TerrainInfo};
use frolic_terrain::{Material, Op, Terrain};

use crate::state::WorldState;

impl WorldState {
    fn has_terrain(&self) -> Result<&Terrain, EngineError> {
        self.collision.terrain().ok_or_else(|| {
            EngineError::Refused("this world has no terrain: give scene.json one".to_owned())
        })
    }

    pub fn script_terrain_info(&self) -> Result<TerrainInfo, EngineError> {
        let terrain = self.has_terrain()?;
        let [min, max] = terrain.grid().bounds_m();
        let block_size = terrain.grid().block_m();
        Ok(TerrainInfo {
            min,
            max,
            block_size,
        })
    }

    pub fn script_terrain_block(&self, at: [f32; 3]) -> Result<Material, EngineError> {
        let terrain = self.has_terrain()?;
        Ok(terrain.block(terrain.grid().block_at(at)))
    }

    pub fn script_terrain_height(&self, x: f32, z: f32) -> Result<Option<f32>, EngineError> {
        Ok(self.has_terrain()?.height_at(x, z))
    }

    pub fn script_terrain_raycast(
        &self,
        origin: [f32; 3],
        direction: [f32; 3],
        distance_max: f32,
    ) -> Result<Option<TerrainHit>, EngineError> {
        let terrain = self.has_terrain()?;
        let hit = terrain.raycast(origin, direction, distance_max);
        Ok(hit.map(|hit| TerrainHit::new(terrain.grid(), &hit, origin, direction)))
    }

    pub fn script_terraform(&mut self, op: &Op) -> Result<bool, EngineError> {
        self.has_terrain()?;
        self.spend_script_use(op).map_err(EngineError::Limit)?;
        Ok(self.terraform(None, op).is_some())
    }
}
