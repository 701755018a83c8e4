//! Reads game.toml key by key, so that every problem is found at once and has its place.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{
    Capabilities, GameInfo, Manifest, Places, SimulationSettings, Visibility, WorldSettings,
};
use crate::{Limits, Problem, Report, Rule};
use frolic_scene::text::{LineIndex, shown};

const FILE: &str = "game.toml";
/// Title of a game, in characters.
pub const NAME_CHARS_MAX: usize = 60;
/// Description of a game, in characters.
pub const DESCRIPTION_CHARS_MAX: usize = 2_000;
const ID_CHARS_MAX: usize = 40;
/// Number of tags of a game.
pub const TAGS_MAX: usize = 10;
/// Length of a tag, in characters.
pub const TAG_CHARS_MAX: usize = 24;
const MAX_PLAYERS: RangeInclusive<u32> = 1..=1_000;
/// Capabilities that can be declared and have no effect yet.
const INERT_CAPABILITIES: [&str; 2] = ["teleport", "http"];
const BUNDLES_MAX: usize = 100;
const BUNDLE_SCRIPTS_MAX: usize = 1_000;

pub(super) fn parse(bytes: &[u8], limits: &Limits) -> Result<(Manifest, Places), Report> {
    if bytes.len() > limits.manifest_bytes_max {
        let message = format!(
            "{} bytes; at most {} are allowed",
            bytes.len(),
            limits.manifest_bytes_max
        );
        return Err(Problem::error(Rule::FileSize, FILE, message).into());
    }
    let text = frolic_scene::text::utf8(FILE, bytes)?;
    let (document, syntax_errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader {
        lines: LineIndex::new(text),
        report: Report::new(limits),
        places: Places::default(),
    };
    for error in &syntax_errors {
        let at = error.span().unwrap_or_default();
        let rule = match error.message().starts_with("duplicate key") {
            true => Rule::DuplicateKey,
            false => Rule::Syntax,
        };
        reader.error(rule, &at, error.message().replace('\n', ", "));
    }
    let manifest = syntax_errors
        .is_empty()
        .then(|| reader.manifest(document.get_ref()));
    let mut report = reader.report;
    report.sort();
    match manifest {
        Some(manifest) if !report.has_errors() => {
            reader.places.warnings = report;
            Ok((manifest, reader.places))
        }
        _ => Err(report),
    }
}

struct Reader<'t> {
    lines: LineIndex<'t>,
    report: Report,
    places: Places,
}

/// A table whose keys are taken out one by one; what is left at the end is unknown.
struct Section<'t, 'd> {
    name: &'static str,
    keys: BTreeMap<&'d str, (Range<usize>, &'d Spanned<DeValue<'t>>)>,
    known: Vec<&'static str>,
}

impl<'t, 'd> Section<'t, 'd> {
    fn new(name: &'static str, table: &'d DeTable<'t>) -> Self {
        let keys = table
            .iter()
            .map(|(key, value)| (&**key.get_ref(), (key.span(), value)));
        Section {
            name,
            keys: keys.collect(),
            known: vec![],
        }
    }

    fn take(&mut self, key: &'static str) -> Option<&'d Spanned<DeValue<'t>>> {
        self.known.push(key);
        self.keys.remove(key).map(|(_, value)| value)
    }
}

impl<'t> Reader<'t> {
    fn manifest(&mut self, document: &DeTable<'t>) -> Manifest {
        let mut root = Section::new("", document);
        let game = match root.take("game") {
            Some(table) => self.section("game", table, Self::game),
            None => {
                self.error(Rule::MissingKey, &(0..0), "a [game] table is required");
                None
            }
        };
        let capabilities = root.take("capabilities");
        let world = root.take("world");
        let simulation = root.take("simulation");
        let bundles = root.take("bundles");
        let manifest = Manifest {
            game: game.unwrap_or_else(empty_game),
            capabilities: capabilities
                .and_then(|table| self.section("capabilities", table, Self::capabilities))
                .unwrap_or_default(),
            world: world
                .and_then(|table| self.section("world", table, Self::world))
                .unwrap_or_default(),
            simulation: simulation
                .and_then(|table| self.section("simulation", table, Self::simulation))
                .unwrap_or_default(),
            bundles: bundles
                .and_then(|table| self.bundles(table))
                .unwrap_or_default(),
        };
        self.unknown_keys(root);
        manifest
    }

