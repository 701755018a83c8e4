//! Calls of one player: their labels, and which are answered.

use std::collections::VecDeque;

use frolic_protocol::resume::PersistedCall;

use super::progress::Cut;

/// Labelled calls that may wait to be handled.
const LABELS_MAX: usize = 512;
/// Size of the id range for labelled calls.
const LABELLED_IDS: u32 = 1 << 20;
/// Calls that are remembered until they are answered.
const CALLS_MAX: usize = 256;

/// A client's id for a call that is not one of our numbers: a text, say.
pub type Label = Box<serde_json::Value>;

/// A player's calls.
#[derive(Default)]
pub struct Calls {
    /// Labels of calls that the world has not handled yet.
    labels: VecDeque<(u32, Label)>,
    given: u32,
    open: VecDeque<Call>,
}

/// A call that the world has accepted. It is remembered until its answer is
/// persisted: if the process ends before, the next one reports the loss.
struct Call {
    id: u32,
    /// Its number among the reliable messages; none if its count was reset.
    number: Option<u32>,
    label: Option<Label>,
    /// The number of its answer.
    answer: Option<u32>,
    /// Accepted by an earlier process, which will not answer.
    is_lost: bool,
}

impl Calls {
    /// The number for a call with this label. The world numbers those downwards
    /// from the maximum.
    pub fn label(&mut self, label: Label) -> u32 {
        if self.labels.len() == LABELS_MAX {
            self.labels.pop_front();
        }
        self.given = self.given.wrapping_add(1);
        let id = u32::MAX - self.given % LABELLED_IDS;
        self.labels.push_back((id, label));
        id
    }

    /// The world has accepted a call, which has this number among the reliable
    /// messages.
    pub fn taken(&mut self, id: u32, number: Option<u32>) {
        let labelled = self.labels.iter().position(|(known, _)| *known == id);
        let label = labelled.and_then(|place| self.labels.remove(place));
        self.add(Call {
            id,
            number,
            label: label.map(|(_, label)| label),
            answer: None,
            is_lost: false,
        });
    }

    /// Restores a call of an earlier process.
    pub fn inherit(&mut self, call: PersistedCall) {
        let label = call.echo.and_then(|echo| serde_json::from_str(&echo).ok());
        self.add(Call {
            id: call.id,
            number: Some(0),
            label,
            answer: None,
            is_lost: true,
        });
    }

    fn add(&mut self, call: Call) {
        if self.open.len() == CALLS_MAX {
            let answered = self.open.iter().position(|call| call.answer.is_some());
            self.open.remove(answered.unwrap_or(0));
        }
        self.open.push_back(call);
    }

    /// A call is answered by the message of this number. Returns its label.
    pub fn answered(&mut self, id: u32, number: u32) -> Option<Label> {
        let mut open = self.open.iter_mut();
        let call = open.find(|call| call.id == id && call.answer.is_none())?;
        call.answer = Some(number);
        call.label.clone()
    }

    /// The next call that an earlier process has left unanswered.
    pub fn next_lost(&self) -> Option<u32> {
        let mut open = self.open.iter();
        let lost = open.find(|call| call.is_lost && call.answer.is_none());
        lost.map(|call| call.id)
    }

    /// Answered calls that are persisted up to this moment need no second answer.
    pub fn note_persisted(&mut self, persisted: Cut) {
        let is_persisted = |call: &Call| call.answer.is_some_and(|number| number <= persisted.sent);
        self.open.retain(|call| !is_persisted(call));
    }

    /// Shifts the numbers of answers down by `smaller`.
    pub fn renumber(&mut self, smaller: u32) {
        for answer in self.open.iter_mut().filter_map(|call| call.answer.as_mut()) {
            *answer = answer.saturating_sub(smaller);
        }
    }

    /// The count of messages that they belong to was reset: the caller does not
    /// wait any more.
    pub fn forget(&mut self) {
        self.open.retain(|call| !call.is_lost);
        for call in &mut self.open {
            call.number = None;
        }
    }

    /// The calls that were received up to this moment and not answered by then, in
    /// at most `bytes_max` bytes.
    pub fn open_calls(&self, at: Cut, bytes_max: usize) -> Vec<PersistedCall> {
        let mut room = bytes_max;
        let handled = self.open.iter().filter(|call| {
            let is_handled = call.number.is_some_and(|number| number <= at.received);
            is_handled && call.answer.is_none_or(|number| number > at.sent)
        });
        handled
            .map(|call| PersistedCall {
                id: call.id,
                echo: call.label.as_ref().map(|label| label.to_string()),
            })
            .take_while(|call| {
                let left = room.checked_sub(call.bytes());
                room = left.unwrap_or(0);
                left.is_some()
            })
            .collect()
    }

    /// How many are remembered.
    pub fn len(&self) -> usize {
        self.open.len()
    }
}
