//! The scene for JSON clients: plain JSON, in pieces that any library accepts.

use std::collections::BTreeMap;

use serde_json::json;
use serde_json::value::RawValue;

use crate::message::PROTOCOL_VERSION;

/// Approximate size of a piece. Some libraries accept no message of more than a
/// mebibyte by default, and proxies on the way less.
const PIECE_BYTES: usize = 256 * 1024;

/// The events that carry a scene file, in order; none when it is not one.
///
/// Each has some of the prefabs and some of the entities as the file has them, the
/// first also everything else. Only their boundaries are parsed: a file may be
/// large, and its numbers must arrive as they were written.
pub fn scene(hash: &str, text: &[u8]) -> Option<Vec<String>> {
    let text = std::str::from_utf8(text).ok()?;
    let mut parts: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
    let prefabs = parts.remove("prefabs").map_or("{}", RawValue::get);
    let prefabs: BTreeMap<String, &RawValue> = serde_json::from_str(prefabs).ok()?;
    let entities = parts.remove("entities").map_or("[]", RawValue::get);
    let entities: Vec<&RawValue> = serde_json::from_str(entities).ok()?;

    let mut pieces = vec![Piece::default()];
    for (name, value) in &parts {
        let piece = pieces.last_mut()?;
        piece.rest.push_str(&named(name, value));
        piece.rest.push(',');
    }
    for (name, prefab) in &prefabs {
        let prefab = named(name, prefab);
        room_for(&mut pieces, &prefab).prefabs.push(prefab);
    }
    for entity in entities {
        let entity = compact(entity.get());
        room_for(&mut pieces, &entity).entities.push(entity);
    }
    let count = pieces.len();
    let parts = pieces.into_iter().zip(1..);
    Some(
        parts
            .map(|(piece, part)| piece.text(hash, part, count))
            .collect(),
    )
}

#[derive(Default)]
struct Piece {
    /// Other members of the file, each with a comma behind it.
    rest: String,
    prefabs: Vec<String>,
    entities: Vec<String>,
    bytes: usize,
}

impl Piece {
    fn text(self, hash: &str, part: usize, parts: usize) -> String {
        let (rest, hash) = (self.rest, json!(hash));
        let (prefabs, entities) = (self.prefabs.join(","), self.entities.join(","));
        format!(
            r#"{{"v":{PROTOCOL_VERSION},"kind":"event","feature":"scene","hash":{hash},"part":{part},"parts":{parts},"scene":{{{rest}"prefabs":{{{prefabs}}},"entities":[{entities}]}}}}"#
        )
    }
}

/// The piece with capacity for this text.
fn room_for<'a>(pieces: &'a mut Vec<Piece>, text: &str) -> &'a mut Piece {
    let last = pieces.len() - 1;
    let bytes = pieces[last].bytes;
    if bytes > 0 && bytes + text.len() > PIECE_BYTES {
        pieces.push(Piece::default());
    }
    let last = pieces.len() - 1;
    pieces[last].bytes += text.len();
    &mut pieces[last]
}

fn named(name: &str, value: &RawValue) -> String {
    format!("{}:{}", json!(name), compact(value.get()))
}

/// The same JSON without insignificant whitespace.
fn compact(text: &str) -> String {
    let mut compact = String::with_capacity(text.len());
    let (mut quoted, mut escaped) = (false, false);
    for letter in text.chars() {
        if quoted || !letter.is_ascii_whitespace() {
            compact.push(letter);
        }
        quoted ^= letter == '"' && !escaped;
        escaped = quoted && letter == '\\' && !escaped;
    }
    compact
}

#[cfg(test)]
mod tests {
    use serde_json::Value as Json;

    use super::*;

    fn events_of(text: &str) -> Vec<Json> {
        let events = scene("ab", text.as_bytes()).expect("a scene");
        let read = events.iter().map(|text| serde_json::from_str(text));
        read.collect::<Result<_, _>>().expect("JSON")
    }

    #[test]
    fn a_small_scene_is_one_event_with_the_file_in_it() {
        let file = r#"{ "format": 1,
            "terrain": {"size": [256, 32, 256]},
            "prefabs": {"A \"b\\": {"components": {"Tag": ["two  spaces", "\\"]}}},
            "entities": [{"id": 1, "name": "Ground { \" [", "components": {"Transform": {"position": [0.1, -1e-3, 0]}}}]}"#;
        let whole: Json = serde_json::from_str(file).expect("JSON");
        let events = events_of(file);
        assert_eq!(events.len(), 1);
        let expected = json!({
            "v": 2, "kind": "event", "feature": "scene", "hash": "ab", "part": 1, "parts": 1,
            "scene": whole,
        });
        assert_eq!(events[0], expected);
        let bare = events_of(r#"{"format":1}"#);
        let empty = json!({"format": 1, "prefabs": {}, "entities": []});
        assert_eq!(bare[0]["scene"], empty);
    }

    #[test]
    fn a_large_scene_comes_in_pieces_that_make_the_file() {
        let name = "x".repeat(900);
        let prefabs: BTreeMap<String, Json> = (0..500)
            .map(|number| (format!("{number}{name}"), json!({ "components": {} })))
            .collect();
        let entities: Vec<Json> = (1..=1500)
            .map(|id| json!({ "id": id, "name": name, "components": {} }))
            .collect();
        let file = json!({ "format": 1, "prefabs": prefabs, "entities": entities });
        let text = serde_json::to_string_pretty(&file).expect("JSON");
        let events = events_of(&text);
        assert!(events.len() > 4, "{} pieces", events.len());
        let mut whole = json!({ "prefabs": {}, "entities": [] });
        for (event, part) in events.iter().zip(1..) {
            assert_eq!(
                (&event["part"], &event["parts"]),
                (&json!(part), &json!(events.len()))
            );
            assert!(event.to_string().len() < PIECE_BYTES + 1024);
            let scene = event["scene"].as_object().expect("an object");
            for (member, value) in scene {
                match (&mut whole[member], value) {
                    (Json::Object(known), Json::Object(more)) => known.extend(more.clone()),
                    (Json::Array(known), Json::Array(more)) => known.extend(more.clone()),
                    (place, value) => *place = value.clone(),
                }
            }
        }
        assert_eq!(whole, file);
    }

    #[test]
    fn what_is_no_scene_is_none() {
        for text in [
            &b"\xff"[..],
            b"",
            b"[]",
            b"{\"entities\":{}}",
            b"{\"prefabs\":[]}",
        ] {
            assert_eq!(scene("ab", text), None);
        }
    }
}
