//! The journal of changes to entities, for those who derive state from them.

use frolic_sim::Vec3;

/// A change that systems with state of their own about the entity must follow.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    /// It was created.
    Added(u32),
    /// Its solid or its place in the hierarchy changed, or it is new.
    Rebuilt(u32),
    /// It was put somewhere else, not moved by physics or its own steps.
    Placed(u32),
    /// It is about to be removed, before its children.
    Removing(u32),
    /// It was removed.
    Removed(u32),
    /// Something solid appeared, disappeared or moved in this box.
    Solid {
        /// Its lowest corner.
        low: Vec3,
        /// Its highest corner.
        high: Vec3,
    },
}

/// Each reader has a queue of its own, which it drains at its own time.
#[derive(Default)]
pub(super) struct Journal {
    /// Read by the systems, after each operation that changes entities.
    pub changes: Vec<Change>,
    /// Entities that changed for clients since the last collection; read by
    /// replication.
    pub touched: Vec<u32>,
    /// Whether pathfinding reads changed solids.
    pub follows_solids: bool,
}
