//! A basic filter for text that players show each other: names and chat. It has a
//! short list of words in the usual disguises (digits for letters, repeated
//! letters, dots or spaces between them, lookalike letters of other scripts), and
//! finds links, mail addresses and phone numbers. It is a first line of defense,
//! not a moderator: reports and blocks are for the rest.

use std::ops::Range;

use frolic_scene::is_visible;

/// Words that are refused anywhere, also inside of others.
const ANYWHERE: [&str; 16] = [
    "asshole", "bitch", "blowjob", "cunt", "dildo", "faggot", "fuck", "hitler", "jizz", "nigga",
    "nigger", "porn", "pussy", "retard", "shit", "whore",
];
/// Words that are refused as whole words; inside of others they are often harmless.
const ALONE: [&str; 20] = [
    "anal", "arse", "ass", "boobs", "chink", "cock", "cocks", "cum", "dick", "dicks", "dyke",
    "fag", "fags", "kike", "kys", "penis", "rape", "slut", "tits", "wank",
];
/// Harmless words that contain one of the others.
const HARMLESS: [&str; 6] = [
    "scunthorpe",
    "shiitake",
    "shitake",
    "mishit",
    "retardant",
    "pussycat",
];
/// Ends of addresses that are recognised without `http` or `www`.
const DOMAINS: [&str; 28] = [
    "app", "biz", "ca", "cc", "club", "co", "com", "de", "dev", "eu", "example", "fr", "gg",
    "info", "io", "link", "live", "me", "net", "nl", "online", "org", "ru", "shop", "site", "tv",
    "uk", "xyz",
];
/// Fewest digits of a phone number that is written with separators, and of one without.
const PHONE_DIGITS_MIN: usize = 7;
const PHONE_DIGITS_PLAIN_MIN: usize = 9;

/// Whether a name may be shown to strangers.
pub fn is_decent_name(name: &str) -> bool {
    let text: Vec<char> = name.chars().collect();
    words(&text).is_empty() && links(&text).is_empty() && phones(&text).is_empty()
}

/// Chat text with `*` in place of what is filtered.
pub fn mask_chat(line: &str) -> String {
    let mut text: Vec<char> = line.chars().collect();
    let mut found = words(&text);
    found.extend(links(&text));
    found.extend(phones(&text));
    for range in found {
        for c in &mut text[range] {
            if !c.is_whitespace() {
                *c = '*';
            }
        }
    }
    text.into_iter().collect()
}

/// Chat text without invisible characters and characters that change the text
/// direction. Joiners stay: Persian and families of emoji need them.
pub fn plain_chat(line: &str) -> String {
    let stays = |c: &char| matches!(c, '\u{200c}' | '\u{200d}') || is_visible(*c);
    line.chars().filter(stays).collect()
}

/// A letter as it reads, and its position in the text.
#[derive(Clone, Copy)]
struct Letter {
    read: char,
    at: usize,
}

/// Places of refused words.
fn words(text: &[char]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for word in tokens(text) {
        let harmless: Vec<Range<usize>> = HARMLESS
            .iter()
            .flat_map(|harmless| matches(&word, harmless))
            .collect();
        for refused in ANYWHERE {
            let places = matches(&word, refused).into_iter();
            found.extend(places.filter(|place| {
                !harmless
                    .iter()
                    .any(|safe| safe.start <= place.start && place.end <= safe.end)
            }));
        }
        for refused in ALONE {
            let places = matches(&word, refused).into_iter();
            let (first, last) = (word.first(), word.last());
            found.extend(places.filter(|place| {
                first.is_some_and(|first| first.at == place.start)
                    && last.is_some_and(|last| last.at + 1 == place.end)
            }));
        }
    }
    found
}

