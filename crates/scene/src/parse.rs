//! Reads scene.json piece by piece, so that every problem is found at once and has its place.
//!
//! serde stops at the first error. Here objects are first taken apart into raw members, which
//! point into the text; each component is then read on its own, and an error in one is reported
//! at the right line while the others are still read.

pub(super) mod inert;
mod prefabs;
mod references;
mod source;
mod terrain;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::value::RawValue;

use crate::check::is_label;
use crate::json::{Items, Members, nesting_problem};
use crate::text::{LineIndex, shown};
use crate::{ComponentKind, Fields, Limits, Overrides, Problem, Report, Rule, Subject};
use crate::{Components, Prefab, SCENE_FORMAT, Scene, SceneEntity};

const FILE: &str = "scene.json";
/// Far more text than any real component has; keeps hostile ones from growing in memory.
const COMPONENT_BYTES_MAX: usize = 64 << 10;
/// More members than any object of the format has.
const MEMBERS_MAX: usize = 64;

/// Whether a path is a file of the package; scenes read without their package have none.
pub(crate) type FileLookup<'f> = Option<&'f dyn Fn(&str) -> bool>;

impl Scene {
    /// Reads and checks scene.json.
    ///
    /// # Errors
    /// All problems found, each with its line and column. Warnings alone are not an error and
    /// are dropped; [`Scene::parse_with_warnings`] gives them.
    pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Scene, Report> {
        Scene::parse_with_warnings(bytes, limits).map(|(scene, _)| scene)
    }

    /// Like [`Scene::parse`]; the second value lists what is allowed but probably not meant.
    ///
    /// # Errors
    /// As [`Scene::parse`].
    pub fn parse_with_warnings(bytes: &[u8], limits: &Limits) -> Result<(Scene, Report), Report> {
        parse(bytes, limits, None)
    }

    /// Like [`Scene::parse_with_warnings`] for the scene of a package: scripts and assets that
    /// components name must be among its files, of which `is_file` knows the paths.
    ///
    /// # Errors
    /// As [`Scene::parse`].
    pub fn parse_in_package(
        bytes: &[u8],
        limits: &Limits,
        is_file: &dyn Fn(&str) -> bool,
    ) -> Result<(Scene, Report), Report> {
        parse(bytes, limits, Some(is_file))
    }
}

fn parse(
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
        subject: Subject::default(),
        format: SCENE_FORMAT,
        parts: BTreeMap::new(),
        broken: BTreeSet::new(),
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
    /// The part of the scene that is being read; problems name it.
    subject: Subject,
    format: u32,
    /// The parts below the root of each prefab whose tree is valid.
    parts: BTreeMap<String, Rc<prefabs::Parts>>,
    /// Prefabs whose tree is invalid.
    broken: BTreeSet<String>,
}

