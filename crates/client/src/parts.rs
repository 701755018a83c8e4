//! Parts: entities with everything resolved (prefab, parents, scale, and the details
//! that scripts changed), as a host draws them and as scripts read them. And which of
//! them changed since the host asked last.

use std::collections::{BTreeMap, BTreeSet};

use frolic_protocol::Value;
use frolic_protocol::details::{Details, Looks};
use frolic_scene::{BodyKind, Color, Components, Label, Light, Material, Npc, Shape, Transform};

/// An entity that is not a player's character, ready to draw.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Its network id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Where it is in the world, and its scale there. What moves is elsewhere in each
    /// frame.
    pub transform: Transform,
    /// Its shape with the scale applied, except to a mesh.
    pub shape: Option<Shape>,
    /// Its surface.
    pub material: Material,
    /// Its colour as scripts read it; none when it has no Material and no script has
    /// coloured it.
    pub color: Option<Color>,
    /// The light it emits.
    pub light: Option<Light>,
    /// The text at its place.
    pub label: Option<Label>,
    /// Whether it has a body that is not static.
    pub moves: bool,
    /// Whether its shape is a sensor and not solid.
    pub trigger: bool,
    /// Whether characters appear here.
    pub spawn_point: bool,
    /// Its senses and looks, if it is an NPC.
    pub npc: Option<Npc>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its attributes, as last replicated.
    pub attributes: BTreeMap<String, Value>,
}

/// What happened to the parts since the host asked last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartChanges {
    /// Parts that appeared or changed, in order of ids.
    pub changed: Vec<Part>,
    /// Parts that disappeared, in order.
    pub removed: Vec<u32>,
}

/// An entity as the client knows it: from its components, merged with those of their
/// prefab, to its part.
pub(crate) struct Resolved<'a> {
    pub name: &'a str,
    pub components: &'a Components,
    /// In the world, without the scale that a script changed.
    pub transform: Transform,
    /// What scripts changed.
    pub details: Option<&'a Details>,
}

impl Resolved<'_> {
    pub fn part(&self, id: u32) -> Part {
        let components = self.components;
        let looks = self.looks();
        let mut transform = self.transform;
        transform.scale = looks.scale.unwrap_or(transform.scale);
        let color = self.color();
        let mut material = components.material.clone().unwrap_or_default();
        material.color = color.unwrap_or(material.color);
        material.opacity = looks.opacity.unwrap_or(material.opacity);
        let shape = components.shape.as_ref();
        let body = components.body.as_ref();
        Part {
            id,
            name: self.name.to_owned(),
            shape: shape.map(|shape| shape.scaled(transform.scale)),
            transform,
            material,
            color,
            light: components.light,
            label: components.label.clone(),
            moves: body.is_some_and(|body| body.kind != BodyKind::Static),
            trigger: components.trigger.is_some(),
            spawn_point: components.spawn_point.is_some(),
            npc: components.npc.clone(),
            tags: self.tags().to_vec(),
            attributes: match self.details {
                Some(details) => details.attributes.clone(),
                None => declared_attributes(components),
            },
        }
    }

    fn looks(&self) -> Looks {
        self.details
            .map(|details| details.looks)
            .unwrap_or_default()
    }

    /// See [`Part::color`].
    pub fn color(&self) -> Option<Color> {
        let declared = self.components.material.as_ref();
        let declared = declared.map(|material| material.color);
        self.looks().color.map(Color).or(declared)
    }

    /// Its tags.
    pub fn tags(&self) -> &[String] {
        self.components.tag.as_deref().unwrap_or_default()
    }
}

fn declared_attributes(components: &Components) -> BTreeMap<String, Value> {
    let declared = components.attributes.iter().flatten();
    declared
        .map(|(name, value)| (name.clone(), Value::from(value)))
        .collect()
}

/// Which parts the host has, and which ids it must look at again.
pub(crate) struct PartLog {
    taken: BTreeSet<u32>,
    changed: BTreeSet<u32>,
    /// All of them: the scene is new. Nothing is recorded until the host asks.
    all: bool,
}

impl Default for PartLog {
    fn default() -> Self {
        Self {
            taken: BTreeSet::new(),
            changed: BTreeSet::new(),
            all: true,
        }
    }
}

impl PartLog {
    /// Records that a part may have changed.
    pub fn mark(&mut self, id: u32) {
        if !self.all {
            self.changed.insert(id);
        }
    }

    /// Records that an entity exists; `is_part` is asked only when the host does not
    /// have it, because moving entities are replicated in every snapshot.
    pub fn mark_new(&mut self, id: u32, is_part: impl FnOnce() -> bool) {
        if !self.all && !self.taken.contains(&id) && is_part() {
            self.changed.insert(id);
        }
    }

    /// Records that a part is gone. A host that does not have it never learns of it.
    pub fn mark_removed(&mut self, id: u32) {
        if self.taken.contains(&id) {
            self.mark(id);
        } else {
            self.changed.remove(&id);
        }
    }

    /// Records that every part may have changed.
    pub fn mark_all(&mut self) {
        self.changed.clear();
        self.all = true;
    }

    /// The changes since the last call; `all` lists the ids of all parts, `part`
    /// resolves one.
    pub fn take<I: Iterator<Item = u32>>(
        &mut self,
        all: impl FnOnce() -> I,
        part: impl Fn(u32) -> Option<Part>,
    ) -> PartChanges {
        let mut ids = std::mem::take(&mut self.changed);
        if std::mem::take(&mut self.all) {
            ids.extend(all());
            ids.extend(&self.taken);
        }
        let mut changes = PartChanges::default();
        for id in ids {
            if let Some(part) = part(id) {
                self.taken.insert(id);
                changes.changed.push(part);
            } else if self.taken.remove(&id) {
                changes.removed.push(id);
            }
        }
        changes
    }
}