    fn game(&mut self, section: &mut Section<'t, '_>) -> GameInfo {
        let mut game = empty_game();
        match section.take("id") {
            Some(value) => game.id = self.id(value),
            None => self.error(Rule::MissingKey, &(0..0), "[game] needs id"),
        }
        match section.take("name") {
            Some(value) => {
                let name = self.text("name", value, 1..=NAME_CHARS_MAX);
                game.name = name.unwrap_or_default();
            }
            None => self.error(Rule::MissingKey, &(0..0), "[game] needs name"),
        }
        if let Some(value) = section.take("description") {
            let text = self.text("description", value, 0..=DESCRIPTION_CHARS_MAX);
            game.description = text.unwrap_or_default();
        }
        if let Some(value) = section.take("version") {
            self.version(value, &mut game);
        }
        if let Some(value) = section.take("max_players")
            && let Some(count) = self.integer("max_players", value, MAX_PLAYERS)
        {
            game.max_players = count;
        }
        if let Some(value) = section.take("tags") {
            game.tags = self.tags(value);
        }
        if let Some(value) = section.take("thumbnail") {
            self.places.thumbnail = Some(self.lines.place(value.span().start));
            game.thumbnail = self.text("thumbnail", value, 1..=200);
        }
        if let Some(value) = section.take("visibility") {
            self.visibility(value, &mut game);
        }
        game
    }

    fn id(&mut self, value: &Spanned<DeValue<'t>>) -> String {
        let id = self.text("id", value, 1..=ID_CHARS_MAX).unwrap_or_default();
        if !id.is_empty() && !is_slug(&id) {
            let message = format!(
                "id \"{}\" must be lower-case letters, digits and single dashes, like sky-race",
                shown(&id)
            );
            self.error(Rule::InvalidValue, &value.span(), message);
        }
        id
    }

    fn version(&mut self, value: &Spanned<DeValue<'t>>, game: &mut GameInfo) {
        let Some(text) = self.text("version", value, 1..=64) else {
            return;
        };
        match semver::Version::parse(&text) {
            Ok(_) => game.version = text,
            Err(error) => {
                let message = format!("version must be like 1.2.0: {error}");
                self.error(Rule::InvalidValue, &value.span(), message);
            }
        }
    }

    fn visibility(&mut self, value: &Spanned<DeValue<'t>>, game: &mut GameInfo) {
        match value.get_ref().as_str() {
            Some("public") => game.visibility = Visibility::Public,
            Some("unlisted") => game.visibility = Visibility::Unlisted,
            Some("private") => game.visibility = Visibility::Private,
            _ => {
                let message = "visibility is \"public\", \"unlisted\" or \"private\"";
                self.error(Rule::InvalidValue, &value.span(), message);
            }
        }
    }

    fn tags(&mut self, value: &Spanned<DeValue<'t>>) -> Vec<String> {
        let tags = self.strings("tags", value, TAGS_MAX);
        for (tag, at) in &tags {
            if !is_tag(tag) {
                let message = format!(
                    "tag \"{}\" must be at most {TAG_CHARS_MAX} lower-case letters, digits and dashes",
                    shown(tag)
                );
                self.error(Rule::InvalidValue, at, message);
            }
        }
        tags.into_iter().map(|(tag, _)| tag).collect()
    }

    fn capabilities(&mut self, section: &mut Section<'t, '_>) -> Capabilities {
        for name in INERT_CAPABILITIES {
            let declared = section.keys.get(name).map(|(span, _)| span.clone());
            if let Some(span) = declared {
                let message = format!("capability {name}: nothing uses it yet; leave it out");
                let problem = Problem::error(Rule::NoEffect, FILE, message);
                let place = self.lines.place(span.start);
                self.report.push(problem.at(place).as_warning());
            }
        }
        Capabilities {
            store: self.flag(section, "store"),
            chat: self.flag(section, "chat"),
            teleport: self.flag(section, "teleport"),
            http: self.flag(section, "http"),
        }
    }

