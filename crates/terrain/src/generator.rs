//! Generates chunks in their initial state, each independently: the result
//! depends only on the settings and the chunk's position.

use crate::chunk::Chunk;
use crate::grid::{self, BlockPos, CHUNK_BLOCKS, CHUNK_SIDE, ChunkPos};
use crate::material::Material;
use crate::noise;
use crate::settings::{Clearing, Generator};

/// Layers of soil between surface and rock.
const SOIL_BLOCKS: i32 = 3;
/// Side in blocks of a cell that has at most one tree.
const TREE_CELL: i32 = 7;
/// Blocks from a trunk to its farthest leaf.
const CROWN_BLOCKS: i32 = 2;
/// The tallest tree, crown included.
const TREE_HEIGHT_MAX: i32 = 9;
/// Blocks over which a clearing blends into hills.
const CLEARING_EDGE: f32 = 24.0;

/// The blocks of a chunk. `bottom` is the lowest block of the terrain.
pub(crate) fn generate(generator: &Generator, at: ChunkPos, bottom: i32) -> Chunk {
    match generator {
        Generator::Empty => Chunk::uniform(Material::AIR),
        Generator::Flat {
            height,
            surface,
            soil,
            rock,
        } => {
            let top = bottom + *height as i32 - 1;
            layered(at, |y| match top - y {
                i32::MIN..=-1 => Material::AIR,
                0 => *surface,
                1..=SOIL_BLOCKS => *soil,
                _ => *rock,
            })
        }
        Generator::Hills {
            seed,
            height,
            amplitude,
            scale,
            water,
            snow,
            trees,
            clearing,
        } => Hills {
            seed: *seed,
            base: bottom + *height as i32,
            amplitude: *amplitude as f32,
            per_block: 1.0 / (*scale).max(1) as f32,
            water: bottom + *water as i32 - 1,
            snow: if *snow == 0 {
                i32::MAX
            } else {
                bottom + *snow as i32
            },
            trees: *trees,
            clearing: *clearing,
            bottom,
        }
        .chunk(at),
    }
}

/// A chunk whose blocks depend on their height only.
fn layered(at: ChunkPos, material: impl Fn(i32) -> Material) -> Chunk {
    let lowest = grid::first_block(at)[1];
    let mut layers = [Material::AIR; CHUNK_SIDE as usize];
    for (y, layer) in (lowest..).zip(&mut layers) {
        *layer = material(y);
    }
    if layers.iter().all(|layer| *layer == layers[0]) {
        return Chunk::uniform(layers[0]);
    }
    Chunk::from_fn(|index| layers[index >> 10])
}

struct Hills {
    seed: u32,
    /// The lowest block above average ground.
    base: i32,
    amplitude: f32,
    per_block: f32,
    /// The highest block of lakes.
    water: i32,
    /// The lowest block that snow lies on.
    snow: i32,
    trees: f32,
    clearing: Option<Clearing>,
    bottom: i32,
}

struct Tree {
    /// The lowest block of its trunk.
    root: BlockPos,
    height: i32,
}

impl Hills {
    /// The highest block of ground in a column.
    fn ground(&self, x: i32, z: i32) -> i32 {
        let (at_x, at_z) = (x as f32 * self.per_block, z as f32 * self.per_block);
        let rise = noise::hills(self.seed, at_x, at_z);
        // Valleys are wide and flat, peaks are steep.
        let rise = if rise > 0.0 {
            rise * (0.6 + rise)
        } else {
            rise * 0.7
        };
        let mut height = rise * self.amplitude;
        if let Some(clearing) = &self.clearing {
            let level = (self.bottom + clearing.height as i32 - self.base) as f32;
            height = level + (height - level) * self.away(clearing, x, z);
        }
        let top = self.base + libm::floorf(height) as i32 - 1;
        top.max(self.bottom)
    }

    /// 0 in the clearing, 1 where it has no influence on the hills.
    fn away(&self, clearing: &Clearing, x: i32, z: i32) -> f32 {
        let (dx, dz) = (
            (x - clearing.center[0]) as f32,
            (z - clearing.center[1]) as f32,
        );
        let distance = (dx * dx + dz * dz).sqrt();
        let t = ((distance - clearing.radius as f32) / CLEARING_EDGE).clamp(0.0, 1.0);
        t * t * (3.0 - 2.0 * t)
    }

