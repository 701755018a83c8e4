//! Voxel terrain: what the ground is made of, how it changes, and
//! what others need to know of it.
//!
//! Start from [`Terrain`]: made from [`Settings`] (the `terrain` of a scene),
//! changed by [`Op`]s, asked by block, ray or box. A world is a grid of
//! [`Chunk`]s of 32³ blocks, each made by the generator when somebody first
//! looks at it: server and browser make the same ones, so that only what was
//! changed since has to travel ([`codec`]). [`mesh`] turns chunks into
//! triangles.
//!
//! Pure and the same bits everywhere: no clock, no I/O, no randomness but the
//! seed, no transcendental functions. Sizes of blocks are powers of two, so
//! that going from metres to blocks and back rounds nothing.
#![forbid(unsafe_code)]

mod chunk;
pub mod codec;
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
pub use grid::{
    BlockPos, BlockRange, CHUNK_BLOCKS, CHUNK_SIDE, ChunkPos, Grid, first_block, index_in_chunk,
};
pub use material::Material;
pub use op::{Action, Op, OpError, Shape};
pub use query::{Block, BlockHit};
pub use settings::{Area, Clearing, Generator, Settings, SettingsProblem};
pub use terrain::{ChunkVersion, Terrain};
