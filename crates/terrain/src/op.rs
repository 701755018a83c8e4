//! Operations: add, subtract or paint inside a sphere or a box.

use serde::{Deserialize, Serialize};

use crate::chunk::Chunk;
use crate::grid::{self, BlockPos, BlockRange, ChunkPos, Grid};
use crate::material::Material;

/// The effect inside a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// All blocks become the material.
    Add,
    /// All blocks become air.
    Subtract,
    /// Existing blocks become the material; air stays.
    Paint,
}

/// The extent. A block belongs to a shape if its centre does, and the block
/// that contains the shape's centre always does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// A sphere.
    Sphere {
        /// In metres.
        radius: f32,
    },
    /// An axis-aligned box.
    Box {
        /// In metres along x, y and z.
        size: [f32; 3],
    },
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Op {
    /// The effect.
    pub action: Action,
    /// The centre of the shape, in metres.
    pub center: [f32; 3],
    /// Its shape.
    pub shape: Shape,
    /// The material to add or paint with; air for a subtraction.
    pub material: Material,
}

/// Why an operation is not valid in any world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpError {
    /// Non-finite positions would poison all computations.
    #[error("center has a number that is not finite")]
    CenterNotFinite,
    /// A sphere or a box, not both and not neither.
    #[error("give either radius or size")]
    NotOneShape,
    /// A size that is not positive and finite.
    #[error("radius and size are finite and above 0")]
    BadSize,
    /// No material to add or paint with.
    #[error("add and paint need a material other than air")]
    NoMaterial,
}

/// An operation in JSON.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonOp {
    op: Action,
    center: [f32; 3],
    #[serde(default, skip_serializing_if = "Option::is_none")]
    radius: Option<f32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<[f32; 3]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    material: Option<Material>,
}

impl Serialize for Op {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (radius, size) = match self.shape {
            Shape::Sphere { radius } => (Some(radius), None),
            Shape::Box { size } => (None, Some(size)),
        };
        JsonOp {
            op: self.action,
            center: self.center,
            radius,
            size,
            material: (self.action != Action::Subtract).then_some(self.material),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Op {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = JsonOp::deserialize(deserializer)?;
        let shape = match (json.radius, json.size) {
            (Some(radius), None) => Ok(Shape::Sphere { radius }),
            (None, Some(size)) => Ok(Shape::Box { size }),
            _ => Err(OpError::NotOneShape),
        };
        shape
            .and_then(|shape| Op::new(json.op, json.center, shape, json.material))
            .map_err(serde::de::Error::custom)
    }
}

impl Op {
    /// A valid operation.
    ///
    /// # Errors
    /// If its numbers do not describe a shape, or it needs a material.
    pub fn new(
        action: Action,
        center: [f32; 3],
        shape: Shape,
        material: Option<Material>,
    ) -> Result<Self, OpError> {
        if !center.iter().all(|part| part.is_finite()) {
            return Err(OpError::CenterNotFinite);
        }
        let is_length = |length: f32| length.is_finite() && length > 0.0;
        let good = match shape {
            Shape::Sphere { radius } => is_length(radius),
            Shape::Box { size } => size.iter().all(|side| is_length(*side)),
        };
        if !good {
            return Err(OpError::BadSize);
        }
        let material = match action {
            Action::Subtract => Material::AIR,
            Action::Add | Action::Paint => material
                .filter(|material| *material != Material::AIR)
                .ok_or(OpError::NoMaterial)?,
        };
        Ok(Self {
            action,
            center,
            shape,
            material,
        })
    }

    /// Fills the box between two corners with a material, possibly air. The
    /// corners must be finite and ordered.
    pub fn fill(min: [f32; 3], max: [f32; 3], material: Material) -> Self {
        let action = match material {
            Material::AIR => Action::Subtract,
            _ => Action::Add,
        };
        Self {
            action,
            center: std::array::from_fn(|axis| (min[axis] + max[axis]) * 0.5),
            shape: Shape::Box {
                size: std::array::from_fn(|axis| max[axis] - min[axis]),
            },
            material,
        }
    }

    /// Half of its extent along each axis, in metres.
    pub fn half(&self) -> [f32; 3] {
        match self.shape {
            Shape::Sphere { radius } => [radius; 3],
            Shape::Box { size } => size.map(|side| side * 0.5),
        }
    }

    /// The blocks that it may change, within the terrain.
    pub fn blocks(&self, grid: &Grid) -> BlockRange {
        let half = self.half();
        let corner = |sign: f32| std::array::from_fn(|axis| self.center[axis] + half[axis] * sign);
        grid.blocks_meeting(corner(-1.0), corner(1.0))
    }

