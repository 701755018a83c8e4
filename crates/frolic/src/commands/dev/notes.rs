//! Output of `frolic dev`: problems with their lines, and the result of a save.

use std::path::Path;
use std::time::Duration;

use frolic_fleet_api::process::ReloadReply;
use frolic_package::{Report, Severity};

/// Characters of a source line that are shown.
const LINE_CHARS_MAX: usize = 200;

/// Each problem with its place and, where there is one, the line itself.
pub fn print_problems(folder: &Path, report: &Report) {
    for problem in &report.problems {
        let place = match problem.line {
            Some(line) => format!("{}:{line}", problem.file),
            None => problem.file.clone(),
        };
        let severity = match problem.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        eprintln!("{severity}: {place}: {}", problem.message);
        let Some(line) = problem.line else { continue };
        if let Some(line) = source_line(&folder.join(&problem.file), line) {
            eprintln!("    {line}");
        }
    }
}

/// One line of a file, for people; none where it is blank.
fn source_line(file: &Path, line: u32) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let index = usize::try_from(line).ok()?.checked_sub(1)?;
    let line = text.lines().nth(index)?.trim();
    (!line.is_empty()).then(|| line.chars().take(LINE_CHARS_MAX).collect())
}

/// The result of new scripts in one world.
pub fn reload_summary(reply: &ReloadReply, revision: &str, took: Duration) -> String {
    if let Some(reason) = &reply.swapped_back {
        return format!(
            "not reloaded: {reason}; players stay on the previous version (correct it and save again)"
        );
    }
    let names = |list: &[String]| match list {
        [] => "nothing".to_owned(),
        [one] => one.clone(),
        [one, rest @ ..] => format!("{one} and {} more", rest.len()),
    };
    let mut text = format!("reloaded {}", names(&reply.changed));
    if !reply.removed.is_empty() {
        text += &format!(", removed {}", names(&reply.removed));
    }
    let revision = revision.get(..8).unwrap_or(revision);
    let version = reply.version;
    format!(
        "{text} in {} ms (version {version}, revision {revision})",
        took.as_millis()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reload_that_was_swapped_back_does_not_read_as_success() {
        let reply = ReloadReply {
            version: 8,
            changed: vec!["Main.luau".to_owned()],
            swapped_back: Some("Main.luau failed when it started".to_owned()),
            ..ReloadReply::default()
        };
        let text = reload_summary(&reply, "abcdef0123", Duration::from_millis(5));
        assert!(text.starts_with("not reloaded: Main.luau failed"), "{text}");
        assert!(!text.contains("version 8"), "{text}");
        let good = ReloadReply {
            swapped_back: None,
            ..reply
        };
        assert_eq!(
            reload_summary(&good, "abcdef0123", Duration::from_millis(5)),
            "reloaded Main.luau in 5 ms (version 8, revision abcdef01)"
        );
    }
}