    fn world(&mut self, section: &mut Section<'t, '_>) -> WorldSettings {
        let mut world = WorldSettings {
            persistent: self.flag(section, "persistent"),
            spells: self.flag(section, "spells"),
            ..WorldSettings::default()
        };
        if let Some(value) = section.take("idle_stop_s")
            && let Some(seconds) = self.integer("idle_stop_s", value, 1..=86_400)
        {
            world.idle_stop_s = seconds;
        }
        world
    }

    fn simulation(&mut self, section: &mut Section<'t, '_>) -> SimulationSettings {
        let mut simulation = SimulationSettings::default();
        for (key, field, choices) in [
            ("tick_hz", &mut simulation.tick_hz, [60, 30]),
            ("snapshot_hz", &mut simulation.snapshot_hz, [20, 10]),
        ] {
            let Some(value) = section.take(key) else {
                continue;
            };
            match self.integer(key, value, 0..=u32::MAX) {
                Some(hz) if choices.contains(&hz) => *field = hz,
                Some(hz) => {
                    let message = format!("{key} is {} or {}, not {hz}", choices[0], choices[1]);
                    self.error(Rule::InvalidValue, &value.span(), message);
                }
                None => {}
            }
        }
        for (key, field, range) in [
            ("gravity", &mut simulation.gravity, 0.0..=200.0),
            ("kill_height", &mut simulation.kill_height, -1e5..=1e5),
        ] {
            if let Some(value) = section.take(key)
                && let Some(number) = self.number(key, value, range)
            {
                *field = number;
            }
        }
        if let Some(value) = section.take("interest_radius") {
            simulation.interest_radius = self.number("interest_radius", value, 10.0..=10_000.0);
        }
        simulation
    }

    fn bundles(&mut self, value: &Spanned<DeValue<'t>>) -> Option<BTreeMap<String, Vec<String>>> {
        let Some(table) = value.get_ref().as_table() else {
            self.error(
                Rule::InvalidValue,
                &value.span(),
                "[bundles] must be a table",
            );
            return None;
        };
        if table.len() > BUNDLES_MAX {
            let message = format!("at most {BUNDLES_MAX} bundles are allowed");
            self.error(Rule::InvalidValue, &value.span(), message);
        }
        let mut bundles = BTreeMap::new();
        for (name, scripts) in table {
            let place = self.lines.place(name.span().start);
            self.places
                .bundles
                .insert(name.get_ref().to_string(), place);
            let scripts = self.strings("a bundle", scripts, BUNDLE_SCRIPTS_MAX);
            let paths = scripts.into_iter().map(|(path, _)| path);
            bundles.insert(name.get_ref().to_string(), paths.collect());
        }
        Some(bundles)
    }

