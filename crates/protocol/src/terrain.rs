//! What clients ask of voxel terrain (TERRAFORM_REQUEST). Worlds have none
//! yet; a server that gets such a request says so.

use serde::{Deserialize, Serialize};

/// What happens to the ground inside a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
#[serde(rename_all = "lowercase")]
pub enum TerrainAction {
    /// It is filled.
    Add,
    /// It is emptied.
    Subtract,
    /// What is there changes its material.
    Paint,
}

/// Where it happens.
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
    /// What happens.
    pub action: TerrainAction,
    /// The middle of the shape, in metres.
    pub center: [f32; 3],
    /// Its form.
    pub shape: TerrainShape,
    /// What to add or paint with.
    pub material: Option<String>,
}

/// Why an operation makes no sense in any world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TerrainOpError {
    /// Infinite places would poison whatever computes with them.
    #[error("center has a number that is not finite")]
    CenterNotFinite,
    /// A ball or a box, not both and not neither.
    #[error("give either radius or size")]
    NotOneShape,
    /// Nothing has a size of zero, less than that, or without end.
    #[error("radius and size are finite and above 0")]
    BadSize,
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
}
