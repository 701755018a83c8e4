//! Prefab trees, and the children of entities that are made from them.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::value::RawValue;

use super::{Places, Reader};
use crate::check::is_label;
use crate::expand::{PREFAB_DEPTH_MAX, PREFAB_PARTS_MAX};
use crate::json::{Items, Members};
use crate::text::shown;
use crate::{InstanceChild, Prefab, PrefabChild, PrefabPart, Rule, SceneEntity, Subject};

/// Most children of one node.
const CHILDREN_MAX: usize = PREFAB_PARTS_MAX;

/// The entities below the root of a prefab, and where each path is among them.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) list: Vec<PrefabPart>,
    index_of: BTreeMap<String, usize>,
    /// How deep they nest.
    pub(super) levels: usize,
}

type Prefabs = BTreeMap<String, Prefab>;

impl<'t> Reader<'t, '_> {
    /// Reads the children of all prefabs. The components of every prefab are known by now, so
    /// children may start from any of them.
    pub(super) fn prefab_trees(&mut self, prefabs: &mut Prefabs, raw: Vec<(String, &'t RawValue)>) {
        let places: BTreeMap<String, usize> = raw
            .iter()
            .map(|(name, value)| (name.clone(), self.offset(value)))
            .collect();
        for (name, value) in raw {
            self.subject.prefab = Some(shown(&name));
            let children = self.prefab_children(value, prefabs);
            if let Some(prefab) = prefabs.get_mut(&name) {
                prefab.children = children;
            }
        }
        self.check_trees(prefabs, &places);
        self.subject = Subject::default();
    }

    fn prefab_children(&mut self, value: &'t RawValue, prefabs: &Prefabs) -> Vec<PrefabChild> {
        let items = match Items::parse(value.get(), CHILDREN_MAX) {
            Ok(items) => items,
            Err(error) => {
                self.json_error(value.get(), error, "children");
                return vec![];
            }
        };
        if items.omitted > 0 {
            let message = format!("more than {CHILDREN_MAX} children");
            self.error_in(
                Some("children"),
                Rule::EntityCount,
                self.offset(value),
                message,
            );
        }
        let items = items.list.into_iter();
        items.map(|item| self.prefab_child(item, prefabs)).collect()
    }

    fn prefab_child(&mut self, value: &'t RawValue, prefabs: &Prefabs) -> PrefabChild {
        let at = self.offset(value);
        let mut child = PrefabChild::default();
        let (mut has_name, mut components, mut children) = (false, None, None);
        for (key, value) in self.object(value, "a child of a prefab") {
            match &*key {
                "name" => {
                    has_name = true;
                    child.name = self.decode(value, "name").unwrap_or_default();
                    // A path of names identifies a child in an instance.
                    if !is_label(&child.name) || child.name.contains('/') {
                        let message = "a child's name is 1 to 64 characters, no / and no control \
                                       characters";
                        let at = self.offset(value);
                        self.error_in(Some("name"), Rule::InvalidValue, at, message);
                    }
                }
                "prefab" => {
                    child.prefab = self.decode(value, "prefab");
                    let known = |name: &String| prefabs.contains_key(name);
                    if let Some(name) = child.prefab.as_ref().filter(|name| !known(name)) {
                        let message = format!("there is no prefab \"{}\"", shown(name));
                        let at = self.offset(value);
                        self.error_in(Some("prefab"), Rule::UnknownReference, at, message);
                    }
                }
                "components" => components = Some(value),
                "children" => children = Some(value),
                _ => self.unknown_key(&key, value, &["name", "prefab", "components", "children"]),
            }
        }
        if !has_name {
            let message = "a child of a prefab needs \"name\"";
            self.error_in(Some("name"), Rule::MissingKey, at, message);
        }
        let prefab = child.prefab.as_ref().and_then(|name| prefabs.get(name));
        if let Some(value) = components {
            let base = prefab.map(|prefab| &prefab.components);
            (child.components, child.overrides, _) = self.components(value, base);
        }
        if let Some(value) = children {
            child.children = self.prefab_children(value, prefabs);
        }
        child
    }

    /// Trees must end, be of bounded size, and give each child a path of its own.
    fn check_trees(&mut self, prefabs: &Prefabs, places: &BTreeMap<String, usize>) {
        let mut known = BTreeMap::new();
        for (name, at) in places {
            self.subject.prefab = Some(shown(name));
            let mut open = vec![];
            let (rule, message) = match extent(prefabs, name, &mut open, &mut known) {
                Ok(extent) if extent.entities > PREFAB_PARTS_MAX => (
                    Rule::EntityCount,
                    format!("a prefab has at most {PREFAB_PARTS_MAX} children, all levels counted"),
                ),
                Ok(_) => {
                    self.check_paths(prefabs, name, *at);
                    continue;
                }
                Err(Endless::Contains) => (
                    Rule::ParentCycle,
                    "the prefab contains itself, through its children".to_owned(),
                ),
                Err(Endless::Deep) => (
                    Rule::ParentCycle,
                    format!("the children nest deeper than {PREFAB_DEPTH_MAX}"),
                ),
            };
            self.broken.insert(name.clone());
            self.error_in(Some("children"), rule, *at, message);
        }
    }

    fn check_paths(&mut self, prefabs: &Prefabs, name: &str, at: usize) {
        let mut parts = vec![];
        if let Some(prefab) = prefabs.get(name) {
            crate::expand::add(prefabs, &prefab.children, None, 0, &mut parts);
        }
        let mut index_of = BTreeMap::new();
        for (index, part) in parts.iter().enumerate() {
            if index_of.insert(part.path.clone(), index).is_some() {
                let path = shown(&part.path);
                let message = format!("two children are called \"{path}\"; rename one");
                self.error_in(Some("children"), Rule::DuplicateId, at, message);
            }
        }
        let mut depths: Vec<usize> = Vec::with_capacity(parts.len());
        for part in &parts {
            let above = part.parent.and_then(|index| depths.get(index));
            depths.push(above.map_or(1, |depth| depth + 1));
        }
        let parts = Parts {
            list: parts,
            index_of,
            levels: depths.into_iter().max().unwrap_or(0),
        };
        self.parts.insert(name.to_owned(), Rc::new(parts));
    }

    /// Reads what an entity records about the children of its prefab: their ids, and what it
    /// changes of them.
    pub(super) fn instance_children(
        &mut self,
        value: &'t RawValue,
        prefab: Option<&str>,
        place: &mut Places,
    ) -> BTreeMap<String, InstanceChild> {
        let mut children = BTreeMap::new();
        let parts = prefab.and_then(|name| self.parts.get(name).cloned());
        let parts = parts.unwrap_or_default();
        let members = match Members::parse(value.get(), PREFAB_PARTS_MAX) {
            Ok(members) => members,
            Err(error) => {
                self.json_error(value.get(), error, "children");
                return children;
            }
        };
        let is_broken = prefab.is_some_and(|name| self.broken.contains(name));
        for (path, value) in self.unique(members, "children") {
            let at = self.offset(value);
            let index = parts.index_of.get(&*path);
            let Some(part) = index.and_then(|index| parts.list.get(*index)) else {
                // Problems of the prefab itself have been reported there.
                if !is_broken {
                    let path = shown(&path);
                    let message = format!("the prefab has no child \"{path}\"");
                    self.error_in(Some("children"), Rule::UnknownReference, at, message);
                }
                continue;
            };
            place.children.push((path.clone().into_owned(), at));
            let child = self.instance_child(value, part);
            children.insert(path.into_owned(), child);
        }
        children
    }

    fn instance_child(&mut self, value: &'t RawValue, part: &PrefabPart) -> InstanceChild {
        let mut child = InstanceChild::default();
        for (key, value) in self.object(value, "a child of an entity") {
            match &*key {
                "id" => child.id = self.decode(value, "id").unwrap_or_default(),
                "components" => {
                    let base = Some(&part.components);
                    (child.components, child.overrides, _) = self.components(value, base);
                }
                _ => self.unknown_key(&key, value, &["id", "components"]),
            }
        }
        child
    }

    /// Gives ids to the children of instances that have none recorded, above all that are used.
    pub(super) fn assign_child_ids(&mut self, entities: &mut [SceneEntity], places: &[Places]) {
        let used = entities.iter().flat_map(|entity| {
            let of_children = entity.children.values().map(|child| child.id);
            of_children.chain([entity.id])
        });
        let mut last = used.max().unwrap_or(0);
        let mut count = entities.len();
        for (entity, place) in entities.iter_mut().zip(places) {
            let parts = entity.prefab.as_ref().and_then(|name| self.parts.get(name));
            let Some(parts) = parts.cloned().filter(|parts| !parts.list.is_empty()) else {
                continue;
            };
            self.subject.entity = Some(entity.id);
            count += parts.list.len();
            if count > self.limits.entities_max {
                let message = format!(
                    "more than {} entities, the children of prefabs counted",
                    self.limits.entities_max
                );
                self.error(Rule::EntityCount, place.entity, message);
                break;
            }
            let mut assigned = 0_usize;
            for part in &parts.list {
                let child = entity.children.entry(part.path.clone()).or_default();
                if child.id == 0 {
                    last = last.saturating_add(1);
                    child.id = last;
                    assigned += 1;
                }
            }
            if assigned > 0 {
                let message = format!(
                    "{assigned} children of its prefab have no recorded id, so their ids may \
                     change with the scene; `frolic check --fix` records them"
                );
                self.warning(Rule::Suspicious, place.entity, message);
            }
        }
        self.subject = Subject::default();
    }
}

