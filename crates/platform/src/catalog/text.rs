//! Length limits of creators' texts, and the format of tags.

/// Maximum length of a title, in characters.
pub const NAME_CHARS_MAX: usize = 60;
/// Maximum length of a description, in characters.
pub const DESCRIPTION_CHARS_MAX: usize = 2_000;
/// Maximum length of release notes, in characters.
pub const NOTES_CHARS_MAX: usize = 2_000;
/// Maximum number of tags per game.
pub const TAGS_MAX: usize = 10;
const TAG_CHARS_MAX: usize = 24;

/// Validates tags and removes duplicates; `None` when one is invalid.
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

/// Lower-case letters and digits with single dashes between them, as in `game.toml`.
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
