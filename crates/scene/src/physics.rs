//! The components that physics reads: bodies, the groups they are in, and joints.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::check::{Checker, POSITION_MAX, SIZE_MAX};
use crate::component::fields;
use crate::field::{Field, Numbers};

/// How physics moves the shape.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Body {
    /// Who moves it.
    #[serde(rename = "type")]
    pub kind: BodyKind,
    /// 0 is ice, 1 is rubber.
    #[serde(default = "default_friction")]
    pub friction: f32,
    /// 0 does not bounce, 1 bounces for ever.
    #[serde(default)]
    pub restitution: f32,
    /// Kilograms; only dynamic bodies use it.
    #[serde(default = "default_mass")]
    pub mass: f32,
    /// The group it is in, 0 to 31. An entity without Body is in group 0, characters are in
    /// group 31.
    #[cfg_attr(feature = "schema", schemars(!skip_serializing_if))]
    #[serde(default, skip_serializing_if = "is_group_zero")]
    pub group: u8,
    /// Groups that it passes through, and that pass through it.
    #[cfg_attr(feature = "schema", schemars(!skip_serializing_if))]
    #[serde(default, skip_serializing_if = "Groups::is_empty")]
    pub ignores: Groups,
}

fields! {
    Body {
        friction: Field::range(0.0, 10.0),
        restitution: Field::range(0.0, 1.0),
        mass: Field::range(0.001, 1_000_000.0).unit("kg"),
        group: Field::range(0.0, 31.0),
        ignores: Field::any().widget("groups"),
    }
}

impl Body {
    /// The group of all characters.
    pub const CHARACTERS: u8 = 31;

    /// A body of that kind, everything else as when it is left out.
    pub fn new(kind: BodyKind) -> Self {
        Self {
            kind,
            friction: default_friction(),
            restitution: 0.0,
            mass: default_mass(),
            group: 0,
            ignores: Groups::default(),
        }
    }
}

fn default_friction() -> f32 {
    0.5
}

fn default_mass() -> f32 {
    1.0
}

fn is_group_zero(group: &u8) -> bool {
    *group == 0
}

/// The cause of a body's movement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BodyKind {
    /// Nothing: it stays.
    Static,
    /// Forces and collisions.
    Dynamic,
    /// Scripts; characters ride on it.
    Kinematic,
}

/// A set of groups, written as a list of numbers from 0 to 31.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Groups(
    /// One bit for each group.
    pub u32,
);

impl Groups {
    /// How many groups there are.
    pub const COUNT: u8 = 32;

    /// Whether a group is in the set.
    pub fn contains(self, group: u8) -> bool {
        group < Self::COUNT && self.0 >> group & 1 == 1
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.0 == 0
    }
}

impl Numbers for Groups {}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Groups {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Groups".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "array",
            "description": "A set of groups, written as a list of numbers from 0 to 31.",
            "items": { "type": "integer", "minimum": 0, "maximum": 31 },
        })
    }
}

impl Serialize for Groups {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((0..Self::COUNT).filter(|group| self.contains(*group)))
    }
}

impl<'de> Deserialize<'de> for Groups {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut bits = 0u32;
        for group in Vec::<u8>::deserialize(deserializer)? {
            if group >= Self::COUNT {
                let message = format!("{group} is not a group: they are numbered from 0 to 31");
                return Err(serde::de::Error::custom(message));
            }
            bits |= 1 << group;
        }
        Ok(Groups(bits))
    }
}

/// Ties a body to another one, or to its place in the world.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Joint {
    /// How it may still move.
    #[serde(rename = "type")]
    pub kind: JointKind,
    /// Id of the entity that it is tied to; to the world when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<u32>,
    /// Where it is tied, seen from its own centre, in metres.
    #[serde(default)]
    pub anchor: [f32; 3],
    /// Where the other one is tied, seen from the other's centre (a place in the world without
    /// one). Left out: ropes and springs take the other's centre, everything else the place
    /// where `anchor` is at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_anchor: Option<[f32; 3]>,
    /// What a hinge turns around and a slider slides along, seen from itself.
    #[cfg_attr(feature = "schema", schemars(!skip_serializing_if))]
    #[serde(default = "up", skip_serializing_if = "is_up")]
    pub axis: [f32; 3],
    /// Lowest and highest: degrees of a hinge, metres of a slider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<[f32; 2]>,
    /// The longest that a rope gets, and what a spring wants to be; as it is at the start when
    /// left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<f32>,
    /// How strongly a spring pulls, in newtons per metre.
    #[cfg_attr(feature = "schema", schemars(!skip_serializing_if))]
    #[serde(
        default = "default_stiffness",
        skip_serializing_if = "is_default_stiffness"
    )]
    pub stiffness: f32,
    /// How quickly a spring calms down.
    #[cfg_attr(feature = "schema", schemars(!skip_serializing_if))]
    #[serde(
        default = "default_damping",
        skip_serializing_if = "is_default_damping"
    )]
    pub damping: f32,
    /// A motor: degrees per second of a hinge, metres per second of a slider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<f32>,
    /// Whether the two still bump into each other.
    #[cfg_attr(feature = "schema", schemars(!skip_serializing_if))]
    #[serde(default, skip_serializing_if = "is_false")]
    pub collide: bool,
}

fields! {
    Joint {
        with: Field::any().widget("entity"),
        anchor: Field::range(-POSITION_MAX, POSITION_MAX).unit("m"),
        other_anchor: Field::range(-POSITION_MAX, POSITION_MAX).unit("m"),
        axis: Field::any().widget("direction"),
        limits: Field::range(-SIZE_MAX, SIZE_MAX),
        length: Field::range(0.0, SIZE_MAX).unit("m"),
        stiffness: Field::range(0.0, 1e6).unit("N/m"),
        damping: Field::range(0.0, 1e6),
        speed: Field::range(-1e4, 1e4),
    }
    with check_joint
}

fn check_joint(joint: &Joint, found: &mut Checker) {
    let length_sq: f32 = joint.axis.iter().map(|part| part * part).sum();
    if !(1e-6..=1e6).contains(&length_sq) {
        found.invalid("axis", "axis is a direction such as [0, 1, 0]");
    }
    if joint.limits.is_some_and(|[low, high]| low > high) {
        found.invalid("limits", "limits are the lowest first, then the highest");
    }
}

impl Joint {
    /// A joint of that kind, everything else as when it is left out.
    pub fn new(kind: JointKind) -> Self {
        Self {
            kind,
            with: None,
            anchor: [0.0; 3],
            other_anchor: None,
            axis: up(),
            limits: None,
            length: None,
            stiffness: default_stiffness(),
            damping: default_damping(),
            speed: None,
            collide: false,
        }
    }
}

fn up() -> [f32; 3] {
    [0.0, 1.0, 0.0]
}

fn is_up(axis: &[f32; 3]) -> bool {
    *axis == up()
}

fn default_stiffness() -> f32 {
    100.0
}

fn is_default_stiffness(value: &f32) -> bool {
    *value == default_stiffness()
}

fn default_damping() -> f32 {
    5.0
}

fn is_default_damping(value: &f32) -> bool {
    *value == default_damping()
}

fn is_false(value: &bool) -> bool {
    !value
}

/// How two joined bodies may still move against each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum JointKind {
    /// Not at all.
    Fixed,
    /// Around one axis: doors, wheels.
    Hinge,
    /// Around a point: chains.
    Ball,
    /// Along one axis: lifts, drawers.
    Slider,
    /// Freely, up to a distance.
    Rope,
    /// Freely, pulled towards a distance.
    Spring,
}
