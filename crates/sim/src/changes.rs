//! Change counters per cell of the map, with which a cache of a place can check
//! whether it is still valid.
//!
//! Counters only grow. An unchanged sum over a place's cells means that nothing
//! changed there. Several cells may share a counter, so at worst a change far
//! away invalidates a cache needlessly.

use parry3d::bounding_volume::Aabb;

/// Side of a cell in metres: wider than what a character caches.
const CELL_M: f32 = 8.0;
/// Number of counters; a power of two.
const COUNTERS: usize = 1024;
/// A change over more cells than this counts as one everywhere.
const CELLS_MAX: i64 = 64;

/// Change counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// A solid was added, removed, or left its box in the tree.
    pub members: u64,
    /// A solid was added, removed, moved or stopped.
    pub poses: u64,
}

/// The kind of a change.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Change {
    Members,
    Pose,
}

impl Count {
    fn add(&mut self, change: Change) {
        self.poses += 1;
        if change == Change::Members {
            self.members += 1;
        }
    }
}

/// The cells of a box that is no wider than two of them.
pub(crate) type Cells = [u16; 4];

/// All counters of a world.
#[derive(Debug)]
pub(crate) struct Changes {
    counters: Box<[Count]>,
    everywhere: Count,
}

impl Default for Changes {
    fn default() -> Self {
        Self {
            counters: vec![Count::default(); COUNTERS].into(),
            everywhere: Count::default(),
        }
    }
}

impl Changes {
    /// Counts a change in a box.
    pub fn record(&mut self, bounds: &Aabb, change: Change) {
        let [x, z] = span(bounds);
        let wide = |[from, to]: [i32; 2]| i64::from(to) - i64::from(from) + 1;
        if wide(x).saturating_mul(wide(z)) > CELLS_MAX {
            self.everywhere.add(change);
            return;
        }
        for x in x[0]..=x[1] {
            for z in z[0]..=z[1] {
                self.counters[usize::from(counter(x, z))].add(change);
            }
        }
    }

    /// The total changes in these cells.
    pub fn count(&self, cells: Cells) -> Count {
        cells.iter().fold(self.everywhere, |sum, &cell| {
            let count = self.counters[usize::from(cell) % COUNTERS];
            Count {
                members: sum.members + count.members,
                poses: sum.poses + count.poses,
            }
        })
    }
}

/// The cells that a box intersects, unless it is too wide.
pub(crate) fn cells(bounds: &Aabb) -> Option<Cells> {
    let [x, z] = span(bounds);
    let narrow = |[from, to]: [i32; 2]| i64::from(to) - i64::from(from) <= 1;
    (narrow(x) && narrow(z)).then(|| {
        [
            counter(x[0], z[0]),
            counter(x[0], z[1]),
            counter(x[1], z[0]),
            counter(x[1], z[1]),
        ]
    })
}

/// First and last cell along x and along z.
fn span(bounds: &Aabb) -> [[i32; 2]; 2] {
    let cell = |x: f32| libm::floorf(x / CELL_M) as i32;
    [
        [cell(bounds.mins.x), cell(bounds.maxs.x)],
        [cell(bounds.mins.z), cell(bounds.maxs.z)],
    ]
}

fn counter(x: i32, z: i32) -> u16 {
    let mixed = (x as u32)
        .wrapping_mul(0x9e37_79b1)
        .wrapping_add((z as u32).wrapping_mul(0x85eb_ca6b));
    ((mixed ^ (mixed >> 15)) as usize % COUNTERS) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use frolic_motion::Vec3;

    fn around(x: f32, z: f32, half: f32) -> Aabb {
        Aabb::new(
            Vec3::new(x - half, 0.0, z - half),
            Vec3::new(x + half, 1.0, z + half),
        )
    }

    #[test]
    fn changes_that_meet_a_place_are_seen_and_far_ones_mostly_not() {
        let mut changes = Changes::default();
        let mut disturbed = 0;
        for i in 0..400 {
            let place = around(
                (i % 20) as f32 * 7.3 - 70.0,
                (i / 20) as f32 * 7.1 - 70.0,
                2.0,
            );
            let cells = cells(&place).unwrap();
            let before = changes.count(cells);
            changes.record(&around(500.0, i as f32 * 9.0, 3.0), Change::Pose);
            disturbed += u32::from(changes.count(cells) != before);
            let before = changes.count(cells);
            let corner = around(place.maxs.x + 0.5, place.maxs.z + 0.5, 0.6);
            changes.record(&corner, Change::Pose);
            let after = changes.count(cells);
            assert!(after.poses > before.poses);
            assert_eq!(after.members, before.members, "only moved");
            changes.record(&around(0.0, 0.0, 1e6), Change::Members);
            assert!(changes.count(cells).members > before.members, "everywhere");
        }
        assert!(disturbed < 20, "{disturbed}");
    }

    #[test]
    fn boxes_without_sense_are_counted_somewhere() {
        let mut changes = Changes::default();
        for x in [f32::NAN, f32::INFINITY, f32::MAX, -f32::MAX] {
            let bounds = around(x, 0.0, 1.0);
            cells(&bounds);
            changes.record(&bounds, Change::Members);
        }
        assert!(cells(&around(0.0, 0.0, 20.0)).is_none(), "too wide");
    }
}
