//! Writes a scene in the one canonical form, so that saving what was loaded changes no byte.
//!
//! Each component is one line: short enough to read, and a change to one shows as one line in a
//! diff. So is each child of an instance, and each setting of the terrain.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::canonical::{line, lines};
use crate::components::{ComponentKind, Components};
use crate::overrides::Overrides;
use crate::scene::{InstanceChild, PrefabChild, Scene, Terrain};

impl Scene {
    /// The one way this scene is written: two-space indent, one component per line, keys in a
    /// fixed order, defaults left out, a newline at the end. Reading a file written like this
    /// and writing it again gives the same bytes.
    pub fn to_canonical_json(&self) -> String {
        write(self)
    }
}

fn write(scene: &Scene) -> String {
    let mut writer = Writer::default();
    writer.object(|writer| {
        writer.member("format", &scene.format);
        writer.key("prefabs");
        writer.object(|writer| {
            for (name, prefab) in &scene.prefabs {
                writer.key(name);
                writer.object(|writer| {
                    writer.components(&prefab.components, &Overrides::default());
                    writer.children(&prefab.children);
                });
            }
        });
        writer.key("entities");
        writer.array(|writer| {
            for entity in &scene.entities {
                writer.item();
                writer.object(|writer| {
                    writer.member("id", &entity.id);
                    writer.member("name", &entity.name);
                    writer.optional("parent", entity.parent.as_ref());
                    writer.optional("prefab", entity.prefab.as_ref());
                    writer.components(&entity.components, &entity.overrides);
                    writer.instance_children(&entity.children);
                });
            }
        });
        if let Some(terrain) = &scene.terrain {
            writer.key("terrain");
            writer.terrain(terrain);
        }
    });
    writer.out.push('\n');
    writer.out
}

/// Writes with a line per member, two spaces for each container around it.
#[derive(Default)]
struct Writer {
    out: String,
    depth: usize,
    /// Whether the innermost container has had a member.
    has_member: bool,
}

impl Writer {
    fn object(&mut self, members: impl FnOnce(&mut Self)) {
        self.container(['{', '}'], members);
    }

    fn array(&mut self, items: impl FnOnce(&mut Self)) {
        self.container(['[', ']'], items);
    }

    fn container(&mut self, [open, close]: [char; 2], content: impl FnOnce(&mut Self)) {
        self.out.push(open);
        self.depth += 1;
        self.has_member = false;
        content(self);
        self.depth -= 1;
        if self.has_member {
            self.newline();
        }
        self.out.push(close);
        self.has_member = true;
    }

    /// Begins a member or an item.
    fn item(&mut self) {
        if self.has_member {
            self.out.push(',');
        }
        self.newline();
        self.has_member = true;
    }

    fn newline(&mut self) {
        self.out.push('\n');
        (0..self.depth).for_each(|_| self.out.push_str("  "));
    }

    fn key(&mut self, key: &str) {
        self.item();
        self.out.push_str(&line(&key));
        self.out.push_str(": ");
    }

    fn member(&mut self, key: &str, value: &impl Serialize) {
        self.key(key);
        self.out.push_str(&line(value));
    }

    fn optional(&mut self, key: &str, value: Option<&impl Serialize>) {
        if let Some(value) = value {
            self.member(key, value);
        }
    }

    fn components(&mut self, components: &Components, overrides: &Overrides) {
        self.key("components");
        self.object(|writer| {
            for kind in ComponentKind::ALL {
                if let Some(text) = component(*kind, components, overrides) {
                    writer.key(kind.name());
                    writer.out.push_str(&text);
                }
            }
        });
    }

    fn children(&mut self, children: &[PrefabChild]) {
        if children.is_empty() {
            return;
        }
        self.key("children");
        self.array(|writer| {
            for child in children {
                writer.item();
                writer.object(|writer| {
                    writer.member("name", &child.name);
                    writer.optional("prefab", child.prefab.as_ref());
                    writer.components(&child.components, &child.overrides);
                    writer.children(&child.children);
                });
            }
        });
    }

    fn instance_children(&mut self, children: &BTreeMap<String, InstanceChild>) {
        if children.is_empty() {
            return;
        }
        self.key("children");
        self.object(|writer| {
            for (path, child) in children {
                writer.key(path);
                writer.out.push_str(&format!("{{\"id\": {}", child.id));
                let own = ComponentKind::ALL.iter().filter_map(|kind| {
                    let text = component(*kind, &child.components, &child.overrides)?;
                    Some(format!("\"{}\": {text}", kind.name()))
                });
                let own: Vec<String> = own.collect();
                if !own.is_empty() {
                    let own = own.join(", ");
                    writer.out.push_str(&format!(", \"components\": {{{own}}}"));
                }
                writer.out.push('}');
            }
        });
    }

    fn terrain(&mut self, terrain: &Terrain) {
        self.out.push_str(&lines(terrain, self.depth));
        self.has_member = true;
    }
}

/// A component, or the fields of it that are changed.
fn component(kind: ComponentKind, own: &Components, overrides: &Overrides) -> Option<String> {
    match overrides.get(kind) {
        Some(fields) => Some(line(fields)),
        None => own.line(kind),
    }
}
