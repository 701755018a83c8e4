//! The components of entities, with the names and defaults they have in scene.json.
//!
//! Units are metres, seconds, kilograms; y is up and -z is forward. Rotations are quaternions
//! `[x, y, z, w]`.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::check::{Checker, SIZE_MAX, SIZE_MIN, is_attribute_name};
use crate::component::{Component, Field, components, fields};
use crate::physics::{Body, Joint};
use crate::text::shown;
use crate::{Npc, Rule, Transform};

const TAGS_MAX: usize = 32;
const ATTRIBUTES_MAX: usize = 64;
const TEXT_BYTES_MAX: usize = 4096;

/// Labels of an entity.
pub type Tags = Vec<String>;
/// Values of an entity by name.
pub type Attributes = BTreeMap<String, Attribute>;

components! {
    /// Where the entity is, relative to its parent.
    Transform => transform: Transform,
        merge Fields, read_by [Simulation, Drawing, Scripts];
    /// What it collides with, and how it looks.
    Shape => shape: Shape,
        merge Fields, read_by [Simulation, Drawing];
    /// The surface of the shape.
    Material => material: Material,
        merge Fields, read_by [Drawing];
    /// A glTF asset to show instead of the shape.
    Model => model: Model,
        merge Fields, read_by [],
        unused "Model is not drawn yet; a Shape of type \"mesh\" shows the triangles of a glTF file in one colour";
    /// How physics treats the shape.
    Body => body: Body,
        merge Fields, read_by [Simulation];
    /// Ties the body to another one.
    Joint => joint: Joint,
        merge Fields, read_by [Simulation];
    /// Makes the shape a sensor: not solid, but scripts learn what enters and leaves it.
    Trigger => trigger: Trigger,
        merge Fields, read_by [Simulation, Scripts];
    /// A source of light.
    Light => light: Light,
        merge Fields, read_by [Drawing];
    /// A sound at this place.
    Sound => sound: Sound,
        merge Fields, read_by [],
        unused "Sound is not played yet; use Sound.Play in a client script";
    /// Characters appear here, their feet at the entity's position.
    SpawnPoint => spawn_point: SpawnPoint,
        merge Fields, read_by [Simulation];
    /// Makes it a non-player character.
    Npc => npc: Npc,
        merge Fields, read_by [Simulation, Drawing];
    /// The script attached to the entity.
    Script => script: ScriptRef,
        merge Fields, read_by [Scripts];
    /// Labels that scripts find entities by.
    Tag => tag: Tags,
        merge Union, read_by [Scripts];
    /// Named values that scripts read and write, and that clients see.
    #[serde(deserialize_with = "crate::parse::unique_attributes")]
    Attributes => attributes: Attributes,
        merge Names, read_by [Scripts];
    /// The network identity of the entity. The server assigns it when the world loads.
    NetworkIdentity => network_identity: NetworkIdentity,
        merge Fields, read_by [],
        unused "NetworkIdentity is assigned when a world loads; this value is ignored";
}

impl Components {
    /// The components as clients receive them: how a thing looks and what is solid of it. The
    /// patrol of an NPC stays on the server.
    #[must_use]
    pub fn for_clients(mut self) -> Components {
        if let Some(npc) = &mut self.npc {
            npc.patrol.clear();
        }
        if let Some(transform) = &mut self.transform {
            transform.rotation_degrees = None;
        }
        self
    }
}

/// A solid with its centre at the entity's position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

impl Shape {
    const SIZE: Field = Field::range(SIZE_MIN, SIZE_MAX).unit("m").named("size");
    const RADIUS: Field = Field::range(SIZE_MIN, SIZE_MAX).unit("m").named("radius");
    const HEIGHT: Field = Field::range(SIZE_MIN, SIZE_MAX).unit("m").named("height");
    const ASSET: Field = Field::any().widget("asset(glb, gltf)").named("asset");
}

impl Component for Shape {
    const FIELDS: &'static [Field] = &[Shape::SIZE, Shape::RADIUS, Shape::HEIGHT, Shape::ASSET];

    fn check(&self, found: &mut Checker) {
        match self {
            Shape::Box { size } | Shape::Wedge { size } => found.numbers(&Shape::SIZE, size),
            Shape::Sphere { radius } => found.numbers(&Shape::RADIUS, radius),
            Shape::Cylinder { radius, height } => {
                found.numbers(&Shape::RADIUS, radius);
                found.numbers(&Shape::HEIGHT, height);
            }
            Shape::Capsule { radius, height } => {
                found.numbers(&Shape::RADIUS, radius);
                found.numbers(&Shape::HEIGHT, height);
                if *height < 2.0 * radius {
                    found.invalid(
                        "height",
                        "a capsule's height counts both ends: at least twice its radius",
                    );
                }
            }
            Shape::Mesh { asset } => found.asset("asset", asset, &["glb", "gltf"]),
        }
    }
}

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

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Color {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Color".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "A colour, written `\"#rrggbb\"`.",
            "pattern": "^#[0-9a-fA-F]{6}$",
            "x-widget": "color",
        })
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
                shown(&text)
            ))),
        }
    }
}

