//! References of entities must exist: ids, parents, scripts and assets.

use std::collections::BTreeMap;

use super::{ComponentPlaces, Places, Reader};
use crate::text::shown;
use crate::{Components, SceneEntity};
use crate::{Rule, Subject};

impl<'t> Reader<'t, '_> {
    /// Scripts and assets that components name must be in the package.
    pub(super) fn check_files(&mut self, components: &Components, spots: &ComponentPlaces<'t>) {
        let Some(is_file) = self.is_file else { return };
        let script = components.script.as_ref();
        let script = script.map(|script| ("Script", format!("scripts/{}", script.path)));
        let assets = components.assets();
        let assets = assets.map(|(component, asset)| (component, asset.to_owned()));
        for (component, path) in script.into_iter().chain(assets) {
            if is_file(&path) {
                continue;
            }
            // A file that the prefab names is reported there.
            let Some((_, offset)) = spots.iter().find(|(key, _)| key == component) else {
                continue;
            };
            let message = format!("{component}: there is no file {}", shown(&path));
            let field = if component == "Script" {
                "path"
            } else {
                "asset"
            };
            self.within_component(component, |reader| {
                reader.error_in(Some(field), Rule::UnknownReference, *offset, message);
            });
        }
    }

    pub(super) fn check_ids_and_parents(&mut self, entities: &[SceneEntity], places: &[Places]) {
        let mut index_of = BTreeMap::new();
        for (index, entity) in entities.iter().enumerate() {
            let (id, at) = (entity.id, places[index].entity);
            self.subject.entity = Some(id);
            if !(1..=SceneEntity::ID_MAX).contains(&id) {
                let message = format!("id must be from 1 to {}, not {id}", SceneEntity::ID_MAX);
                self.error_in(Some("id"), Rule::InvalidValue, at, message);
            }
            if let Some(first) = index_of.insert(id, index) {
                let (line, _) = self.lines.place(places[first].entity);
                let message = format!("id {id} is already used in line {line}");
                self.error_in(Some("id"), Rule::DuplicateId, at, message);
            }
        }
        // Children of prefabs are entities too: their ids are of the same kind.
        let mut owner_of: BTreeMap<u32, usize> = BTreeMap::new();
        for (index, entity) in entities.iter().enumerate() {
            self.subject.entity = Some(entity.id);
            for (path, child) in &entity.children {
                let recorded = places[index]
                    .children
                    .iter()
                    .find(|(known, _)| known == path);
                let at = recorded.map_or(places[index].entity, |(_, at)| *at);
                if !(1..=SceneEntity::ID_MAX).contains(&child.id) {
                    let path = shown(path);
                    let message = format!(
                        "the id of the child \"{path}\" must be from 1 to {}, not {}",
                        SceneEntity::ID_MAX,
                        child.id
                    );
                    self.error_in(Some("children"), Rule::InvalidValue, at, message);
                }
                let first = owner_of.insert(child.id, index);
                if first.is_some() || index_of.contains_key(&child.id) {
                    let message = format!("id {} is already used", child.id);
                    self.error_in(Some("children"), Rule::DuplicateId, at, message);
                }
            }
        }
        let exists = |id: u32| index_of.contains_key(&id) || owner_of.contains_key(&id);
        for (entity, place) in entities.iter().zip(places) {
            self.subject.entity = Some(entity.id);
            let with = entity.components.joint.and_then(|joint| joint.with);
            if let Some(id) = with.filter(|id| !exists(*id) || *id == entity.id) {
                let message = format!("there is no other entity {id} for the Joint");
                self.within_component("Joint", |reader| {
                    reader.error_in(Some("with"), Rule::UnknownReference, place.entity, message);
                });
            }
        }
        let levels: Vec<usize> = entities
            .iter()
            .map(|entity| {
                let parts = entity.prefab.as_ref().and_then(|name| self.parts.get(name));
                1 + parts.map_or(0, |parts| parts.levels)
            })
            .collect();
        // Levels down to every entity that is known not to be in a cycle, with its prefab's
        // children, which become entities below it.
        let mut depths: Vec<Option<usize>> = vec![None; entities.len()];
        for start in 0..entities.len() {
            let (mut chain, mut total) = (vec![], 0_usize);
            let mut next = Some(start);
            while let Some(index) = next.filter(|index| depths[*index].is_none()) {
                chain.push(index);
                // A cycle is longer than any allowed chain, so this ends it too.
                total += levels[index];
                if total > self.limits.parent_depth_max {
                    break;
                }
                let parent = entities[index].parent;
                next = parent.and_then(|id| index_of.get(&id).or(owner_of.get(&id)).copied());
                if let Some(id) = parent.filter(|_| next.is_none()) {
                    let message = format!("there is no entity {id} to be the parent");
                    self.subject.entity = Some(entities[index].id);
                    let at = places[index].parent;
                    self.error_in(Some("parent"), Rule::UnknownReference, at, message);
                }
            }
            let above = next.and_then(|index| depths[index]).unwrap_or(0);
            let deepest = above + total;
            if deepest > self.limits.parent_depth_max {
                let message = format!(
                    "entity {} is its own ancestor, or more than {} parents deep",
                    entities[start].id, self.limits.parent_depth_max
                );
                self.subject.entity = Some(entities[start].id);
                let at = places[start].parent;
                self.error_in(Some("parent"), Rule::ParentCycle, at, message);
                // Enough to know: marking all of them keeps the walk linear.
                chain.iter().for_each(|index| depths[*index] = Some(1));
                continue;
            }
            let mut depth = above;
            for index in chain.into_iter().rev() {
                depth += levels[index];
                depths[index] = Some(depth);
            }
        }
        self.subject = Subject::default();
    }
}