    fn material(&self, y: i32, ground: i32) -> Material {
        let shore = ground <= self.water + 1;
        match ground - y {
            i32::MIN..=-1 if y <= self.water => Material::WATER,
            i32::MIN..=-1 => Material::AIR,
            0 if ground >= self.snow => Material::SNOW,
            0..=SOIL_BLOCKS if shore => Material::SAND,
            0 => Material::GRASS,
            1..=SOIL_BLOCKS => Material::DIRT,
            _ => Material::STONE,
        }
    }

    fn chunk(&self, at: ChunkPos) -> Chunk {
        let range = grid::blocks_of(at);
        let [first_x, lowest, first_z] = range.min;
        // The possible range of hills: most chunks are entirely above or below
        // it.
        let extent = self.amplitude * 3.0 + 1.0;
        let mut highest_ground = self.base + extent as i32;
        let mut lowest_ground = self.base - extent as i32;
        if let Some(clearing) = &self.clearing {
            let level = self.bottom + clearing.height as i32;
            highest_ground = highest_ground.max(level);
            lowest_ground = lowest_ground.min(level - 1);
        }
        if lowest > (highest_ground + TREE_HEIGHT_MAX).max(self.water) {
            return Chunk::uniform(Material::AIR);
        }
        if range.max[1] < lowest_ground - SOIL_BLOCKS - 1 {
            return Chunk::uniform(Material::STONE);
        }
        let mut grounds = [0i32; (CHUNK_SIDE * CHUNK_SIDE) as usize];
        for (index, ground) in grounds.iter_mut().enumerate() {
            *ground = self.ground(first_x + (index & 31) as i32, first_z + (index >> 5) as i32);
        }
        let low = grounds.iter().copied().min().unwrap_or(0);
        let high = grounds.iter().copied().max().unwrap_or(0);
        let mut chunk = if lowest > high.max(self.water) {
            Chunk::uniform(Material::AIR)
        } else if range.max[1] < low - SOIL_BLOCKS {
            Chunk::uniform(Material::STONE)
        } else {
            Chunk::from_fn(|index| {
                self.material(lowest + (index >> 10) as i32, grounds[index & 1023])
            })
        };
        if self.trees > 0.0 && lowest <= high + TREE_HEIGHT_MAX + SOIL_BLOCKS {
            self.plant(&mut chunk, at);
        }
        debug_assert_eq!(grounds.len() * CHUNK_SIDE as usize, CHUNK_BLOCKS);
        chunk
    }

    /// Adds the parts of surrounding trees that are in this chunk.
    fn plant(&self, chunk: &mut Chunk, at: ChunkPos) {
        let range = grid::blocks_of(at);
        let cell = |block: i32| block.div_euclid(TREE_CELL);
        let (from_x, to_x) = (range.min[0] - CROWN_BLOCKS, range.max[0] + CROWN_BLOCKS);
        let (from_z, to_z) = (range.min[2] - CROWN_BLOCKS, range.max[2] + CROWN_BLOCKS);
        for cell_z in cell(from_z)..=cell(to_z) {
            for cell_x in cell(from_x)..=cell(to_x) {
                let Some(tree) = self.tree(cell_x, cell_z) else {
                    continue;
                };
                let top = tree.root[1] + tree.height + 1;
                if top >= range.min[1] && tree.root[1] <= range.max[1] {
                    grow(chunk, &range, &tree);
                }
            }
        }
        chunk.tidy();
    }

    /// The tree of a cell, if it has one.
    fn tree(&self, cell_x: i32, cell_z: i32) -> Option<Tree> {
        let roll = noise::hash(self.seed ^ 0x7265_6573, cell_x, cell_z);
        let x = cell_x * TREE_CELL + (roll & 0xff) as i32 % TREE_CELL;
        let z = cell_z * TREE_CELL + (roll >> 8 & 0xff) as i32 % TREE_CELL;
        // Forests and open land, and a few trees everywhere.
        let wood = noise::smooth(self.seed ^ 0x776f_6f64, x as f32 / 70.0, z as f32 / 70.0);
        let density = self.trees * (0.35 + wood * 1.6).clamp(0.06, 1.0);
        let chance = (roll >> 16 & 0xff) as f32 / 255.0;
        if chance >= density {
            return None;
        }
        if self
            .clearing
            .as_ref()
            .is_some_and(|c| self.away(c, x, z) <= 0.0)
        {
            return None;
        }
        let ground = self.ground(x, z);
        if self.material(ground, ground) != Material::GRASS {
            return None;
        }
        Some(Tree {
            root: [x, ground + 1, z],
            height: 4 + (roll >> 24) as i32 % 3,
        })
    }
}

