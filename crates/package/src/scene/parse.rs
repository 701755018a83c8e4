//! Reads scene.json piece by piece, so that every problem is found at once and has its place.
//!
//! serde stops at the first error. Here objects are first taken apart into raw members, which
//! point into the text; each component is then read on its own, and an error in one is reported
//! at the right line while the others are still read.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::{self, Deserializer};
use serde_json::value::RawValue;

use super::check::is_label;
use super::{Attribute, Components, Prefab, SCENE_FORMAT, Scene, SceneEntity, Shape};
use crate::json::{Items, Members, nesting_problem};
use crate::text::{LineIndex, shown};
use crate::{Limits, Problem, Report, Rule};

const FILE: &str = "scene.json";
/// Far more text than any real component has; keeps hostile ones from growing in memory.
const COMPONENT_BYTES_MAX: usize = 64 << 10;
const TERRAIN_BYTES_MAX: usize = 4 << 20;
const COMPONENTS: &str = "Transform, Shape, Material, Model, Body, Trigger, Light, Sound, \
    SpawnPoint, Npc, Script, Tag, Attributes or NetworkIdentity";
/// More members than any object of the format has.
const MEMBERS_MAX: usize = 64;

/// Tells whether a path is a file of the package; scenes read without their package have none.
pub(crate) type FileLookup<'f> = Option<&'f dyn Fn(&str) -> bool>;

pub(super) fn parse(
    bytes: &[u8],
    limits: &Limits,
    is_file: FileLookup<'_>,
) -> Result<(Scene, Report), Report> {
    if bytes.len() > limits.scene_bytes_max {
        let message = format!(
            "{} bytes; at most {} are allowed",
            bytes.len(),
            limits.scene_bytes_max
        );
        return Err(Problem::error(Rule::FileSize, FILE, message).into());
    }
    let text = crate::text::utf8(FILE, bytes)?;
    let mut reader = Reader {
        text,
        lines: LineIndex::new(text),
        limits,
        is_file,
        report: Report::new(limits),
    };
    let scene = reader.scene();
    let mut report = reader.report;
    report.sort();
    match scene {
        Some(scene) if !report.has_errors() => Ok((scene, report)),
        _ => Err(report),
    }
}

struct Reader<'t, 'l> {
    text: &'t str,
    lines: LineIndex<'t>,
    limits: &'l Limits,
    is_file: FileLookup<'l>,
    report: Report,
}

/// Where the parts of an entity are in the text, for problems that show only later.
struct Places {
    entity: usize,
    parent: usize,
    prefab: usize,
}

type ComponentPlaces<'t> = Vec<(Cow<'t, str>, usize)>;

