//! Output and errors of client scripts. A client may send anything, as often as it
//! likes, so each has a rate limit, identical lines of many players are merged, and
//! the text is sanitized before anyone sees it.

use std::collections::{BTreeMap, BTreeSet};

use frolic_fleet_api::console::{ClientPrints, ConsoleLine, FromClients};
use frolic_protocol::client_log::{
    CLIENT_LOG_LINES_MAX, CLIENT_LOG_MESSAGE_CHARS_MAX, CLIENT_LOG_STACK_CHARS_MAX, ClientLog,
    ClientLogLine, ConsoleLevel,
};
use frolic_protocol::token_bucket::{RateLimit, TokenBucket};

/// Lines that a player may send.
const LINES: RateLimit = RateLimit {
    burst: 40.0,
    per_s: 5.0,
};
/// Distinct lines between two reports; more are only counted.
const KINDS_MAX: usize = 64;
/// Upper bound of a line's repeat count.
const COUNT_MAX: u32 = 100_000;
const BROWSER_CHARS_MAX: usize = 40;
/// The reported source of a line when the game has no such script.
const UNKNOWN_SCRIPT: &str = "@client";

/// Lines since the last report.
#[derive(Default)]
pub struct ClientLogs {
    rates: BTreeMap<u32, TokenBucket>,
    said: BTreeMap<Line, Said>,
    /// Lines that were dropped.
    dropped: u32,
}

/// Source and text: a repetition only increments the count.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    level: ConsoleLevel,
    script: String,
    line: u32,
    message: String,
    revision: String,
}

struct Said {
    /// Its position among the lines between two reports.
    order: usize,
    stack: String,
    browser: String,
    count: u32,
    players: BTreeSet<u32>,
}

/// The player whose client sent a line.
#[derive(Clone, Copy)]
pub struct Speaker<'a> {
    /// Their number in the world.
    pub number: u32,
    /// Their persistent id.
    pub player_id: &'a str,
}

impl ClientLogs {
    /// Accepts a line from a client. `known` tells whether clients have a script of
    /// this path, `revision` is the one that runs.
    pub fn take(
        &mut self,
        speaker: Speaker<'_>,
        log: ClientLog,
        prints: &ClientPrints,
        revision: &str,
        known: impl Fn(&str) -> bool,
        now_s: f64,
    ) {
        let is_hash =
            log.revision.len() == 64 && log.revision.bytes().all(|b| b.is_ascii_hexdigit());
        let revision = if is_hash { &log.revision } else { revision };
        let browser = harmless(&log.browser, BROWSER_CHARS_MAX, false);
        for line in log.lines.into_iter().take(CLIENT_LOG_LINES_MAX) {
            let wanted = line.level == ConsoleLevel::Error || prints.wants(speaker.player_id);
            // Not requested: not even counted as dropped.
            if !wanted {
                continue;
            }
            let bucket = self.rates.entry(speaker.number).or_default();
            if bucket.take(LINES, 1.0, now_s).is_err() {
                self.dropped = self.dropped.saturating_add(1);
                continue;
            }
            let script = match known(&line.script) {
                true => line.script.clone(),
                false => UNKNOWN_SCRIPT.to_owned(),
            };
            self.note(speaker.number, line, script, revision, &browser);
        }
    }

    fn note(
        &mut self,
        number: u32,
        line: ClientLogLine,
        script: String,
        revision: &str,
        browser: &str,
    ) {
        let key = Line {
            level: line.level,
            script,
            line: line.line,
            message: harmless(&line.message, CLIENT_LOG_MESSAGE_CHARS_MAX, false),
            revision: revision.to_owned(),
        };
        if !self.said.contains_key(&key) && self.said.len() >= KINDS_MAX {
            self.dropped = self.dropped.saturating_add(1);
            return;
        }
        let order = self.said.len();
        let said = self.said.entry(key).or_insert_with(|| Said {
            order,
            stack: harmless(&line.stack, CLIENT_LOG_STACK_CHARS_MAX, true),
            browser: String::new(),
            count: 0,
            players: BTreeSet::new(),
        });
        browser.clone_into(&mut said.browser);
        said.count = said
            .count
            .saturating_add(line.count.clamp(1, COUNT_MAX))
            .min(COUNT_MAX);
        said.players.insert(number);
    }

    /// All lines since the last report in the order of their first occurrence, as
    /// the console shows them, and how many were dropped. `origin` gives the source
    /// line and the hash.
    pub fn report(
        &mut self,
        tick: u32,
        now_s: f64,
        origin: impl Fn(&str, u32) -> (Option<String>, Option<String>),
    ) -> (Vec<ConsoleLine>, u32) {
        self.rates.retain(|_, bucket| !bucket.is_full(now_s));
        let mut said: Vec<_> = std::mem::take(&mut self.said).into_iter().collect();
        said.sort_by_key(|(_, said)| said.order);
        let lines = said.into_iter().map(|(key, said)| {
            let (source_line, hash) = origin(&key.script, key.line);
            ConsoleLine {
                level: key.level,
                tick,
                script: key.script,
                line: (key.line > 0).then_some(key.line),
                message: key.message,
                source_line,
                stack: said.stack,
                revision: key.revision,
                hash: hash.unwrap_or_default(),
                client: Some(FromClients {
                    browser: said.browser,
                    count: said.count,
                    players: u32::try_from(said.players.len()).unwrap_or(u32::MAX),
                }),
            }
        });
        (lines.collect(), std::mem::take(&mut self.dropped))
    }
}

