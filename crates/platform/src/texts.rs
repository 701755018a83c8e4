//! What people write in sentences: bounded, and cleaned of what could disguise
//! it. It stays text; pages show it as such.

/// Whether a character only changes how others are shown: marks of direction,
/// joiners, byte order marks, tags.
fn is_disguise(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Keeps line breaks and everything that can be seen; at most `chars_max`
/// characters, without space around them.
pub fn clean(typed: &str, chars_max: usize) -> String {
    let kept = typed
        .chars()
        .take(chars_max.saturating_mul(4))
        .filter(|c| *c == '\n' || !(c.is_control() || is_disguise(*c)));
    let text: String = kept.take(chars_max).collect();
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_keep_their_lines_and_lose_their_masks() {
        assert_eq!(clean("  a\r\nb\u{202e}c\u{0}\u{200b} ", 10), "a\nbc");
        assert_eq!(clean("<b>ünïcode 🦀</b>", 100), "<b>ünïcode 🦀</b>");
        assert_eq!(clean("abcdef", 3), "abc");
        assert_eq!(clean(&"\u{7}".repeat(1_000_000), 50), "");
    }
}