impl<'t> Reader<'t, '_> {
    fn scene(&mut self) -> Option<Scene> {
        if let Some(offset) = nesting_problem(self.text, self.limits.json_depth_max) {
            let message = format!("nested deeper than {}", self.limits.json_depth_max);
            self.error(Rule::JsonNesting, offset, message);
            return None;
        }
        let members = match Members::parse(self.text, MEMBERS_MAX) {
            Ok(members) => members,
            Err(error) => {
                self.json_error(self.text, error, "the scene");
                return None;
            }
        };
        let mut scene = Scene {
            format: 0,
            prefabs: BTreeMap::new(),
            entities: vec![],
            terrain: None,
        };
        let mut entities = None;
        for (key, value) in self.unique(members, "the scene") {
            match &*key {
                "format" => scene.format = self.format(value),
                "prefabs" => scene.prefabs = self.prefabs(value),
                "entities" => entities = Some(value),
                "terrain" => scene.terrain = self.terrain(value),
                _ => self.unknown_key(&key, value, "format, prefabs, entities or terrain"),
            }
        }
        if scene.format == 0 {
            let message = format!("missing \"format\": {SCENE_FORMAT}");
            self.error(Rule::MissingKey, 0, message);
        }
        if let Some(entities) = entities {
            scene.entities = self.entities(entities, &scene);
        }
        Some(scene)
    }

    /// The format, or [`SCENE_FORMAT`] when it is wrong: the rest is then read all the same.
    fn format(&mut self, value: &'t RawValue) -> u32 {
        match self.decode::<u32>(value, "format") {
            Some(SCENE_FORMAT) | None => {}
            Some(other) => {
                let message = format!(
                    "format {other} is not known; this version reads format {SCENE_FORMAT}"
                );
                self.error(Rule::InvalidValue, self.offset(value), message);
            }
        }
        SCENE_FORMAT
    }

    fn terrain(&mut self, value: &'t RawValue) -> Option<serde_json::Value> {
        if value.get().len() > TERRAIN_BYTES_MAX {
            let message = format!("terrain is longer than {TERRAIN_BYTES_MAX} bytes");
            self.error(Rule::FileSize, self.offset(value), message);
            return None;
        }
        self.decode(value, "terrain")
    }

    fn prefabs(&mut self, value: &'t RawValue) -> BTreeMap<String, Prefab> {
        let mut prefabs = BTreeMap::new();
        let members = match Members::parse(value.get(), self.limits.prefabs_max) {
            Ok(members) => members,
            Err(error) => {
                self.json_error(value.get(), error, "prefabs");
                return prefabs;
            }
        };
        if members.omitted > 0 {
            let message = format!("more than {} prefabs", self.limits.prefabs_max);
            self.error(Rule::EntityCount, self.offset(value), message);
        }
        for (name, value) in self.unique(members, "prefabs") {
            let mut prefab = Prefab::default();
            if !is_label(&name) {
                let message = "a prefab's name is 1 to 64 characters, no control characters";
                self.error(Rule::InvalidValue, self.offset(value), message);
            }
            for (key, value) in self.object(value, "a prefab") {
                match &*key {
                    "components" => prefab.components = self.components(value).0,
                    _ => self.unknown_key(&key, value, "components"),
                }
            }
            prefabs.insert(name.into_owned(), prefab);
        }
        prefabs
    }

    fn entities(&mut self, value: &'t RawValue, scene: &Scene) -> Vec<SceneEntity> {
        let items = match Items::parse(value.get(), self.limits.entities_max) {
            Ok(items) => items,
            Err(error) => {
                self.json_error(value.get(), error, "entities");
                return vec![];
            }
        };
        if items.omitted > 0 {
            let message = format!(
                "{} entities; at most {} are allowed",
                items.list.len() + items.omitted,
                self.limits.entities_max
            );
            self.error(Rule::EntityCount, self.offset(value), message);
        }
        let mut entities = Vec::with_capacity(items.list.len());
        let mut places = Vec::with_capacity(items.list.len());
        for item in items.list {
            if let Some((entity, place)) = self.entity(item, scene) {
                entities.push(entity);
                places.push(place);
            }
        }
        self.check_ids_and_parents(&entities, &places);
        if !entities.iter().any(|entity| is_spawn_point(scene, entity)) {
            let message = "no entity has a SpawnPoint: characters will appear at [0, 0, 0]";
            self.warning(self.offset(value), message);
        }
        entities
    }

    fn entity(&mut self, value: &'t RawValue, scene: &Scene) -> Option<(SceneEntity, Places)> {
        let at = self.offset(value);
        let mut place = Places {
            entity: at,
            parent: at,
            prefab: at,
        };
        let (mut id, mut name, mut parent, mut prefab) = (None, None, None, None);
        let (mut components, mut spots) = (Components::default(), vec![]);
        let members = self.object(value, "an entity");
        let (mut has_id, mut has_name) = (false, false);
        for (key, value) in members {
            match &*key {
                "id" => (has_id, id) = (true, self.decode::<u32>(value, "id")),
                "name" => (has_name, name) = (true, self.decode::<String>(value, "name")),
                "parent" => {
                    place.parent = self.offset(value);
                    parent = self.decode::<Option<u32>>(value, "parent").flatten();
                }
                "prefab" => {
                    place.prefab = self.offset(value);
                    prefab = self.decode::<Option<String>>(value, "prefab").flatten();
                }
                "components" => (components, spots) = self.components(value),
                _ => self.unknown_key(&key, value, "id, name, parent, prefab or components"),
            }
        }
        for (has, key) in [(has_id, "id"), (has_name, "name")] {
            if !has {
                let message = format!("an entity needs \"{key}\"");
                self.error(Rule::MissingKey, at, message);
            }
        }
        if name.as_ref().is_some_and(|name| !is_label(name)) {
            let message = "an entity's name is 1 to 64 characters, no control characters";
            self.error(Rule::InvalidValue, at, message);
        }
        if let Some(prefab) = prefab.as_ref().filter(|p| !scene.prefabs.contains_key(*p)) {
            let message = format!("there is no prefab \"{}\"", shown(prefab));
            self.error(Rule::UnknownReference, place.prefab, message);
        }
        let entity = SceneEntity {
            id: id?,
            name: name.unwrap_or_default(),
            parent,
            prefab,
            components,
        };
        self.warn_about(&entity, scene, &spots, at);
        Some((entity, place))
    }

    /// Combinations that mean nothing; they need the prefab's components too.
    fn warn_about(
        &mut self,
        entity: &SceneEntity,
        scene: &Scene,
        spots: &ComponentPlaces<'t>,
        at: usize,
    ) {
        let prefab = entity.prefab.as_ref().and_then(|p| scene.prefabs.get(p));
        let own = &entity.components;
        let inherited = prefab.map(|prefab| &prefab.components);
        let has_shape = own.shape.is_some() || inherited.is_some_and(|c| c.shape.is_some());
        let spot = |name: &str| spots.iter().find(|(key, _)| key == name).map(|(_, at)| *at);
        if own.trigger.is_some() && !has_shape {
            let message = "Trigger without Shape: nothing can enter it";
            self.warning(spot("Trigger").unwrap_or(at), message);
        }
        if own.body.is_some() && !has_shape {
            let message = "Body without Shape: nothing can touch it";
            self.warning(spot("Body").unwrap_or(at), message);
        }
        if own.network_identity.is_some() {
            let message = "NetworkIdentity is assigned when a world loads; this value is ignored";
            self.warning(spot("NetworkIdentity").unwrap_or(at), message);
        }
    }

    fn components(&mut self, value: &'t RawValue) -> (Components, ComponentPlaces<'t>) {
        let mut components = Components::default();
        let mut spots = vec![];
        for (key, value) in self.object(value, "components") {
            spots.push((key.clone(), self.offset(value)));
            if value.get().len() > COMPONENT_BYTES_MAX {
                let message = format!("{key} is longer than {COMPONENT_BYTES_MAX} bytes");
                self.error(Rule::FileSize, self.offset(value), message);
                continue;
            }
            let c = &mut components;
            match &*key {
                "Transform" => c.transform = self.decode(value, &key),
                "Shape" => c.shape = self.decode(value, &key),
                "Material" => c.material = self.decode(value, &key),
                "Model" => c.model = self.decode(value, &key),
                "Body" => c.body = self.decode(value, &key),
                "Trigger" => c.trigger = self.decode(value, &key),
                "Light" => c.light = self.decode(value, &key),
                "Sound" => c.sound = self.decode(value, &key),
                "SpawnPoint" => c.spawn_point = self.decode(value, &key),
                "Npc" => c.npc = self.decode(value, &key),
                "Script" => c.script = self.decode(value, &key),
                "Tag" => c.tag = self.decode(value, &key),
                "Attributes" => {
                    c.attributes = self
                        .decode(value, &key)
                        .map(|Unique(attributes)| attributes);
                }
                "NetworkIdentity" => c.network_identity = self.decode(value, &key),
                _ => self.unknown_key(&key, value, COMPONENTS),
            }
        }
        for problem in components.check() {
            let spot = spots.iter().find(|(key, _)| key == problem.component);
            let offset = spot.map_or(self.offset(value), |(_, at)| *at);
            let message = format!("{}: {}", problem.component, problem.message);
            self.error(problem.rule, offset, message);
        }
        self.check_files(&components, &spots);
        (components, spots)
    }

    /// Scripts and assets that components name must be in the package.
    fn check_files(&mut self, components: &Components, spots: &ComponentPlaces<'t>) {
        let Some(is_file) = self.is_file else { return };
        let mesh = match &components.shape {
            Some(Shape::Mesh { asset }) => Some(asset.clone()),
            _ => None,
        };
        let script = components.script.as_ref();
        let named = [
            (
                "Script",
                script.map(|script| format!("scripts/{}", script.path)),
            ),
            ("Shape", mesh),
            ("Model", components.model.as_ref().map(|m| m.asset.clone())),
            ("Sound", components.sound.as_ref().map(|s| s.asset.clone())),
        ];
        for (component, path) in named {
            let Some(path) = path.filter(|path| !is_file(path)) else {
                continue;
            };
            let spot = spots.iter().find(|(key, _)| key == component);
            let message = format!("{component}: there is no file {}", shown(&path));
            self.error(
                Rule::UnknownReference,
                spot.map_or(0, |(_, at)| *at),
                message,
            );
        }
    }

    fn check_ids_and_parents(&mut self, entities: &[SceneEntity], places: &[Places]) {
        let mut index_of = BTreeMap::new();
        for (index, entity) in entities.iter().enumerate() {
            let (id, at) = (entity.id, places[index].entity);
            if !(1..=SceneEntity::ID_MAX).contains(&id) {
                let message = format!("id must be from 1 to {}, not {id}", SceneEntity::ID_MAX);
                self.error(Rule::InvalidValue, at, message);
            }
            if let Some(first) = index_of.insert(id, index) {
                let (line, _) = self.lines.place(places[first].entity);
                let message = format!("id {id} is already used in line {line}");
                self.error(Rule::DuplicateId, at, message);
            }
        }
        // Depth below the root of every entity that is known not to be in a cycle.
        let mut depths: Vec<Option<usize>> = vec![None; entities.len()];
        for start in 0..entities.len() {
            let mut chain = vec![];
            let mut next = Some(start);
            while let Some(index) = next.filter(|index| depths[*index].is_none()) {
                chain.push(index);
                // A cycle is longer than any allowed chain, so this ends it too.
                if chain.len() > self.limits.parent_depth_max {
                    break;
                }
                let parent = entities[index].parent;
                next = parent.and_then(|id| index_of.get(&id).copied());
                if let Some(id) = parent.filter(|_| next.is_none()) {
                    let message = format!("there is no entity {id} to be the parent");
                    self.error(Rule::UnknownReference, places[index].parent, message);
                }
            }
            let above = next.and_then(|index| depths[index]).map_or(0, |d| d + 1);
            let deepest = above + chain.len();
            if deepest > self.limits.parent_depth_max {
                let message = format!(
                    "entity {} is its own ancestor, or more than {} parents deep",
                    entities[start].id, self.limits.parent_depth_max
                );
                self.error(Rule::ParentCycle, places[start].parent, message);
                // Enough to know: marking all of them keeps the walk linear.
                chain.iter().for_each(|index| depths[*index] = Some(0));
                continue;
            }
            for (depth, index) in chain.into_iter().rev().enumerate() {
                depths[index] = Some(above + depth);
            }
        }
    }

    /// The members of an object that is not a map of free names, duplicates reported.
    fn object(&mut self, value: &'t RawValue, what: &str) -> Vec<(Cow<'t, str>, &'t RawValue)> {
        match Members::parse(value.get(), MEMBERS_MAX) {
            Ok(members) => self.unique(members, what),
            Err(error) => {
                self.json_error(value.get(), error, what);
                vec![]
            }
        }
    }

    fn unique(&mut self, members: Members<'t>, what: &str) -> Vec<(Cow<'t, str>, &'t RawValue)> {
        let mut seen = BTreeSet::new();
        let mut unique = Vec::with_capacity(members.list.len());
        for (key, value) in members.list {
            if seen.insert(key.clone()) {
                unique.push((key, value));
            } else {
                let message = format!("\"{}\" appears twice in {what}", shown(&key));
                self.error(Rule::DuplicateKey, self.key_offset(&key, value), message);
            }
        }
        unique
    }

    fn decode<T: Deserialize<'t>>(&mut self, value: &'t RawValue, what: &str) -> Option<T> {
        match serde_json::from_str(value.get()) {
            Ok(decoded) => Some(decoded),
            Err(error) => {
                self.json_error(value.get(), error, what);
                None
            }
        }
    }

    /// Reports an error that serde_json found in `part`, a slice of the text.
    fn json_error(&mut self, part: &'t str, error: serde_json::Error, what: &str) {
        let inside = LineIndex::offset(part, error.line(), error.column());
        let message = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let message = message.strip_suffix(&place).unwrap_or(&message);
        let rule = match () {
            _ if error.is_syntax() && message.contains("out of range") => Rule::NonFiniteNumber,
            _ if error.is_syntax() && message.contains("recursion") => Rule::JsonNesting,
            _ if !error.is_data() => Rule::Syntax,
            _ if message.starts_with("unknown field") => Rule::UnknownKey,
            _ if message.starts_with("missing field") => Rule::MissingKey,
            _ if message.starts_with("duplicate field") => Rule::DuplicateKey,
            _ => Rule::InvalidValue,
        };
        let start = part.as_ptr() as usize - self.text.as_ptr() as usize;
        let message = format!("{}: {}", shown(what), limited(message));
        self.error(rule, start + inside, message);
    }

    fn unknown_key(&mut self, key: &Cow<'t, str>, value: &'t RawValue, known: &str) {
        let message = format!("unknown key \"{}\"; expected {known}", shown(key));
        self.error(Rule::UnknownKey, self.key_offset(key, value), message);
    }

    fn error(&mut self, rule: Rule, offset: usize, message: impl Into<String>) {
        let problem = Problem::error(rule, FILE, message).at(self.lines.place(offset));
        self.report.push(problem);
    }

    fn warning(&mut self, offset: usize, message: &str) {
        let problem = Problem::error(Rule::Suspicious, FILE, message);
        let problem = problem.at(self.lines.place(offset)).as_warning();
        self.report.push(problem);
    }

    fn offset(&self, value: &'t RawValue) -> usize {
        value.get().as_ptr() as usize - self.text.as_ptr() as usize
    }

    /// A key without escapes is a slice of the text; for others its value is near enough.
    fn key_offset(&self, key: &Cow<'t, str>, value: &'t RawValue) -> usize {
        match key {
            Cow::Borrowed(key) => (key.as_ptr() as usize - self.text.as_ptr() as usize) - 1,
            Cow::Owned(_) => self.offset(value),
        }
    }
}

