//! What the server told us of the world, tick by tick.

use std::collections::VecDeque;

use frolic_protocol::EntityState;
use frolic_protocol::snapshot::{self, SnapshotError, SnapshotHeader};

/// Snapshots kept: baselines for deltas, and the past that is drawn.
const HISTORY_MAX: usize = 64;

pub(crate) struct Known {
    pub tick: u32,
    pub entities: Vec<EntityState>,
}

#[derive(Default)]
pub(crate) struct Replication {
    history: VecDeque<Known>,
    /// Snapshots the server should have sent by now, and those that came.
    pub expected: u32,
    pub received: u32,
}

/// What a snapshot changed.
pub(crate) struct Applied {
    pub header: SnapshotHeader,
    /// Entities that are gone.
    pub removed: Vec<u32>,
}

impl Replication {
    /// Takes a snapshot in. None when it is older than one we have.
    pub fn apply(
        &mut self,
        bytes: &[u8],
        snapshots_per_tick: f64,
    ) -> Result<Option<Applied>, SnapshotError> {
        let (header, entities) = snapshot::decode(bytes, |tick| {
            self.history
                .iter()
                .find(|known| known.tick == tick)
                .map(|known| &known.entities[..])
        })?;
        let newest = self.history.back();
        if newest.is_some_and(|known| known.tick >= header.tick) {
            return Ok(None);
        }
        self.received += 1;
        self.expected += newest.map_or(1, |known| {
            let due = f64::from(header.tick - known.tick) * snapshots_per_tick;
            (due.round() as u32).clamp(1, 100)
        });
        let removed = newest.map_or_else(Vec::new, |known| gone(&known.entities, &entities));
        if self.history.len() == HISTORY_MAX {
            self.history.pop_front();
        }
        self.history.push_back(Known {
            tick: header.tick,
            entities,
        });
        Ok(Some(Applied { header, removed }))
    }

    pub fn newest(&self) -> Option<&Known> {
        self.history.back()
    }

    /// The snapshots around a tick; the first is none before the beginning,
    /// the second is none beyond the end.
    pub fn around(&self, tick: f64) -> (Option<&Known>, Option<&Known>) {
        let after = self
            .history
            .iter()
            .position(|known| f64::from(known.tick) > tick);
        match after {
            Some(0) => (None, self.history.front()),
            Some(index) => (self.history.get(index - 1), self.history.get(index)),
            None => (self.history.back(), None),
        }
    }
}

fn gone(old: &[EntityState], new: &[EntityState]) -> Vec<u32> {
    frolic_protocol::entity::differences(old, new)
        .filter_map(|difference| match difference {
            frolic_protocol::entity::Difference::Removed(id) => Some(id),
            _ => None,
        })
        .collect()
}
