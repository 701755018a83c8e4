//! What is replicated to which client, and how often.

use frolic_protocol::snapshot::CellKey;
use frolic_sim::Vec3;
use serde::{Deserialize, Serialize};

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

/// The key of the cell of this size that contains a place.
pub(crate) fn cell_of(size: f32, place: Vec3) -> CellKey {
    CellKey::Grid {
        x: index(size, place.x),
        z: index(size, place.z),
    }
}

/// The cell index of a coordinate; the outermost cells are unbounded.
pub(crate) fn index(size: f32, c: f32) -> i16 {
    libm::floorf(c / size) as i16
}

/// The distance of a place from a cell; zero for cells without a place.
pub(crate) fn distance(size: f32, key: CellKey, place: Vec3) -> f32 {
    let CellKey::Grid { x, z } = key else {
        return 0.0;
    };
    let outside = |index: i16, c: f32| {
        let from = f32::from(index) * size;
        (from - c).max(c - from - size).max(0.0)
    };
    let (dx, dz) = (outside(x, place.x), outside(z, place.z));
    libm::sqrtf(dx * dx + dz * dz)
}
