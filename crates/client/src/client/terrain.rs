//! The client's terrain: generated from the scene, changed by the operations and
//! chunks that the server sends, in exactly the same way.

use frolic_protocol::packet;
use frolic_protocol::terrain::{ChunkData, TerraformApplied, TerrainOp};
use frolic_protocol::{ClientMessage, ServerMessage};
use frolic_terrain::{ChunkPos, Grid, Terrain, codec};

use super::Client;
use crate::event::ClientEvent;

impl Client {
    /// The terrain, if the world has one.
    pub fn terrain(&self) -> Option<&Terrain> {
        self.scene.collision.terrain()
    }

    /// TERRAFORM_REQUEST: asks the server to change the terrain.
    pub fn terraform(&mut self, op: TerrainOp) {
        self.send(&ClientMessage::Terraform(op));
    }

    pub(super) fn terraformed(&mut self, applied: TerraformApplied) {
        let Ok(op) = applied.op.resolve() else {
            return self.trouble("bad_terrain", "an operation makes no sense".into());
        };
        let chunks = &applied.chunks;
        let changed = self
            .scene
            .collision
            .change_terrain(&op, |terrain| terrain.follow(&op, chunks));
        if changed.is_some_and(|changed| !changed.is_empty())
            && let Some(terrain) = self.terrain()
        {
            let range = op.blocks(terrain.grid());
            let block_m = terrain.grid().block_m();
            let min = range.min.map(|at| at as f32 * block_m);
            let max = range.max.map(|at| (at + 1) as f32 * block_m);
            let message = ServerMessage::TerraformApplied(applied);
            let packet = packet::single(&message);
            self.emit(ClientEvent::Terrain { min, max, packet });
        }
    }

    pub(super) fn chunk(&mut self, chunk: ChunkData) {
        let blocks = match codec::unpack(&chunk.zstd) {
            Ok(blocks) => blocks,
            Err(cause) => return self.trouble("bad_terrain", cause.to_string()),
        };
        let at = chunk.at;
        let installed = self
            .scene
            .collision
            .replace_terrain(|terrain| terrain.install(at, blocks));
        if installed == Some(true)
            && let Some(terrain) = self.terrain()
        {
            let [min, max] = corners(terrain.grid(), at.chunk);
            let message = ServerMessage::ChunkData(chunk);
            let packet = packet::single(&message);
            self.emit(ClientEvent::Terrain { min, max, packet });
        }
    }
}

/// The box of a chunk in metres.
fn corners(grid: &Grid, chunk: ChunkPos) -> [[f32; 3]; 2] {
    let corner = |past: i32| chunk.map(|at| (at + past) as f32 * grid.chunk_m());
    [corner(0), corner(1)]
}
