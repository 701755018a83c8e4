//! Names and descriptions that people type: data, never markup, and bounded.

/// Longest name of a spell, in characters.
pub const NAME_CHARS_MAX: usize = 60;
/// Longest description.
pub const DESCRIPTION_CHARS_MAX: usize = 500;

/// One line without control, direction and other invisible marks.
pub fn line(typed: &str, chars_max: usize) -> String {
    let mut text = String::new();
    let mut chars = 0;
    let mut space_due = false;
    // Hostile text can be long: look at a bounded part of it.
    for c in typed.chars().take(chars_max * 8) {
        if c.is_whitespace() {
            space_due = !text.is_empty();
            continue;
        }
        if c.is_control() || is_invisible(c) {
            continue;
        }
        let wanted = 1 + usize::from(space_due);
        if chars + wanted > chars_max {
            break;
        }
        if space_due {
            text.push(' ');
        }
        text.push(c);
        chars += wanted;
        space_due = false;
    }
    text
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// An id out of a name, such as `ice-wall` out of `Ice wall!`.
pub fn id_of(name: &str) -> String {
    let mut id = String::new();
    for c in name.chars().take(200) {
        if c.is_ascii_alphanumeric() {
            id.push(c.to_ascii_lowercase());
        } else if !id.is_empty() && !id.ends_with('-') {
            id.push('-');
        }
        if id.len() >= 40 {
            break;
        }
    }
    id.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_one_clean_line() {
        for (typed, clean) in [
            ("  Ice \n wall ", "Ice wall"),
            ("\u{202e}evil\u{200b}\u{7}", "evil"),
            ("<b>1</b>", "<b>1</b>"),
            ("", ""),
        ] {
            assert_eq!(line(typed, 20), clean);
        }
        assert_eq!(line(&"x ".repeat(100_000), 9), "x x x x x");
    }

    #[test]
    fn ids_are_plain() {
        assert_eq!(id_of("Ice wall!"), "ice-wall");
        assert_eq!(id_of("Ä/../x"), "x");
        assert_eq!(id_of("!!!"), "");
    }
}