/// Writes a tree into a chunk, clipped to it; leaves replace only air.
fn grow(chunk: &mut Chunk, range: &grid::BlockRange, tree: &Tree) {
    let mut writer = chunk.writer();
    let mut put = |block: BlockPos, material: Material| {
        let inside = (0..3).all(|axis| (range.min[axis]..=range.max[axis]).contains(&block[axis]));
        if inside {
            let index = grid::index_in_chunk(block);
            if material == Material::WOOD || writer.get(index) == Material::AIR {
                writer.set(index, material);
            }
        }
    };
    let [x, y, z] = tree.root;
    let top = y + tree.height;
    for level in top - 3..=top + 1 {
        // Two wide layers, a rounded one, and a small cap.
        let reach = if level >= top { 1 } else { CROWN_BLOCKS };
        for dz in -reach..=reach {
            for dx in -reach..=reach {
                let is_corner = dx.abs() == reach && dz.abs() == reach;
                let round =
                    is_corner && (reach == 1 && level > top || reach == 2 && level != top - 2);
                if !round {
                    put([x + dx, level, z + dz], Material::LEAVES);
                }
            }
        }
    }
    for level in y..top {
        put([x, level, z], Material::WOOD);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hills() -> Generator {
        Generator::Hills {
            seed: 7,
            height: 40,
            amplitude: 24,
            scale: 90,
            water: 34,
            snow: 70,
            trees: 0.6,
            clearing: Some(Clearing {
                center: [0, 0],
                radius: 20,
                height: 42,
            }),
        }
    }

    fn all(generator: &Generator) -> impl Iterator<Item = (ChunkPos, Chunk)> + '_ {
        (-4..4).flat_map(move |z| {
            (-4..4).flat_map(move |x| {
                (0..4).map(move |y| ([x, y, z], generate(generator, [x, y, z], 0)))
            })
        })
    }

    #[test]
    fn hills_have_all_that_belongs_to_them() {
        let mut counts = [0usize; Material::COUNT];
        for (_, chunk) in all(&hills()) {
            (0..CHUNK_BLOCKS).for_each(|at| counts[usize::from(chunk.get(at).number())] += 1);
        }
        for material in [
            "air", "grass", "dirt", "stone", "sand", "wood", "leaves", "water",
        ] {
            let number = Material::from_name(material).unwrap().number();
            assert!(counts[usize::from(number)] > 100, "{material}: {counts:?}");
        }
    }

    /// The shortcuts for chunks high up and deep down give the same result.
    #[test]
    fn every_column_is_ground_below_and_air_above() {
        let generator = hills();
        for x in -4..4 {
            for z in -4..4 {
                let column: Vec<Chunk> =
                    (0..5).map(|y| generate(&generator, [x, y, z], 0)).collect();
                for foot in 0..1024 {
                    let blocks = (0..160).map(|y| column[y / 32].get((y % 32) << 10 | foot));
                    let mut solid_below = true;
                    for block in blocks {
                        let ground = ![
                            Material::AIR,
                            Material::WATER,
                            Material::LEAVES,
                            Material::WOOD,
                        ]
                        .contains(&block);
                        assert!(!ground || solid_below, "ground above a hole");
                        solid_below = ground;
                    }
                }
                assert_eq!(column[4].only(), Some(Material::AIR));
            }
        }
    }

    #[test]
    fn the_clearing_is_level_and_free() {
        let generator = hills();
        for x in -14..14 {
            for z in -14..14 {
                let at = |y: i32| {
                    let block = [x, y, z];
                    let chunk = generate(&generator, grid::chunk_of(block), 0);
                    chunk.get(grid::index_in_chunk(block))
                };
                if x % 7 == 0 && z % 5 == 0 {
                    assert_eq!(at(41), Material::GRASS, "{x} {z}");
                    assert_eq!(at(42), Material::AIR, "{x} {z}");
                }
            }
        }
    }

    /// Generated terrain must never change, because stored worlds are built on
    /// it.
    #[test]
    fn the_ground_is_the_recorded_one() {
        let mut digest = 0xcbf2_9ce4_8422_2325u64;
        for (_, chunk) in all(&hills()) {
            for at in 0..CHUNK_BLOCKS {
                digest =
                    (digest ^ u64::from(chunk.get(at).number())).wrapping_mul(0x0100_0000_01b3);
            }
        }
        let recorded = include_str!("../digest.txt").trim();
        assert_eq!(
            format!("{digest:016x}"),
            recorded,
            "worlds that exist would lose their ground: make another generator instead"
        );
    }
}
