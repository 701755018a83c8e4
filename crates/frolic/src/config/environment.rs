//! Starts the binary without a developer's own settings: tests and benchmarks
//! must not touch the developer's database. This file is also part of the
//! tests, and the browser tests read `variables.txt`.

use std::process::Command;

/// Every variable that is a setting; `*` at the end stands for any rest. A test
/// of `config.rs` compares it with what is read.
pub fn variables() -> impl Iterator<Item = &'static str> {
    include_str!("variables.txt").lines()
}

/// Takes all settings away from a command; its own can be given afterwards.
pub fn without_settings(command: &mut Command) -> &mut Command {
    for name in variables() {
        let Some(prefix) = name.strip_suffix('*') else {
            command.env_remove(name);
            continue;
        };
        let all = std::env::vars_os().map(|(name, _)| name);
        for name in all.filter(|name| name.to_string_lossy().starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command
}
