//! Player names: removes characters that could disguise a name or break a page, and
//! generates names for players who give none.

use frolic_fleet_api::filter;

use crate::api::limits::USERNAME_CHARS_MAX;
use crate::core::error::ApiError;
use crate::core::settings::Settings;

/// Maximum number of typed characters that are examined.
pub const TYPED_CHARS_MAX: usize = USERNAME_CHARS_MAX * 8;

const ADJECTIVES: [&str; 24] = [
    "Amber", "Bold", "Brave", "Bright", "Calm", "Clever", "Cosmic", "Daring", "Eager", "Fancy",
    "Gentle", "Happy", "Jolly", "Keen", "Lucky", "Merry", "Nimble", "Plucky", "Quick", "Silver",
    "Sunny", "Swift", "Witty", "Zesty",
];
const ANIMALS: [&str; 24] = [
    "Badger", "Beaver", "Bison", "Crane", "Dingo", "Falcon", "Ferret", "Finch", "Gecko", "Heron",
    "Ibis", "Koala", "Lemur", "Lynx", "Marmot", "Newt", "Otter", "Panda", "Puffin", "Quokka",
    "Raven", "Tapir", "Walrus", "Wombat",
];

const RESERVED: [&str; 7] = [
    "admin",
    "administrator",
    "mod",
    "moderator",
    "operator",
    "support",
    "system",
];

/// Keeps letters and digits of any script, single spaces, `_`, `-` and `.`, starting
/// with a letter or digit; `None` when nothing is left. Drops everything else:
/// control and direction marks, invisible characters, markup.
pub fn clean(typed: &str) -> Option<String> {
    let mut name = String::new();
    let mut chars = 0;
    let mut space_due = false;
    // A hostile name can be long: examine a bounded prefix.
    for c in typed.chars().take(TYPED_CHARS_MAX) {
        if c.is_whitespace() {
            space_due = !name.is_empty();
            continue;
        }
        let keep = c.is_alphanumeric() || (!name.is_empty() && matches!(c, '_' | '-' | '.'));
        if !keep {
            continue;
        }
        let wanted = 1 + usize::from(space_due);
        if chars + wanted > USERNAME_CHARS_MAX {
            break;
        }
        if space_due {
            name.push(' ');
        }
        name.push(c);
        chars += wanted;
        space_due = false;
    }
    (!name.is_empty()).then_some(name)
}

/// Generates a friendly name from random bytes.
pub fn generate(random: [u8; 2]) -> String {
    let adjective = ADJECTIVES[usize::from(random[0]) % ADJECTIVES.len()];
    let animal = ANIMALS[usize::from(random[1]) % ANIMALS.len()];
    format!("{adjective}{animal}")
}

/// `name` with a number appended, shortened to the maximum length.
pub fn with_number(name: &str, number: u32) -> String {
    let suffix = number.to_string();
    let room = USERNAME_CHARS_MAX - suffix.len().min(USERNAME_CHARS_MAX - 1);
    let stem: String = name.chars().take(room).collect();
    format!("{}{suffix}", stem.trim_end())
}

/// Whether a name could pass for the platform's staff. The built-in account holds the
/// platform's own name.
pub fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&key(name).as_str())
}

/// Rejects an offensive name, unless the operator turned the text filter off.
///
/// # Errors
/// 400.
pub fn check_inoffensive(settings: &Settings, name: &str) -> Result<(), ApiError> {
    if !settings.text_filter || filter::is_decent_name(name) {
        return Ok(());
    }
    Err(ApiError::bad_request(
        "name_refused",
        "Choose another name.",
    ))
}

/// The uniqueness key of a name: names that read alike share one.
pub fn key(name: &str) -> String {
    name.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cleaned() {
        for (typed, name) in [
            ("Ada", Some("Ada")),
            ("  Ada   Lovelace ", Some("Ada Lovelace")),
            ("<script>alert(1)</script>", Some("scriptalert1script")),
            ("\u{202e}live\u{0}\n evil\u{200b}", Some("live evil")),
            ("../..//etc", Some("etc")),
            ("Зоя Ñandú", Some("Зоя Ñandú")),
            ("abcdefghijklmnopqrstuvwxyz", Some("abcdefghijklmnopqrst")),
            ("nineteen characters x", Some("nineteen characters")),
            ("---", None),
            ("", None),
            ("🦀", None),
        ] {
            assert_eq!(clean(typed).as_deref(), name, "{typed:?}");
        }
        assert_eq!(clean(&"\u{7}".repeat(1_000_000)), None);
    }

    #[test]
    fn numbers_fit_into_the_limit() {
        assert_eq!(with_number("Ada", 2), "Ada2");
        let long = "x".repeat(USERNAME_CHARS_MAX);
        assert_eq!(with_number(&long, 1234).chars().count(), USERNAME_CHARS_MAX);
        assert!(with_number(&long, 1234).ends_with("x1234"));
    }
}
