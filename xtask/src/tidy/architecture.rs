//! ARCHITECTURE.md is a map: what grows longer belongs under docs/internals.

const FILE: &str = "ARCHITECTURE.md";
const WORDS_MAX: usize = 1200;

/// Complains when the map is too long.
pub fn length(name: &str, text: &str, found: &mut Vec<String>) {
    let words = text.split_whitespace().count();
    if name == FILE && words > WORDS_MAX {
        found.push(format!(
            ": {words} words; move details to docs/internals (at most {WORDS_MAX})"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_map_is_limited() {
        let count = |name, words| {
            let mut found = Vec::new();
            length(name, &"word ".repeat(words), &mut found);
            found.len()
        };
        assert_eq!(count(FILE, WORDS_MAX), 0);
        assert_eq!(count(FILE, WORDS_MAX + 1), 1);
        assert_eq!(count("README.md", WORDS_MAX + 1), 0);
    }
}
