//! Catalog search: whole words, word prefixes, and words with typos. Every word of
//! the query must match a game; better matches rank higher.
//!
//! The cost per game is bounded: a query has few words, and only words of the title,
//! the tags and the creator's name that share the first letter are compared letter by
//! letter.

use crate::api::GameSummary;

/// Maximum number of words in a query.
const WORDS_MAX: usize = 8;
/// Letters of a word that are compared.
const LETTERS_MAX: usize = 24;
/// Words of a game that are compared letter by letter.
const INDEXED_MAX: usize = 40;

/// Synonyms: a word that players use, and the tags it stands for.
const RELATED: [(&str, &[&str]); 16] = [
    ("jump", &["obby", "platformer", "parkour"]),
    ("jumping", &["obby", "platformer", "parkour"]),
    ("climb", &["obby", "platformer", "parkour"]),
    ("parkour", &["obby", "platformer"]),
    ("obstacle", &["obby"]),
    ("shoot", &["shooter", "fps", "arena"]),
    ("gun", &["shooter", "fps"]),
    ("fight", &["arena", "pvp", "shooter"]),
    ("battle", &["arena", "pvp", "shooter"]),
    ("build", &["building", "sandbox"]),
    ("craft", &["building", "sandbox", "survival"]),
    ("mine", &["sandbox", "building"]),
    ("blocks", &["sandbox", "building"]),
    ("sneak", &["stealth"]),
    ("hide", &["stealth"]),
    ("race", &["racing", "driving"]),
];

/// Match score of a word; for a game, the sum over all words.
pub type Score = u32;

const NAME_WORD: Score = 100;
const NAME_START: Score = 80;
const TAG_WORD: Score = 70;
const CREATOR_WORD: Score = 60;
const OTHER_START: Score = 50;
const TEXT_START: Score = 40;
const PHRASE: Score = 30;
const RELATED_TAG: Score = 25;
const NAME_TYPO: Score = 20;
const OTHER_TYPO: Score = 15;

/// The field that contains a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Name,
    Tag,
    Creator,
}

/// The searchable text of one game.
#[derive(PartialEq)]
pub struct Searchable {
    /// Words of the title, tags and creator.
    words: Vec<(Field, Box<str>)>,
    /// All text in lower case.
    text: String,
}

impl Searchable {
    pub fn of(game: &GameSummary) -> Self {
        let tags = game.tags.join("\n");
        let fields = [
            (Field::Name, &game.name),
            (Field::Tag, &tags),
            (Field::Creator, &game.creator),
        ];
        let words = fields.iter().flat_map(|(field, text)| {
            let text = text.to_lowercase();
            let words: Vec<_> = words(&text).map(|word| (*field, word.into())).collect();
            words
        });
        let words = words.take(INDEXED_MAX).collect();
        let text = [&*game.name, &game.creator, &tags, &game.description].join("\n");
        let text = text.to_lowercase();
        Self { words, text }
    }
}

/// A parsed search query.
pub struct Search<'q> {
    phrase: &'q str,
    words: Vec<&'q str>,
}

impl<'q> Search<'q> {
    /// Parses a phrase in lower case.
    pub fn of(phrase: &'q str) -> Self {
        Self {
            phrase,
            words: words(phrase).take(WORDS_MAX).collect(),
        }
    }

    /// The match score of a game; `None` when it does not match.
    pub fn score(&self, game: &Searchable) -> Option<Score> {
        let phrase = game.text.contains(self.phrase).then_some(PHRASE);
        let each = self.words.iter().map(|word| score_word(word, game));
        let all: Option<Score> = each.sum();
        match self.words.is_empty() {
            true => phrase,
            false => all.max(phrase),
        }
    }
}

fn score_word(wanted: &str, game: &Searchable) -> Option<Score> {
    let found = game.words.iter().filter_map(|(field, word)| {
        if **word == *wanted {
            return Some(match field {
                Field::Name => NAME_WORD,
                Field::Tag => TAG_WORD,
                Field::Creator => CREATOR_WORD,
            });
        }
        if wanted.len() > 1 && word.starts_with(wanted) {
            return Some(match field {
                Field::Name => NAME_START,
                _ => OTHER_START,
            });
        }
        is_typo(wanted, word).then_some(match field {
            Field::Name => NAME_TYPO,
            _ => OTHER_TYPO,
        })
    });
    let found = found.max();
    if found.is_some_and(|score| score > TEXT_START) {
        return found;
    }
    let in_text = begins_word(&game.text, wanted).then_some(TEXT_START);
    let related = is_related(wanted, game).then_some(RELATED_TAG);
    found.max(in_text).max(related)
}

fn is_related(wanted: &str, game: &Searchable) -> bool {
    let related = RELATED.iter().find(|(word, _)| *word == wanted);
    let tags = related.map_or(&[][..], |(_, tags)| tags);
    let mut words = game.words.iter();
    words.any(|(field, word)| *field == Field::Tag && tags.contains(&&**word))
}

