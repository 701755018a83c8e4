//! The Material component: how a surface looks.

use serde::{Deserialize, Serialize};

use crate::color::Color;
use crate::component::fields;
use crate::field::Field;

/// How a surface looks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Material {
    /// Base colour.
    pub color: Color,
    /// 0 is a mirror, 1 is chalk.
    #[cfg_attr(feature = "schema", schemars(!skip_serializing_if))]
    #[serde(skip_serializing_if = "is_default_roughness")]
    pub roughness: f32,
    /// 0 is plastic, 1 is metal.
    #[cfg_attr(feature = "schema", schemars(!skip_serializing_if))]
    #[serde(skip_serializing_if = "is_zero")]
    pub metalness: f32,
    /// Light that the surface gives off by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub emissive: Option<Color>,
    /// 0 is invisible, 1 is solid.
    #[cfg_attr(feature = "schema", schemars(!skip_serializing_if))]
    #[serde(skip_serializing_if = "is_f32_one")]
    pub opacity: f32,
    /// A drawn surface.
    #[cfg_attr(feature = "schema", schemars(!skip_serializing_if))]
    #[serde(skip_serializing_if = "is_plain")]
    pub pattern: Pattern,
}

impl Default for Material {
    fn default() -> Self {
        Material {
            color: Color([0xb8, 0xb8, 0xc4]),
            roughness: 0.8,
            metalness: 0.0,
            emissive: None,
            opacity: 1.0,
            pattern: Pattern::Plain,
        }
    }
}

fields! {
    Material {
        color: Field::any().widget("color"),
        roughness: Field::range(0.0, 1.0),
        metalness: Field::range(0.0, 1.0),
        emissive: Field::any().widget("color"),
        opacity: Field::range(0.0, 1.0),
    }
}

fn is_default_roughness(value: &f32) -> bool {
    *value == 0.8
}

fn is_zero(value: &f32) -> bool {
    *value == 0.0
}

fn is_f32_one(value: &f32) -> bool {
    *value == 1.0
}

fn is_plain(pattern: &Pattern) -> bool {
    *pattern == Pattern::Plain
}

/// What is drawn on a surface on top of its colour; a hint that a client may ignore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// Nothing.
    #[default]
    Plain,
    /// Rows of round studs.
    Studs,
    /// Two tones in squares of a metre.
    Checker,
    /// Blades and flecks.
    Grass,
    /// Wooden boards.
    Planks,
}

impl Pattern {
    /// As `scene.json` writes it.
    pub fn name(self) -> &'static str {
        match self {
            Pattern::Plain => "plain",
            Pattern::Studs => "studs",
            Pattern::Checker => "checker",
            Pattern::Grass => "grass",
            Pattern::Planks => "planks",
        }
    }
}
