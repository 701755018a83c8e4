//! remotes.toml: what clients may send to the game's server scripts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Problem, Report, Rule};
use frolic_scene::text::{LineIndex, check_name, shown};

const FILE: &str = "remotes.toml";
/// As many as `Network.Declare` takes.
const REMOTES_MAX: usize = 256;

/// One event or call that clients may send; the same as a `Network.Declare`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Remote {
    /// The types of its arguments, such as `dir: vector`.
    pub args: Vec<String>,
    /// Messages per player and second.
    pub rate: Option<f64>,
    /// Messages that may come at once.
    pub burst: Option<f64>,
    /// Its purpose.
    pub about: String,
}

/// Reads remotes.toml.
///
/// # Errors
/// An error in a declaration, and its place.
pub(crate) fn parse(bytes: &[u8]) -> Result<BTreeMap<String, Remote>, Problem> {
    let error = |message: String| Problem::error(Rule::InvalidValue, FILE, message);
    let text = std::str::from_utf8(bytes).map_err(|_| error("is not UTF-8 text".into()))?;
    let remotes: BTreeMap<String, Remote> = toml::from_str(text).map_err(|cause| {
        let at = cause.span().map_or(0, |span| span.start);
        error(cause.message().to_owned()).at(LineIndex::new(text).place(at))
    })?;
    if remotes.len() > REMOTES_MAX {
        let count = remotes.len();
        return Err(error(format!(
            "{count} remotes; at most {REMOTES_MAX} are allowed"
        )));
    }
    for name in remotes.keys() {
        if let Err(why) = check_name(name) {
            return Err(error(format!("the name {:?} {why}", shown(name))));
        }
    }
    Ok(remotes)
}

/// The remotes of a package; without the file there are none.
pub(crate) fn of_files(
    files: &BTreeMap<String, Vec<u8>>,
    report: &mut Report,
) -> BTreeMap<String, Remote> {
    let parsed = files.get(FILE).map(|bytes| parse(bytes));
    match parsed.transpose() {
        Ok(remotes) => remotes.unwrap_or_default(),
        Err(problem) => {
            report.push(problem);
            BTreeMap::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_has_types_and_a_rate() {
        let remotes = parse(b"[FireGun]\nargs = [\"dir: vector\"]\nrate = 10").expect("valid");
        assert_eq!(remotes["FireGun"].args, ["dir: vector"]);
        assert_eq!(remotes["FireGun"].rate, Some(10.0));
    }

    #[test]
    fn a_name_with_a_control_character_is_refused() {
        let problem = parse(b"[\"Fire\\u0007Gun\"]\nargs = []").expect_err("control character");
        assert!(problem.to_string().contains("control"), "{problem}");
    }

    #[test]
    fn a_wrong_key_is_named_with_its_line() {
        let problem = parse(b"[FireGun]\nargs = []\nspeed = 3").expect_err("unknown key");
        let text = problem.to_string();
        assert!(text.starts_with("remotes.toml:3:1"), "{text}");
        assert!(text.contains("speed"), "{text}");
    }
}