/// Whether a word of `text` starts with `wanted`.
fn begins_word(text: &str, wanted: &str) -> bool {
    wanted.len() > 1
        && text.match_indices(wanted).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            before.is_none_or(|before| !before.is_alphanumeric())
        })
}

/// Whether `typed` is probably `word`, or a prefix of it, with typos: one in four to
/// seven letters, two in more. The first letter must match: it is hardly ever wrong,
/// and this avoids most comparisons.
fn is_typo(typed: &str, word: &str) -> bool {
    if typed.chars().next() != word.chars().next() {
        return false;
    }
    let letters = typed.chars().take(LETTERS_MAX + 1).count();
    let slips_max = match letters {
        0..=3 => return false,
        4..=7 => 1,
        8..=LETTERS_MAX => 2,
        _ => return false,
    };
    slips(typed, word) <= slips_max
}

/// Edit distance (insert, delete, substitute, transpose) from `typed` to `word` or to
/// its nearest prefix that is not shorter and ends with the same letter: "stel"
/// matches a prefix of "stealth", "suny" and "sunn" match no prefix of "sunset".
fn slips(typed: &str, word: &str) -> usize {
    let word: Vec<char> = word.chars().take(LETTERS_MAX + 2).collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=word.len()).collect();
    let mut previous = None;
    for (row, letter) in typed.chars().enumerate() {
        let mut now = vec![row + 1];
        for (column, &other) in word.iter().enumerate() {
            let changed = last[column] + usize::from(letter != other);
            let mut cost = changed.min(last[column + 1] + 1).min(now[column] + 1);
            if column > 0 && previous == Some(other) && word[column - 1] == letter {
                cost = cost.min(before_last[column - 1] + 1);
            }
            now.push(cost);
        }
        before_last = std::mem::replace(&mut last, now);
        previous = Some(letter);
    }
    let whole = last[word.len()];
    let typed_letters = typed.chars().count();
    let beginnings = word.iter().zip(&last[1..]).skip(typed_letters - 1);
    let beginnings = beginnings.filter(|(letter, _)| Some(**letter) == previous);
    beginnings.map(|(_, slips)| *slips).fold(whole, usize::min)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn game(name: &str, tags: &[&str], description: &str) -> Searchable {
        Searchable::of(&GameSummary {
            id: String::new(),
            name: name.to_owned(),
            description: description.to_owned(),
            creator: "Frolic".to_owned(),
            thumbnail_url: None,
            players_now: 0,
            plays: 0,
            likes: 0,
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            capabilities: Vec::new(),
            version: String::new(),
            max_players: 8,
        })
    }

    fn found(typed: &str, games: &[Searchable]) -> Vec<usize> {
        let search = Search::of(typed);
        let scored = games.iter().enumerate();
        let mut scored: Vec<_> = scored
            .filter_map(|(at, game)| Some((search.score(game)?, at)))
            .collect();
        scored.sort_by_key(|(score, at)| (std::cmp::Reverse(*score), *at));
        scored.into_iter().map(|(_, at)| at).collect()
    }

    #[test]
    fn typos_beginnings_tags_and_descriptions_are_found() {
        let games = [
            game(
                "Sunny Steps",
                &["obby", "platformer"],
                "Hop over the islands.",
            ),
            game("Sunset Splash", &["shooter", "arena"], "Paint the others."),
            game(
                "The Moonlit Gem",
                &["stealth", "puzzle"],
                "Slip past the guards.",
            ),
        ];
        for (typed, expected) in [
            ("suny", vec![0]),
            ("sunny steps", vec![0]),
            ("snuny", vec![0]),
            ("sunn", vec![0]),
            ("suny stpes", vec![0]),
            ("stel", vec![2]),
            ("stealht", vec![2]),
            ("moonlihgt", vec![2]),
            ("jump", vec![0]),
            ("guards", vec![2]),
            ("islan", vec![0]),
            ("frolic", vec![0, 1, 2]),
            ("xyzzy", vec![]),
            ("sun steps zebra", vec![]),
            ("s", vec![0, 1, 2]),
            ("'%_", vec![]),
        ] {
            assert_eq!(found(typed, &games), expected, "{typed}");
        }
    }

    #[test]
    fn exact_words_stand_before_beginnings_and_those_before_typos() {
        let games = [
            game("Caste of Ants", &[], ""),
            game("Castles United", &[], ""),
            game("My Castle", &[], ""),
            game("Gardens", &[], "Build a castle there."),
        ];
        assert_eq!(found("castle", &games), [2, 1, 3, 0]);
    }

    #[test]
    fn hostile_searches_cost_little() {
        let games = [game(&"a".repeat(10_000), &["b"], &"a b ".repeat(500))];
        for typed in ["a".repeat(64), "ab ".repeat(21), "\u{301}".repeat(64)] {
            let _ = found(&typed, &games);
        }
    }
}
