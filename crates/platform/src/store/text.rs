//! What creators write for others to read: data, never markup; cleaned of what
//! could disguise it, and bounded.

/// Characters of a title.
pub const NAME_CHARS_MAX: usize = 60;
/// Characters of a description.
pub const DESCRIPTION_CHARS_MAX: usize = 2_000;
/// Characters of what is said about a version.
pub const NOTES_CHARS_MAX: usize = 2_000;
/// Tags of one game.
pub const TAGS_MAX: usize = 10;
const TAG_CHARS_MAX: usize = 24;

/// One line: no line ends, no marks that turn or hide text, single spaces.
pub fn line(typed: &str, chars_max: usize) -> Option<String> {
    let spaced: String = typed
        .chars()
        .map(|c| if c.is_whitespace() { ' ' } else { c })
        .filter(|c| is_plain(*c))
        .collect();
    let words: Vec<&str> = spaced.split(' ').filter(|word| !word.is_empty()).collect();
    let text = words.join(" ");
    let fits = !text.is_empty() && text.chars().count() <= chars_max;
    fits.then_some(text)
}

/// Several lines; `None` when it is too long.
pub fn paragraphs(typed: &str, chars_max: usize) -> Option<String> {
    let text: String = typed
        .chars()
        .filter(|c| *c == '\n' || (is_plain(*c) && !matches!(c, '\u{2028}' | '\u{2029}')))
        .collect();
    let text = text.trim().to_owned();
    (text.chars().count() <= chars_max).then_some(text)
}

/// Words to find a game by, each once.
pub fn tags(typed: &[String]) -> Option<Vec<String>> {
    if typed.len() > TAGS_MAX {
        return None;
    }
    let mut tags: Vec<String> = Vec::new();
    for tag in typed {
        let tag = tag.trim().to_ascii_lowercase();
        if !is_tag(&tag) {
            return None;
        }
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    Some(tags)
}

/// Lower-case letters and digits with single dashes between them, as in
/// `game.toml`.
fn is_tag(tag: &str) -> bool {
    let in_alphabet = |c: u8| matches!(c, b'a'..=b'z' | b'0'..=b'9');
    tag.len() <= TAG_CHARS_MAX
        && tag
            .split('-')
            .all(|part| !part.is_empty() && part.bytes().all(in_alphabet))
}

/// Neither a control nor a direction mark nor an invisible character.
fn is_plain(c: char) -> bool {
    !c.is_control()
        && !matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'
                | '\u{200e}'..='\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_one_plain_line() {
        assert_eq!(
            line("  Sky\n\t Race \u{202e}x", 60).as_deref(),
            Some("Sky Race x")
        );
        assert_eq!(line("\u{200b}\u{0} ", 60), None);
        assert_eq!(line("abc", 2), None);
        assert_eq!(line("<b>Hi</b>", 60).as_deref(), Some("<b>Hi</b>"));
    }

    #[test]
    fn descriptions_keep_their_lines() {
        assert_eq!(paragraphs(" a\r\nb\u{0}\n ", 10).as_deref(), Some("a\nb"));
        assert_eq!(paragraphs("", 10).as_deref(), Some(""));
        assert_eq!(paragraphs("12345678901", 10), None);
    }

    #[test]
    fn tags_are_slugs_each_once() {
        let typed = |tags: &[&str]| tags.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            tags(&typed(&["Race", "race", "sky-2"])),
            Some(typed(&["race", "sky-2"]))
        );
        for bad in ["", "-a", "a--b", "a b", "ä", "<b>", &"x".repeat(25)] {
            assert_eq!(tags(&typed(&[bad])), None, "{bad}");
        }
        assert_eq!(tags(&typed(&["a"; 11])), None);
    }
}