/// A glTF asset to draw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Path in the package, such as `assets/tree.glb`.
    pub asset: String,
}

fields! {
    Model {
        asset: Field::any().widget("asset(glb, gltf)"),
    }
    with check_model
}

fn check_model(model: &Model, found: &mut Checker) {
    found.asset("asset", &model.asset, &["glb", "gltf"]);
}

/// Marks a shape as a sensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Trigger {}

fields! { Trigger {} }

/// A source of light.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

fields! {
    Light {
        color: Field::any().widget("color"),
        intensity: Field::range(0.0, 1_000.0),
        range: Field::range(0.0, SIZE_MAX).unit("m"),
    }
}

fn white() -> Color {
    Color([0xff; 3])
}

fn one() -> f32 {
    1.0
}

pub(crate) fn default_range() -> f32 {
    10.0
}

/// How light spreads from its entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

fields! {
    Sound {
        asset: Field::any().widget("asset(mp3, ogg, wav)"),
        volume: Field::range(0.0, 1.0),
    }
    with check_sound
}

fn check_sound(sound: &Sound, found: &mut Checker) {
    found.asset("asset", &sound.asset, &["mp3", "ogg", "wav"]);
}

/// A place where characters appear.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct SpawnPoint {
    /// Only for players of this team; for all when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
}

fields! { SpawnPoint {} with check_spawn_point }

fn check_spawn_point(point: &SpawnPoint, found: &mut Checker) {
    if let Some(team) = &point.team {
        found.label("team", team);
    }
}

/// The script of an entity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ScriptRef {
    /// Path below `scripts/`, such as `Workspace/KillBrick.luau`.
    pub path: String,
}

fields! {
    ScriptRef {
        path: Field::any().widget("script"),
    }
    with check_script
}

fn check_script(script: &ScriptRef, found: &mut Checker) {
    let path = &script.path;
    let extension = path.rsplit_once('.').map(|(_, extension)| extension);
    if path.starts_with("scripts/") {
        found.invalid("path", "path starts below scripts/: write \"Workspace/…\"");
    } else if !path.contains('/') || !matches!(extension, Some("luau" | "lua" | "soul")) {
        found.invalid(
            "path",
            "path is a service and a script, such as \"Workspace/Door.luau\"",
        );
    }
}

impl Component for Tags {
    const FIELDS: &'static [Field] = &[];

    fn check(&self, found: &mut Checker) {
        if self.len() > TAGS_MAX {
            found.invalid(None, format!("an entity has at most {TAGS_MAX} tags"));
        }
        for tag in self.iter().take(TAGS_MAX) {
            found.label("tag", tag);
        }
    }
}

impl Component for Attributes {
    const FIELDS: &'static [Field] = &[];

    fn check(&self, found: &mut Checker) {
        if self.len() > ATTRIBUTES_MAX {
            let message = format!("an entity has at most {ATTRIBUTES_MAX} attributes");
            found.invalid(None, message);
        }
        for (name, value) in self.iter().take(ATTRIBUTES_MAX) {
            check_attribute(name, value, found);
        }
    }

    fn from_json(text: &str) -> serde_json::Result<Self> {
        crate::parse::attributes_from_json(text)
    }
}

fn check_attribute(name: &str, value: &Attribute, found: &mut Checker) {
    if !is_attribute_name(name) {
        let message = format!(
            "\"{}\" is not a name for an attribute: use letters, digits and _",
            shown(name)
        );
        found.invalid(name, message);
    }
    match value {
        Attribute::Bool(_) => {}
        Attribute::Number(number) => {
            if !number.is_finite() {
                let message = format!("{} is not a finite number", shown(name));
                found.problem(Rule::NonFiniteNumber, Some(name), message);
            }
        }
        Attribute::String(text) => {
            if text.len() > TEXT_BYTES_MAX {
                let message = format!("{} is longer than {TEXT_BYTES_MAX} bytes", shown(name));
                found.invalid(name, message);
            }
        }
        Attribute::Vector(vector) => {
            for value in vector {
                found.range(&shown(name), *value, -1e9, 1e9);
            }
        }
    }
}

/// A value that a creator gives to an entity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct NetworkIdentity {
    /// Stable id; for an entity of the scene, its scene id.
    pub net_id: u32,
    /// The player who owns it; 0 is the server.
    pub owner_id: u32,
}

fields! { NetworkIdentity {} }
