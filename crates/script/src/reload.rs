//! Replaces code in a running VM. `builtin/common/reload.luau` ends old
//! scripts, starts new ones and passes the state on.

use std::collections::{BTreeMap, BTreeSet};

use crate::compile::CompiledScript;
use crate::vm::{Attachment, Vm};

/// Changes of a VM's scripts, already compiled: applying them cannot fail.
#[derive(Debug, Default)]
pub struct Swap {
    /// New and changed scripts by path; none for a removed one.
    pub scripts: BTreeMap<String, Option<CompiledScript>>,
    /// Every entity that has a script, in the current world.
    pub attachments: Vec<Attachment>,
    /// Rolls back to the scripts before the last reload, with the state they
    /// had then.
    pub back: bool,
}

impl Vm {
    /// Replaces code between two ticks. Instances of changed scripts, and of
    /// scripts that required a changed module, end and start again with
    /// `OnReload(old_state)`.
    pub fn reload(&mut self, swap: Swap) {
        let of_server = |script: &CompiledScript| script.runs_on_server();
        let mut changed = BTreeSet::new();
        let (mut paths, mut ids) = (Vec::new(), Vec::new());
        for (path, script) in swap.scripts {
            let mut known = self.host.scripts.borrow_mut();
            let before = known.remove(&path);
            let script = script.filter(of_server);
            if before.is_none() && script.is_none() {
                // Runs on clients only.
                continue;
            }
            changed.insert(path.clone());
            // New code gets another chance.
            self.host.disabled.borrow_mut().remove(&path);
            let Some(script) = script else {
                continue;
            };
            let is_module = script.is_module && !self.attach_only.contains(&path);
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
