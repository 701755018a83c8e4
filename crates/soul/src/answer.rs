//! Finds the code in what a model said.

/// The code of an answer: its last whole block that is fenced as Luau, Lua or
/// nothing. None when there is no such block.
pub(crate) fn code_of(answer: &str) -> Option<String> {
    let mut found = None;
    let mut lines = answer.lines();
    while let Some(line) = lines.next() {
        let Some(language) = fence(line) else {
            continue;
        };
        let mut code = String::new();
        let mut closed = false;
        for line in lines.by_ref() {
            if line.trim() == "```" {
                closed = true;
                break;
            }
            code.push_str(line);
            code.push('\n');
        }
        let is_luau = matches!(language, "" | "luau" | "lua" | "Luau" | "Lua");
        if closed && is_luau && !code.trim().is_empty() {
            found = Some(code);
        }
    }
    found
}

/// The language of a line that opens a code block.
fn fence(line: &str) -> Option<&str> {
    line.trim().strip_prefix("```").map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::code_of;

    #[test]
    fn the_last_whole_block_counts() {
        let found =
            code_of("First\n```lua\nlocal a = 1\n```\nbetter:\n```luau\nlocal b = 2\n```\n");
        assert_eq!(found.as_deref(), Some("local b = 2\n"));
        assert_eq!(code_of("```\nx()\n```").as_deref(), Some("x()\n"));
    }

    #[test]
    fn what_is_no_code_is_none() {
        for answer in [
            "",
            "I cannot do that.",
            "```luau\nlocal a = 1",
            "```json\n{}\n```",
            "```luau\n\n```",
        ] {
            assert_eq!(code_of(answer), None, "{answer:?}");
        }
    }
}