/// Where the parts of an entity are in the text, for problems that show only later.
struct Places {
    entity: usize,
    parent: usize,
    prefab: usize,
    /// The recorded children of the prefab, by path.
    children: Vec<(String, usize)>,
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
        let members = self.unique(members, "the scene");
        // The format decides how everything else is read, wherever it is in the file.
        match members.iter().find(|(key, _)| key == "format") {
            Some((_, value)) => self.format = self.format(value),
            None => {
                let message = format!("missing \"format\": {SCENE_FORMAT}");
                self.error_in(Some("format"), Rule::MissingKey, 0, message);
            }
        }
        scene.format = self.format;
        for (key, value) in members {
            match &*key {
                "format" => {}
                "prefabs" => scene.prefabs = self.prefabs(value),
                "entities" => entities = Some(value),
                "terrain" => scene.terrain = self.terrain(value),
                _ => {
                    let known = ["format", "prefabs", "entities", "terrain"];
                    self.unknown_key(&key, value, &known);
                }
            }
        }
        if let Some(entities) = entities {
            scene.entities = self.entities(entities, &scene);
        }
        Some(scene)
    }

    /// The format, or [`SCENE_FORMAT`] when it is wrong: the rest is then read all the same.
    fn format(&mut self, value: &'t RawValue) -> u32 {
        match self.decode::<u32>(value, "format") {
            Some(format) if (1..=SCENE_FORMAT).contains(&format) => format,
            Some(other) => {
                let message = format!(
                    "format {other} is not known; this version reads formats 1 to {SCENE_FORMAT}"
                );
                self.error_in(
                    Some("format"),
                    Rule::InvalidValue,
                    self.offset(value),
                    message,
                );
                SCENE_FORMAT
            }
            None => SCENE_FORMAT,
        }
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
        let mut trees = vec![];
        for (name, value) in self.unique(members, "prefabs") {
            let mut prefab = Prefab::default();
            self.subject.prefab = Some(shown(&name));
            if !is_label(&name) {
                let message = "a prefab's name is 1 to 64 characters, no control characters";
                self.error(Rule::InvalidValue, self.offset(value), message);
            }
            for (key, value) in self.object(value, "a prefab") {
                match &*key {
                    "components" => prefab.components = self.components(value, None).0,
                    "children" if self.format >= 2 => trees.push((name.to_string(), value)),
                    _ if self.format >= 2 => {
                        self.unknown_key(&key, value, &["components", "children"]);
                    }
                    _ => self.unknown_key(&key, value, &["components"]),
                }
            }
            prefabs.insert(name.into_owned(), prefab);
        }
        self.subject = Subject::default();
        self.prefab_trees(&mut prefabs, trees);
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
            self.subject.entity = id_of(item);
            if let Some((entity, place)) = self.entity(item, scene) {
                entities.push(entity);
                places.push(place);
            }
        }
        self.subject = Subject::default();
        self.assign_child_ids(&mut entities, &places);
        self.check_ids_and_parents(&entities, &places);
        if !entities
            .iter()
            .any(|entity| self.is_spawn_point(scene, entity))
        {
            let message = "no entity has a SpawnPoint: characters will appear at [0, 0, 0]";
            self.warning(Rule::Suspicious, self.offset(value), message);
        }
        entities
    }

    fn entity(&mut self, value: &'t RawValue, scene: &Scene) -> Option<(SceneEntity, Places)> {
        let at = self.offset(value);
        let mut place = Places {
            entity: at,
            parent: at,
            prefab: at,
            children: vec![],
        };
        let (mut id, mut name, mut parent, mut prefab) = (None, None, None, None);
        let (mut raw_components, mut raw_children) = (None, None);
        let members = self.object(value, "an entity");
        let known: &[&str] = match self.format {
            1 => &["id", "name", "parent", "prefab", "components"],
            _ => &["id", "name", "parent", "prefab", "components", "children"],
        };
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
                "components" => raw_components = Some(value),
                "children" if self.format >= 2 => raw_children = Some(value),
                _ => self.unknown_key(&key, value, known),
            }
        }
        for (has, key) in [(has_id, "id"), (has_name, "name")] {
            if !has {
                let message = format!("an entity needs \"{key}\"");
                self.error_in(Some(key), Rule::MissingKey, at, message);
            }
        }
        if name.as_ref().is_some_and(|name| !is_label(name)) {
            let message = "an entity's name is 1 to 64 characters, no control characters";
            self.error_in(Some("name"), Rule::InvalidValue, at, message);
        }
        if let Some(prefab) = prefab.as_ref().filter(|p| !scene.prefabs.contains_key(*p)) {
            let message = format!("there is no prefab \"{}\"", shown(prefab));
            self.error_in(
                Some("prefab"),
                Rule::UnknownReference,
                place.prefab,
                message,
            );
        }
        let base = prefab.as_ref().and_then(|name| scene.prefabs.get(name));
        let base = base.map(|prefab| &prefab.components);
        let (components, overrides, spots) = match raw_components {
            Some(value) => self.components(value, base),
            None => Default::default(),
        };
        let children = match raw_children {
            Some(value) => self.instance_children(value, prefab.as_deref(), &mut place),
            None => BTreeMap::new(),
        };
        let entity = SceneEntity {
            id: id?,
            name: name.unwrap_or_default(),
            parent,
            prefab,
            components,
            overrides,
            children,
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
            self.within_component("Trigger", |reader| {
                reader.warning(Rule::Suspicious, spot("Trigger").unwrap_or(at), message);
            });
        }
        if own.body.is_some() && !has_shape {
            let message = "Body without Shape: nothing can touch it";
            self.within_component("Body", |reader| {
                reader.warning(Rule::Suspicious, spot("Body").unwrap_or(at), message);
            });
        }
        let has_body = own.body.is_some() || inherited.is_some_and(|c| c.body.is_some());
        if own.joint.is_some() && !has_body {
            let message = "Joint without Body: nothing pulls at it";
            self.within_component("Joint", |reader| {
                reader.warning(Rule::Suspicious, spot("Joint").unwrap_or(at), message);
            });
        }
        if own.material.is_some() && !has_shape {
            let message = "Material without Shape: there is no surface to see it on";
            self.within_component("Material", |reader| {
                reader.warning(Rule::Suspicious, spot("Material").unwrap_or(at), message);
            });
        }
    }

    /// Reads the components of an entity, a prefab or a child; `base` are those of the prefab that
    /// it starts from. The last value says where each component is.
    fn components(
        &mut self,
        value: &'t RawValue,
        base: Option<&Components>,
    ) -> (Components, Overrides, ComponentPlaces<'t>) {
        let base = base.filter(|_| self.format >= 2);
        let (mut components, mut overrides) = (Components::default(), Overrides::default());
        let mut spots = vec![];
        for (key, value) in self.object(value, "components") {
            let Some(kind) = ComponentKind::from_name(&key) else {
                self.unknown_component(&key, value);
                continue;
            };
            spots.push((key, self.offset(value)));
            self.within_component(kind.name(), |reader| match base {
                _ if value.get().len() > COMPONENT_BYTES_MAX => {
                    let name = kind.name();
                    let message = format!("{name} is longer than {COMPONENT_BYTES_MAX} bytes");
                    reader.error(Rule::FileSize, reader.offset(value), message);
                }
                Some(base) if base.merges_fields_of(kind) => {
                    if let Some(fields) = reader.overridden(kind, value, base) {
                        overrides.set(kind, fields);
                    }
                }
                _ => reader.component(kind, value, &mut components),
            });
        }
        let combined = base.map(|base| {
            let mut combined = components.clone().over(base);
            overrides.apply(&mut combined);
            combined
        });
        let all = combined.as_ref().unwrap_or(&components);
        let mut problems = all.check();
        if let Some(base) = base.filter(|_| !problems.is_empty()) {
            // Problems of the prefab have been reported there.
            let known = base.check();
            problems.retain(|problem| !known.contains(problem));
        }
        // A component with errors gets no warnings about what has no effect.
        let sound = problems.is_empty();
        for problem in problems {
            let spot = spots.iter().find(|(key, _)| key == problem.component);
            let offset = spot.map_or(self.offset(value), |(_, at)| *at);
            let message = format!("{}: {}", problem.component, problem.message);
            self.within_component(problem.component, |reader| {
                reader.error_in(problem.field.as_deref(), problem.rule, offset, message);
            });
        }
        self.check_files(all, &spots);
        if sound {
            self.warn_of_inert(all, &spots);
        }
        (components, overrides, spots)
    }

    /// Reads the fields of a component that replace those of the prefab.
    fn overridden(
        &mut self,
        kind: ComponentKind,
        value: &'t RawValue,
        base: &Components,
    ) -> Option<Fields> {
        let errors = self.report.error_count();
        let mut fields = Fields::new();
        let members = self.object(value, kind.name());
        for (key, value) in &members {
            if let Some(read) = self.decode::<serde_json::Value>(value, kind.name()) {
                fields.insert(key.clone().into_owned(), read);
            }
        }
        if self.report.error_count() > errors {
            return None;
        }
        let Err(error) = base.clone().apply(kind, &fields) else {
            return Some(fields);
        };
        // The error is about the merged component: find the field that is wrong by itself.
        let alone = |key: &str, value: &serde_json::Value| {
            let field = Fields::from([(key.to_owned(), value.clone())]);
            base.clone().apply(kind, &field).err()
        };
        let wrong = members.iter().find_map(|(key, raw)| {
            let error = alone(key, fields.get(&**key)?)?;
            Some((key.clone(), self.offset(raw), error))
        });
        let (field, offset, error) = match wrong {
            Some((key, offset, error)) => (Some(key), offset, error),
            None => (None, self.offset(value), error),
        };
        self.merged_error(kind.name(), field.as_deref(), offset, &error);
        None
    }

    fn component(&mut self, kind: ComponentKind, value: &'t RawValue, into: &mut Components) {
        let name = kind.name();
        if let Some(why) = kind.unused().filter(|_| self.format >= 2) {
            let message = format!("{name} is not accepted in format 2: {why}");
            self.error(Rule::NoEffect, self.offset(value), message);
        } else if let Err(error) = into.read(kind, value.get()) {
            self.json_error(value.get(), error, name);
        }
        let degrees = into.transform.filter(|_| kind == ComponentKind::Transform);
        if self.format < 2 && degrees.is_some_and(|t| t.rotation_degrees.is_some()) {
            let message = "Transform: rotation_degrees needs \"format\": 2";
            let field = Some("rotation_degrees");
            self.error_in(field, Rule::UnknownKey, self.offset(value), message);
        }
        let team = into
            .spawn_point
            .as_ref()
            .and_then(|point| point.team.as_ref());
        if self.format >= 2 && kind == ComponentKind::SpawnPoint && team.is_some() {
            let message = "SpawnPoint: team has no effect, so format 2 does not accept it";
            self.error_in(Some("team"), Rule::NoEffect, self.offset(value), message);
        }
    }

    /// Whether characters appear at an entity, or at a child of its prefab.
    fn is_spawn_point(&self, scene: &Scene, entity: &SceneEntity) -> bool {
        let prefab = entity.prefab.as_ref();
        let components = prefab.and_then(|name| scene.prefabs.get(name));
        let parts = prefab.and_then(|name| self.parts.get(name));
        let is = |components: &Components| components.spawn_point.is_some();
        is(&entity.components)
            || components.is_some_and(|prefab| is(&prefab.components))
            || parts.is_some_and(|parts| parts.list.iter().any(|part| is(&part.components)))
    }

    #[expect(clippy::ptr_arg, reason = "key_offset needs it")]
    fn unknown_component(&mut self, key: &Cow<'t, str>, value: &'t RawValue) {
        let known = ComponentKind::ALL
            .iter()
            .filter(|kind| kind.unused().is_none());
        let known: Vec<&str> = known.map(|kind| kind.name()).collect();
        self.unknown_key(key, value, &known);
    }
}

/// The id of an entity, read ahead for the problems in the rest of it.
fn id_of(entity: &RawValue) -> Option<u32> {
    let members = Members::parse(entity.get(), MEMBERS_MAX).ok()?;
    let (_, id) = members.list.iter().find(|(key, _)| key == "id")?;
    serde_json::from_str(id.get()).ok()
}
