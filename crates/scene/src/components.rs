//! The components of entities, with the names and defaults they have in scene.json.
//!
//! Units are metres, seconds, kilograms; y is up and -z is forward. Rotations are quaternions
//! `[x, y, z, w]`.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::physics::{Body, Joint};

/// Everything an entity can have: each component at most once.
///
/// An entity with a [`Shape`] and neither [`Body`] nor [`Trigger`] is solid and never moves by
/// physics. `serde` reads and writes it as in scene.json and refuses unknown names; values from
/// scripts must also pass [`Components::check`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields, default)]
pub struct Components {
    /// Where the entity is, relative to its parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transform: Option<Transform>,
    /// What it collides with and, without a [`Model`], how it looks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<Shape>,
    /// The surface of the shape.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub material: Option<Material>,
    /// A glTF asset to show instead of the shape.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Model>,
    /// How physics treats the shape.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Body>,
    /// Ties the body to another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joint: Option<Joint>,
    /// Makes the shape a sensor: not solid, but it notices who enters and leaves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Trigger>,
    /// A source of light.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub light: Option<Light>,
    /// A sound at this place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sound: Option<Sound>,
    /// Characters appear here, their feet at the entity's position.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spawn_point: Option<SpawnPoint>,
    /// Makes it a non-player character.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub npc: Option<crate::Npc>,
    /// The script attached to the entity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<ScriptRef>,
    /// Labels that scripts find entities by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<Vec<String>>,
    /// Named values that scripts read and write, and that clients see.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::parse::unique_attributes"
    )]
    pub attributes: Option<BTreeMap<String, Attribute>>,
    /// Who the entity is on the network. The server assigns it when the world loads: a value in
    /// a scene is kept in the file but ignored, with a warning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_identity: Option<NetworkIdentity>,
}

impl Components {
    /// These components laid over those of a prefab; see [`crate::Scene::resolved`].
    pub fn over(self, prefab: &Components) -> Components {
        let mut tag = prefab.tag.clone().unwrap_or_default();
        for own in self.tag.iter().flatten() {
            if !tag.contains(own) {
                tag.push(own.clone());
            }
        }
        let mut attributes = prefab.attributes.clone().unwrap_or_default();
        attributes.extend(self.attributes.clone().unwrap_or_default());
        let has_tag = self.tag.is_some() || prefab.tag.is_some();
        let has_attributes = self.attributes.is_some() || prefab.attributes.is_some();
        Components {
            transform: self.transform.or(prefab.transform),
            shape: self.shape.or_else(|| prefab.shape.clone()),
            material: self.material.or_else(|| prefab.material.clone()),
            model: self.model.or_else(|| prefab.model.clone()),
            body: self.body.or(prefab.body),
            joint: self.joint.or(prefab.joint),
            trigger: self.trigger.or(prefab.trigger),
            light: self.light.or(prefab.light),
            sound: self.sound.or_else(|| prefab.sound.clone()),
            spawn_point: self.spawn_point.or_else(|| prefab.spawn_point.clone()),
            npc: self.npc.or_else(|| prefab.npc.clone()),
            script: self.script.or_else(|| prefab.script.clone()),
            tag: has_tag.then_some(tag),
            attributes: has_attributes.then_some(attributes),
            network_identity: self.network_identity.or(prefab.network_identity),
        }
    }

    /// As players' machines get them: how a thing looks and what is solid of it. Where an NPC is
    /// on its way to, out of everybody's sight, stays on the server.
    #[must_use]
    pub fn for_clients(mut self) -> Components {
        if let Some(npc) = &mut self.npc {
            npc.patrol.clear();
        }
        self
    }
}

/// Position, rotation and size relative to the parent, or to the world without one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Transform {
    /// Metres.
    pub position: [f32; 3],
    /// Unit quaternion `[x, y, z, w]`.
    #[serde(
        skip_serializing_if = "is_identity",
        deserialize_with = "crate::quaternion::deserialize"
    )]
    pub rotation: [f32; 4],
    /// Factor on each own axis; shapes and models are scaled with it.
    #[serde(skip_serializing_if = "is_one")]
    pub scale: [f32; 3],
}

impl Default for Transform {
    fn default() -> Self {
        Transform {
            position: [0.0; 3],
            rotation: [0.0, 0.0, 0.0, 1.0],
            scale: [1.0; 3],
        }
    }
}

fn is_identity(rotation: &[f32; 4]) -> bool {
    *rotation == [0.0, 0.0, 0.0, 1.0]
}

