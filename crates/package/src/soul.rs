//! Scripts in plain language and the Luau that was generated from them.
//!
//! `Door.soul` is what the creator writes, `Door.soul.luau` beside it is what
//! runs. A line near its top says which text it was made from, so that a
//! package whose two files do not belong together is noticed.

use sha2::{Digest, Sha256};

/// Start of the line with the hash.
const MARK: &str = "-- Made from ";
/// Lines among which it is: the first may be a `--@context` directive.
const HEAD_LINES: usize = 2;

/// The file that runs for a `.soul`; none for other paths.
pub fn generated_path(path: &str) -> Option<String> {
    path.ends_with(".soul").then(|| format!("{path}.luau"))
}

/// Where a script's code is: `Door.soul.luau` for `Door.soul`, else itself.
pub fn code_path(path: &str) -> String {
    generated_path(path).unwrap_or_else(|| path.to_owned())
}

/// SHA-256 of a `.soul`, in hexadecimal. Line ends of Windows count as plain
/// ones: version control changes them, and nothing else did.
pub fn text_hash(soul: &[u8]) -> String {
    let mut hasher = Sha256::new();
    for (index, line) in soul.split(|byte| *byte == b'\n').enumerate() {
        if index > 0 {
            hasher.update(b"\n");
        }
        hasher.update(line.strip_suffix(b"\r").unwrap_or(line));
    }
    hex::encode(hasher.finalize())
}

/// The generated file: the code, below a line that says what it was made of.
pub fn with_heading(name: &str, soul: &str, prompt_version: u32, code: &str) -> String {
    let hash = text_hash(soul.as_bytes());
    let heading = format!(
        "{MARK}{name} sha256:{hash} prompt:{prompt_version}; change that file; this one is generated from it."
    );
    match context_line(soul) {
        Some(directive) => format!("{directive}\n{heading}\n{code}"),
        None => format!("{heading}\n{code}"),
    }
}

/// The `--@context` directive that a `.soul` may begin with.
pub fn context_line(soul: &str) -> Option<&str> {
    let first = soul.trim_start_matches('\u{feff}').lines().next()?.trim();
    first.starts_with("--@context").then_some(first)
}

/// Whether a file was made from any `.soul`, and not by hand.
pub fn is_generated(file: &[u8]) -> bool {
    let mut lines = file.split(|byte| *byte == b'\n').take(HEAD_LINES);
    lines.any(|line| line.starts_with(MARK.as_bytes()))
}

/// Whether a generated file was made from this very `.soul`.
pub fn is_current(soul: &[u8], generated: &[u8]) -> bool {
    let wanted = format!(" sha256:{} ", text_hash(soul));
    let lines = generated.split(|byte| *byte == b'\n').take(HEAD_LINES);
    lines
        .filter_map(|line| std::str::from_utf8(line).ok())
        .any(|line| line.starts_with(MARK) && line.contains(&wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_file_knows_its_text() {
        let soul = "Open when a player is near.\n";
        let made = with_heading("Door.soul", soul, 1, "print(1)\n");
        assert!(is_current(soul.as_bytes(), made.as_bytes()));
        assert!(is_current(
            b"Open when a player is near.\r\n",
            made.as_bytes()
        ));
        assert!(!is_current(b"Stay shut.\n", made.as_bytes()));
        assert!(!is_current(soul.as_bytes(), b"print(1)"));
        assert!(!is_current(soul.as_bytes(), &[0xff, b'\n', 0xff]));
        // Named in the code below, not in the heading.
        let forged = format!("\n\n\n{made}");
        assert!(!is_current(soul.as_bytes(), forged.as_bytes()));
    }

    #[test]
    fn the_directive_stays_on_the_first_line() {
        let soul = "--@context server\nCount visitors.";
        let made = with_heading("Count.soul", soul, 1, "print(1)");
        assert!(made.starts_with("--@context server\n-- Made from Count.soul sha256:"));
        assert!(is_current(soul.as_bytes(), made.as_bytes()));
    }

    #[test]
    fn paths() {
        assert_eq!(code_path("Workspace/Door.soul"), "Workspace/Door.soul.luau");
        assert_eq!(code_path("Workspace/Door.luau"), "Workspace/Door.luau");
    }
}
