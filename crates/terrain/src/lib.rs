//! Voxel terrain: generation, changes, queries, encoding and meshing.
//!
//! Start from [`Terrain`]: created from [`Settings`] (the `terrain` of a
//! scene), changed by [`Op`]s, queried by block, ray or box. It is a grid of
//! [`Chunk`]s of 32³ blocks, each generated on first access. Server and browser
//! generate the same ones, so that only changes have to be sent ([`codec`]).
//! [`mesh`] converts chunks to triangles.
//!
//! Pure and bit-identical everywhere: no clock, no I/O, no randomness but the
//! seed, no transcendental functions. Block sizes are powers of two, so that
//! converting between metres and blocks does not round.
#![forbid(unsafe_code)]

mod chunk;
pub mod codec;
mod edits;
mod generator;
mod grid;
mod material;
pub mod mesh;
mod noise;
mod op;
mod query;
mod settings;
mod terrain;

pub use chunk::Chunk;
pub use edits::{EDITS_BYTES_MAX, Edits, EditsError};
pub use grid::{
    BlockPos, BlockRange, CHUNK_BLOCKS, CHUNK_SIDE, ChunkPos, Grid, first_block, index_in_chunk,
};
pub use material::Material;
pub use op::{Action, Op, OpError, Shape};
pub use query::{Block, BlockHit};
pub use settings::{Area, Clearing, Generator, Settings, SettingsProblem};
pub use terrain::{ChunkVersion, Terrain};
