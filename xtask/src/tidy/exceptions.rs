//! `xtask/tidy-exceptions.toml`: what may exceed a limit for now, how far, and
//! why. A number in it is a ceiling: tidy fails when the measured count grows
//! past it, and says when it can be lowered.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use toml::Table;

/// The file, from the root of the checkout.
pub const FILE: &str = "xtask/tidy-exceptions.toml";

/// One entry: `name = { max = 3, reason = "…" }`.
#[derive(Debug)]
struct Ceiling {
    max: usize,
}

/// All entries, by section (the rule) and name.
#[derive(Debug)]
pub struct Exceptions {
    sections: BTreeMap<String, BTreeMap<String, Ceiling>>,
}

/// The result of the checks.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Broken rules, which make tidy fail.
    pub complaints: Vec<String>,
    /// Ceilings that can be lowered.
    pub notes: Vec<String>,
}

/// A rule that counts something and allows at most `limit` of it.
pub struct Rule<'a> {
    /// The section of the exceptions.
    pub section: &'a str,
    pub limit: usize,
    /// The counted things, in the plural.
    pub unit: &'a str,
    pub advice: &'a str,
}

impl Exceptions {
    /// Reads the file of a checkout.
    pub fn load(root: &Path) -> Result<Self> {
        let text =
            fs::read_to_string(root.join(FILE)).with_context(|| format!("cannot read {FILE}"))?;
        Self::parse(&text).with_context(|| format!("{FILE} is not valid"))
    }

    fn parse(text: &str) -> Result<Self> {
        let table: Table = text.parse()?;
        let mut sections = BTreeMap::new();
        for (section, entries) in &table {
            let entries = entries
                .as_table()
                .with_context(|| format!("`{section}` is not a table"))?;
            let mut ceilings = BTreeMap::new();
            for (name, entry) in entries {
                let max = entry.get("max").and_then(toml::Value::as_integer);
                let max = max.and_then(|max| usize::try_from(max).ok());
                let max = max.with_context(|| format!("[{section}] `{name}` has no `max`"))?;
                let reason = entry.get("reason").and_then(toml::Value::as_str);
                if reason.is_none_or(str::is_empty) {
                    bail!("[{section}] `{name}` has no `reason`");
                }
                ceilings.insert(name.clone(), Ceiling { max });
            }
            sections.insert(section.clone(), ceilings);
        }
        Ok(Self { sections })
    }

    /// Compares counts, by name, with the limit or with their ceilings. `counts`
    /// holds every name that exists, so that an entry for another one is an error.
    pub fn judge(&self, rule: &Rule, counts: &BTreeMap<String, usize>, verdict: &mut Verdict) {
        let Rule {
            section,
            limit,
            unit,
            advice,
        } = rule;
        let none = BTreeMap::new();
        let ceilings = self.sections.get(*section).unwrap_or(&none);
        for (name, &count) in counts {
            let ceiling = ceilings.get(name);
            let max = ceiling.map_or(*limit, |ceiling| ceiling.max.max(*limit));
            if count > max {
                verdict
                    .complaints
                    .push(format!("{name}: {count} {unit}, at most {max}; {advice}"));
            } else if ceiling.is_some() && count <= *limit {
                verdict
                    .notes
                    .push(format!("{FILE}: [{section}] `{name}` is no longer needed"));
            } else if count < max && ceiling.is_some() {
                verdict.notes.push(format!(
                    "{FILE}: [{section}] `{name}` can be lowered from {max} to {count}"
                ));
            }
        }
        for name in ceilings.keys().filter(|name| !counts.contains_key(*name)) {
            verdict
                .complaints
                .push(format!("{FILE}: [{section}] `{name}` does not exist"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Rule = Rule {
        section: "fields",
        limit: 20,
        unit: "fields",
        advice: "split it",
    };

    fn verdict(exceptions: &str, counts: &[(&str, usize)]) -> Verdict {
        let counts = counts
            .iter()
            .map(|(name, count)| ((*name).to_owned(), *count));
        let mut verdict = Verdict::default();
        let exceptions = Exceptions::parse(exceptions).unwrap();
        exceptions.judge(&RULE, &counts.collect(), &mut verdict);
        verdict
    }

    #[test]
    fn counts_above_the_limit_need_an_exception() {
        let found = verdict("", &[("a::Small", 20), ("a::Big", 21)]);
        assert_eq!(
            found.complaints,
            ["a::Big: 21 fields, at most 20; split it"]
        );
        assert!(found.notes.is_empty());
    }

    #[test]
    fn a_ceiling_holds_and_can_be_lowered() {
        let ceiling = "[fields]\n\"a::Big\" = { max = 30, reason = \"a record\" }";
        assert!(verdict(ceiling, &[("a::Big", 30)]).complaints.is_empty());
        assert!(verdict(ceiling, &[("a::Big", 30)]).notes.is_empty());
        assert_eq!(verdict(ceiling, &[("a::Big", 31)]).complaints.len(), 1);
        let lower = verdict(ceiling, &[("a::Big", 25)]);
        assert!(lower.complaints.is_empty());
        assert!(lower.notes[0].ends_with("`a::Big` can be lowered from 30 to 25"));
        let needless = verdict(ceiling, &[("a::Big", 20)]);
        assert!(needless.notes[0].ends_with("`a::Big` is no longer needed"));
    }

    #[test]
    fn an_exception_names_something_that_exists_and_a_reason() {
        let gone = verdict(
            "[fields]\n\"a::Gone\" = { max = 30, reason = \"a record\" }",
            &[],
        );
        assert!(gone.complaints[0].ends_with("`a::Gone` does not exist"));
        assert!(Exceptions::parse("[fields]\nBig = { max = 30 }").is_err());
        assert!(Exceptions::parse("[fields]\nBig = { reason = \"a record\" }").is_err());
    }
}
