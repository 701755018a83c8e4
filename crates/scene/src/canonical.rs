//! Writes a scene in the one canonical form, so that saving what was loaded changes no byte.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

use crate::{Prefab, Scene, SceneEntity};

/// Containers down to this depth get a line per member; deeper ones stay on one line. Depth 4 is
/// the `components` object of an entity or prefab, so each component is one line: short enough
/// to read, and a change to one shows as one line in a diff.
const DEPTH_EXPANDED: usize = 4;

/// The same for the terrain: each of its settings is one line.
const TERRAIN_DEPTH_EXPANDED: usize = 2;

pub(super) fn write(scene: &Scene) -> String {
    let entities = Entities {
        format: scene.format,
        prefabs: &scene.prefabs,
        entities: &scene.entities,
    };
    let mut text = formatted(&entities, 0, DEPTH_EXPANDED);
    if let Some(terrain) = &scene.terrain {
        // In front of the brace that ends the scene.
        text.truncate(text.len() - "\n}".len());
        text.push_str(",\n  \"terrain\": ");
        text.push_str(&formatted(terrain, 1, TERRAIN_DEPTH_EXPANDED));
        text.push_str("\n}");
    }
    text.push('\n');
    text
}

/// A scene without its terrain.
#[derive(Serialize)]
struct Entities<'a> {
    format: u32,
    prefabs: &'a BTreeMap<String, Prefab>,
    entities: &'a [SceneEntity],
}

fn formatted(value: &impl Serialize, depth: usize, expanded: usize) -> String {
    let mut bytes = Vec::new();
    let formatter = Canonical {
        depth,
        expanded,
        has_member: false,
    };
    let mut serializer = Serializer::with_formatter(&mut bytes, formatter);
    value
        .serialize(&mut serializer)
        .expect("a scene has string keys and a Vec accepts every write");
    String::from_utf8(bytes).expect("serde_json writes UTF-8")
}

struct Canonical {
    depth: usize,
    /// See [`DEPTH_EXPANDED`].
    expanded: usize,
    /// Whether the innermost container has had a member.
    has_member: bool,
}

impl Canonical {
    fn open<W: ?Sized + Write>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.has_member = false;
        writer.write_all(bracket)
    }

    fn close<W: ?Sized + Write>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        let expanded = self.depth <= self.expanded && self.has_member;
        self.depth -= 1;
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
        if self.depth <= self.expanded {
            self.newline(writer)
        } else if first {
            Ok(())
        } else {
            writer.write_all(b" ")
        }
    }

    fn newline<W: ?Sized + Write>(&self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b"\n")?;
        (0..self.depth).try_for_each(|_| writer.write_all(b"  "))
    }
}

impl Formatter for Canonical {
    /// Whole numbers are written without `.0`, as a person would.
    fn write_f32<W: ?Sized + Write>(&mut self, writer: &mut W, value: f32) -> io::Result<()> {
        if value.fract() == 0.0 && value.abs() < 1e7 {
            write!(writer, "{value:.0}")
        } else {
            serde_json::ser::CompactFormatter.write_f32(writer, value)
        }
    }

    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        if value.fract() == 0.0 && value.abs() < 1e15 {
            write!(writer, "{value:.0}")
        } else {
            serde_json::ser::CompactFormatter.write_f64(writer, value)
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
