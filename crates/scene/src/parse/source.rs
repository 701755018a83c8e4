//! Pieces of the text, and problems reported at their places in it.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{FILE, MEMBERS_MAX, Reader};
use crate::json::Members;
use crate::suggest::closest;
use crate::text::{LineIndex, shown};
use crate::{Problem, Rule};

impl<'t> Reader<'t, '_> {
    /// The members of an object that is not a map of free names, duplicates reported.
    pub(super) fn object(
        &mut self,
        value: &'t RawValue,
        what: &str,
    ) -> Vec<(Cow<'t, str>, &'t RawValue)> {
        match Members::parse(value.get(), MEMBERS_MAX) {
            Ok(members) => self.unique(members, what),
            Err(error) => {
                self.json_error(value.get(), error, what);
                vec![]
            }
        }
    }

    pub(super) fn unique(
        &mut self,
        members: Members<'t>,
        what: &str,
    ) -> Vec<(Cow<'t, str>, &'t RawValue)> {
        let mut seen = BTreeSet::new();
        let mut unique = Vec::with_capacity(members.list.len());
        for (key, value) in members.list {
            if seen.insert(key.clone()) {
                unique.push((key, value));
            } else {
                let message = format!("\"{}\" appears twice in {what}", shown(&key));
                let offset = self.key_offset(&key, value);
                self.error_in(Some(&key), Rule::DuplicateKey, offset, message);
            }
        }
        unique
    }

    pub(super) fn decode<T: Deserialize<'t>>(
        &mut self,
        value: &'t RawValue,
        what: &str,
    ) -> Option<T> {
        match serde_json::from_str(value.get()) {
            Ok(decoded) => Some(decoded),
            Err(error) => {
                self.json_error(value.get(), error, what);
                None
            }
        }
    }

    /// Reports an error that serde_json found in `part`, a slice of the text.
    pub(super) fn json_error(&mut self, part: &'t str, error: serde_json::Error, what: &str) {
        let inside = LineIndex::offset(part, error.line(), error.column());
        let message = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let message = message.strip_suffix(&place).unwrap_or(&message);
        let rule = rule_of(&error, message);
        let field = match self.subject.component {
            Some(_) => field_of(part, inside, message),
            None => None,
        };
        let start = part.as_ptr() as usize - self.text.as_ptr() as usize;
        let mut message = format!("{}: {}", shown(what), limited(message));
        if let Some(name) = misspelt(&message) {
            message.push_str(&format!("; did you mean `{name}`?"));
        }
        self.error_in(field.as_deref(), rule, start + inside, message);
    }

    /// Reports an error in a component that was merged with the prefab's, so that serde's place
    /// is of no use.
    pub(super) fn merged_error(
        &mut self,
        what: &str,
        field: Option<&str>,
        offset: usize,
        error: &serde_json::Error,
    ) {
        let message = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let message = message.strip_suffix(&place).unwrap_or(&message);
        let rule = rule_of(error, message);
        let mut message = format!("{what}: {}", limited(message));
        if let Some(name) = misspelt(&message).map(str::to_owned) {
            message.push_str(&format!("; did you mean `{name}`?"));
        }
        self.error_in(field, rule, offset, message);
    }

    /// Reports a key that means nothing; `known` lists those that mean something.
    #[expect(clippy::ptr_arg, reason = "key_offset needs it")]
    pub(super) fn unknown_key(&mut self, key: &Cow<'t, str>, value: &'t RawValue, known: &[&str]) {
        let mut message = format!("unknown key \"{}\"", shown(key));
        if let Some(name) = closest(key, known.iter().copied()) {
            message.push_str(&format!("; did you mean \"{name}\"?"));
        }
        message.push_str("; expected ");
        message.push_str(&listed(known));
        let offset = self.key_offset(key, value);
        self.error_in(Some(key), Rule::UnknownKey, offset, message);
    }

    pub(super) fn error(&mut self, rule: Rule, offset: usize, message: impl Into<String>) {
        self.error_in(None, rule, offset, message);
    }

    /// Reports an error about a field of what is being read.
    pub(super) fn error_in(
        &mut self,
        field: Option<&str>,
        rule: Rule,
        offset: usize,
        message: impl Into<String>,
    ) {
        let problem = self.problem(rule, offset, message.into(), field);
        self.report.push(problem);
    }

    pub(super) fn warning(&mut self, rule: Rule, offset: usize, message: impl Into<String>) {
        let problem = self.problem(rule, offset, message.into(), None);
        self.report.push(problem.as_warning());
    }

    fn problem(&self, rule: Rule, offset: usize, message: String, field: Option<&str>) -> Problem {
        let mut subject = self.subject.clone();
        subject.field = field.map(shown).or(subject.field);
        Problem::error(rule, FILE, message)
            .at(self.lines.place(offset))
            .about(subject)
    }

    /// Reads something of a component: problems found in it name the component.
    pub(super) fn within_component<T>(
        &mut self,
        component: &'static str,
        read: impl FnOnce(&mut Self) -> T,
    ) -> T {
        self.subject.component = Some(component.to_owned());
        let value = read(self);
        self.subject.component = None;
        value
    }

    pub(super) fn offset(&self, value: &'t RawValue) -> usize {
        value.get().as_ptr() as usize - self.text.as_ptr() as usize
    }

    /// A key without escapes is a slice of the text; for others its value is near enough.
    #[expect(
        clippy::ptr_arg,
        reason = "whether the key is borrowed is the question"
    )]
    pub(super) fn key_offset(&self, key: &Cow<'t, str>, value: &'t RawValue) -> usize {
        match key {
            Cow::Borrowed(key) => (key.as_ptr() as usize - self.text.as_ptr() as usize) - 1,
            Cow::Owned(_) => self.offset(value),
        }
    }
}

fn rule_of(error: &serde_json::Error, message: &str) -> Rule {
    match () {
        _ if error.is_syntax() && message.contains("out of range") => Rule::NonFiniteNumber,
        _ if error.is_syntax() && message.contains("recursion") => Rule::JsonNesting,
        _ if !error.is_data() => Rule::Syntax,
        _ if message.starts_with("unknown field") => Rule::UnknownKey,
        _ if message.starts_with("missing field") => Rule::MissingKey,
        _ if message.starts_with("duplicate field") => Rule::DuplicateKey,
        _ => Rule::InvalidValue,
    }
}

/// The field of a component that an error is about: the one that is missing, or the last one that
/// begins before the place of the error.
fn field_of(part: &str, inside: usize, message: &str) -> Option<String> {
    if let Some(rest) = message.strip_prefix("missing field `") {
        return rest.split('`').next().map(str::to_owned);
    }
    let members = Members::parse(part, MEMBERS_MAX).ok()?;
    let before = |(key, value): &&(Cow<'_, str>, &RawValue)| {
        let start = match key {
            Cow::Borrowed(key) => key.as_ptr() as usize,
            Cow::Owned(_) => value.get().as_ptr() as usize,
        };
        start - part.as_ptr() as usize <= inside
    };
    let (key, _) = members.list.iter().rev().find(before)?;
    Some(key.clone().into_owned())
}

/// The field that was probably meant, from the sentence in which serde lists all fields.
fn misspelt(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("unknown field `")?;
    let mut quoted = rest.split('`').step_by(2);
    let word = quoted.next()?;
    closest(word, quoted)
}

/// serde quotes hostile values in its messages.
fn limited(message: &str) -> String {
    let mut short: String = message.chars().take(300).collect();
    if short.len() < message.len() {
        short.push('…');
    }
    short.replace(char::is_control, "\u{fffd}")
}

/// `a, b or c`.
fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
