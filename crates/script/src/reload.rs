//! New code in a running VM (DIST-5). `builtin/common/reload.luau` does the
//! rest: it ends what is old, starts what is new and hands the state over.

use std::collections::{BTreeMap, BTreeSet};

use crate::compile::CompiledScript;
use crate::service::Service;
use crate::vm::{Attachment, Vm};

/// What is to change in a VM, compiled already: nothing in here can fail.
#[derive(Debug, Default)]
pub struct Swap {
    /// New and changed scripts by path; none for one that is gone.
    pub scripts: BTreeMap<String, Option<CompiledScript>>,
    /// Every entity that has a script, as the world is now.
    pub attachments: Vec<Attachment>,
    /// The scripts before the last reload return: they go on with the state
    /// they had then.
    pub back: bool,
}

impl Vm {
    /// Puts new code in the place of the old, between two ticks. Instances of
    /// changed scripts, and of whoever required a changed module, end and
    /// start again with `OnReload(old_state)`.
    pub fn reload(&mut self, swap: Swap) {
        let of_server = |script: &CompiledScript| script.runs_on_server();
        let mut changed = BTreeSet::new();
        let (mut paths, mut ids) = (Vec::new(), Vec::new());
        for (path, script) in swap.scripts {
            let mut known = self.host.scripts.borrow_mut();
            let before = known.remove(&path);
            let script = script.filter(of_server);
            if before.is_none() && script.is_none() {
                // A client's business.
                continue;
            }
            changed.insert(path.clone());
            // New code gets another chance.
            self.host.disabled.borrow_mut().remove(&path);
            let Some(script) = script else {
                continue;
            };
            let is_module = script.service.is_some_and(Service::holds_modules);
            known.insert(path.clone(), script);
            if is_module {
                continue;
            }
            if self.attach_only.contains(&path) {
                let own = swap.attachments.iter().filter(|a| a.script == path);
                for attachment in own {
                    paths.push(path.clone());
                    ids.push(attachment.entity);
                }
            } else {
                paths.push(path);
                ids.push(0);
            }
        }
        if changed.is_empty() {
            return;
        }
        let changed = self
            .lua
            .create_table_from(changed.into_iter().map(|path| (path, true)));
        match changed {
            Ok(changed) => {
                let reload = self.entry.reload.clone();
                self.call(&reload, (changed, paths, ids, swap.back));
            }
            Err(error) => self.host.report("@builtin", &error.to_string(), ""),
        }
    }
}

/// The modules that a source text requires by name, as paths. A name that is
/// put together at run time is not among them.
pub fn required_modules(source: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut rest = source;
    while let Some(at) = rest.find("require") {
        let before = rest[..at].chars().next_back();
        rest = &rest[at + "require".len()..];
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let text = rest.trim_start();
        let text = text.strip_prefix('(').unwrap_or(text).trim_start();
        let Some(quote) = text
            .chars()
            .next()
            .filter(|c| matches!(c, '"' | '\'' | '`'))
        else {
            continue;
        };
        let name = text[1..].split([quote, '\n']).next().unwrap_or("");
        if let Some(path) = module_path(name) {
            found.insert(path);
        }
    }
    found
}

/// As `require` in `builtin/common/require.luau` reads a name.
fn module_path(name: &str) -> Option<String> {
    let folder = Service::ReplicatedStorage.name();
    let name = name.strip_prefix('@').unwrap_or(name);
    let name = name.strip_prefix("./").unwrap_or(name);
    let name = name.strip_suffix(".luau").unwrap_or(name);
    if name.is_empty() || name.len() > 200 {
        return None;
    }
    if name.starts_with(folder) && name[folder.len()..].starts_with('/') {
        return Some(format!("{name}.luau"));
    }
    Some(format!("{folder}/{name}.luau"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_found_however_they_are_written() {
        let source = "local a = require(\"Util\")\nlocal b = require 'Deep/Thing.luau'\n\
            local c = require( `@ReplicatedStorage/X` ) local d = require(name)\n\
            my_require(\"No\") requires(\"No\") x.require(\"./Y\")";
        let found: Vec<_> = required_modules(source).into_iter().collect();
        assert_eq!(
            found,
            [
                "ReplicatedStorage/Deep/Thing.luau",
                "ReplicatedStorage/Util.luau",
                "ReplicatedStorage/X.luau",
                "ReplicatedStorage/Y.luau",
            ]
        );
    }

    #[test]
    fn odd_texts_do_not_panic() {
        for text in [
            "require",
            "require(",
            "require(\"",
            "require('ü",
            "require(\"\")",
            "ürequire\"a",
        ] {
            required_modules(text);
        }
    }
}
