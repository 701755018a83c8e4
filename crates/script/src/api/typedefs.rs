//! The API as Luau type definitions, for luau-lsp and other tools.

use std::fmt::Write as _;

use super::{Member, MemberKind, Page, PageKind, pages};

/// Globals that every Luau tool knows already.
const KNOWN: [&str; 5] = ["print", "typeof", "require", "_G", "newproxy"];
/// The same for libraries: ours are subsets, and use the world's clock.
const KNOWN_LIBRARIES: [&str; 2] = ["os", "debug"];

/// Operators of Vector3, which the definition format cannot express.
const VECTOR_OPERATORS: &str = "\
\tfunction __add(self, other: Vector3): Vector3
\tfunction __sub(self, other: Vector3): Vector3
\tfunction __mul(self, other: Vector3 | number): Vector3
\tfunction __div(self, other: Vector3 | number): Vector3
\tfunction __idiv(self, other: Vector3 | number): Vector3
\tfunction __mod(self, other: Vector3 | number): Vector3
\tfunction __unm(self): Vector3
";

/// The text of a definition file: `frolic types -o frolic.d.luau`, then
/// `luau-lsp.types.definitionFiles` in the editor's settings.
pub fn definitions() -> String {
    let mut out = String::from(
        "-- Types of the Frolic API, written by `frolic types`. Do not edit.\n\
         -- Methods are typed for `:`; `.` works at run time too.\n",
    );
    // Types before the values that use them: easier to read, and some tools
    // resolve in one pass.
    for page in pages() {
        match page.kind {
            PageKind::Record => record(&mut out, page),
            PageKind::Class if page.generic.is_some() => generic_class(&mut out, page),
            PageKind::Class => class(&mut out, page),
            PageKind::Library | PageKind::Globals => {}
        }
    }
    for page in pages() {
        match page.kind {
            PageKind::Library if KNOWN_LIBRARIES.contains(&page.name.as_str()) => {}
            PageKind::Library => table(&mut out, page, |_| true),
            PageKind::Class if page.members.iter().any(|member| member.is_static) => {
                table(&mut out, page, |member| member.is_static);
            }
            PageKind::Globals => globals(&mut out, page),
            PageKind::Class | PageKind::Record => {}
        }
    }
    out
}

/// Writing to a `String` cannot fail.
macro_rules! put {
    ($out:expr, $($text:tt)*) => { let _ = writeln!($out, $($text)*); };
}

fn heading(out: &mut String, page: &Page) {
    put!(out, "\n-- {}: {}", page.name, page.about);
}

fn record(out: &mut String, page: &Page) {
    heading(out, page);
    put!(out, "export type {} = {{", page.name);
    for member in &page.members {
        put!(out, "\t{}: {},", member.name, member.luau_type);
    }
    put!(out, "}}");
}

fn class(out: &mut String, page: &Page) {
    heading(out, page);
    put!(out, "declare extern type {} with", page.name);
    for member in page.members.iter().filter(|member| !member.is_static) {
        if member.kind == MemberKind::Method {
            let (args, result) = signature(&member.luau_type);
            // Declared functions write `...: T` where types write `...T`.
            let args = args.replace("...", "...: ");
            let comma = if args.is_empty() { "" } else { ", " };
            put!(
                out,
                "\tfunction {}(self{comma}{args}): {result}",
                member.name
            );
        } else {
            put!(out, "\t{}: {}", member.name, member.luau_type);
        }
    }
    if page.name == "Vector3" {
        out.push_str(VECTOR_OPERATORS);
    }
    put!(out, "end");
}

/// Classes cannot have type parameters; tables can.
fn generic_class(out: &mut String, page: &Page) {
    let generic = page.generic.as_deref().unwrap_or_default();
    heading(out, page);
    put!(out, "export type {}<{generic}> = {{", page.name);
    for member in page.members.iter().filter(|member| !member.is_static) {
        if member.kind == MemberKind::Method {
            let (args, result) = signature(&member.luau_type);
            let comma = if args.is_empty() { "" } else { ", " };
            put!(
                out,
                "\t{}: (self: {}<{generic}>{comma}{args}) -> {result},",
                member.name,
                page.name
            );
        } else {
            put!(out, "\t{}: {},", member.name, member.luau_type);
        }
    }
    put!(out, "}}");
}

