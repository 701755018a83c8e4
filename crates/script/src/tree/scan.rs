//! Finds the calls of `require` in a source text: tokenises it, skips comments
//! and strings, and follows locals that refer to a place in the tree.

use std::collections::BTreeMap;

/// The argument of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// `require("Util")`.
    Text(String),
    /// `require(script.Parent.Util)`.
    Chain(Vec<Step>),
    /// Known only at run time.
    Unknown,
}

/// One step of a chain; the first is where it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// `script`
    Script,
    /// `game`
    Game,
    /// `.Name`, `["Name"]` or `:WaitForChild("Name")`
    Child(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Text(&'a str),
    Sign(char),
}

/// Locals that are followed; more are ignored.
const LOCALS_MAX: usize = 1024;
/// Steps of one chain.
const STEPS_MAX: usize = 32;

/// Every call of `require`, in order.
pub(super) fn requires(source: &str) -> Vec<Wanted> {
    let tokens = tokens(source);
    let mut locals: BTreeMap<&str, Vec<Step>> = BTreeMap::new();
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let rest = &tokens[at + 1..];
        match token {
            Token::Word("local") => {
                if let [Token::Word(name), Token::Sign('='), value @ ..] = rest
                    && locals.len() < LOCALS_MAX
                {
                    match chain(value, &locals) {
                        Some((steps, _)) => locals.insert(name, steps),
                        None => locals.remove(name),
                    };
                }
            }
            Token::Word("require") => {
                let before = at.checked_sub(1).map(|before| &tokens[before]);
                if !matches!(before, Some(Token::Sign('.' | ':'))) {
                    found.push(wanted(rest, &locals));
                }
            }
            _ => {}
        }
    }
    found
}

fn wanted(rest: &[Token<'_>], locals: &BTreeMap<&str, Vec<Step>>) -> Wanted {
    match rest {
        [Token::Text(text), ..] => Wanted::Text((*text).to_owned()),
        [Token::Sign('('), Token::Text(text), Token::Sign(')'), ..] => {
            Wanted::Text((*text).to_owned())
        }
        [Token::Sign('('), inner @ ..] => match chain(inner, locals) {
            Some((steps, [Token::Sign(')'), ..])) => Wanted::Chain(steps),
            _ => Wanted::Unknown,
        },
        _ => Wanted::Unknown,
    }
}

/// A chain and what follows it.
fn chain<'t, 's>(
    tokens: &'t [Token<'s>],
    locals: &BTreeMap<&str, Vec<Step>>,
) -> Option<(Vec<Step>, &'t [Token<'s>])> {
    let (first, mut rest) = tokens.split_first()?;
    let mut steps = match first {
        Token::Word("script") => vec![Step::Script],
        Token::Word("game") => vec![Step::Game],
        Token::Word(name) => locals.get(name)?.clone(),
        _ => return None,
    };
    while steps.len() < STEPS_MAX {
        let (name, after) = match rest {
            [Token::Sign('.'), Token::Word(name), after @ ..] => (*name, after),
            [
                Token::Sign('['),
                Token::Text(name),
                Token::Sign(']'),
                after @ ..,
            ] => (*name, after),
            [
                Token::Sign(':'),
                Token::Word("WaitForChild" | "FindFirstChild" | "GetService"),
                Token::Sign('('),
                Token::Text(name),
                after @ ..,
            ] => (*name, &after[1 + closing(after)?..]),
            _ => return Some((steps, rest)),
        };
        steps.push(Step::Child(name.to_owned()));
        rest = after;
    }
    None
}

/// The end of the call; a timeout may come before it.
fn closing(tokens: &[Token<'_>]) -> Option<usize> {
    let near = tokens.iter().take(4);
    near.enumerate()
        .find(|(_, token)| **token == Token::Sign(')'))
        .map(|(at, _)| at)
}

fn tokens(source: &str) -> Vec<Token<'_>> {
    let bytes = source.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let rest = &source[at..];
        if let Some(comment) = rest.strip_prefix("--") {
            at += 2 + long_text(comment).map_or_else(
                || comment.find('\n').unwrap_or(comment.len()),
                |text| text.1,
            );
        } else if let Some((text, length)) = long_text(rest) {
            found.push(Token::Text(text));
            at += length;
        } else if matches!(byte, b'"' | b'\'' | b'`') {
            let length = quoted(rest, byte);
            let inner = rest.get(1..length.saturating_sub(1)).unwrap_or("");
            found.push(Token::Text(inner));
            at += length;
        } else if byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80 {
            let is_word = |c: char| c.is_alphanumeric() || c == '_' || !c.is_ascii();
            let length = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
            found.push(Token::Word(&rest[..length]));
            at += length;
        } else {
            if !byte.is_ascii_whitespace() {
                found.push(Token::Sign(char::from(byte)));
            }
            at += 1;
        }
    }
    found
}

/// The content of `[[…]]` or `[=[…]=]` at the start, and its total length.
fn long_text(text: &str) -> Option<(&str, usize)> {
    let level = text
        .strip_prefix('[')?
        .bytes()
        .take_while(|b| *b == b'=')
        .count();
    let inner = text.get(1 + level..)?.strip_prefix('[')?;
    let close = format!("]{}]", "=".repeat(level));
    let end = inner.find(&close);
    let content = &inner[..end.unwrap_or(inner.len())];
    let closed = end.map_or(0, |_| close.len());
    Some((content, level + 2 + content.len() + closed))
}

/// The length of a quoted text, including quotes. Ends with its line at the
/// latest.
fn quoted(text: &str, quote: u8) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'\n' if quote != b'`' => return at,
            _ if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    // An escape may skip past the end, or into a character.
    text.len()
}
