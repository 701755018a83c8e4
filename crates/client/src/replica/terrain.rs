//! The client's terrain: generated from the scene, changed by the operations and
//! chunks that the server sends, in exactly the same way.

use frolic_protocol::ServerMessage;
use frolic_protocol::packet;
use frolic_protocol::terrain::{ChunkData, TerraformApplied};
use frolic_terrain::{ChunkPos, Grid, Terrain, codec};

use super::Replica;
use crate::event::ClientEvent;
use crate::output::Output;

impl Replica {
    /// The terrain, if the world has one.
    pub fn terrain(&self) -> Option<&Terrain> {
        self.scene.collision.terrain()
    }

    pub(crate) fn terraformed(&mut self, applied: TerraformApplied, output: &mut Output) {
        let Ok(op) = applied.op.resolve() else {
            return output.trouble("bad_terrain", "an operation makes no sense".into());
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
            output.emit(ClientEvent::Terrain { min, max, packet });
        }
    }

    pub(crate) fn chunk(&mut self, chunk: ChunkData, output: &mut Output) {
        let blocks = match codec::unpack(&chunk.zstd) {
            Ok(blocks) => blocks,
            Err(cause) => return output.trouble("bad_terrain", cause.to_string()),
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
            output.emit(ClientEvent::Terrain { min, max, packet });
        }
    }
}

/// The box of a chunk in metres.
fn corners(grid: &Grid, chunk: ChunkPos) -> [[f32; 3]; 2] {
    let corner = |past: i32| chunk.map(|at| (at + past) as f32 * grid.chunk_m());
    [corner(0), corner(1)]
}
