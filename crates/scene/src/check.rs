//! The ranges that component values must be in. Types alone do not say that a radius is positive
//! or a position near enough to simulate, and the simulation relies on it.

use crate::Rule;
use crate::text::shown;
use crate::{
    Attribute, Body, BodyKind, Components, Groups, Joint, Light, Material, Npc, PatrolPoint, Shape,
    Sound, Transform,
};

/// How far from the origin, in metres, things may be: beyond it `f32` steps exceed 6 cm.
const POSITION_MAX: f32 = 1_000_000.0;
const SIZE_MIN: f32 = 0.001;
const SIZE_MAX: f32 = 100_000.0;
const TAGS_MAX: usize = 32;
const PATROL_POINTS_MAX: usize = 256;
const ATTRIBUTES_MAX: usize = 64;
const NAME_CHARS_MAX: usize = 64;
const TEXT_BYTES_MAX: usize = 4096;

/// A value out of range, and the component it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentProblem {
    /// Name of the component, as in scene.json.
    pub component: &'static str,
    /// The rule that was broken.
    pub rule: Rule,
    /// What is wrong.
    pub message: String,
}

impl Components {
    /// The assets that components name, each with its component.
    pub fn assets(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let mesh = match &self.shape {
            Some(Shape::Mesh { asset }) => Some(asset.as_str()),
            _ => None,
        };
        let model = self.model.as_ref().map(|model| model.asset.as_str());
        let sound = self.sound.as_ref().map(|sound| sound.asset.as_str());
        let named = [("Shape", mesh), ("Model", model), ("Sound", sound)];
        named
            .into_iter()
            .filter_map(|(component, asset)| Some((component, asset?)))
    }

    /// Every value that is out of its range; empty when the components can be simulated.
    ///
    /// [`crate::Scene::parse`] has done this already. Components from elsewhere (a script that
    /// spawns) need it after serde has read them.
    pub fn check(&self) -> Vec<ComponentProblem> {
        let mut found = Checker::default();
        if let Some(transform) = &self.transform {
            found.transform(transform);
        }
        if let Some(shape) = &self.shape {
            found.shape(shape);
        }
        if let Some(material) = &self.material {
            found.material(material);
        }
        if let Some(model) = &self.model {
            found.component = "Model";
            found.asset(&model.asset, &["glb", "gltf"]);
        }
        if let Some(body) = &self.body {
            found.body(body);
            let falls = body.kind == BodyKind::Dynamic;
            if falls && matches!(self.shape, Some(Shape::Mesh { .. })) {
                found
                    .say("a mesh cannot be dynamic: give it a simple shape, and the mesh as Model");
            }
        }
        if let Some(joint) = &self.joint {
            found.joint(joint);
        }
        if let Some(light) = &self.light {
            found.light(light);
        }
        if let Some(sound) = &self.sound {
            found.sound(sound);
        }
        if let Some(team) = self.spawn_point.as_ref().and_then(|s| s.team.as_ref()) {
            found.component = "SpawnPoint";
            found.label("team", team);
        }
        if let Some(npc) = &self.npc {
            found.npc(npc);
            if self.shape.is_some() {
                found.say("it has the body of a character; leave Shape out");
            }
        }
        if let Some(script) = &self.script {
            found.script(&script.path);
        }
        if let Some(tags) = &self.tag {
            found.tags(tags);
        }
        for (count, (name, value)) in self.attributes.iter().flatten().enumerate() {
            found.component = "Attributes";
            if count == ATTRIBUTES_MAX {
                found.say(format!("an entity has at most {ATTRIBUTES_MAX} attributes"));
                break;
            }
            found.attribute(name, value);
        }
        found.problems
    }
}

/// Whether a text can be the name of an entity, prefab, team or tag: 1 to 64 characters, none of
/// them a control character.
pub(super) fn is_label(text: &str) -> bool {
    let chars = text.chars().count();
    (1..=NAME_CHARS_MAX).contains(&chars) && !text.chars().any(char::is_control)
}

#[derive(Default)]
struct Checker {
    component: &'static str,
    problems: Vec<ComponentProblem>,
}

