//! bench/results.json: one entry per scenario. Measuring one leaves the others alone.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use super::entry;
use super::scenarios::Scenario;

/// The stored results.
pub struct Results {
    file: PathBuf,
    entries: Vec<Value>,
}

impl Results {
    /// Reads the file; none is none known.
    pub fn read(file: &Path) -> Result<Self> {
        let entries = match fs::read_to_string(file) {
            Ok(text) => serde_json::from_str(&text)
                .with_context(|| format!("{} is not a list of results", file.display()))?,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", file.display()));
            }
        };
        Ok(Self {
            file: file.to_owned(),
            entries,
        })
    }

    /// Puts new figures in the place of the scenario's old ones, and writes.
    pub fn store(&mut self, scenario: &Scenario, commit: &str, figures: Value) -> Result<()> {
        let entry = entry(scenario, commit, figures);
        let known = self.entries.iter_mut();
        match known.into_iter().find(|known| known["id"] == entry["id"]) {
            Some(known) => *known = entry,
            None => self.entries.push(entry),
        }
        let text = serde_json::to_string_pretty(&self.entries)?;
        fs::write(&self.file, text + "\n")
            .with_context(|| format!("cannot write {}", self.file.display()))
    }

    /// The newest entry of a scenario.
    pub fn of(&self, id: &str) -> Option<&Value> {
        self.entries.iter().find(|entry| entry["id"] == id)
    }

    /// Entries that no file has.
    #[cfg(test)]
    pub fn made_up(entries: Vec<Value>) -> Self {
        Self {
            file: PathBuf::new(),
            entries,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::scenarios::Program;
    use serde_json::json;

    #[test]
    fn one_measurement_leaves_the_others_alone() {
        let name = format!("frolic-results-{}.json", std::process::id());
        let file = std::env::temp_dir().join(name);
        let _ = fs::remove_file(&file);
        let scenario = |id: &str| Scenario {
            id: id.to_owned(),
            title: id.to_owned(),
            words: vec!["crowd".to_owned()],
            program: Program::Frolic,
        };
        let mut results = Results::read(&file).unwrap();
        for (id, figure) in [("a", 1), ("b", 2), ("a", 3)] {
            let figures = json!({ "players": figure });
            results.store(&scenario(id), "c0ffee", figures).unwrap();
        }
        let read = Results::read(&file).unwrap();
        assert_eq!(read.entries.len(), 2);
        assert_eq!(read.of("a").unwrap()["figures"]["players"], 3);
        assert_eq!(read.of("b").unwrap()["figures"]["players"], 2);
        assert!(read.of("c").is_none());
        fs::write(&file, "{}").unwrap();
        assert!(Results::read(&file).is_err(), "not thrown away unseen");
        fs::remove_file(&file).unwrap();
    }
}