    fn section<'d, T>(
        &mut self,
        name: &'static str,
        value: &'d Spanned<DeValue<'t>>,
        read: fn(&mut Self, &mut Section<'t, 'd>) -> T,
    ) -> Option<T> {
        let Some(table) = value.get_ref().as_table() else {
            let message = format!("{name} must be a table: write [{name}]");
            self.error(Rule::InvalidValue, &value.span(), message);
            return None;
        };
        let mut section = Section::new(name, table);
        let result = read(self, &mut section);
        self.unknown_keys(section);
        Some(result)
    }

    fn unknown_keys(&mut self, section: Section<'t, '_>) {
        let known = section.known.join(", ");
        for (key, (span, _)) in section.keys {
            let (line, _) = self.lines.place(span.start);
            let place = match section.name {
                "" => String::new(),
                name => format!(" in [{name}]"),
            };
            let message = format!(
                "unknown key \"{}\"{place} in line {line}; known are {known}",
                shown(key)
            );
            self.error(Rule::UnknownKey, &span, message);
        }
    }

    fn text(
        &mut self,
        key: &str,
        value: &Spanned<DeValue<'t>>,
        chars: RangeInclusive<usize>,
    ) -> Option<String> {
        let Some(text) = value.get_ref().as_str() else {
            self.wrong_type(key, "a string", value);
            return None;
        };
        let control = text.chars().any(|c| c.is_control() && c != '\n');
        if control || !chars.contains(&text.chars().count()) {
            let (min, max) = (chars.start(), chars.end());
            let message = format!("{key} must be {min} to {max} characters of plain text");
            self.error(Rule::InvalidValue, &value.span(), message);
            return None;
        }
        Some(text.to_owned())
    }

    fn strings(
        &mut self,
        key: &str,
        value: &Spanned<DeValue<'t>>,
        max: usize,
    ) -> Vec<(String, Range<usize>)> {
        let Some(array) = value.get_ref().as_array() else {
            self.wrong_type(key, "a list of strings", value);
            return vec![];
        };
        if array.len() > max {
            let message = format!("{key} has at most {max} members");
            self.error(Rule::InvalidValue, &value.span(), message);
        }
        let mut strings = vec![];
        for item in array.iter().take(max) {
            match item.get_ref().as_str() {
                Some(text) => strings.push((text.to_owned(), item.span())),
                None => self.wrong_type(key, "a list of strings", item),
            }
        }
        strings
    }

    fn flag(&mut self, section: &mut Section<'t, '_>, key: &'static str) -> bool {
        let Some(value) = section.take(key) else {
            return false;
        };
        let flag = value.get_ref().as_bool();
        if flag.is_none() {
            self.wrong_type(key, "true or false", value);
        }
        flag.unwrap_or(false)
    }

    fn integer(
        &mut self,
        key: &str,
        value: &Spanned<DeValue<'t>>,
        range: RangeInclusive<u32>,
    ) -> Option<u32> {
        let Some(integer) = value.get_ref().as_integer() else {
            self.wrong_type(key, "a whole number", value);
            return None;
        };
        let parsed = u32::from_str_radix(integer.as_str(), integer.radix()).ok();
        let allowed = parsed.filter(|number| range.contains(number));
        if allowed.is_none() {
            let message = format!("{key} must be from {} to {}", range.start(), range.end());
            self.error(Rule::InvalidValue, &value.span(), message);
        }
        allowed
    }

    fn number(
        &mut self,
        key: &str,
        value: &Spanned<DeValue<'t>>,
        range: RangeInclusive<f32>,
    ) -> Option<f32> {
        let text: Cow<'_, str> = match value.get_ref() {
            DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str().into(),
            DeValue::Float(float) => float.as_str().into(),
            _ => {
                self.wrong_type(key, "a number", value);
                return None;
            }
        };
        let number = text.parse::<f32>().ok();
        if number.is_none_or(|number| !number.is_finite()) {
            let message = format!("{key} is not a finite number");
            self.error(Rule::NonFiniteNumber, &value.span(), message);
            return None;
        }
        let allowed = number.filter(|number| range.contains(number));
        if allowed.is_none() {
            let message = format!("{key} must be from {} to {}", range.start(), range.end());
            self.error(Rule::InvalidValue, &value.span(), message);
        }
        allowed
    }

    fn wrong_type(&mut self, key: &str, expected: &str, value: &Spanned<DeValue<'t>>) {
        let found = value.get_ref().type_str();
        let message = format!("{key} must be {expected}, not a value of type {found}");
        self.error(Rule::InvalidValue, &value.span(), message);
    }

    fn error(&mut self, rule: Rule, span: &Range<usize>, message: impl Into<String>) {
        let place = self.lines.place(span.start);
        self.report
            .push(Problem::error(rule, FILE, message).at(place));
    }
}

fn empty_game() -> GameInfo {
    GameInfo {
        id: String::new(),
        name: String::new(),
        description: String::new(),
        version: super::default_version(),
        max_players: super::default_max_players(),
        tags: vec![],
        thumbnail: None,
        visibility: Visibility::default(),
    }
}

/// Whether a tag has the right form and length.
pub fn is_tag(tag: &str) -> bool {
    tag.len() <= TAG_CHARS_MAX && is_slug(tag)
}

/// Lower-case letters, digits and single dashes, starting and ending with a letter or digit.
fn is_slug(text: &str) -> bool {
    text.split('-').all(|part| {
        let mut bytes = part.bytes();
        !part.is_empty() && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    })
}
