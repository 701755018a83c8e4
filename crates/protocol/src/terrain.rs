//! Changes of voxel terrain on the wire: TERRAFORM_REQUEST, TERRAFORM_APPLIED,
//! CHUNK_DATA. Their effects are in `frolic_terrain`.

use frolic_terrain::{Action, Material, Op, OpError, Shape};
use serde::{Deserialize, Serialize};

pub use frolic_terrain::ChunkVersion;

/// The change of the terrain inside a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
#[serde(rename_all = "lowercase")]
pub enum TerrainAction {
    /// It is filled.
    Add,
    /// It is emptied.
    Subtract,
    /// The existing blocks change their material.
    Paint,
}

/// The shape of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum TerrainShape {
    /// A ball.
    Sphere {
        /// In metres.
        radius: f32,
    },
    /// A box along the axes.
    Box {
        /// In metres along x, y and z.
        size: [f32; 3],
    },
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TerrainOp {
    /// The action.
    pub action: TerrainAction,
    /// The middle of the shape, in metres.
    pub center: [f32; 3],
    /// Its form.
    pub shape: TerrainShape,
    /// Material to add or paint with.
    pub material: Option<String>,
}

/// Why an operation is invalid in any world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TerrainOpError {
    /// Infinite positions would poison computations.
    #[error("center has a number that is not finite")]
    CenterNotFinite,
    /// A ball or a box: exactly one.
    #[error("give either radius or size")]
    NotOneShape,
    /// Sizes must be finite and above zero.
    #[error("radius and size are finite and above 0")]
    BadSize,
    /// Nothing to add or paint with.
    #[error("add and paint need a material other than air")]
    NoMaterial,
    /// An unknown material name.
    #[error("there is no such material")]
    UnknownMaterial,
}

impl From<OpError> for TerrainOpError {
    fn from(error: OpError) -> Self {
        match error {
            OpError::CenterNotFinite => TerrainOpError::CenterNotFinite,
            OpError::NotOneShape => TerrainOpError::NotOneShape,
            OpError::BadSize => TerrainOpError::BadSize,
            OpError::NoMaterial => TerrainOpError::NoMaterial,
        }
    }
}

/// TERRAFORM_APPLIED: the terrain has changed, persistently.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TerraformApplied {
    /// Its position in the world's history.
    pub seq: u64,
    /// The operation.
    pub op: TerrainOp,
    /// The chunks that changed, with their new versions. A client with the previous
    /// version applies the same operation; otherwise the chunk is sent whole.
    pub chunks: Vec<ChunkVersion>,
}

/// CHUNK_DATA: a chunk's current content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChunkData {
    /// Which chunk, in which version.
    pub at: ChunkVersion,
    /// Its blocks, as [`frolic_terrain::codec`] packs them.
    pub zstd: Vec<u8>,
}

impl From<&Op> for TerrainOp {
    fn from(op: &Op) -> Self {
        Self {
            action: match op.action {
                Action::Add => TerrainAction::Add,
                Action::Subtract => TerrainAction::Subtract,
                Action::Paint => TerrainAction::Paint,
            },
            center: op.center,
            shape: match op.shape {
                Shape::Sphere { radius } => TerrainShape::Sphere { radius },
                Shape::Box { size } => TerrainShape::Box { size },
            },
            material: (op.action != Action::Subtract).then(|| op.material.name().to_owned()),
        }
    }
}

impl TerrainOp {
    /// Builds an operation from the fields of its JSON form.
    ///
    /// # Errors
    /// When the numbers describe no shape.
    pub fn new(
        action: TerrainAction,
        center: [f32; 3],
        radius: Option<f32>,
        size: Option<[f32; 3]>,
        material: Option<String>,
    ) -> Result<Self, TerrainOpError> {
        if !center.iter().all(|part| part.is_finite()) {
            return Err(TerrainOpError::CenterNotFinite);
        }
        let is_length = |length: f32| length.is_finite() && length > 0.0;
        let shape = match (radius, size) {
            (Some(radius), None) if is_length(radius) => TerrainShape::Sphere { radius },
            (None, Some(size)) if size.iter().all(|side| is_length(*side)) => {
                TerrainShape::Box { size }
            }
            (Some(_), Some(_)) | (None, None) => return Err(TerrainOpError::NotOneShape),
            _ => return Err(TerrainOpError::BadSize),
        };
        Ok(Self {
            action,
            center,
            shape,
            material,
        })
    }

    /// The operation on a terrain.
    ///
    /// # Errors
    /// When it is invalid: binary messages carry any numbers and names.
    pub fn resolve(&self) -> Result<Op, TerrainOpError> {
        let action = match self.action {
            TerrainAction::Add => Action::Add,
            TerrainAction::Subtract => Action::Subtract,
            TerrainAction::Paint => Action::Paint,
        };
        let shape = match self.shape {
            TerrainShape::Sphere { radius } => Shape::Sphere { radius },
            TerrainShape::Box { size } => Shape::Box { size },
        };
        let material = match &self.material {
            Some(name) => Some(Material::from_name(name).ok_or(TerrainOpError::UnknownMaterial)?),
            None => None,
        };
        Ok(Op::new(action, self.center, shape, material)?)
    }
}
