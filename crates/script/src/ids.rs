//! How scripts and their world number things.

/// An entity's network id.
pub type EntityId = u32;

/// A connected player, as the world numbers them.
pub type PlayerId = u32;