    /// Whether any of its blocks can be inside a box in metres.
    pub fn meets(&self, grid: &Grid, min: [f32; 3], max: [f32; 3]) -> bool {
        // A block that only touches the box from outside is not in it.
        let last = |at: f32| libm::ceilf(at / grid.block_m()) as i32 - 1;
        let area = BlockRange {
            min: grid.block_at(min),
            max: max.map(last),
        };
        let range = self.blocks(grid).within(&area);
        if range.is_empty() {
            return false;
        }
        match self.shape {
            Shape::Box { .. } => true,
            Shape::Sphere { radius } => {
                // From the centre to the centre of the nearest block.
                let mut distance_sq = 0.0;
                for axis in 0..3 {
                    let low = (range.min[axis] as f32 + 0.5) * grid.block_m();
                    let high = (range.max[axis] as f32 + 0.5) * grid.block_m();
                    let aside = self.center[axis] - self.center[axis].clamp(low, high);
                    distance_sq += aside * aside;
                }
                let home = grid.block_at(self.center);
                distance_sq <= radius * radius
                    || (0..3).all(|axis| (range.min[axis]..=range.max[axis]).contains(&home[axis]))
            }
        }
    }

    /// Applies it to the blocks of one chunk; returns whether any changed.
    pub(crate) fn apply_to(&self, chunk: &mut Chunk, at: ChunkPos, grid: &Grid) -> bool {
        let of_chunk = grid::blocks_of(at);
        let range = self.blocks(grid).within(&of_chunk);
        if range.is_empty() {
            return false;
        }
        let inside = Inside::new(self, grid);
        if range == of_chunk && inside.holds_all(&range) {
            return self.apply_to_all(chunk);
        }
        let mut changed = false;
        let mut writer = chunk.writer();
        for y in range.min[1]..=range.max[1] {
            for z in range.min[2]..=range.max[2] {
                for x in range.min[0]..=range.max[0] {
                    if !inside.holds([x, y, z]) {
                        continue;
                    }
                    let index = grid::index_in_chunk([x, y, z]);
                    if self.action == Action::Paint && writer.get(index) == Material::AIR {
                        continue;
                    }
                    changed |= writer.set(index, self.material);
                }
            }
        }
        if changed {
            chunk.tidy();
        }
        changed
    }

    /// Applies it to a chunk that is entirely inside.
    fn apply_to_all(&self, chunk: &mut Chunk) -> bool {
        match (self.action, chunk.only()) {
            (_, Some(only)) if only == self.material => false,
            (Action::Paint, Some(Material::AIR)) => false,
            (Action::Paint, None) => {
                let mut changed = false;
                let mut writer = chunk.writer();
                for index in 0..grid::CHUNK_BLOCKS {
                    if writer.get(index) != Material::AIR {
                        changed |= writer.set(index, self.material);
                    }
                }
                chunk.tidy();
                changed
            }
            _ => {
                *chunk = Chunk::uniform(self.material);
                true
            }
        }
    }
}

/// Tests which blocks are inside a shape, in units of blocks.
struct Inside {
    center: [f32; 3],
    home: BlockPos,
    form: Form,
}

enum Form {
    Ball { radius_sq: f32 },
    Box { half: [f32; 3] },
}

impl Inside {
    fn new(op: &Op, grid: &Grid) -> Self {
        let block_m = grid.block_m();
        Self {
            center: op.center.map(|at| at / block_m),
            home: grid.block_at(op.center),
            form: match op.shape {
                Shape::Sphere { radius } => Form::Ball {
                    radius_sq: (radius / block_m) * (radius / block_m),
                },
                Shape::Box { size } => Form::Box {
                    half: size.map(|side| side * 0.5 / block_m),
                },
            },
        }
    }

    #[inline]
    fn holds(&self, block: BlockPos) -> bool {
        let from: [f32; 3] =
            std::array::from_fn(|axis| block[axis] as f32 + 0.5 - self.center[axis]);
        let inside = match self.form {
            Form::Ball { radius_sq } => {
                from[0] * from[0] + from[1] * from[1] + from[2] * from[2] <= radius_sq
            }
            // Half-open, or a box of one block on the border of two would be
            // two blocks.
            Form::Box { half } => {
                (0..3).all(|axis| -half[axis] <= from[axis] && from[axis] < half[axis])
            }
        };
        inside || block == self.home
    }

