//! Coordinates of blocks and chunks, as integers from the world's origin: block
//! 0 extends from 0 to one block's size.

/// Blocks along each side of a chunk.
pub const CHUNK_SIDE: i32 = 32;
/// Blocks in a chunk.
pub const CHUNK_BLOCKS: usize = (CHUNK_SIDE * CHUNK_SIDE * CHUNK_SIDE) as usize;

/// A block's position, counted in blocks.
pub type BlockPos = [i32; 3];
/// A chunk's position, counted in chunks.
pub type ChunkPos = [i32; 3];

/// The extent of a terrain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    /// Metres along a block; a power of two.
    block_m: f32,
    /// First chunk along each axis.
    first: ChunkPos,
    /// Chunks along each axis.
    chunks: [i32; 3],
}

/// A box of blocks, both ends included. Empty if an end is before its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRange {
    /// The lowest block.
    pub min: BlockPos,
    /// The highest block.
    pub max: BlockPos,
}

impl BlockRange {
    /// Whether it contains no blocks.
    pub fn is_empty(&self) -> bool {
        (0..3).any(|axis| self.max[axis] < self.min[axis])
    }

    /// The number of blocks in it.
    pub fn volume(&self) -> u64 {
        if self.is_empty() {
            return 0;
        }
        (0..3)
            .map(|axis| (i64::from(self.max[axis]) - i64::from(self.min[axis]) + 1) as u64)
            .fold(1, u64::saturating_mul)
    }

    /// The intersection.
    #[must_use]
    pub fn within(&self, other: &BlockRange) -> BlockRange {
        BlockRange {
            min: std::array::from_fn(|axis| self.min[axis].max(other.min[axis])),
            max: std::array::from_fn(|axis| self.max[axis].min(other.max[axis])),
        }
    }

    /// Enlarged by this many blocks on every side.
    #[must_use]
    pub fn grown(&self, by: i32) -> BlockRange {
        BlockRange {
            min: self.min.map(|at| at.saturating_sub(by)),
            max: self.max.map(|at| at.saturating_add(by)),
        }
    }

    /// The chunks that contain its blocks, lowest first.
    pub fn chunks(&self) -> impl Iterator<Item = ChunkPos> + use<> {
        let first = chunk_of(self.min);
        let last = if self.is_empty() {
            first.map(|at| at.saturating_sub(1))
        } else {
            chunk_of(self.max)
        };
        (first[1]..=last[1]).flat_map(move |y| {
            (first[2]..=last[2]).flat_map(move |z| (first[0]..=last[0]).map(move |x| [x, y, z]))
        })
    }
}

/// The chunk that contains a block.
pub fn chunk_of(block: BlockPos) -> ChunkPos {
    block.map(|at| at.div_euclid(CHUNK_SIDE))
}

/// The lowest block of a chunk.
pub fn first_block(chunk: ChunkPos) -> BlockPos {
    chunk.map(|at| at.saturating_mul(CHUNK_SIDE))
}

/// The blocks of a chunk.
pub fn blocks_of(chunk: ChunkPos) -> BlockRange {
    let min = first_block(chunk);
    BlockRange {
        min,
        max: min.map(|at| at.saturating_add(CHUNK_SIDE - 1)),
    }
}

/// The index of a block within its chunk: x fastest, then z, then y, so that a
/// horizontal layer is contiguous.
pub fn index_in_chunk(block: BlockPos) -> usize {
    let [x, y, z] = block.map(|at| at.rem_euclid(CHUNK_SIDE) as usize);
    (y << 10) | (z << 5) | x
}

impl Grid {
    pub(crate) fn new(block_m: f32, first: ChunkPos, chunks: [i32; 3]) -> Self {
        Self {
            block_m,
            first,
            chunks,
        }
    }

    /// Metres along a block.
    pub fn block_m(&self) -> f32 {
        self.block_m
    }

    /// Metres along a chunk.
    pub fn chunk_m(&self) -> f32 {
        self.block_m * CHUNK_SIDE as f32
    }

    /// All its blocks.
    pub fn blocks(&self) -> BlockRange {
        let min = first_block(self.first);
        BlockRange {
            min,
            max: std::array::from_fn(|axis| min[axis] + self.chunks[axis] * CHUNK_SIDE - 1),
        }
    }

