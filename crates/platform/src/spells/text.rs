//! Length limit of spell descriptions, and ids derived from names.

/// Maximum length of a description, in characters.
pub const DESCRIPTION_CHARS_MAX: usize = 500;

/// Derives an id from a name, such as `ice-wall` from `Ice wall!`.
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
    fn ids_are_plain() {
        assert_eq!(id_of("Ice wall!"), "ice-wall");
        assert_eq!(id_of("Ä/../x"), "x");
        assert_eq!(id_of("!!!"), "");
    }
}