fn table(out: &mut String, page: &Page, wanted: impl Fn(&Member) -> bool) {
    for name in std::iter::once(&page.name).chain(&page.aliases) {
        heading(out, page);
        put!(out, "declare {name}: {{");
        for member in page.members.iter().filter(|member| wanted(member)) {
            put!(out, "\t{}: {},", member.name, member.luau_type);
        }
        put!(out, "}}");
    }
}

fn globals(out: &mut String, page: &Page) {
    heading(out, page);
    for member in &page.members {
        // Callbacks are the script's own globals.
        if member.kind != MemberKind::Callback && !KNOWN.contains(&member.name.as_str()) {
            put!(out, "declare {}: {}", member.name, member.luau_type);
        }
    }
}

/// `(a: number) -> b` to `a: number` and `b`.
fn signature(luau_type: &str) -> (&str, &str) {
    let mut depth = 0;
    for (at, c) in luau_type.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let args = luau_type.get(1..at).unwrap_or_default();
            let rest = luau_type.get(at + 1..).unwrap_or_default();
            let result = rest.trim_start().strip_prefix("->").map(str::trim);
            return (args, result.unwrap_or("()"));
        }
    }
    ("", "()")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_taken_apart() {
        assert_eq!(
            signature("(handler: (T...) -> ()) -> Connection"),
            ("handler: (T...) -> ()", "Connection")
        );
        assert_eq!(signature("() -> ()"), ("", "()"));
        assert_eq!(
            signature("(a: number) -> (Vector3, boolean)"),
            ("a: number", "(Vector3, boolean)")
        );
    }

    #[test]
    fn the_file_says_what_the_pages_say() {
        let text = definitions();
        assert!(text.contains("declare extern type Entity with\n"));
        assert!(text.contains("\tfunction MoveTo(self, target: Vector3, seconds: number?): ()\n"));
        assert!(text.contains(
            "\tSpawn: (source: string | {[string]: any}, position: Vector3?) -> Entity,\n"
        ));
        assert!(text.contains("export type Signal<T...> = {\n"));
        assert!(text.contains("declare Color3: {\n"));
        assert!(text.contains("declare wait: (seconds: number?) -> number\n"));
        assert!(!text.contains("declare print"));
        let opened = text.matches(['{', '(']).count();
        assert_eq!(opened, text.matches(['}', ')']).count());
        assert_eq!(
            text.matches("declare extern type ").count(),
            text.lines().filter(|line| *line == "end").count()
        );
    }

    /// Luau's own parser reads definition files only for tools, so this test
    /// checks for type names that are not defined.
    #[test]
    fn every_type_that_is_named_exists() {
        let text = definitions();
        let builtin = [
            "any", "boolean", "number", "string", "thread", "nil", "self", "T", "Begin",
        ];
        let mut known: Vec<&str> = builtin.to_vec();
        known.extend(pages().iter().map(|page| page.name.as_str()));
        for page in pages() {
            for member in &page.members {
                for word in type_names(&member.luau_type) {
                    assert!(
                        known.contains(&word),
                        "{}.{} names the type {word}, which is not defined:\n{text}",
                        page.name,
                        member.name
                    );
                }
            }
        }
    }

    /// Identifiers in a type that are not parameter names or literals.
    fn type_names(luau_type: &str) -> Vec<&str> {
        let mut names = Vec::new();
        for (at, part) in luau_type.split('"').enumerate() {
            if at % 2 == 1 {
                continue;
            }
            let mut rest = part;
            while let Some(start) = rest.find(|c: char| c.is_ascii_alphabetic()) {
                let word = &rest[start..];
                let end = word
                    .find(|c: char| !c.is_ascii_alphanumeric())
                    .unwrap_or(word.len());
                rest = &word[end..];
                if !rest.starts_with(':') {
                    names.push(&word[..end]);
                }
            }
        }
        names
    }
}
