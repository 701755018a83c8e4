//! Pieces of the text, and problems reported at their places in it.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{FILE, MEMBERS_MAX, Reader};
use crate::json::Members;
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
                self.error(Rule::DuplicateKey, self.key_offset(&key, value), message);
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
        let rule = match () {
            _ if error.is_syntax() && message.contains("out of range") => Rule::NonFiniteNumber,
            _ if error.is_syntax() && message.contains("recursion") => Rule::JsonNesting,
            _ if !error.is_data() => Rule::Syntax,
            _ if message.starts_with("unknown field") => Rule::UnknownKey,
            _ if message.starts_with("missing field") => Rule::MissingKey,
            _ if message.starts_with("duplicate field") => Rule::DuplicateKey,
            _ => Rule::InvalidValue,
        };
        let start = part.as_ptr() as usize - self.text.as_ptr() as usize;
        let message = format!("{}: {}", shown(what), limited(message));
        self.error(rule, start + inside, message);
    }

    #[expect(clippy::ptr_arg, reason = "key_offset needs it")]
    pub(super) fn unknown_key(&mut self, key: &Cow<'t, str>, value: &'t RawValue, known: &str) {
        let message = format!("unknown key \"{}\"; expected {known}", shown(key));
        self.error(Rule::UnknownKey, self.key_offset(key, value), message);
    }

    pub(super) fn error(&mut self, rule: Rule, offset: usize, message: impl Into<String>) {
        let problem = Problem::error(rule, FILE, message).at(self.lines.place(offset));
        self.report.push(problem);
    }

    pub(super) fn warning(&mut self, offset: usize, message: &str) {
        let problem = Problem::error(Rule::Suspicious, FILE, message);
        let problem = problem.at(self.lines.place(offset)).as_warning();
        self.report.push(problem);
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

/// serde quotes hostile values in its messages.
fn limited(message: &str) -> String {
    let mut short: String = message.chars().take(300).collect();
    if short.len() < message.len() {
        short.push('…');
    }
    short.replace(char::is_control, "\u{fffd}")
}
