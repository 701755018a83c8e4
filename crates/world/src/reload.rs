//! Hot reload of scripts: atomic, between two ticks, with rollback if the new
//! scripts perform worse.

mod watch;

use std::collections::BTreeMap;

use frolic_script::{CompileError, CompiledScript, LogLevel, ScriptLog};

pub(crate) use watch::Watch;

/// Sources by path below `scripts/`; none for a removed file.
pub type Changes = BTreeMap<String, Option<String>>;

/// Characters of a source line that are shown.
const SOURCE_CHARS_MAX: usize = 200;

/// The outcome of a reload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reloaded {
    /// The script version from now on.
    pub version: u32,
    /// Paths of new and changed scripts.
    pub changed: Vec<String>,
    /// Paths of removed scripts.
    pub removed: Vec<String>,
}

/// The code that a world runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Code {
    /// SHA-256 of its package.
    pub revision: String,
    /// Compiled scripts by path.
    pub scripts: BTreeMap<String, CompiledScript>,
    /// Sources that did not compile, by path.
    pub broken: BTreeMap<String, String>,
}

impl Code {
    /// Whether a file already has this text.
    pub fn has(&self, path: &str, text: Option<&str>) -> bool {
        let known = self.scripts.get(path).map(CompiledScript::source);
        let known = known.or_else(|| self.broken.get(path).map(String::as_str));
        known == text.map(|text| text.strip_prefix('\u{feff}').unwrap_or(text))
    }

    /// The text of one line of a script for display; none if it is blank or
    /// does not exist.
    pub fn source_line(&self, path: &str, line: u32) -> Option<String> {
        let index = usize::try_from(line).ok()?.checked_sub(1)?;
        let text = self.scripts.get(path)?.source().lines().nth(index)?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.chars().take(SOURCE_CHARS_MAX).collect())
    }
}

/// A log line about the scripts as a whole.
pub(crate) fn reload_log(level: LogLevel, message: String) -> ScriptLog {
    ScriptLog {
        level,
        script: "@reload".to_owned(),
        line: None,
        message,
        source_line: None,
        traceback: String::new(),
        origin: None,
    }
}

/// The creator's log line about a file that does not compile.
pub(crate) fn compile_log(error: &CompileError, source: &str) -> ScriptLog {
    let line = usize::try_from(error.line).unwrap_or(0).saturating_sub(1);
    let text = source.lines().nth(line).map(str::trim);
    ScriptLog {
        level: LogLevel::Error,
        script: error.path.clone(),
        line: Some(error.line),
        message: error.message.clone(),
        source_line: text.map(|text| text.chars().take(SOURCE_CHARS_MAX).collect()),
        traceback: String::new(),
        origin: None,
    }
}
