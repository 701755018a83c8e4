//! Terrain for JavaScript: queried by scripts and the camera, and meshed by a
//! worker with its own copy.

use frolic_protocol::packet::{self, SERVER_MESSAGE_BYTES_MAX};
use frolic_protocol::terrain::{TerrainAction, TerrainOp};
use frolic_protocol::{ClientMessage, ServerMessage};
use frolic_terrain::mesh::{Mesh, mesh};
use frolic_terrain::{BlockRange, CHUNK_SIDE, Material, Settings, Terrain, codec};
use serde::Serialize;
use wasm_bindgen::prelude::*;

use crate::{ClientCore, to_json};

#[wasm_bindgen]
impl ClientCore {
    /// Lowest and highest corner and the size of a block, seven floats; none
    /// without a terrain.
    pub fn terrain_info(&self) -> Vec<f32> {
        let Some(terrain) = self.client.replica().terrain() else {
            return Vec::new();
        };
        let [min, max] = terrain.grid().bounds_m();
        let block = [terrain.grid().block_m()];
        [&min[..], &max[..], &block[..]].concat()
    }

    /// The name of the material at a place; empty for air.
    pub fn terrain_block(&self, x: f32, y: f32, z: f32) -> String {
        let material = self
            .client
            .replica()
            .terrain()
            .map_or(Material::AIR, |terrain| {
                terrain.block(terrain.grid().block_at([x, y, z]))
            });
        name_of(material)
    }

    /// Whether a place is under water.
    pub fn terrain_water(&self, x: f32, y: f32, z: f32) -> bool {
        let terrain = self.client.replica().terrain();
        terrain.is_some_and(|terrain| terrain.is_water([x, y, z]))
    }

    /// The height of the terrain.
    pub fn terrain_height(&self, x: f32, z: f32) -> Option<f32> {
        self.client.replica().terrain()?.height_at(x, z)
    }

    /// The first solid block along a ray of length one: distance, normal, centre of
    /// the block, number of its material. Eight floats, or none.
    pub fn terrain_raycast(&self, ray: &[f32], distance_max: f32) -> Vec<f32> {
        let (Some(terrain), &[x, y, z, dx, dy, dz]) = (self.client.replica().terrain(), ray) else {
            return Vec::new();
        };
        let Some(hit) = terrain.raycast([x, y, z], [dx, dy, dz], distance_max) else {
            return Vec::new();
        };
        let normal = hit.normal.map(|part| part as f32);
        let block = terrain.grid().middle_of(hit.block);
        let mut out = vec![hit.distance];
        out.extend(normal.iter().chain(&block));
        out.push(f32::from(hit.material.number()));
        out
    }

    /// Asks the server to change the terrain. `size` has one number for a ball and
    /// three for a box. False when it is invalid.
    pub fn terraform(
        &mut self,
        op: &str,
        center: &[f32],
        size: &[f32],
        material: Option<String>,
    ) -> bool {
        let action = match op {
            "add" => TerrainAction::Add,
            "subtract" => TerrainAction::Subtract,
            "paint" => TerrainAction::Paint,
            _ => return false,
        };
        let &[x, y, z] = center else {
            return false;
        };
        let (radius, sides) = match *size {
            [radius] => (Some(radius), None),
            [x, y, z] => (None, Some([x, y, z])),
            _ => return false,
        };
        let Ok(op) = TerrainOp::new(action, [x, y, z], radius, sides, material) else {
            return false;
        };
        self.client.send(&ClientMessage::Terraform(op));
        true
    }

    /// The message of the last event, when it was a `terrain` event: for a copy of
    /// the terrain.
    pub fn take_terrain(&mut self) -> Option<Vec<u8>> {
        self.terrain_packet.take()
    }
}

fn name_of(material: Material) -> String {
    match material {
        Material::AIR => String::new(),
        other => other.name().to_owned(),
    }
}

