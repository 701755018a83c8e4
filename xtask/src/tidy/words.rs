//! Words that stand for a technical term in comments, documentation and strings.
//! A reader who searches for the term does not find the place.

use std::collections::BTreeMap;

/// The words, and what to write instead. Each has few other uses.
const WORDS: [(&str, &str); 20] = [
    ("told", "sent, notified, replicated"),
    ("tells of", "reports, describes"),
    ("hears", "receives"),
    ("heard", "received, acknowledged"),
    ("somebody", "a player, a user, a caller"),
    ("someone", "a player, a user, a caller"),
    ("anybody", "any user, any client"),
    ("nobody", "no player, no client"),
    ("everybody", "all players, all clients"),
    ("whoever", "the caller, the client that"),
    ("whomever", "the caller, the client that"),
    ("anew", "again"),
    ("what lasts", "persistent state"),
    ("came of", "the result of"),
    ("comes of", "the result of"),
    ("so many", "the parameter by its name"),
    ("pile", "queue"),
    ("piles", "queues"),
    ("stands still", "does not move"),
    ("is to blame", "causes it"),
];

/// Files whose text is the word list or quotes it, and the folder of files that never change.
const EXEMPT: [&str; 3] = [
    "xtask/src/tidy/words.rs",
    "docs/glossary.md",
    "crates/platform/migrations/",
];

/// One occurrence: the line, the word, and the advice.
pub type Occurrence = (usize, &'static str, &'static str);

/// The part of the repository that a file belongs to: a crate, or a top folder.
pub fn area(name: &str) -> String {
    let mut parts = name.split('/');
    let first = parts.next().unwrap_or_default();
    match (first, parts.next(), parts.next()) {
        ("crates" | "games", Some(second), Some(_)) => format!("{first}/{second}"),
        (_, None, _) => "top".to_owned(),
        _ => first.to_owned(),
    }
}

/// Finds the words in the prose of a file.
pub fn occurrences(name: &str, text: &str) -> Vec<Occurrence> {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let is_exempt = EXEMPT.iter().any(|exempt| name.starts_with(exempt));
    let Some(prose) = prose(extension, text).filter(|_| !is_exempt) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (index, line) in prose.lines().enumerate() {
        let line = line.to_lowercase();
        for (word, advice) in WORDS {
            let times = line
                .match_indices(word)
                .filter(|(at, _)| stands_alone(&line, *at, word));
            found.extend(times.map(|_| (index + 1, word, advice)));
        }
    }
    found
}

/// The most frequent words of an area, for its complaint.
pub fn summary(found: &[Occurrence]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, word, _) in found {
        *counts.entry(word).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let counts: Vec<_> = counts
        .iter()
        .map(|(word, count)| format!("{word} {count}"))
        .collect();
    counts.join(", ")
}

fn stands_alone(line: &str, at: usize, word: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let before = line[..at].chars().next_back();
    let after = line[at + word.len()..].chars().next();
    !before.is_some_and(is_part) && !after.is_some_and(is_part)
}

/// How the comments and strings of a language are written.
struct Syntax {
    line: &'static str,
    block: Option<(&'static str, &'static str)>,
    quotes: &'static str,
}

/// The text with everything but comments and strings blanked out, so that lines
/// keep their numbers. `None` for files without prose.
fn prose(extension: &str, text: &str) -> Option<String> {
    let slashes = |quotes| Syntax {
        line: "//",
        block: Some(("/*", "*/")),
        quotes,
    };
    let syntax = match extension {
        "md" | "html" | "svelte" => return Some(text.to_owned()),
        // A lifetime looks like the start of a character.
        "rs" | "cpp" => slashes("\""),
        "ts" | "mjs" | "js" => slashes("\"'`"),
        "css" => slashes("\""),
        "luau" | "sql" => Syntax {
            line: "--",
            block: Some(("--[[", "]]")),
            quotes: "\"'`",
        },
        "toml" | "py" | "sh" | "yml" | "yaml" => Syntax {
            line: "#",
            block: None,
            quotes: "\"",
        },
        _ => return None,
    };
    Some(syntax.prose(text))
}

impl Syntax {
    fn prose(&self, text: &str) -> String {
        let mut prose = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let end = self.end_of_prose(rest, first);
            let taken = end.unwrap_or(first.len_utf8());
            if end.is_some() || first == '\n' {
                prose.push_str(&rest[..taken]);
            } else {
                prose.push(' ');
            }
            rest = &rest[taken..];
        }
        prose
    }

    /// The length of the comment or string at the start of the text.
    fn end_of_prose(&self, text: &str, first: char) -> Option<usize> {
        if let Some((open, close)) = self.block.filter(|(open, _)| text.starts_with(open)) {
            let end = text[open.len()..].find(close);
            return Some(end.map_or(text.len(), |end| open.len() + end + close.len()));
        }
        if text.starts_with(self.line) {
            return Some(text.find('\n').unwrap_or(text.len()));
        }
        self.quotes
            .contains(first)
            .then(|| end_of_string(text, first))
    }
}

/// The length of a string: up to its closing quote, or to the end of the line if
/// there is none (a quote in a regular expression, say).
fn end_of_string(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            letter if letter == quote => return at + quote.len_utf8(),
            '\n' if quote == '\'' => return at,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(name: &str, text: &str) -> Vec<usize> {
        occurrences(name, text)
            .into_iter()
            .map(|(line, _, _)| line)
            .collect()
    }

    #[test]
    fn comments_and_strings_are_searched_and_code_is_not() {
        let text = "// Told by the host.\nlet told = 1;\nlet a = \"nobody\"; /* so\n many, anew */\nfn told() {}";
        assert_eq!(lines("crates/a/src/b.rs", text), [1, 3, 4]);
        assert_eq!(lines("web/src/a.ts", "told('heard', `so many`)"), [1, 1]);
        assert_eq!(
            lines("games/a/b.luau", "told() -- told\n\"heard\" told()"),
            [1, 2]
        );
        assert_eq!(lines("docs/a.md", "Whoever asks\nis told."), [1, 2]);
        assert_eq!(lines("Cargo.toml", "told = 1 # Told."), [1]);
    }

    #[test]
    fn only_whole_words_count() {
        assert!(lines("docs/a.md", "compile overheard piled untold retold_ones").is_empty());
        assert_eq!(lines("docs/a.md", "a pile, told."), [1, 1]);
    }

    #[test]
    fn quotes_in_strings_and_lifetimes_end_nothing() {
        let text = "let a = \"\\\" nobody\"; told(); fn a<'a>() {} told();";
        assert_eq!(lines("crates/a/src/b.rs", text), [1]);
    }

    #[test]
    fn areas_are_crates_games_and_top_folders() {
        assert_eq!(area("crates/world/src/a.rs"), "crates/world");
        assert_eq!(area("games/arena/README.md"), "games/arena");
        assert_eq!(area("web/src/a.ts"), "web");
        assert_eq!(area("README.md"), "top");
    }
}
