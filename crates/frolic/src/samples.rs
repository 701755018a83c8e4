//! Leftovers of a sample in a game that began as its copy.

use std::collections::BTreeMap;

use frolic_package::{Limits, Manifest, Problem, Report, Rule};

/// Warns when the store would show the words of a sample under another name.
pub fn warn_of_copies(files: &BTreeMap<String, Vec<u8>>, manifest: &Manifest, report: &mut Report) {
    let game = &manifest.game;
    let samples: Vec<_> = frolic_assets::sample_games()
        .into_iter()
        .filter_map(|(_, sample)| {
            let bytes = sample.get("game.toml")?;
            let manifest = Manifest::parse(bytes, &Limits::default()).ok()?;
            Some((manifest.game, sample))
        })
        .collect();
    if samples.iter().any(|(sample, _)| sample.id == game.id) {
        return;
    }
    for (sample, sample_files) in &samples {
        let mut warn = |file: &str, line: Option<u32>, what: &str| {
            let message = format!(
                "{what} is still that of the sample game {}; write your own before you publish",
                sample.name
            );
            let problem = Problem::error(Rule::Suspicious, file, message).as_warning();
            report.push(match line {
                Some(line) => problem.at((line, 1)),
                None => problem,
            });
        };
        if !game.description.is_empty() && game.description == sample.description {
            warn("game.toml", key_line(files, "description"), "description");
        }
        if !game.tags.is_empty() && game.tags == sample.tags {
            warn("game.toml", key_line(files, "tags"), "the list of tags");
        }
        let readme = files.get("README.md");
        if readme.is_some() && readme == sample_files.get("README.md") {
            warn("README.md", None, "this file");
        }
    }
}

/// The line that sets a key.
fn key_line(files: &BTreeMap<String, Vec<u8>>, key: &str) -> Option<u32> {
    let text = std::str::from_utf8(files.get("game.toml")?).ok()?;
    let sets = |line: &str| {
        let rest = line.trim_start().strip_prefix(key);
        rest.is_some_and(|rest| rest.trim_start().starts_with('='))
    };
    let index = text.lines().position(sets)?;
    u32::try_from(index + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_of_a_sample_in_its_copy_are_reported() {
        let (_, mut files) = frolic_assets::sample_games()
            .into_iter()
            .find(|(_, files)| files.contains_key("README.md"))
            .expect("a sample has a README");
        let warnings = |files: &BTreeMap<String, Vec<u8>>| {
            let limits = Limits::default();
            let manifest = Manifest::parse(&files["game.toml"], &limits).unwrap();
            let mut report = Report::new(&limits);
            warn_of_copies(files, &manifest, &mut report);
            report.problems
        };
        assert_eq!(warnings(&files), []);
        let manifest = String::from_utf8(files["game.toml"].clone()).unwrap();
        let id = manifest
            .lines()
            .find(|line| line.starts_with("id"))
            .unwrap();
        let renamed = manifest.replace(id, "id = \"my-own\"");
        files.insert("game.toml".to_owned(), renamed.into_bytes());
        let found = warnings(&files);
        let places: Vec<_> = found.iter().map(|p| p.file.as_str()).collect();
        assert!(places.contains(&"README.md") && places.contains(&"game.toml"));
        assert!(found.iter().any(|problem| problem.line.is_some()));
    }
}