fn is_one(scale: &[f32; 3]) -> bool {
    *scale == [1.0; 3]
}

/// A solid with its centre at the entity's position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Shape {
    /// A cuboid.
    Box {
        /// Full width (x), height (y) and depth (z).
        size: [f32; 3],
    },
    /// A ball.
    Sphere {
        /// Metres.
        radius: f32,
    },
    /// A cylinder along y with half a ball at each end.
    Capsule {
        /// Metres.
        radius: f32,
        /// Total height with both ends: at least twice the radius.
        height: f32,
    },
    /// A cylinder along y.
    Cylinder {
        /// Metres.
        radius: f32,
        /// Total height.
        height: f32,
    },
    /// A ramp: the box of this size cut along a diagonal. The slope rises towards -z: it is
    /// at the bottom at +z and has its upright, full-height back at -z. The corners are
    /// (±x/2, -y/2, ±z/2) and (±x/2, +y/2, -z/2).
    Wedge {
        /// Full width (x), height (y) and depth (z).
        size: [f32; 3],
    },
    /// The triangles of a glTF asset; only for bodies that do not fall.
    Mesh {
        /// Path in the package, such as `assets/rock.glb`.
        asset: String,
    },
}

/// How a surface looks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Material {
    /// Base colour.
    pub color: Color,
    /// 0 is a mirror, 1 is chalk.
    #[serde(skip_serializing_if = "is_default_roughness")]
    pub roughness: f32,
    /// 0 is plastic, 1 is metal.
    #[serde(skip_serializing_if = "is_zero")]
    pub metalness: f32,
    /// Light that the surface gives off by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub emissive: Option<Color>,
    /// 0 is invisible, 1 is solid.
    #[serde(skip_serializing_if = "is_f32_one")]
    pub opacity: f32,
    /// A drawn surface.
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

/// A colour, written `"#rrggbb"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Color(
    /// Red, green, blue.
    pub [u8; 3],
);

impl std::fmt::Display for Color {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [r, g, b] = self.0;
        write!(f, "#{r:02x}{g:02x}{b:02x}")
    }
}

impl Serialize for Color {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Color {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text.strip_prefix('#').filter(|digits| {
            digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        });
        let rgb = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        match rgb {
            Some(rgb) => Ok(Color([(rgb >> 16) as u8, (rgb >> 8) as u8, rgb as u8])),
            None => Err(serde::de::Error::custom(format!(
                "\"{}\" is not a colour; write it as \"#rrggbb\"",
                crate::text::shown(&text)
            ))),
        }
    }
}

/// A glTF asset to draw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Path in the package, such as `assets/tree.glb`.
    pub asset: String,
}

/// Marks a shape as a sensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trigger {}

/// A source of light.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Light {
    /// How the light spreads.
    #[serde(rename = "type")]
    pub kind: LightKind,
    /// Its colour; white when left out.
    #[serde(default = "white")]
    pub color: Color,
    /// Brightness; 1 is normal.
    #[serde(default = "one")]
    pub intensity: f32,
    /// How far it reaches, in metres; a sun reaches everywhere.
    #[serde(default = "default_range")]
    pub range: f32,
}

fn white() -> Color {
    Color([0xff; 3])
}

fn one() -> f32 {
    1.0
}

pub(super) fn default_range() -> f32 {
    10.0
}

/// How light spreads from its entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LightKind {
    /// In all directions.
    Point,
    /// In a cone along the entity's -z.
    Spot,
    /// Parallel, from far away, along the entity's -z.
    Sun,
}

/// A sound that comes from the entity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sound {
    /// Path in the package, such as `assets/wind.ogg`.
    pub asset: String,
    /// 0 to 1.
    #[serde(default = "one")]
    pub volume: f32,
    /// Whether it starts again at its end.
    #[serde(default)]
    pub looped: bool,
}

/// A place where characters appear.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SpawnPoint {
    /// Only for players of this team; for all when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
}

/// The script of an entity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptRef {
    /// Path below `scripts/`, such as `Workspace/KillBrick.luau`.
    pub path: String,
}

/// A value that a creator gives to an entity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "an attribute is a number, true or false, a string, or [x, y, z]"
)]
pub enum Attribute {
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A text.
    String(String),
    /// `[x, y, z]`.
    Vector([f32; 3]),
}

/// Who an entity is on the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkIdentity {
    /// Stable id; for an entity of the scene, its scene id.
    pub net_id: u32,
    /// The player who owns it; 0 is the server.
    pub owner_id: u32,
}
