//! Persistent operations of a world on its terrain and its structures, in the order
//! they happened. A world is its package, its newest checkpoint and the operations
//! since; the control plane stores them.

use serde::{Deserialize, Serialize};

use frolic_protocol::terrain::TerrainOp;

/// One persistent change of a world.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum WorldOp {
    /// The terrain changed.
    Terrain(TerrainOp),
    /// A structure was built.
    Build(Structure),
    /// A structure was removed.
    Unbuild {
        /// Its number.
        structure: u64,
    },
    /// Every change ever made here is undone.
    Clear,
}

/// A structure: an entity that outlives the process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Structure {
    /// Number within the world, never reused.
    pub number: u64,
    /// The prefab of the scene it is made from.
    pub prefab: String,
    /// Its position.
    pub position: [f32; 3],
    /// Its rotation: `[x, y, z, w]`.
    pub rotation: [f32; 4],
    /// Persistent id of the player who owns it; none: the game.
    pub owner: Option<String>,
}

/// An operation and its position in the world's history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoggedOp {
    /// Rises by one with each operation of a world, from 1.
    pub seq: u64,
    /// Persistent id of the player who requested it; none: a script.
    pub by: Option<String>,
    /// The operation.
    pub op: WorldOp,
}