/// Every material in the order of its number, as JSON: name, colour, whether it is
/// transparent.
#[wasm_bindgen]
pub fn terrain_materials() -> String {
    let all = (0..Material::COUNT as u8).filter_map(Material::from_number);
    let about = all.map(|material| {
        let [r, g, b] = material.color(true);
        TerrainMaterial {
            name: material.name(),
            color: format!("#{r:02x}{g:02x}{b:02x}"),
            clear: material.is_clear(),
        }
    });
    to_json(&about.collect::<Vec<_>>())
}

/// A block material, by its number.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
struct TerrainMaterial {
    name: &'static str,
    color: String,
    /// Whether it is transparent.
    clear: bool,
}

/// A copy of the terrain that generates meshes, for a worker.
#[wasm_bindgen]
pub struct TerrainMesher {
    terrain: Terrain,
    mesh: Mesh,
}

#[wasm_bindgen]
impl TerrainMesher {
    /// From the `terrain` of the scene, as JSON.
    #[wasm_bindgen(constructor)]
    pub fn new(settings: &str) -> Result<TerrainMesher, JsError> {
        let settings: Settings = serde_json::from_str(settings)?;
        if let Some(problem) = settings.check().first() {
            return Err(JsError::new(&format!(
                "{}: {}",
                problem.key, problem.message
            )));
        }
        Ok(Self {
            terrain: Terrain::new(&settings),
            mesh: Mesh::default(),
        })
    }

    /// First chunk, chunks along each axis, and metres along a chunk: seven numbers.
    pub fn grid(&self) -> Vec<f32> {
        let grid = self.terrain.grid();
        let blocks = grid.blocks();
        let first = blocks.min.map(|at| (at / CHUNK_SIDE) as f32);
        let count = |axis: usize| (blocks.max[axis] + 1 - blocks.min[axis]) / CHUNK_SIDE;
        let mut out = first.to_vec();
        out.extend((0..3).map(|axis| count(axis) as f32));
        out.push(grid.chunk_m());
        out
    }

    /// Applies a server message. Returns the chunks to draw again, three numbers
    /// each.
    pub fn apply(&mut self, message: &[u8]) -> Vec<i32> {
        let Ok(messages) = packet::read::<ServerMessage>(message, SERVER_MESSAGE_BYTES_MAX) else {
            return Vec::new();
        };
        let mut changed = Vec::new();
        for message in messages {
            let range = match message {
                ServerMessage::TerraformApplied(applied) => {
                    let Ok(op) = applied.op.resolve() else {
                        continue;
                    };
                    self.terrain.follow(&op, &applied.chunks);
                    op.blocks(self.terrain.grid())
                }
                ServerMessage::ChunkData(chunk) => {
                    let Ok(blocks) = codec::unpack(&chunk.zstd) else {
                        continue;
                    };
                    self.terrain.install(chunk.at, blocks);
                    let min = chunk.at.chunk.map(|at| at.saturating_mul(CHUNK_SIDE));
                    let max = min.map(|at| at.saturating_add(CHUNK_SIDE - 1));
                    BlockRange { min, max }
                }
                _ => continue,
            };
            // A block beside a chunk hides faces of that chunk.
            let range = range.grown(1).within(&self.terrain.grid().blocks());
            changed.extend(range.chunks().flatten());
        }
        changed
    }

    /// Generates the mesh of a chunk, to be taken one array after the other. False
    /// when there is nothing to draw.
    pub fn make(&mut self, x: i32, y: i32, z: i32) -> bool {
        self.mesh = mesh(&self.terrain, [x, y, z]);
        !self.mesh.is_empty()
    }

    /// x, y and z of each corner, in blocks from the chunk's lowest corner.
    pub fn take_positions(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.mesh.positions)
    }

    /// The normal of each corner.
    pub fn take_normals(&mut self) -> Vec<i8> {
        std::mem::take(&mut self.mesh.normals)
    }

    /// Linear colours of each corner.
    pub fn take_colors(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.mesh.colors)
    }

    /// Three corners per triangle.
    pub fn take_indices(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.mesh.indices)
    }

    /// The index at which transparent triangles begin.
    pub fn clear_from(&self) -> u32 {
        self.mesh.clear_from
    }
}
