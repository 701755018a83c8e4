//! The components of entities, with the names and defaults they have in scene.json.
//!
//! Units are metres, seconds, kilograms; y is up and -z is forward. Rotations are quaternions
//! `[x, y, z, w]`.

use serde::{Deserialize, Serialize};

use crate::attributes::Attributes;
use crate::check::{Checker, ComponentProblem, SIZE_MAX};
use crate::color::Color;
use crate::component::{Component, components, fields};
use crate::field::Field;
use crate::label::Label;
use crate::material::Material;
use crate::npc::Npc;
use crate::physics::{Body, BodyKind, Joint};
use crate::shape::Shape;
use crate::transform::Transform;

/// Tags of one entity.
pub const TAGS_MAX: usize = 32;

/// Labels of an entity.
pub type Tags = Vec<String>;

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
    /// Text that every viewer reads, such as a sign.
    Label => label: Label,
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
    #[serde(deserialize_with = "crate::attributes::unique")]
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

    /// The assets that components name, each with its component.
    pub fn assets(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let mesh = match &self.shape {
            Some(Shape::Mesh { asset }) => Some(asset.as_str()),
            _ => None,
        };
        let model = self.model.as_ref().map(|model| model.asset.as_str());
        let sound = self.sound.as_ref().map(|sound| sound.asset.as_str());
        let named = [
            (ComponentKind::Shape, mesh),
            (ComponentKind::Model, model),
            (ComponentKind::Sound, sound),
        ];
        named
            .into_iter()
            .filter_map(|(kind, asset)| Some((kind.name(), asset?)))
    }

    /// Every value that is out of its range; empty when the components can be simulated.
    ///
    /// [`crate::Scene::parse`] has done this already. Components from elsewhere (a script that
    /// spawns) need it after serde has read them.
    pub fn check(&self) -> Vec<ComponentProblem> {
        let mut found = Checker::default();
        self.check_each(&mut found);
        self.check_together(&mut found);
        found.finish()
    }

    /// Components that cannot be on one entity.
    fn check_together(&self, found: &mut Checker) {
        let falls = |body: &Body| body.kind == BodyKind::Dynamic;
        let is_mesh = matches!(self.shape, Some(Shape::Mesh { .. }));
        if is_mesh && self.body.as_ref().is_some_and(falls) {
            found.begin(ComponentKind::Body.name());
            found.invalid(
                "type",
                "a mesh cannot be dynamic: give it a simple shape, or another type of body",
            );
        }
        if self.npc.is_some() && self.shape.is_some() {
            found.begin(ComponentKind::Npc.name());
            found.invalid(None, "it has the body of a character; leave Shape out");
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
