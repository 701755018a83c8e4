//! Terrain queries: blocks in a box, the first block along a ray, the highest
//! block of a column.

use crate::grid::{BlockPos, BlockRange};
use crate::material::Material;
use crate::terrain::Terrain;

/// A solid block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    /// Its position.
    pub at: BlockPos,
    /// Its lowest corner, in metres.
    pub min: [f32; 3],
    /// Its highest corner, in metres.
    pub max: [f32; 3],
    /// Which of its faces are adjacent to another solid block, as bits: −x, +x,
    /// −y, +y, −z, +z. Those are never touched.
    pub covered: u8,
}

/// The first hit of a ray.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockHit {
    /// The block.
    pub block: BlockPos,
    /// Its material.
    pub material: Material,
    /// Metres along the ray.
    pub distance: f32,
    /// The normal of the face that was hit.
    pub normal: [i32; 3],
}

/// The six neighbours, in the order of [`Block::covered`].
pub(crate) const NEIGHBOURS: [[i32; 3]; 6] = [
    [-1, 0, 0],
    [1, 0, 0],
    [0, -1, 0],
    [0, 1, 0],
    [0, 0, -1],
    [0, 0, 1],
];

impl Terrain {
    /// Whether a block is solid.
    pub fn is_solid(&self, at: BlockPos) -> bool {
        self.block(at).is_solid()
    }

    /// Adds every solid block whose box touches the box from `min` to `max`, in
    /// a fixed order. The box must be small: each block in it is visited.
    pub fn blocks_touching(&self, min: [f32; 3], max: [f32; 3], out: &mut Vec<Block>) {
        let range = self.grid().blocks_meeting(min, max);
        let range = range.grown(1).within(&self.grid().blocks());
        if range.is_empty() || self.is_air(&range) {
            return;
        }
        let block_m = self.grid().block_m();
        for y in range.min[1]..=range.max[1] {
            for z in range.min[2]..=range.max[2] {
                for x in range.min[0]..=range.max[0] {
                    let at = [x, y, z];
                    let low = at.map(|at| at as f32 * block_m);
                    let high = at.map(|at| (at + 1) as f32 * block_m);
                    let touches = (0..3).all(|a| low[a] <= max[a] && high[a] >= min[a]);
                    if touches && self.is_solid(at) {
                        out.push(Block {
                            at,
                            min: low,
                            max: high,
                            covered: self.covered(at),
                        });
                    }
                }
            }
        }
    }

    /// Whether all chunks of a range contain only air.
    fn is_air(&self, range: &BlockRange) -> bool {
        range.chunks().all(|at| {
            let chunk = self.chunk(at);
            chunk.is_none_or(|chunk| chunk.only().is_some_and(|only| !only.is_solid()))
        })
    }

    fn covered(&self, at: BlockPos) -> u8 {
        let mut covered = 0;
        for (bit, step) in NEIGHBOURS.iter().enumerate() {
            let beside = std::array::from_fn(|axis| at[axis] + step[axis]);
            covered |= u8::from(self.is_solid(beside)) << bit;
        }
        covered
    }

    /// Adds boxes in metres that together cover all solid blocks which
    /// intersect the box from `min` to `max`: rows of blocks, and equal
    /// adjacent rows, are merged. For collisions with terrain.
    pub fn solid_boxes(&self, min: [f32; 3], max: [f32; 3], out: &mut Vec<[[f32; 3]; 2]>) {
        let range = self.grid().blocks_meeting(min, max);
        if range.is_empty() || self.is_air(&range) {
            return;
        }
        let block_m = self.grid().block_m();
        let mut open: Vec<Row> = Vec::new();
        let mut rows: Vec<Row> = Vec::new();
        for y in range.min[1]..=range.max[1] {
            for z in range.min[2]..=range.max[2] {
                rows.clear();
                let mut x = range.min[0];
                while x <= range.max[0] {
                    let from = x;
                    while x <= range.max[0] && self.is_solid([x, y, z]) {
                        x += 1;
                    }
                    if x > from {
                        let before = open
                            .iter()
                            .find(|r| r.from == from && r.to == x && r.last == z - 1);
                        let first = before.map_or(z, |row| row.first);
                        rows.push(Row {
                            from,
                            to: x,
                            first,
                            last: z,
                        });
                    } else {
                        x += 1;
                    }
                }
                for row in &open {
                    let grew = rows
                        .iter()
                        .any(|r| r.from == row.from && r.to == row.to && r.first == row.first);
                    if !grew {
                        out.push(row.to_box(y, block_m));
                    }
                }
                std::mem::swap(&mut open, &mut rows);
            }
            open.drain(..)
                .for_each(|row| out.push(row.to_box(y, block_m)));
        }
    }

    /// The first solid block along a ray. `direction` has length one.
    pub fn raycast(
        &self,
        origin: [f32; 3],
        direction: [f32; 3],
        distance_max: f32,
    ) -> Option<BlockHit> {
        let finite = |v: &[f32; 3]| v.iter().all(|part| part.is_finite());
        if !finite(&origin) || !finite(&direction) || !distance_max.is_finite() {
            return None;
        }
        // Clip the ray to the terrain.
        let [low, high] = self.grid().bounds_m();
        let (mut from, mut to) = (0.0f32, distance_max);
        let mut entry_axis = None;
        for axis in 0..3 {
            if direction[axis] == 0.0 {
                if origin[axis] < low[axis] || origin[axis] > high[axis] {
                    return None;
                }
                continue;
            }
            let a = (low[axis] - origin[axis]) / direction[axis];
            let b = (high[axis] - origin[axis]) / direction[axis];
            let (near, far) = if a < b { (a, b) } else { (b, a) };
            if near > from {
                (from, entry_axis) = (near, Some(axis));
            }
            to = to.min(far);
        }
        if from > to {
            return None;
        }
        self.walk(origin, direction, from, to, entry_axis)
    }

