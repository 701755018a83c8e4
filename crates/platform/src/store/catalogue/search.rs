//! Searching the catalogue: words, the beginnings of words, and words with a typo in them. Every
//! word of a search must fit a game; the better they fit, the further up it stands.
//!
//! The cost is bounded per game: a search has few words, only the few words of a title, of tags
//! and of a creator's name are compared letter by letter, and only those that begin alike.

use crate::api::GameSummary;

/// Words of a search that are looked for.
const WORDS_MAX: usize = 8;
/// Letters of a word that are compared.
const LETTERS_MAX: usize = 24;
/// Words of a game that are compared letter by letter.
const INDEXED_MAX: usize = 40;

/// What games are called by people who do not know our tags: a word, and the tags that mean it.
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

/// How well a word fits, and how a whole game does: the sum over its words.
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

/// Where a word of a game stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Name,
    Tag,
    Creator,
}

/// What a search looks through of one game.
#[derive(PartialEq)]
pub struct Searchable {
    /// Words of title, tags and creator.
    words: Vec<(Field, Box<str>)>,
    /// Everything, in lower case.
    text: String,
}

impl Searchable {
    /// Of a game.
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

/// What somebody is looking for.
pub struct Search<'q> {
    phrase: &'q str,
    words: Vec<&'q str>,
}

impl<'q> Search<'q> {
    /// From text in lower case.
    pub fn of(phrase: &'q str) -> Self {
        Self {
            phrase,
            words: words(phrase).take(WORDS_MAX).collect(),
        }
    }

    /// How well a game fits; none when it does not.
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

/// Whether a word of the text begins so.
fn begins_word(text: &str, wanted: &str) -> bool {
    wanted.len() > 1
        && text.match_indices(wanted).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            before.is_none_or(|before| !before.is_alphanumeric())
        })
}

/// Whether `word`, or a beginning of it, is what somebody meant who typed `typed`: one slip in
/// four to seven letters, two in more. The first letter is hardly ever wrong, and asking for it
/// keeps most words from being compared at all.
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

/// Letters to add, drop, change or swap with their neighbor, from `typed` to `word` or to the
/// nearest beginning of it that is not shorter and ends with the same letter: "stel" is a beginning
/// of "stealth", "suny" and "sunn" are none of "sunset".
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
            game("Sunset Splash", &["shooter", "arena"], "Paint everybody."),
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
