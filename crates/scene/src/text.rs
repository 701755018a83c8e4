//! Turns byte offsets of a text file into the line and column that a person looks for.

use crate::{Problem, Report, Rule};

/// The file's bytes as text.
///
/// # Errors
/// The place where they stop being UTF-8.
pub fn utf8<'b>(file: &str, bytes: &'b [u8]) -> Result<&'b str, Report> {
    std::str::from_utf8(bytes).map_err(|error| {
        let start = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let start = std::str::from_utf8(start).unwrap_or_default();
        let place = LineIndex::new(start).place(start.len());
        Problem::error(Rule::InvalidText, file, "is not UTF-8 from here on")
            .at(place)
            .into()
    })
}

/// Bytes between two offsets at which the characters before them are counted.
const STRIDE: usize = 1024;

/// Where the lines of a text begin. Finding a place costs the same anywhere in the text: a hostile
/// file may have a problem in every byte of a single line.
pub struct LineIndex<'t> {
    text: &'t str,
    starts: Vec<usize>,
    /// How many characters begin before each multiple of [`STRIDE`].
    counts: Vec<usize>,
}

impl<'t> LineIndex<'t> {
    /// Finds the lines of a text.
    pub fn new(text: &'t str) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(newlines.map(|(at, _)| at + 1));
        let mut before = 0;
        let counts = text.as_bytes().chunks(STRIDE).map(|chunk| {
            let count = before;
            before += characters(chunk);
            count
        });
        LineIndex {
            text,
            starts: starts.collect(),
            counts: counts.collect(),
        }
    }

    /// Line and column of a byte offset, both counted from 1; columns are characters.
    pub fn place(&self, offset: usize) -> (u32, u32) {
        let offset = floor_char_boundary(self.text, offset);
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self.starts[line - 1];
        let column = self.characters_before(offset) - self.characters_before(start) + 1;
        (line as u32, column as u32)
    }

    fn characters_before(&self, offset: usize) -> usize {
        let (counted, rest) = self.counted(offset);
        counted + characters(rest)
    }

    /// How many characters are known to begin before an offset, and the bytes before it that are
    /// still to be counted.
    fn counted(&self, offset: usize) -> (usize, &'t [u8]) {
        let index = (offset / STRIDE).min(self.counts.len().saturating_sub(1));
        let count = self.counts.get(index).copied().unwrap_or(0);
        let rest = self.text.as_bytes().get(index * STRIDE..offset);
        (count, rest.unwrap_or_default())
    }

    /// Byte offset of a line and a byte column counted from 1, as serde_json gives them,
    /// clamped to the text.
    pub fn offset(text: &str, line: usize, column: usize) -> usize {
        let mut start = 0;
        for _ in 1..line {
            match text[start..].find('\n') {
                Some(at) => start += at + 1,
                None => return text.len(),
            }
        }
        (start + column.saturating_sub(1)).min(text.len())
    }
}

/// How many characters of UTF-8 begin in these bytes.
fn characters(bytes: &[u8]) -> usize {
    let begins = |byte: &&u8| **byte & 0xC0 != 0x80;
    bytes.iter().filter(begins).count()
}

fn floor_char_boundary(text: &str, offset: usize) -> usize {
    let offset = offset.min(text.len());
    let mut boundaries = (0..=offset).rev();
    boundaries
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}

/// A hostile text for an error message: without control characters, and shortened.
pub fn shown(text: &str) -> String {
    const CHARS_MAX: usize = 80;
    let mut out: String = text
        .chars()
        .take(CHARS_MAX)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if text.chars().nth(CHARS_MAX).is_some() {
        out.push('…');
    }
    out
}

/// Longest name of an event or a call.
pub const NAME_BYTES_MAX: usize = 64;

/// Checks the name of an event or a call between clients and server scripts: 1 to
/// [`NAME_BYTES_MAX`] bytes of UTF-8 in which every character [`is_visible`].
///
/// # Errors
/// The error, as the rest of a sentence about the name.
pub fn check_name(name: &str) -> Result<(), &'static str> {
    const { assert!(NAME_BYTES_MAX == 64, "the message names it") };
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err("must have 1 to 64 bytes");
    }
    if !name.chars().all(is_visible) {
        return Err("must not have control, invisible or direction-changing characters");
    }
    Ok(())
}

/// Whether a character shows as itself: no control character, none that takes no room, and none
/// that changes the direction of the text around it. Logs and pages show names as they are.
pub fn is_visible(c: char) -> bool {
    !(c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{3164}'
            | '\u{feff}' | '\u{ffa0}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_counts_lines_and_characters_from_one() {
        let lines = LineIndex::new("a\nbé c\n");
        assert_eq!(lines.place(0), (1, 1));
        assert_eq!(lines.place(2), (2, 1));
        assert_eq!(lines.place(6), (2, 4));
        // In the middle of é, and far past the end.
        assert_eq!(lines.place(4), (2, 2));
        assert_eq!(lines.place(999), (3, 1));
    }

    #[test]
    fn a_place_far_into_a_line_costs_no_more_than_one_near_its_start() {
        let text = format!("first\n{}\nlast é", "é€🏰x".repeat(5_000));
        let lines = LineIndex::new(&text);
        for offset in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            let (_, rest) = lines.counted(offset);
            assert!(rest.len() <= STRIDE, "{} bytes at {offset}", rest.len());
        }
        let ends = (0..text.len()).step_by(997).chain([text.len()]);
        for offset in ends.map(|at| floor_char_boundary(&text, at)) {
            let line = text[..offset].matches('\n').count() + 1;
            let start = text[..offset].rfind('\n').map_or(0, |at| at + 1);
            let column = text[start..offset].chars().count() + 1;
            assert_eq!(lines.place(offset), (line as u32, column as u32));
        }
        assert_eq!(LineIndex::new("").place(0), (1, 1));
    }

    #[test]
    fn names_show_as_they_are() {
        for good in [
            "Buy",
            "shop/buy item",
            "Käse",
            "購入",
            "🏰",
            &"x".repeat(64),
        ] {
            assert_eq!(check_name(good), Ok(()), "{good:?}");
        }
        for bad in [
            "",
            &"x".repeat(65),
            "a\nb",
            "a\0",
            "\u{1b}[31mred",
            "a\u{7f}",
            "a\u{85}b",
            "\u{202e}live",
            "a\u{2066}b",
            "a\u{200b}b",
            "a\u{200d}b",
            "a\u{2028}b",
            "a\u{feff}",
            "a\u{e0041}",
        ] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn offset_is_clamped_to_the_text() {
        assert_eq!(LineIndex::offset("ab\ncd", 2, 2), 4);
        assert_eq!(LineIndex::offset("ab\ncd", 9, 2), 5);
        assert_eq!(LineIndex::offset("ab", 1, 0), 0);
    }
}
