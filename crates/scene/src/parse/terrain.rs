//! The `terrain` of a scene: each key on its own, so that every problem is
//! found at once and where it is.

use frolic_terrain::EDITS_BYTES_MAX;
use serde_json::value::RawValue;

use super::Reader;
use crate::Rule;
use crate::Terrain;

const TERRAIN_BYTES_MAX: usize = 4 << 20;
/// The text of stored chunks: base64 in quotes.
const EDITS_TEXT_BYTES_MAX: usize = EDITS_BYTES_MAX.div_ceil(3) * 4 + 2;
const KEYS: [&str; 12] = [
    "size",
    "origin",
    "block",
    "generator",
    "materials",
    "protected",
    "editable",
    "reach",
    "brush",
    "rate",
    "ops",
    "edits",
];

impl<'t> Reader<'t, '_> {
    pub(super) fn terrain(&mut self, value: &'t RawValue) -> Option<Terrain> {
        let at = self.offset(value);
        if value.get().len() > TERRAIN_BYTES_MAX + EDITS_TEXT_BYTES_MAX {
            let message = format!("terrain is longer than {TERRAIN_BYTES_MAX} bytes");
            self.error(Rule::FileSize, at, message);
            return None;
        }
        if value.get() == "null" {
            return None;
        }
        let mut terrain = Terrain::new([0; 3], Default::default());
        let mut spots = vec![];
        let mut good = true;
        for (key, value) in self.object(value, "terrain") {
            spots.push((key.clone(), self.offset(value)));
            let t = &mut terrain;
            good &= match &*key {
                "size" => self.decode_into(value, "size", &mut t.size),
                "origin" => self.decode_into(value, "origin", &mut t.origin),
                "block" => self.decode_into(value, "block", &mut t.block),
                "generator" => self.decode_into(value, "generator", &mut t.generator),
                "materials" => self.decode_into(value, "materials", &mut t.materials),
                "protected" => self.decode_into(value, "protected", &mut t.protected),
                "editable" => self.decode_into(value, "editable", &mut t.editable),
                "reach" => self.decode_into(value, "reach", &mut t.reach),
                "brush" => self.decode_into(value, "brush", &mut t.brush),
                "rate" => self.decode_into(value, "rate", &mut t.rate),
                "ops" => self.decode_into(value, "ops", &mut t.ops),
                "edits" => self.decode_into(value, "edits", &mut t.edits),
                _ => {
                    self.unknown_key(&key, value, &KEYS);
                    false
                }
            };
        }
        if !spots.iter().any(|(key, _)| key == "size") {
            let message = "terrain needs \"size\", such as [512, 128, 512]";
            self.error(Rule::MissingKey, at, message);
            return None;
        }
        if !good {
            return None;
        }
        for problem in terrain.check() {
            let spot = spots.iter().find(|(key, _)| key == problem.key);
            let offset = spot.map_or(at, |(_, at)| *at);
            let message = format!("terrain: {}: {}", problem.key, problem.message);
            self.error_in(Some(problem.key), Rule::InvalidValue, offset, message);
        }
        Some(terrain)
    }

    /// Reads a value in place of a default; false when it is not one.
    fn decode_into<T: serde::Deserialize<'t>>(
        &mut self,
        value: &'t RawValue,
        what: &str,
        into: &mut T,
    ) -> bool {
        let what = format!("terrain: {what}");
        match self.decode(value, &what) {
            Some(read) => {
                *into = read;
                true
            }
            None => false,
        }
    }
}
