//! The walkable grid: columns of the map with a floor on each storey.

use std::collections::BTreeMap;

use frolic_sim::{Around, CharacterParams, CollisionWorld, Surface, Vec3};

/// Side of a cell.
pub const CELL_M: f32 = 0.5;
/// Cells along the side of a tile.
const TILE_CELLS: i32 = 16;
const TILE_M: f32 = CELL_M * TILE_CELLS as f32;
/// Floors above each other in one column.
const FLOORS_MAX: usize = 8;
/// Floors closer than this are merged.
const FLOOR_GAP_M: f32 = 0.3;
/// Tiles in memory; above this the oldest quarter is discarded.
const TILES_MAX: usize = 4096;
/// Fraction of the capsule's radius that must be free in a cell: a character
/// slides along what it barely touches.
const ROOM: f32 = 0.9;
/// Distance from the origin up to which there is a grid.
const EXTENT_M: f32 = 100_000.0;

/// A tile's position, counted in tiles.
pub type TileKey = (i32, i32);

/// One storey of one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cell {
    pub x: i32,
    pub z: i32,
    pub level: u8,
}

/// A surface to stand on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Floor {
    pub height: f32,
    /// 1 is level.
    pub slope: f32,
}

/// The role of an entity's solid in path planning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It can be walked on.
    Ground,
    /// It is an obstacle.
    Obstacle,
    /// It may have moved away by then.
    Passing,
}

/// What the grid is built from.
pub struct Ground<'a> {
    pub solids: &'a CollisionWorld,
    pub params: CharacterParams,
    pub role: &'a dyn Fn(u32) -> Role,
}

impl Ground<'_> {
    /// The relevant solids in a box.
    pub fn around(&self, low: Vec3, high: Vec3) -> Around<'_> {
        self.solids
            .around(low, high, |id| (self.role)(id) != Role::Passing)
    }
}

struct Tile {
    /// Where each column's floors begin, plus one entry at the end.
    starts: Vec<u16>,
    floors: Vec<Floor>,
    /// Number of the tile among all that were ever built.
    version: u32,
}

/// The tiles that were needed so far.
#[derive(Default)]
pub struct Grid {
    tiles: BTreeMap<TileKey, Tile>,
    built: u32,
    changes: u32,
}

impl Grid {
    pub fn is_empty(&self) -> bool {
        self.tiles.is_empty()
    }

    pub fn changes(&self) -> u32 {
        self.changes
    }

    pub fn built(&self) -> u64 {
        u64::from(self.built) << 32 | self.tiles.len() as u64
    }

    pub fn version(&self, key: TileKey) -> Option<u32> {
        Some(self.tiles.get(&key)?.version)
    }

    /// Discards the tiles that may have changed.
    pub fn forget(&mut self, low: Vec3, high: Vec3) {
        if self.tiles.is_empty() || !low.is_finite() || !high.is_finite() {
            return;
        }
        // A cell depends on solids up to a capsule's radius away.
        let margin = Vec3::splat(CELL_M);
        let (low, high) = (tile_at(low - margin), tile_at(high + margin));
        let known = self.tiles.len();
        let wide = (i64::from(high.0) - i64::from(low.0) + 1)
            .saturating_mul(i64::from(high.1) - i64::from(low.1) + 1);
        if wide > known as i64 {
            self.tiles.retain(|key, _| {
                key.0 < low.0 || key.0 > high.0 || key.1 < low.1 || key.1 > high.1
            });
        } else {
            for x in low.0..=high.0 {
                for z in low.1..=high.1 {
                    self.tiles.remove(&(x, z));
                }
            }
        }
        if self.tiles.len() != known {
            self.changes = self.changes.wrapping_add(1);
        }
    }

    /// The floors of a column, from the lowest. Builds its tile if necessary
    /// and subtracts the cost from `left`.
    pub fn column(&mut self, ground: &Ground, x: i32, z: i32, left: &mut u32) -> &[Floor] {
        let key = tile_of(x, z);
        if !self.tiles.contains_key(&key) {
            *left = left.saturating_sub(super::TILE_COST);
            self.make_room();
            self.built = self.built.wrapping_add(1);
            let tile = Tile::build(ground, key, self.built);
            self.tiles.insert(key, tile);
        }
        self.known_column(x, z)
    }

    /// The floors of a column, if its tile is built.
    pub fn known_column(&self, x: i32, z: i32) -> &[Floor] {
        let Some(tile) = self.tiles.get(&tile_of(x, z)) else {
            return &[];
        };
        let (x, z) = (x.rem_euclid(TILE_CELLS), z.rem_euclid(TILE_CELLS));
        let at = (z * TILE_CELLS + x) as usize;
        let span = usize::from(tile.starts[at])..usize::from(tile.starts[at + 1]);
        &tile.floors[span]
    }

