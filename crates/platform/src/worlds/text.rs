//! Names and descriptions that people give to worlds: any writing, but nothing
//! that hides, turns around or breaks what stands beside it.

/// Longest name in characters.
pub const NAME_CHARS_MAX: usize = 60;
/// Longest description in characters.
pub const DESCRIPTION_CHARS_MAX: usize = 500;

/// One line: white space becomes single spaces; `None` when nothing is left.
pub fn line(typed: &str, chars_max: usize) -> Option<String> {
    let mut text = String::new();
    let mut space_due = false;
    // A hostile text can be long: look at a bounded part of it.
    for c in typed.chars().take(chars_max * 8) {
        if c.is_whitespace() {
            space_due = !text.is_empty();
        } else if is_visible(c) {
            if space_due {
                text.push(' ');
            }
            space_due = false;
            text.push(c);
        }
    }
    let text: String = text.chars().take(chars_max).collect();
    let text = text.trim_end().to_owned();
    (!text.is_empty()).then_some(text)
}

/// Several lines.
pub fn lines(typed: &str, chars_max: usize) -> String {
    let kept = typed
        .chars()
        .take(chars_max * 8)
        .filter(|c| *c == '\n' || is_visible(*c));
    let text: String = kept.take(chars_max).collect();
    text.trim().to_owned()
}

/// Neither a control character nor one of those that change the direction of
/// writing or take no room.
fn is_visible(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_keep_writing_and_lose_tricks() {
        for (typed, kept) in [
            ("Ada's castle!", Some("Ada's castle!")),
            ("  two \t\n words ", Some("two words")),
            ("\u{202e}evil\u{0}\u{200b}", Some("evil")),
            ("<b>bold</b>", Some("<b>bold</b>")),
            ("🏰 Зоя", Some("🏰 Зоя")),
            ("\u{200b}\u{feff}\n", None),
            ("", None),
        ] {
            assert_eq!(line(typed, NAME_CHARS_MAX).as_deref(), kept, "{typed:?}");
        }
        assert_eq!(line(&"x".repeat(1_000_000), 5).as_deref(), Some("xxxxx"));
        assert_eq!(lines(" a\u{7}\nb \u{2066}c\n", 500), "a\nb c");
        assert_eq!(lines(&"x".repeat(1_000_000), 5), "xxxxx");
    }
}