    /// Traverses the blocks along a ray (Amanatides and Woo).
    fn walk(
        &self,
        origin: [f32; 3],
        direction: [f32; 3],
        from: f32,
        to: f32,
        entry_axis: Option<usize>,
    ) -> Option<BlockHit> {
        let grid = self.grid();
        let all = grid.blocks();
        let block_m = grid.block_m();
        let start: [f32; 3] = std::array::from_fn(|axis| origin[axis] + direction[axis] * from);
        let nearest = grid.block_at(start);
        let mut at: [i32; 3] =
            std::array::from_fn(|axis| nearest[axis].clamp(all.min[axis], all.max[axis]));
        let step: [i32; 3] = direction.map(|d| {
            if d > 0.0 {
                1
            } else if d < 0.0 {
                -1
            } else {
                0
            }
        });
        let border = |at: i32, axis: usize| {
            let ahead = at + i32::from(step[axis] > 0);
            if step[axis] == 0 {
                f32::INFINITY
            } else {
                (ahead as f32 * block_m - origin[axis]) / direction[axis]
            }
        };
        let mut next: [f32; 3] = std::array::from_fn(|axis| border(at[axis], axis));
        let mut distance = from;
        let mut entered = entry_axis;
        // No ray inside crosses more blocks than all sides together.
        let steps_max = (0..3)
            .map(|axis| i64::from(all.max[axis]) - i64::from(all.min[axis]) + 2)
            .sum();
        let mut steps: i64 = 0;
        while distance <= to && steps < steps_max {
            steps += 1;
            let material = self.block(at);
            if material.is_solid() {
                let mut normal = [0; 3];
                // Inside from the start: the face towards the ray's origin.
                let axis = entered.unwrap_or_else(|| largest(direction));
                normal[axis] = -step[axis];
                return Some(BlockHit {
                    block: at,
                    material,
                    distance,
                    normal,
                });
            }
            let axis = if next[0] <= next[1] && next[0] <= next[2] {
                0
            } else if next[1] <= next[2] {
                1
            } else {
                2
            };
            distance = next[axis];
            at[axis] += step[axis];
            if at[axis] < all.min[axis] || at[axis] > all.max[axis] {
                return None;
            }
            next[axis] = border(at[axis], axis);
            entered = Some(axis);
        }
        None
    }

    /// Whether a place in metres is under water.
    pub fn is_water(&self, at: [f32; 3]) -> bool {
        at.iter().all(|part| part.is_finite())
            && self.block(self.grid().block_at(at)) == Material::WATER
    }

    /// How many of the `height` metres above a place are water. The column must
    /// be short: each block in it is visited.
    pub fn water_in_column(&self, bottom: [f32; 3], height: f32) -> f32 {
        if !bottom.iter().all(|part| part.is_finite()) || !height.is_finite() {
            return 0.0;
        }
        let grid = self.grid();
        let all = grid.blocks();
        let [x, first, z] = grid.block_at(bottom);
        let top = bottom[1] + height;
        let last = grid.block_at([bottom[0], top, bottom[2]])[1];
        let block_m = grid.block_m();
        let mut depth = 0.0;
        for y in first.max(all.min[1])..=last.min(all.max[1]) {
            if self.block([x, y, z]) == Material::WATER {
                let low = (y as f32 * block_m).max(bottom[1]);
                let high = ((y + 1) as f32 * block_m).min(top);
                depth += (high - low).max(0.0);
            }
        }
        depth
    }

    /// The height of the surface at a place of the map, in metres: the top of
    /// the highest solid block. None without one.
    pub fn height_at(&self, x: f32, z: f32) -> Option<f32> {
        if !x.is_finite() || !z.is_finite() {
            return None;
        }
        let all = self.grid().blocks();
        let [x, _, z] = self.grid().block_at([x, 0.0, z]);
        if !(all.min[0]..=all.max[0]).contains(&x) || !(all.min[2]..=all.max[2]).contains(&z) {
            return None;
        }
        let mut y = all.max[1];
        while y >= all.min[1] {
            let chunk = self.chunk(crate::grid::chunk_of([x, y, z]))?;
            if chunk.only().is_some_and(|only| !only.is_solid()) {
                y = y.div_euclid(crate::CHUNK_SIDE) * crate::CHUNK_SIDE - 1;
                continue;
            }
            if chunk.get(crate::grid::index_in_chunk([x, y, z])).is_solid() {
                return Some((y + 1) as f32 * self.grid().block_m());
            }
            y -= 1;
        }
        None
    }
}

/// Blocks in a row along x, with equal rows merged along z.
#[derive(Clone, Copy)]
struct Row {
    from: i32,
    to: i32,
    first: i32,
    last: i32,
}

impl Row {
    fn to_box(self, y: i32, block_m: f32) -> [[f32; 3]; 2] {
        let low = [self.from, y, self.first];
        let high = [self.to, y + 1, self.last + 1];
        [low, high].map(|corner| corner.map(|at| at as f32 * block_m))
    }
}

fn largest(direction: [f32; 3]) -> usize {
    let [x, y, z] = direction.map(f32::abs);
    if x >= y && x >= z {
        0
    } else if y >= z {
        1
    } else {
        2
    }
}
