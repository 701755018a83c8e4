//! How JSON values are written, so that saving what was loaded changes no byte.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};

/// A value on one line.
pub(crate) fn line<T: Serialize + ?Sized>(value: &T) -> String {
    written(value, Canonical::ONE_LINE)
}

/// A value with a line for each member of its outermost container, which is itself nested
/// `depth` levels deep.
pub(crate) fn lines<T: Serialize + ?Sized>(value: &T, depth: usize) -> String {
    let lines = Canonical {
        depth,
        expanded: 1,
        ..Canonical::ONE_LINE
    };
    written(value, lines)
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