/// The words of a text, as letters. Punctuation inside of a word is skipped; single
/// letters in a row (`f u c k`) are one word.
fn tokens(text: &[char]) -> Vec<Vec<Letter>> {
    let mut tokens: Vec<Vec<Letter>> = Vec::new();
    let mut joins = false;
    for (start, part) in split(text, char::is_whitespace) {
        let letters = part.iter().enumerate().filter_map(|(offset, c)| {
            let read = reads_as(*c)?;
            Some(Letter {
                read,
                at: start + offset,
            })
        });
        let letters: Vec<Letter> = letters.collect();
        let single = letters.len() == 1;
        match tokens.last_mut() {
            Some(last) if single && joins => last.extend(letters),
            _ if !letters.is_empty() => tokens.push(letters),
            _ => continue,
        }
        joins = single;
    }
    tokens
}

fn split(
    text: &[char],
    separates: impl Fn(char) -> bool,
) -> impl Iterator<Item = (usize, &[char])> {
    let mut at = 0;
    text.split(move |c| separates(*c)).map(move |part| {
        let start = at;
        at += part.len() + 1;
        (start, part)
    })
}

/// Where a word occurs among letters. Each of its letters may be repeated, and all
/// but the first may be a `*`.
fn matches(letters: &[Letter], word: &str) -> Vec<Range<usize>> {
    let word: Vec<char> = word.chars().collect();
    let mut found = Vec::new();
    let mut from = 0;
    while from < letters.len() {
        match match_at(&letters[from..], &word) {
            Some(count) => {
                let last = letters[from + count - 1];
                found.push(letters[from].at..last.at + 1);
                from += count;
            }
            None => from += 1,
        }
    }
    found
}

/// How many letters the word takes at the beginning of `letters`.
fn match_at(letters: &[Letter], word: &[char]) -> Option<usize> {
    let mut taken = 0;
    for (index, wanted) in word.iter().enumerate() {
        let read = letters.get(taken)?.read;
        if read != *wanted && (read != '*' || index == 0) {
            return None;
        }
        taken += 1;
        // More of the same letter, unless the word continues with it.
        while word.get(index + 1) != Some(wanted)
            && letters.get(taken).is_some_and(|next| next.read == *wanted)
        {
            taken += 1;
        }
    }
    Some(taken)
}

/// The letter that a reader sees: none for what is skipped.
fn reads_as(c: char) -> Option<char> {
    let c = match c {
        // Full-width forms.
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(c as u32 - 0xfee0).unwrap_or(c),
        _ => c,
    };
    let read = match c.to_lowercase().next().unwrap_or(c) {
        '0' | 'о' | 'ο' | 'ò'..='ö' | 'ø' => 'o',
        '1' | '!' | '|' | 'і' | 'ι' | 'ì'..='ï' | 'ı' => 'i',
        '3' | '€' | 'е' | 'ε' | 'è'..='ë' => 'e',
        '4' | '@' | 'а' | 'α' | 'à'..='å' => 'a',
        '5' | '$' | 'ѕ' => 's',
        '7' | '+' | 'т' | 'τ' => 't',
        '8' => 'b',
        '9' => 'g',
        'с' | 'ç' => 'c',
        'р' | 'ρ' => 'p',
        'х' | 'χ' => 'x',
        'у' | 'ý' | 'ÿ' => 'y',
        'к' | 'κ' => 'k',
        'м' => 'm',
        'н' => 'h',
        'ñ' => 'n',
        'υ' | 'ù'..='ü' => 'u',
        '*' | '#' => '*',
        other if other.is_alphanumeric() => other,
        _ => return None,
    };
    Some(read)
}

/// Places of links and mail addresses: words with one in them, as a whole.
fn links(text: &[char]) -> Vec<Range<usize>> {
    let words = split(text, char::is_whitespace).filter(|(_, word)| is_link(word));
    words
        .map(|(start, word)| start..start + word.len())
        .collect()
}

