//! Who is told of what, how often, and in how many bytes.
//!
//! [`cells`] keeps the world as squares with versions; a change is encoded
//! once for everybody who has the same version of a square. [`watch`] says
//! which squares a client sees, [`view`] what it has of them and what to send
//! next, [`json_view`] the same for JSON clients, [`budget`] in how many bytes,
//! [`acquainted`] what else it has to hear of what it sees. The cost of a tick
//! grows with what is seen, not with entities times clients.

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

/// What clients are told of.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct InterestPolicy {
    /// Squares further away than this are not told of at all, so that nothing
    /// in them reaches a player's machine. None: everything is told of.
    pub radius: Option<f32>,
    /// Far squares are told of less often than near ones.
    pub by_distance: bool,
    /// Most bytes of cells per second and client; the most urgent come first.
    pub bytes_per_s: Option<u32>,
}

/// Sent to one client in a second, unless the operator says otherwise.
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
    /// Everybody is told everything at the full rate, whatever it costs.
    pub const EVERYTHING: Self = Self {
        radius: None,
        by_distance: false,
        bytes_per_s: None,
    };

    /// What is this near, and nothing else.
    pub fn within(radius: f32) -> Self {
        Self {
            radius: Some(radius),
            ..Self::default()
        }
    }

    /// Whether who is at `eye` is told of what happens at a place.
    pub(crate) fn reaches(&self, eye: Vec3, place: Vec3) -> bool {
        self.radius
            .is_none_or(|radius| (place - eye).length_squared() <= radius * radius)
    }

    /// Sides of the squares: small enough for the radius to mean something,
    /// large enough for a record to be worth its head.
    pub(crate) fn cell_size(&self) -> f32 {
        self.radius
            .map_or(32.0, |radius| (radius / 2.0).clamp(12.0, 32.0))
    }

    /// A square at this distance is told of in one of so many updates.
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
