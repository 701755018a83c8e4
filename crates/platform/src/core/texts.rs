//! User-written text: limits its length and removes characters that could disguise
//! it. The result is plain text, not HTML; pages must escape it. Player names have
//! stricter rules (`names`).

/// Factor of `chars_max` by which hostile text is examined at most.
const EXAMINED_FACTOR: usize = 8;

/// One line of at most `chars_max` characters; white space becomes single
/// spaces.
pub fn line(typed: &str, chars_max: usize) -> String {
    let mut text = Cleaned::default();
    let mut space_due = false;
    for c in typed
        .chars()
        .take(chars_max.saturating_mul(EXAMINED_FACTOR))
    {
        if c.is_whitespace() {
            space_due = !text.is_empty();
        } else if is_shown(c) {
            let spaced = std::mem::take(&mut space_due);
            if text.chars + usize::from(spaced) >= chars_max {
                break;
            }
            if spaced {
                text.push(' ');
            }
            text.push(c);
        }
    }
    text.finish()
}

/// Several lines, together of at most `chars_max` characters.
pub fn lines(typed: &str, chars_max: usize) -> String {
    let mut text = Cleaned::default();
    for c in typed
        .chars()
        .take(chars_max.saturating_mul(EXAMINED_FACTOR))
    {
        if text.chars < chars_max && (c == '\n' || is_shown(c)) {
            text.push(c);
        }
    }
    text.finish()
}

/// One line; `None` when it is empty or too long.
pub fn whole_line(typed: &str, chars_max: usize) -> Option<String> {
    let text = line(typed, chars_max + 1);
    let fits = !text.is_empty() && text.chars().count() <= chars_max;
    fits.then_some(text)
}

/// Several lines; `None` when they are too long.
pub fn whole_lines(typed: &str, chars_max: usize) -> Option<String> {
    let text = lines(typed, chars_max + 1);
    (text.chars().count() <= chars_max).then_some(text)
}

#[derive(Default)]
struct Cleaned {
    text: String,
    chars: usize,
}

impl Cleaned {
    fn is_empty(&self) -> bool {
        self.chars == 0
    }

    fn push(&mut self, c: char) {
        // A joiner or space at the beginning joins nothing.
        if self.is_empty() && (is_joiner(c) || c.is_whitespace()) {
            return;
        }
        self.text.push(c);
        self.chars += 1;
    }

    fn finish(self) -> String {
        let end = |c: char| c.is_whitespace() || is_joiner(c);
        self.text.trim_end_matches(end).to_owned()
    }
}

/// Zero-width joiners, which Persian and emoji families need.
fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

/// Excludes control characters, direction marks and zero-width characters.
fn is_shown(c: char) -> bool {
    is_joiner(c) || frolic_scene::is_visible(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_keeps_writing_and_loses_tricks() {
        for (typed, kept) in [
            ("Ada's castle!", "Ada's castle!"),
            ("  two \t\n words ", "two words"),
            ("\u{202e}evil\u{0}\u{200b}", "evil"),
            ("<b>bold</b>", "<b>bold</b>"),
            ("🏰 Зоя", "🏰 Зоя"),
            ("👩\u{200d}🚀", "👩\u{200d}🚀"),
            ("\u{200b}\u{feff}\n", ""),
            ("\u{200d}\u{200c} \u{200d}", ""),
            ("", ""),
        ] {
            assert_eq!(line(typed, 60), kept, "{typed:?}");
        }
        assert_eq!(line(&"x".repeat(1_000_000), 5), "xxxxx");
        assert_eq!(line(&"x ".repeat(100_000), 9), "x x x x x");
        assert_eq!(line(&"x ".repeat(100_000), 8), "x x x x");
    }

    #[test]
    fn lines_stay_lines() {
        assert_eq!(lines("  a\r\nb\u{202e}c\u{0}\u{200b} ", 10), "a\nbc");
        assert_eq!(lines(" a\u{7}\nb \u{2066}c\n", 500), "a\nb c");
        assert_eq!(lines("abcdef", 3), "abc");
        assert_eq!(lines(&"\u{7}".repeat(1_000_000), 50), "");
    }

    #[test]
    fn what_is_too_long_is_not_cut_where_that_would_surprise() {
        assert_eq!(whole_line("abc", 3).as_deref(), Some("abc"));
        assert_eq!(whole_line("abc", 2), None);
        assert_eq!(whole_line("\u{200b}\u{0} ", 60), None);
        assert_eq!(whole_lines("", 10).as_deref(), Some(""));
        assert_eq!(
            whole_lines("1234\n67890", 10).as_deref(),
            Some("1234\n67890")
        );
        assert_eq!(whole_lines("12345678901", 10), None);
    }
}