impl Checker {
    fn transform(&mut self, transform: &Transform) {
        self.component = "Transform";
        for value in transform.position {
            self.range("position", value, -POSITION_MAX, POSITION_MAX);
        }
        for value in transform.scale {
            self.range("scale", value, SIZE_MIN, 10_000.0);
        }
        let [x, y, z, w] = transform.rotation;
        let length = (x * x + y * y + z * z + w * w).sqrt();
        if !length.is_finite() || length < 1e-3 {
            self.say(
                "rotation must be a unit quaternion [x, y, z, w]; no rotation is [0, 0, 0, 1]",
            );
        } else if (length - 1.0).abs() > 0.01 {
            let unit = transform.rotation.map(|value| value / length);
            self.say(format!(
                "rotation must be a unit quaternion; did you mean [{:.4}, {:.4}, {:.4}, {:.4}]?",
                unit[0], unit[1], unit[2], unit[3]
            ));
        }
    }

    fn shape(&mut self, shape: &Shape) {
        self.component = "Shape";
        match shape {
            Shape::Box { size } | Shape::Wedge { size } => {
                for value in size {
                    self.range("size", *value, SIZE_MIN, SIZE_MAX);
                }
            }
            Shape::Sphere { radius } => self.range("radius", *radius, SIZE_MIN, SIZE_MAX),
            Shape::Cylinder { radius, height } => {
                self.range("radius", *radius, SIZE_MIN, SIZE_MAX);
                self.range("height", *height, SIZE_MIN, SIZE_MAX);
            }
            Shape::Capsule { radius, height } => {
                self.range("radius", *radius, SIZE_MIN, SIZE_MAX);
                self.range("height", *height, SIZE_MIN, SIZE_MAX);
                if *height < 2.0 * radius {
                    self.say("a capsule's height counts both ends: at least twice its radius");
                }
            }
            Shape::Mesh { asset } => self.asset(asset, &["glb", "gltf"]),
        }
    }

    fn material(&mut self, material: &Material) {
        self.component = "Material";
        self.range("roughness", material.roughness, 0.0, 1.0);
        self.range("metalness", material.metalness, 0.0, 1.0);
        self.range("opacity", material.opacity, 0.0, 1.0);
    }

    fn body(&mut self, body: &Body) {
        self.component = "Body";
        self.range("friction", body.friction, 0.0, 10.0);
        self.range("restitution", body.restitution, 0.0, 1.0);
        self.range("mass", body.mass, 0.001, 1_000_000.0);
        if body.group >= Groups::COUNT {
            self.say(format!("group must be from 0 to 31, not {}", body.group));
        }
    }

    fn joint(&mut self, joint: &Joint) {
        self.component = "Joint";
        let anchors = joint
            .anchor
            .into_iter()
            .chain(joint.other_anchor.into_iter().flatten());
        for value in anchors {
            self.range("anchor", value, -POSITION_MAX, POSITION_MAX);
        }
        let length_sq: f32 = joint.axis.iter().map(|part| part * part).sum();
        if !(1e-6..=1e6).contains(&length_sq) {
            self.say("axis is a direction such as [0, 1, 0]");
        }
        for value in joint.limits.into_iter().flatten() {
            self.range("limits", value, -SIZE_MAX, SIZE_MAX);
        }
        if joint.limits.is_some_and(|[low, high]| low > high) {
            self.say("limits are the lowest first, then the highest");
        }
        self.range("length", joint.length.unwrap_or(0.0), 0.0, SIZE_MAX);
        self.range("stiffness", joint.stiffness, 0.0, 1e6);
        self.range("damping", joint.damping, 0.0, 1e6);
        self.range("speed", joint.speed.unwrap_or(0.0), -1e4, 1e4);
    }

    fn light(&mut self, light: &Light) {
        self.component = "Light";
        self.range("intensity", light.intensity, 0.0, 1_000.0);
        self.range("range", light.range, 0.0, SIZE_MAX);
    }

    fn sound(&mut self, sound: &Sound) {
        self.component = "Sound";
        self.range("volume", sound.volume, 0.0, 1.0);
        self.asset(&sound.asset, &["mp3", "ogg", "wav"]);
    }