/// Sanitizes untrusted text for a terminal: removes control characters, which could
/// move the cursor, and characters that change the text direction.
fn harmless(text: &str, chars_max: usize, lines: bool) -> String {
    let hidden = |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    let clean = text.trim_end().chars().take(chars_max);
    clean
        .map(|c| match c {
            '\n' if lines => '\n',
            c if c.is_control() || hidden(c) => ' ',
            c => c,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const REVISION: &str = "running";

    fn prints_of_all() -> ClientPrints {
        ClientPrints {
            everybody: true,
            creator_id: "user_creator".into(),
        }
    }

    fn line(level: ConsoleLevel, message: &str) -> ClientLogLine {
        ClientLogLine {
            level,
            script: "StarterGui/Hud.luau".into(),
            line: 3,
            message: message.into(),
            stack: String::new(),
            count: 1,
        }
    }

    fn log(lines: Vec<ClientLogLine>) -> ClientLog {
        ClientLog {
            revision: "ab".repeat(32),
            browser: "Firefox on Linux".into(),
            lines,
        }
    }

    fn say(logs: &mut ClientLogs, number: u32, said: ClientLog, prints: &ClientPrints) {
        let speaker = Speaker {
            number,
            player_id: if number == 1 {
                "user_creator"
            } else {
                "user_guest"
            },
        };
        let known = |path: &str| path == "StarterGui/Hud.luau";
        logs.take(speaker, said, prints, REVISION, known, 0.0);
    }

    fn reported(logs: &mut ClientLogs) -> (Vec<ConsoleLine>, u32) {
        logs.report(60, 0.0, |_, _| (Some("source".into()), Some("hash".into())))
    }

    #[test]
    fn the_same_error_of_many_players_is_one_line_with_a_count() {
        let mut logs = ClientLogs::default();
        for number in 1..=3 {
            let mut error = line(ConsoleLevel::Error, "attempt to index nil");
            error.count = 2;
            say(
                &mut logs,
                number,
                log(vec![error]),
                &ClientPrints::default(),
            );
        }
        let (lines, dropped) = reported(&mut logs);
        assert_eq!((lines.len(), dropped), (1, 0));
        let client = lines[0].client.as_ref().unwrap();
        assert_eq!((client.count, client.players), (6, 3));
        assert_eq!(client.browser, "Firefox on Linux");
        assert_eq!(lines[0].revision, "ab".repeat(32));
        assert_eq!(lines[0].source_line.as_deref(), Some("source"));
        assert!(reported(&mut logs).0.is_empty());
    }

    #[test]
    fn prints_are_taken_of_those_whose_are_wanted() {
        let mut logs = ClientLogs::default();
        let creator_only = ClientPrints {
            everybody: false,
            ..prints_of_all()
        };
        for number in [1, 2] {
            let hello = line(ConsoleLevel::Info, &format!("hello {number}"));
            say(&mut logs, number, log(vec![hello]), &creator_only);
        }
        let (lines, _) = reported(&mut logs);
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].message, "hello 1");
    }

    #[test]
    fn lines_are_reported_in_the_order_in_which_they_arrived() {
        let mut logs = ClientLogs::default();
        let said = ["round 9", "round 10", "apple", "round 9", "Zebra"];
        let lines = said.map(|text| line(ConsoleLevel::Info, text));
        say(&mut logs, 1, log(lines.to_vec()), &prints_of_all());
        let failed = line(ConsoleLevel::Error, "failed");
        say(&mut logs, 1, log(vec![failed]), &prints_of_all());
        let (lines, _) = reported(&mut logs);
        let messages: Vec<_> = lines.iter().map(|line| line.message.as_str()).collect();
        let expected = ["round 9", "round 10", "apple", "Zebra", "failed"];
        assert_eq!(messages, expected);
    }

    #[test]
    fn a_flood_is_cut_and_counted() {
        let mut logs = ClientLogs::default();
        for round in 0..100 {
            let lines = (0..40).map(|i| line(ConsoleLevel::Error, &format!("{round} {i}")));
            say(&mut logs, 2, log(lines.collect()), &prints_of_all());
        }
        // Lines of other players are still accepted.
        say(
            &mut logs,
            3,
            log(vec![line(ConsoleLevel::Error, "other")]),
            &prints_of_all(),
        );
        let (lines, dropped) = reported(&mut logs);
        assert_eq!(lines.len(), 41);
        assert_eq!(dropped, 100 * CLIENT_LOG_LINES_MAX as u32 - 40);
        assert!(lines.iter().any(|line| line.message == "other"));
    }

    #[test]
    fn hostile_text_is_made_harmless() {
        let mut logs = ClientLogs::default();
        let mut bad = line(ConsoleLevel::Error, "\u{1b}[2Jgone\u{202e}\0");
        bad.script = "../../etc/passwd\n".into();
        bad.stack = format!("a\nb\r\u{7}{}", "x".repeat(5000));
        bad.count = u32::MAX;
        let mut said = log(vec![bad]);
        said.revision = "<script>".into();
        said.browser = "y".repeat(1000);
        say(&mut logs, 2, said, &ClientPrints::default());
        let (lines, _) = reported(&mut logs);
        let line = &lines[0];
        assert_eq!(line.message, " [2Jgone  ");
        assert_eq!(line.script, UNKNOWN_SCRIPT);
        assert_eq!(line.revision, REVISION);
        assert!(
            line.stack.starts_with("a\nb  x") && line.stack.len() <= CLIENT_LOG_STACK_CHARS_MAX
        );
        let client = line.client.as_ref().unwrap();
        assert_eq!(client.browser.len(), BROWSER_CHARS_MAX);
        assert_eq!(client.count, COUNT_MAX);
    }
}
