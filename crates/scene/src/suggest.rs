//! Suggestions for misspelt names.

/// Longer words are not compared: the cost is quadratic, and the text may be hostile.
const CHARS_MAX: usize = 40;

/// The known name that is most like a word, if one is near enough to be meant.
pub(crate) fn closest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let chars = word.chars().count();
    if chars > CHARS_MAX {
        return None;
    }
    let limit = (chars / 3).max(1);
    known
        .into_iter()
        .map(|name| (distance(word, name), name))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// The number of characters to insert, remove or replace; upper and lower case are equal.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.to_lowercase().chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_is_found_and_another_word_is_not() {
        let known = ["Transform", "Tag", "SpawnPoint"];
        assert_eq!(closest("transfrom", known), Some("Transform"));
        assert_eq!(closest("Spawnpoint", known), Some("SpawnPoint"));
        assert_eq!(closest("Tags", known), Some("Tag"));
        assert_eq!(closest("Health", known), None);
        assert_eq!(closest(&"x".repeat(1_000_000), known), None);
    }
}
