//! What clients call their calls.

use std::collections::VecDeque;

/// Calls with a label that may wait for their answer.
const LABELS_MAX: usize = 512;
/// Numbers that are used for them, one after the other.
const LABELLED_IDS: u32 = 1 << 20;

/// Calls whose `id` is no number of ours: a text, say. The world counts them
/// from the top, and whoever called gets their own back.
#[derive(Default)]
pub struct CallLabels {
    waiting: VecDeque<(u32, Box<serde_json::Value>)>,
    given: u32,
}

impl CallLabels {
    /// The number for a call of this label.
    pub fn give(&mut self, label: Box<serde_json::Value>) -> u32 {
        if self.waiting.len() == LABELS_MAX {
            self.waiting.pop_front();
        }
        self.given = self.given.wrapping_add(1);
        let id = u32::MAX - self.given % LABELLED_IDS;
        self.waiting.push_back((id, label));
        id
    }

    /// The label of a call that is answered.
    pub fn take_for(&mut self, id: u32) -> Option<Box<serde_json::Value>> {
        let place = self.waiting.iter().position(|(known, _)| *known == id)?;
        self.waiting.remove(place).map(|(_, label)| label)
    }

    /// The label of a call.
    pub fn of(&self, id: u32) -> Option<&serde_json::Value> {
        let mut waiting = self.waiting.iter();
        waiting
            .find(|(known, _)| *known == id)
            .map(|(_, label)| &**label)
    }
}
