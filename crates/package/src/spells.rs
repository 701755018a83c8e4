//! Spells that ship with a game: `spells/<spell_id>/spell.luau` and `spell.toml`.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{Problem, Report, Rule};
use frolic_scene::text::{LineIndex, shown};

const FOLDER: &str = "spells/";
const SPELLS_MAX: usize = 256;
const ID_BYTES_MAX: usize = 64;

/// spell.toml: what a cast takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SpellSettings {
    /// Name to show; its id when left out.
    pub name: String,
    /// Its effect.
    pub description: String,
    /// Seconds until the same player can cast it again.
    pub cooldown_s: f32,
    /// Mana that a cast takes.
    pub cost: f32,
    /// How far from the caster its target may be, in metres.
    pub range_m: f32,
}

impl Default for SpellSettings {
    fn default() -> Self {
        Self {
            name: String::new(),
            description: String::new(),
            cooldown_s: 1.0,
            cost: 0.0,
            range_m: 50.0,
        }
    }
}

/// The path of a spell's code, in a package and everywhere else.
pub fn script_path(spell_id: &str) -> String {
    format!("{FOLDER}{spell_id}/spell.luau")
}

/// Checks the files of one spell: `spell.luau`, and maybe `spell.toml`.
///
/// # Errors
/// Everything that is wrong with them.
pub fn check(spell_id: &str, files: &BTreeMap<String, Vec<u8>>) -> Result<SpellSettings, String> {
    let mut report = Report::default();
    let placed = files
        .iter()
        .map(|(path, bytes)| (format!("{FOLDER}{spell_id}/{path}"), bytes.clone()));
    let mut spells = of_files(&placed.collect(), &mut report);
    spells.remove(spell_id).ok_or_else(|| report.to_string())
}

impl SpellSettings {
    /// As spell.toml has it.
    pub fn to_toml(&self) -> String {
        // Strings and numbers: nothing that could fail.
        toml::to_string(self).unwrap_or_default()
    }
}

/// Whether a text can be the id of a spell: small letters, digits, `_` and `-`.
pub fn is_id(text: &str) -> bool {
    let plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    (1..=ID_BYTES_MAX).contains(&text.len()) && text.bytes().all(plain)
}

fn parse(file: &str, bytes: &[u8]) -> Result<SpellSettings, Problem> {
    let error = |message: String| Problem::error(Rule::InvalidValue, file, message);
    let text = std::str::from_utf8(bytes).map_err(|_| error("is not UTF-8 text".into()))?;
    let settings: SpellSettings = toml::from_str(text).map_err(|cause| {
        let at = cause.span().map_or(0, |span| span.start);
        error(cause.message().to_owned()).at(LineIndex::new(text).place(at))
    })?;
    let checks = [
        ("cooldown_s", settings.cooldown_s, 3600.0),
        ("cost", settings.cost, 1000.0),
        ("range_m", settings.range_m, 1000.0),
    ];
    for (name, value, most) in checks {
        if !(0.0..=most).contains(&value) {
            return Err(error(format!("{name} is a number from 0 to {most}")));
        }
    }
    Ok(settings)
}

/// The spells of a package, by id.
pub(crate) fn of_files(
    files: &BTreeMap<String, Vec<u8>>,
    report: &mut Report,
) -> BTreeMap<String, SpellSettings> {
    let paths = files.keys().filter_map(|path| path.strip_prefix(FOLDER));
    let ids: BTreeSet<&str> = paths
        .filter_map(|rest| Some(rest.split_once('/')?.0))
        .collect();
    if ids.len() > SPELLS_MAX {
        let message = format!("{} spells; at most {SPELLS_MAX} are allowed", ids.len());
        report.push(Problem::error(Rule::InvalidValue, FOLDER, message));
        return BTreeMap::new();
    }
    let mut spells = BTreeMap::new();
    for id in ids {
        let (code, about) = (script_path(id), format!("{FOLDER}{id}/spell.toml"));
        if !is_id(id) {
            let message = format!(
                "\"{}\" cannot be the id of a spell; use small letters, digits, _ and -",
                shown(id)
            );
            report.push(Problem::error(Rule::InvalidValue, &code, message));
            continue;
        }
        if !files.contains_key(&code) {
            let message = "is missing: a spell has a function on_cast(ctx) there";
            report.push(Problem::error(Rule::MissingFile, &code, message));
            continue;
        }
        let parsed = files.get(&about).map(|bytes| parse(&about, bytes));
        match parsed.transpose() {
            Ok(settings) => {
                spells.insert(id.to_owned(), settings.unwrap_or_default());
            }
            Err(problem) => report.push(problem),
        }
    }
    spells
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(files: &[(&str, &str)]) -> (BTreeMap<String, SpellSettings>, String) {
        let files = files
            .iter()
            .map(|(path, text)| (format!("spells/{path}"), text.as_bytes().to_vec()));
        let mut report = Report::default();
        let spells = of_files(&files.collect(), &mut report);
        (spells, report.to_string())
    }

    #[test]
    fn a_spell_has_code_and_maybe_settings() {
        let (spells, report) = read(&[
            ("spark/spell.luau", ""),
            ("bolt/spell.luau", ""),
            ("bolt/spell.toml", "cooldown_s = 2.5\ncost = 10"),
        ]);
        assert_eq!(spells["spark"], SpellSettings::default(), "{report}");
        assert_eq!(
            (spells["bolt"].cooldown_s, spells["bolt"].cost),
            (2.5, 10.0)
        );
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        for (files, part) in [
            (
                &[("x/spell.luau", ""), ("x/spell.toml", "\nspeed = 1")][..],
                "spells/x/spell.toml:2:1",
            ),
            (
                &[("x/spell.luau", ""), ("x/spell.toml", "cost = -1")],
                "cost is a number",
            ),
            (
                &[("x/spell.luau", ""), ("x/spell.toml", "range_m = nan")],
                "range_m is a number",
            ),
            (&[("x/spell.toml", "")], "spells/x/spell.luau"),
            (&[("Ä B/spell.luau", "")], "cannot be the id"),
        ] {
            let (spells, report) = read(files);
            assert!(spells.is_empty() && report.contains(part), "{report}");
        }
    }
}