fn is_link(word: &[char]) -> bool {
    let word: String = word.iter().flat_map(|c| c.to_lowercase()).collect();
    if word.contains("://") || word.starts_with("www.") {
        return true;
    }
    // The part before a path, a port or the end of a sentence.
    let host = word.split(['/', ':', '?']).next().unwrap_or_default();
    let host = host.trim_matches(|c: char| !c.is_alphanumeric());
    let Some((name, end)) = host.rsplit_once('.') else {
        return false;
    };
    let names_something = name.chars().filter(|c| c.is_alphanumeric()).count() > 1;
    names_something && (word.contains('@') || DOMAINS.contains(&end))
}

/// Places of phone numbers: many digits, alone or in groups with the usual separators between.
fn phones(text: &[char]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        if !text[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let (start, mut end) = (at, at);
        let (mut digits, mut group, mut groups) = (0, 0, Vec::new());
        while at < text.len() {
            match text[at] {
                c if c.is_ascii_digit() => {
                    digits += 1;
                    group += 1;
                    end = at + 1;
                }
                '-' | '.' | '(' | ')' | '/' | ' ' => {
                    groups.extend((group > 0).then_some(group));
                    group = 0;
                }
                _ => break,
            }
            at += 1;
        }
        groups.extend((group > 0).then_some(group));
        // Scores and coordinates come in short groups; the last one of a phone number does not.
        let long_end = groups.last().is_some_and(|last| *last >= 4);
        let grouped = groups.len() > 1 && digits >= PHONE_DIGITS_MIN && long_end;
        let plain = groups.iter().any(|group| *group >= PHONE_DIGITS_PLAIN_MIN);
        if grouped || plain {
            found.push(start..end);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_words_are_found_in_the_usual_disguises() {
        for name in [
            "Shithead99",
            "FUCK",
            "fuuuuck",
            "f.u.c.k",
            "f u c k",
            "sh1t",
            "5h!t",
            "B1tch",
            "fцck fuсk",
            "ｆｕｃｋ",
            "n1gg3r",
            "big ass",
            "dick",
            "call 555-123-4567",
            "www.evil.example",
        ] {
            assert!(!is_decent_name(name), "{name}");
        }
    }

    #[test]
    fn harmless_words_pass() {
        for name in [
            "Ada Lovelace",
            "Scunthorpe",
            "Shiitake",
            "Niger River",
            "Classic Assassin",
            "Peacock",
            "Dickens",
            "Grape Cake",
            "if u c king",
            "Analysis",
            "Document",
            "Player 2000",
            "Зоя Ñandú",
            "v1.2.3",
            "10 20 30 40",
            "Mr. Cat",
        ] {
            assert!(is_decent_name(name), "{name}");
        }
    }

    #[test]
    fn chat_is_masked_and_nothing_else_changes() {
        for (typed, shown) in [
            (
                "fuck you idiot, my phone is 555-123-4567, visit http://evil.example",
                "**** you idiot, my phone is ************, visit *******************",
            ),
            ("what the f*ck", "what the ****"),
            ("f u c k off", "* * * * off"),
            ("mail ada@mail.example now", "mail **************** now"),
            ("join discord.gg/abc!", "join ***************"),
            ("+49 151 2345678", "+** *** *******"),
            ("I have 1000000 coins", "I have 1000000 coins"),
            ("at 10, 20, 30", "at 10, 20, 30"),
            ("wait... what", "wait... what"),
            ("go to 12.5 4.25", "go to 12.5 4.25"),
            ("😀 ok", "😀 ok"),
            ("", ""),
        ] {
            assert_eq!(mask_chat(typed), shown, "{typed}");
        }
    }

    #[test]
    fn direction_changing_characters_are_dropped() {
        assert_eq!(plain_chat("a\u{202e}b\u{2066}c\u{200b}\n"), "abc");
        assert_eq!(plain_chat("👩\u{200d}🚀"), "👩\u{200d}🚀");
    }

    #[test]
    fn hostile_lines_cost_little() {
        for line in [
            "f".repeat(300),
            "1-".repeat(150),
            "* ".repeat(150),
            "a.".repeat(150),
        ] {
            let _ = mask_chat(&line);
        }
    }
}