/// Why a prefab has no extent.
enum Endless {
    /// It contains itself.
    Contains,
    /// It nests too deep.
    Deep,
}

/// The extent of a prefab below its root.
#[derive(Clone, Copy, Default)]
struct Extent {
    entities: usize,
    levels: usize,
}

/// The extent of a prefab, without making it: a few prefabs that contain each other several times
/// would make more than fits in memory.
fn extent<'p>(
    prefabs: &'p Prefabs,
    name: &'p str,
    open: &mut Vec<&'p str>,
    known: &mut BTreeMap<&'p str, Extent>,
) -> Result<Extent, Endless> {
    if let Some(extent) = known.get(name) {
        return Ok(*extent);
    }
    if open.contains(&name) {
        return Err(Endless::Contains);
    }
    if open.len() >= PREFAB_DEPTH_MAX {
        return Err(Endless::Deep);
    }
    let Some(prefab) = prefabs.get(name) else {
        return Ok(Extent::default());
    };
    open.push(name);
    let extent = extent_of(prefabs, &prefab.children, open, known)?;
    open.pop();
    known.insert(name, extent);
    Ok(extent)
}

fn extent_of<'p>(
    prefabs: &'p Prefabs,
    children: &'p [PrefabChild],
    open: &mut Vec<&'p str>,
    known: &mut BTreeMap<&'p str, Extent>,
) -> Result<Extent, Endless> {
    let mut all = Extent::default();
    for child in children {
        let own = extent_of(prefabs, &child.children, open, known)?;
        let of_prefab = match &child.prefab {
            Some(name) => extent(prefabs, name, open, known)?,
            None => Extent::default(),
        };
        let below = own.entities.saturating_add(of_prefab.entities);
        all.entities = all.entities.saturating_add(1).saturating_add(below);
        all.levels = all.levels.max(1 + own.levels.max(of_prefab.levels));
    }
    match all.levels > PREFAB_DEPTH_MAX {
        true => Err(Endless::Deep),
        false => Ok(all),
    }
}