    /// Whether every block of a range is inside: shapes are convex, so its
    /// corners decide.
    fn holds_all(&self, range: &BlockRange) -> bool {
        (0..8).all(|corner| {
            let block = std::array::from_fn(|axis| {
                if corner >> axis & 1 == 0 {
                    range.min[axis]
                } else {
                    range.max[axis]
                }
            });
            self.holds(block)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STONE: Option<Material> = Some(Material::STONE);

    fn grid() -> Grid {
        Grid::new(1.0, [-1, 0, -1], [2, 2, 2])
    }

    fn blocks_of(op: &Op) -> Vec<BlockPos> {
        let mut found = Vec::new();
        for at in op.blocks(&grid()).chunks() {
            let mut chunk = Chunk::uniform(Material::AIR);
            op.apply_to(&mut chunk, at, &grid());
            for y in 0..32 {
                for z in 0..32 {
                    for x in 0..32 {
                        if chunk.get(grid::index_in_chunk([x, y, z])) != Material::AIR {
                            let first = grid::first_block(at);
                            found.push([first[0] + x, first[1] + y, first[2] + z]);
                        }
                    }
                }
            }
        }
        found
    }

    #[test]
    fn a_small_shape_is_the_block_it_is_in() {
        let op = |center, shape| Op::new(Action::Add, center, shape, STONE).unwrap();
        let tiny = Shape::Sphere { radius: 0.01 };
        assert_eq!(blocks_of(&op([3.99, 5.01, -0.01], tiny)), [[3, 5, -1]]);
        let block = Shape::Box { size: [1.0; 3] };
        assert_eq!(blocks_of(&op([3.5, 5.5, 2.5], block)), [[3, 5, 2]]);
        let two = Shape::Box {
            size: [2.0, 1.0, 1.0],
        };
        assert_eq!(blocks_of(&op([4.0, 5.5, 2.5], two)), [[3, 5, 2], [4, 5, 2]]);
        let ball = Shape::Sphere { radius: 1.0 };
        assert_eq!(blocks_of(&op([3.5, 5.5, 2.5], ball)).len(), 7);
        assert_eq!(blocks_of(&op([300.0, 5.5, 2.5], ball)).len(), 0, "outside");
    }

    #[test]
    fn senseless_operations_are_refused() {
        let make = |center, shape, material| Op::new(Action::Add, center, shape, material);
        let ball = Shape::Sphere { radius: 1.0 };
        assert_eq!(
            make([f32::NAN, 0.0, 0.0], ball, STONE),
            Err(OpError::CenterNotFinite)
        );
        for radius in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            let ball = Shape::Sphere { radius };
            assert_eq!(make([0.0; 3], ball, STONE), Err(OpError::BadSize));
        }
        assert_eq!(make([0.0; 3], ball, None), Err(OpError::NoMaterial));
        assert_eq!(
            make([0.0; 3], ball, Some(Material::AIR)),
            Err(OpError::NoMaterial)
        );
        let huge = make([1e30; 3], Shape::Sphere { radius: 3e38 }, STONE).unwrap();
        assert!(huge.blocks(&grid()).volume() <= 2 * 2 * 2 * 32768);
        let json = r#"{"op":"add","center":[1,2,3],"radius":2,"size":[1,1,1],"material":"sand"}"#;
        assert!(serde_json::from_str::<Op>(json).is_err());
        let json = r#"{"op":"subtract","center":[1.0,2.0,3.0],"radius":2.5}"#;
        let op: Op = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&op).unwrap(), json);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Whole chunks at once and block by block give the same result.
        #[test]
        fn shortcuts_never_show(
            center in prop::array::uniform3(-40f32..40.0),
            radius in 0.1f32..60.0,
            sides in prop::array::uniform3(0.1f32..90.0),
            ball in any::<bool>(),
            action in 0..3u8,
            below in 0..3u8,
        ) {
            let action = [Action::Add, Action::Subtract, Action::Paint][usize::from(action)];
            let shape = if ball { Shape::Sphere { radius } } else { Shape::Box { size: sides } };
            let op = Op::new(action, center, shape, STONE).unwrap();
            let grid = grid();
            let inside = Inside::new(&op, &grid);
            for at in grid.blocks().chunks() {
                let start = Chunk::from_fn(|index| match below {
                    0 => Material::AIR,
                    1 => Material::SAND,
                    _ => Material::from_number((index % 5) as u8).unwrap(),
                });
                let mut chunk = start.clone();
                let changed = op.apply_to(&mut chunk, at, &grid);
                prop_assert_eq!(changed, chunk != start);
                let first = grid::first_block(at);
                for index in 0..grid::CHUNK_BLOCKS {
                    let local = [index & 31, index >> 10, index >> 5 & 31];
                    let block = std::array::from_fn(|axis| first[axis] + local[axis] as i32);
                    let before = start.get(index);
                    let touched = inside.holds(block)
                        && (action != Action::Paint || before != Material::AIR);
                    let wanted = if touched { op.material } else { before };
                    prop_assert_eq!(chunk.get(index), wanted, "{:?}", block);
                }
            }
        }
    }
}
