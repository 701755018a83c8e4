//! Tags of games.

use frolic_package::is_tag;

use crate::api::limits::TAGS_MAX;

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
