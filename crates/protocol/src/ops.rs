//! What lasts in a world: operations on its ground and its structures, in the
//! order they happened. A world is its package, its newest checkpoint
//! and the operations since; the control plane keeps them.

use serde::{Deserialize, Serialize};

use crate::terrain::TerrainOp;

/// One lasting change of a world.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum WorldOp {
    /// The ground changed.
    Terrain(TerrainOp),
    /// Something was built.
    Build(Structure),
    /// A structure was taken away.
    Unbuild {
        /// Its number.
        structure: u64,
    },
    /// Everything that was ever changed here is undone.
    Clear,
}

/// Something that was built and stays: an entity that outlives the process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Structure {
    /// Number within the world, never given twice.
    pub number: u64,
    /// Which prefab of the scene it is made from.
    pub prefab: String,
    /// Where it stands.
    pub position: [f32; 3],
    /// How it is turned: `[x, y, z, w]`.
    pub rotation: [f32; 4],
    /// Lasting id of the player who owns it; none: the game.
    pub owner: Option<String>,
}

/// An operation and its place in the world's history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoggedOp {
    /// Rises by one with each operation of a world, from 1.
    pub seq: u64,
    /// Lasting id of the player who asked for it; none: a script.
    pub by: Option<String>,
    /// What was done.
    pub op: WorldOp,
}
