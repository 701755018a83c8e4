//! How much creators may write for others to read, and what tags are.

/// Characters of a title.
pub const NAME_CHARS_MAX: usize = 60;
/// Characters of a description.
pub const DESCRIPTION_CHARS_MAX: usize = 2_000;
/// Characters of what is said about a version.
pub const NOTES_CHARS_MAX: usize = 2_000;
/// Tags of one game.
pub const TAGS_MAX: usize = 10;
const TAG_CHARS_MAX: usize = 24;

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

#[cfg(test)]
mod tests {
    use super::*;

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
