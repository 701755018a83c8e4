//! Interest management: what is replicated to which client, how often, and in
//! how many bytes.
//!
//! [`cells`] stores the world as cells with versions; a change is encoded once
//! for all clients that have the same version of a cell. [`visible_cells`]
//! determines which cells a client sees, [`view`] what it has of them and what
//! to send next, [`json_view`] the same for JSON clients, [`budget`] in how
//! many bytes, [`introductions`] what else it must receive about what it sees.
//! The cost of a tick grows with what is visible, not with entities times
//! clients.

mod budget;
pub(crate) mod cells;
mod introductions;
mod json_view;
mod view;
mod visible_cells;

use frolic_sim::Vec3;
use serde::{Deserialize, Serialize};

pub use json_view::JsonView;
pub use view::{ClientView, Delivery};
pub(crate) use view::{Scratch, Sender};

/// What is replicated to clients.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct InterestPolicy {
    /// Cells further away than this are never replicated, so that nothing in
    /// them reaches a player's machine. None: everything is replicated.
    pub radius: Option<f32>,
    /// Distant cells are replicated less often than near ones.
    pub by_distance: bool,
    /// Byte limit for cells per second and client; the most urgent ones are
    /// sent first.
    pub bytes_per_s: Option<u32>,
}

/// Default limit of bytes sent to one client per second.
const BYTES_PER_S: u32 = 64 * 1024;

impl Default for InterestPolicy {
    fn default() -> Self {
        Self {
            radius: None,
            by_distance: true,
            bytes_per_s: Some(BYTES_PER_S),
        }
    }
}

impl InterestPolicy {
    /// Replicates everything to all clients at the full rate, at any cost.
    pub const EVERYTHING: Self = Self {
        radius: None,
        by_distance: false,
        bytes_per_s: None,
    };

    /// Replicates only what is within `radius`.
    pub fn within(radius: f32) -> Self {
        Self {
            radius: Some(radius),
            ..Self::default()
        }
    }

    /// Whether an event at `place` is replicated to a viewer at `eye`.
    pub(crate) fn reaches(&self, eye: Vec3, place: Vec3) -> bool {
        self.radius
            .is_none_or(|radius| (place - eye).length_squared() <= radius * radius)
    }

    /// Side of the cells: small enough for the radius to be accurate, large
    /// enough to amortise the header of a record.
    pub(crate) fn cell_size(&self) -> f32 {
        self.radius
            .map_or(32.0, |radius| (radius / 2.0).clamp(12.0, 32.0))
    }

    /// A cell at this distance is replicated in one of this many updates.
    pub(crate) fn interval(&self, distance: f32) -> u8 {
        match distance {
            _ if !self.by_distance => 1,
            d if d < 48.0 => 1,
            d if d < 96.0 => 2,
            d if d < 192.0 => 4,
            _ => 8,
        }
    }
}
