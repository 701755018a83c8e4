//! Writes a scene in the one canonical form, so that saving what was loaded changes no byte.
//!
//! Each component is one line: short enough to read, and a change to one shows as one line in a
//! diff. So is each child of an instance, and each setting of the terrain.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};

use crate::{ComponentKind, Components, InstanceChild, Overrides, PrefabChild, Scene, Terrain};

pub(super) fn write(scene: &Scene) -> String {
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
        let lines = written(
            terrain,
            Canonical {
                depth: self.depth,
                ..Canonical::LINES
            },
        );
        self.out.push_str(&lines);
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

/// A value on one line.
pub(crate) fn line<T: Serialize + ?Sized>(value: &T) -> String {
    written(value, Canonical::ONE_LINE)
}

fn written<T: Serialize + ?Sized>(value: &T, formatter: Canonical) -> String {
    let mut bytes = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut bytes, formatter);
    value
        .serialize(&mut serializer)
        .expect("a scene has string keys and a Vec accepts every write");
    String::from_utf8(bytes).expect("serde_json writes UTF-8")
}

struct Canonical {
    depth: usize,
    /// How many levels of containers get a line per member.
    expanded: usize,
    level: usize,
    /// Whether the innermost container has had a member.
    has_member: bool,
}

impl Canonical {
    const ONE_LINE: Canonical = Canonical {
        depth: 0,
        expanded: 0,
        level: 0,
        has_member: false,
    };
    /// The members of the outermost container get a line each.
    const LINES: Canonical = Canonical {
        expanded: 1,
        ..Canonical::ONE_LINE
    };

    fn open<W: ?Sized + Write>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.level += 1;
        self.has_member = false;
        writer.write_all(bracket)
    }

    fn close<W: ?Sized + Write>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        let expanded = self.level <= self.expanded && self.has_member;
        self.level -= 1;
        if expanded {
            self.newline(writer)?;
        }
        self.has_member = true;
        writer.write_all(bracket)
    }

    fn member<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if !first {
            writer.write_all(b",")?;
        }
        if self.level <= self.expanded {
            self.newline(writer)
        } else if first {
            Ok(())
        } else {
            writer.write_all(b" ")
        }
    }

    fn newline<W: ?Sized + Write>(&self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b"\n")?;
        (0..self.depth + self.level).try_for_each(|_| writer.write_all(b"  "))
    }
}
impl Formatter for Canonical {
    /// Whole numbers are written without `.0`, as a person would.
    fn write_f32<W: ?Sized + Write>(&mut self, writer: &mut W, value: f32) -> io::Result<()> {
        if value.fract() == 0.0 && value.abs() < 1e7 {
            write!(writer, "{value:.0}")
        } else {
            CompactFormatter.write_f32(writer, value)
        }
    }

    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        if value.fract() == 0.0 && value.abs() < 1e15 {
            write!(writer, "{value:.0}")
        } else {
            CompactFormatter.write_f64(writer, value)
        }
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, w: &mut W, first: bool) -> io::Result<()> {
        self.member(w, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _writer: &mut W) -> io::Result<()> {
        self.has_member = true;
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, w: &mut W, first: bool) -> io::Result<()> {
        self.member(w, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _writer: &mut W) -> io::Result<()> {
        self.has_member = true;
        Ok(())
    }
}