    /// Lowest and highest corner, in metres.
    pub fn bounds_m(&self) -> [[f32; 3]; 2] {
        let blocks = self.blocks();
        [
            blocks.min.map(|at| at as f32 * self.block_m),
            blocks.max.map(|at| (at + 1) as f32 * self.block_m),
        ]
    }

    /// The number of chunks.
    pub fn chunk_count(&self) -> usize {
        self.chunks.iter().map(|&side| side as usize).product()
    }

    /// The index of a chunk, if it is inside.
    pub fn chunk_index(&self, chunk: ChunkPos) -> Option<usize> {
        let mut at = [0usize; 3];
        for axis in 0..3 {
            let from_first = chunk[axis].checked_sub(self.first[axis])?;
            if !(0..self.chunks[axis]).contains(&from_first) {
                return None;
            }
            at[axis] = from_first as usize;
        }
        Some((at[1] * self.chunks[2] as usize + at[2]) * self.chunks[0] as usize + at[0])
    }

    /// The chunk with an index below [`Grid::chunk_count`].
    pub fn chunk_at(&self, index: usize) -> ChunkPos {
        let (width, depth) = (self.chunks[0] as usize, self.chunks[2] as usize);
        let at = [index % width, index / width / depth, index / width % depth];
        std::array::from_fn(|axis| self.first[axis] + at[axis] as i32)
    }

    /// The block that contains a point; clamped for points far outside.
    pub fn block_at(&self, point: [f32; 3]) -> BlockPos {
        point.map(|at| libm::floorf(at / self.block_m) as i32)
    }

    /// The centre of a block, in metres.
    pub fn middle_of(&self, block: BlockPos) -> [f32; 3] {
        block.map(|at| (at as f32 + 0.5) * self.block_m)
    }

    /// The blocks that a box in metres intersects, within the terrain.
    pub fn blocks_meeting(&self, min: [f32; 3], max: [f32; 3]) -> BlockRange {
        BlockRange {
            min: self.block_at(min),
            max: self.block_at(max),
        }
        .within(&self.blocks())
    }

    /// The centre of a chunk, in metres.
    pub fn middle_of_chunk(&self, chunk: ChunkPos) -> [f32; 3] {
        chunk.map(|at| (at as f32 + 0.5) * self.chunk_m())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_and_numbers_lead_back() {
        let grid = Grid::new(1.0, [-2, 0, -3], [4, 2, 5]);
        assert_eq!(grid.chunk_count(), 40);
        for index in 0..grid.chunk_count() {
            assert_eq!(grid.chunk_index(grid.chunk_at(index)), Some(index));
        }
        for outside in [
            [2, 0, 0],
            [-3, 0, 0],
            [0, -1, 0],
            [0, 2, 0],
            [0, 0, 2],
            [i32::MIN; 3],
            [i32::MAX; 3],
        ] {
            assert_eq!(grid.chunk_index(outside), None, "{outside:?}");
        }
    }

    #[test]
    fn points_far_away_and_without_sense_are_outside() {
        let grid = Grid::new(0.5, [-2, 0, -2], [4, 2, 4]);
        for point in [[f32::NAN; 3], [f32::INFINITY; 3], [-f32::MAX; 3]] {
            let range = grid.blocks_meeting(point, point);
            assert!(range.volume() <= 1, "{point:?} {range:?}");
        }
        assert_eq!(grid.block_at([-0.1, 0.6, 1.0]), [-1, 1, 2]);
        assert_eq!(grid.middle_of([-1, 1, 2]), [-0.25, 0.75, 1.25]);
        assert_eq!(index_in_chunk([-1, 33, 2]), (1 << 10) | (2 << 5) | 31);
        let range = BlockRange {
            min: [0, 0, 0],
            max: [32, 0, 0],
        };
        assert_eq!(range.chunks().collect::<Vec<_>>(), [[0, 0, 0], [1, 0, 0]]);
        assert_eq!(range.grown(1).chunks().count(), 3 * 2 * 2);
        let empty = BlockRange {
            min: [0, 0, 0],
            max: [-1, 5, 5],
        };
        assert_eq!((empty.volume(), empty.chunks().count()), (0, 0));
    }
}