/// serde quotes hostile values in its messages.
fn limited(message: &str) -> String {
    let mut short: String = message.chars().take(300).collect();
    if short.len() < message.len() {
        short.push('…');
    }
    short.replace(char::is_control, "\u{fffd}")
}

fn is_spawn_point(scene: &Scene, entity: &SceneEntity) -> bool {
    let prefab = entity.prefab.as_ref().and_then(|p| scene.prefabs.get(p));
    entity.components.spawn_point.is_some()
        || prefab.is_some_and(|prefab| prefab.components.spawn_point.is_some())
}

/// Attributes whose names are refused when they repeat; serde's maps would keep the last.
struct Unique(BTreeMap<String, Attribute>);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Unique;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object of attributes")
            }

            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Unique, A::Error> {
                let mut attributes = BTreeMap::new();
                while let Some((name, value)) = map.next_entry::<String, Attribute>()? {
                    if attributes.contains_key(&name) {
                        let message = format!("duplicate field `{}`", shown(&name));
                        return Err(de::Error::custom(message));
                    }
                    attributes.insert(name, value);
                }
                Ok(Unique(attributes))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

/// For `#[serde(deserialize_with)]` on [`Components::attributes`].
pub(super) fn unique_attributes<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<BTreeMap<String, Attribute>>, D::Error> {
    let unique = Option::<Unique>::deserialize(deserializer)?;
    Ok(unique.map(|Unique(attributes)| attributes))
}