    pub fn floor(&self, cell: Cell) -> Option<Floor> {
        let column = self.known_column(cell.x, cell.z);
        column.get(usize::from(cell.level)).copied()
    }

    /// The cell of a character at these feet: its own, or the nearest one
    /// around with a floor not much higher or lower.
    pub fn locate(
        &mut self,
        ground: &Ground,
        feet: Vec3,
        (above, below): (f32, f32),
        rings: i32,
        left: &mut u32,
    ) -> Option<Cell> {
        if !on_the_map(feet) {
            return None;
        }
        let (x, z) = cell_at(feet);
        for ring in 0..=rings {
            let mut best: Option<(f32, Cell)> = None;
            for dx in -ring..=ring {
                for dz in -ring..=ring {
                    if dx.abs().max(dz.abs()) != ring {
                        continue;
                    }
                    let column = self.column(ground, x + dx, z + dz, left);
                    for (level, floor) in column.iter().enumerate() {
                        let up = floor.height - feet.y;
                        if up > above || up < -below {
                            continue;
                        }
                        let away = up.abs() + ((dx * dx + dz * dz) as f32).sqrt() * CELL_M;
                        if best.is_none_or(|(least, _)| away < least) {
                            let level = level as u8;
                            let (x, z) = (x + dx, z + dz);
                            best = Some((away, Cell { x, z, level }));
                        }
                    }
                }
            }
            if let Some((_, cell)) = best {
                return Some(cell);
            }
        }
        None
    }

    fn make_room(&mut self) {
        if self.tiles.len() < TILES_MAX {
            return;
        }
        let mut versions: Vec<u32> = self.tiles.values().map(|tile| tile.version).collect();
        versions.sort_unstable();
        let oldest_retained = versions[TILES_MAX / 4];
        self.tiles.retain(|_, tile| tile.version >= oldest_retained);
    }
}

impl Tile {
    fn build(ground: &Ground, key: TileKey, version: u32) -> Self {
        let params = &ground.params;
        let corner = Vec3::new(key.0 as f32 * TILE_M, 0.0, key.1 as f32 * TILE_M);
        let margin = Vec3::new(CELL_M, EXTENT_M, CELL_M);
        let end = corner + Vec3::new(TILE_M, 0.0, TILE_M);
        let around = ground.around(corner - margin, end + margin);
        let mut starts = Vec::with_capacity((TILE_CELLS * TILE_CELLS + 1) as usize);
        let mut floors: Vec<Floor> = Vec::new();
        let mut surfaces = Vec::new();
        starts.push(0);
        for z in 0..TILE_CELLS {
            for x in 0..TILE_CELLS {
                let middle = corner + Vec3::new(x as f32 + 0.5, 0.0, z as f32 + 0.5) * CELL_M;
                surfaces.clear();
                around.surfaces(middle.x, middle.z, &mut surfaces);
                surfaces.retain(|surface| {
                    surface.slope >= params.slope_cos_min
                        && (ground.role)(surface.entity) == Role::Ground
                });
                surfaces.sort_by(|a: &Surface, b| a.height.total_cmp(&b.height));
                let first = floors.len();
                for surface in &surfaces {
                    // Clearance starts above the height of a step.
                    let lift = params.step_height;
                    let feet = Vec3::new(middle.x, surface.height + lift, middle.z);
                    let (radius, height) = (params.radius * ROOM, params.height - lift);
                    if !around.is_free(feet, radius, height) {
                        continue;
                    }
                    let floor = Floor {
                        height: surface.height,
                        slope: surface.slope,
                    };
                    let full = floors.len() - first >= FLOORS_MAX;
                    match floors[first..].last_mut() {
                        Some(last) if floor.height - last.height < FLOOR_GAP_M => *last = floor,
                        _ if full => break,
                        _ => floors.push(floor),
                    }
                }
                starts.push(floors.len() as u16);
            }
        }
        Self {
            starts,
            floors,
            version,
        }
    }
}

/// Whether there can be a grid at a place.
pub fn on_the_map(place: Vec3) -> bool {
    place.is_finite() && place.abs().max_element() <= EXTENT_M
}

/// The column that contains a place.
pub fn cell_at(place: Vec3) -> (i32, i32) {
    let cell = |v: f32| libm::floorf(v / CELL_M) as i32;
    (cell(place.x), cell(place.z))
}

/// The centre of a column, at a height.
pub fn middle(x: i32, z: i32, height: f32) -> Vec3 {
    Vec3::new((x as f32 + 0.5) * CELL_M, height, (z as f32 + 0.5) * CELL_M)
}

pub fn tile_of(x: i32, z: i32) -> TileKey {
    (x.div_euclid(TILE_CELLS), z.div_euclid(TILE_CELLS))
}

fn tile_at(place: Vec3) -> TileKey {
    let (x, z) = cell_at(place.clamp(Vec3::splat(-EXTENT_M), Vec3::splat(EXTENT_M)));
    tile_of(x, z)
}