    fn npc(&mut self, npc: &Npc) {
        self.component = "Npc";
        self.range("sight_distance", npc.sight_distance, 0.0, 200.0);
        self.range("field_of_view", npc.field_of_view, 0.0, 360.0);
        self.range("hearing_distance", npc.hearing_distance, 0.0, 200.0);
        self.range("walk_speed", npc.walk_speed, 0.0, 20.0);
        self.range("run_speed", npc.run_speed, 0.0, 20.0);
        self.range("patrol_wait", npc.patrol_wait, 0.0, 3600.0);
        self.range("suspicion_rise", npc.suspicion_rise, 0.05, 600.0);
        self.range("suspicion_fall", npc.suspicion_fall, 0.05, 600.0);
        self.range("search_time", npc.search_time, 0.0, 600.0);
        self.range("reach", npc.reach, 0.0, 10.0);
        if npc.patrol.len() > PATROL_POINTS_MAX {
            self.say(format!(
                "a patrol has at most {PATROL_POINTS_MAX} points, not {}",
                npc.patrol.len()
            ));
        }
        for point in npc.patrol.iter().take(PATROL_POINTS_MAX) {
            match point {
                PatrolPoint::At(position) => {
                    for value in *position {
                        self.range("patrol", value, -POSITION_MAX, POSITION_MAX);
                    }
                }
                PatrolPoint::Named(name) => self.label("patrol", name),
            }
        }
        if let Some(team) = &npc.team {
            self.label("team", team);
        }
    }

    fn script(&mut self, path: &str) {
        self.component = "Script";
        let extension = path.rsplit_once('.').map(|(_, extension)| extension);
        if path.starts_with("scripts/") {
            self.say("path starts below scripts/: write \"Workspace/…\"");
        } else if !path.contains('/') || !matches!(extension, Some("luau" | "lua" | "soul")) {
            self.say("path is a service and a script, such as \"Workspace/Door.luau\"");
        }
    }

    fn tags(&mut self, tags: &[String]) {
        self.component = "Tag";
        if tags.len() > TAGS_MAX {
            self.say(format!("an entity has at most {TAGS_MAX} tags"));
        }
        for tag in tags.iter().take(TAGS_MAX) {
            self.label("tag", tag);
        }
    }

    fn attribute(&mut self, name: &str, value: &Attribute) {
        let mut bytes = name.bytes();
        let starts_well = bytes
            .next()
            .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
        let goes_on_well = bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !(starts_well && goes_on_well && name.len() <= NAME_CHARS_MAX) {
            self.say(format!(
                "\"{}\" is not a name for an attribute: use letters, digits and _",
                shown(name)
            ));
        }
        match value {
            Attribute::Bool(_) => {}
            Attribute::Number(number) => {
                if !number.is_finite() {
                    self.problem(
                        Rule::NonFiniteNumber,
                        format!("{name} is not a finite number"),
                    );
                }
            }
            Attribute::String(text) => {
                if text.len() > TEXT_BYTES_MAX {
                    self.say(format!("{name} is longer than {TEXT_BYTES_MAX} bytes"));
                }
            }
            Attribute::Vector(vector) => {
                for value in vector {
                    self.range(name, *value, -1e9, 1e9);
                }
            }
        }
    }

    fn asset(&mut self, path: &str, extensions: &[&str]) {
        let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
        if !path.starts_with("assets/") || !extensions.contains(&extension) {
            self.say(format!(
                "asset must be a path below assets/ that ends in {}, not \"{}\"",
                extensions.join(" or "),
                shown(path)
            ));
        }
    }

    fn label(&mut self, what: &str, text: &str) {
        if !is_label(text) {
            self.say(format!(
                "{what} must be 1 to {NAME_CHARS_MAX} characters without control characters"
            ));
        }
    }

    fn range(&mut self, what: &str, value: f32, min: f32, max: f32) {
        if !value.is_finite() {
            self.problem(
                Rule::NonFiniteNumber,
                format!("{what} is not a finite number"),
            );
        } else if !(min..=max).contains(&value) {
            self.say(format!("{what} must be from {min} to {max}, not {value}"));
        }
    }

    fn say(&mut self, message: impl Into<String>) {
        self.problem(Rule::InvalidValue, message.into());
    }

    fn problem(&mut self, rule: Rule, message: String) {
        let component = self.component;
        self.problems.push(ComponentProblem {
            component,
            rule,
            message,
        });
    }
}
