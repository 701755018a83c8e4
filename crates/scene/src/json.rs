//! Takes JSON apart into pieces that still point into the text, with bounds on their number.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess};
use serde_json::value::RawValue;

/// The members of an object in their order, duplicates included.
pub(crate) struct Members<'t> {
    pub(crate) list: Vec<(Cow<'t, str>, &'t RawValue)>,
    /// How many there were beyond the bound.
    pub(crate) omitted: usize,
}

impl<'t> Members<'t> {
    pub(crate) fn parse(text: &'t str, max: usize) -> Result<Self, serde_json::Error> {
        parse_all(text, MembersSeed(max))
    }
}

/// The items of an array.
pub(crate) struct Items<'t> {
    pub(crate) list: Vec<&'t RawValue>,
    /// How many there were beyond the bound.
    pub(crate) omitted: usize,
}

impl<'t> Items<'t> {
    pub(crate) fn parse(text: &'t str, max: usize) -> Result<Self, serde_json::Error> {
        parse_all(text, ItemsSeed(max))
    }
}

/// The offset at which arrays and objects nest deeper than `depth_max`, if they do.
///
/// Looked for before parsing: skipping over a value does not recurse, but reading it does.
pub(crate) fn nesting_problem(text: &str, depth_max: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut escaped = false;
    for (offset, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => {
                depth += 1;
                if depth > depth_max {
                    return Some(offset);
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

fn parse_all<'t, S: DeserializeSeed<'t>>(
    text: &'t str,
    seed: S,
) -> Result<S::Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = seed.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

struct MembersSeed(usize);

impl<'de> DeserializeSeed<'de> for MembersSeed {
    type Value = Members<'de>;

    fn deserialize<D: de::Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Members<'de>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> de::Visitor<'de> for MembersSeed {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let (mut list, mut omitted) = (vec![], 0);
        while let Some(Key(key)) = map.next_key()? {
            if list.len() < self.0 {
                list.push((key, map.next_value()?));
            } else {
                map.next_value::<IgnoredAny>()?;
                omitted += 1;
            }
        }
        Ok(Members { list, omitted })
    }
}

struct ItemsSeed(usize);

impl<'de> DeserializeSeed<'de> for ItemsSeed {
    type Value = Items<'de>;

    fn deserialize<D: de::Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Items<'de>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> de::Visitor<'de> for ItemsSeed {
    type Value = Items<'de>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Items<'de>, A::Error> {
        let (mut list, mut omitted) = (vec![], 0);
        while list.len() < self.0 {
            match seq.next_element()? {
                Some(item) => list.push(item),
                None => return Ok(Items { list, omitted }),
            }
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {
            omitted += 1;
        }
        Ok(Items { list, omitted })
    }
}

/// A key that stays a slice of the text unless it has escapes.
struct Key<'t>(Cow<'t, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_str<E: de::Error>(self, key: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(key)))
            }

            fn visit_str<E: de::Error>(self, key: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(key.to_owned())))
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nesting_ignores_brackets_in_strings() {
        assert_eq!(nesting_problem(r#"["[[[[\"[[["]"#, 1), None);
        assert_eq!(nesting_problem("[[], [[]]]", 2), Some(6));
    }

    #[test]
    fn members_beyond_the_bound_are_only_counted() {
        let members = Members::parse(r#"{"a": 1, "a": 2, "b": [3]}"#, 2).unwrap();
        assert_eq!((members.list.len(), members.omitted), (2, 1));
        let items = Items::parse("[1, 2, 3, 4]", 3).unwrap();
        assert_eq!((items.list.len(), items.omitted), (3, 1));
    }
}
