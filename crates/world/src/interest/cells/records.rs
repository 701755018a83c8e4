//! Records: the difference between a cell and a version, encoded once per tick
//! for all clients that have that version.

use frolic_protocol::snapshot::{self, CellKey, CellSource, CellVersion};

use super::{Cells, Version};
use crate::state::WorldState;

/// Length up to which a record is copied together with the bytes behind it.
const SHORT_BYTES: usize = 32;

/// A record of this tick.
#[derive(Clone, Copy)]
pub(super) struct Record {
    baseline: Version,
    bytes: Extent,
}

/// Position of a record in the buffer shared by all clients.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    from: u32,
    to: u32,
}

impl Extent {
    pub fn len(self) -> usize {
        (self.to - self.from) as usize
    }
}

impl Cells {
    /// The record that updates a client from a version to the newest; encoded
    /// once per tick. A version that is no longer stored counts as none.
    pub fn record(&mut self, slot: u32, baseline: Version, state: &WorldState) -> Extent {
        let mut known = self.heads[slot as usize].records.iter();
        if let Some(known) = known.find(|known| known.baseline == baseline) {
            return known.bytes;
        }
        let bytes = std::mem::take(&mut self.records);
        let from = bytes.len() as u32;
        self.records = self.write_record(bytes, slot, baseline, state);
        let to = self.records.len() as u32;
        let bytes = Extent { from, to };
        let record = Record { baseline, bytes };
        self.heads[slot as usize].records.push(record);
        bytes
    }

    fn write_record(
        &self,
        bytes: Vec<u8>,
        slot: u32,
        baseline: Version,
        state: &WorldState,
    ) -> Vec<u8> {
        let cell = &self.cells[slot as usize];
        let from = baseline.tick().and_then(|tick| cell.version(tick));
        // The same as in the newest version, and already in the cache.
        let entities = &cell.members[..];
        let newest = self.heads[slot as usize].newest.tick();
        let tick = newest.unwrap_or(self.tick);
        let to = CellVersion { tick, entities };
        let from = from.map(|v| CellVersion {
            tick: v.tick,
            entities: &v.entities,
        });
        let source = Source { cells: self, state };
        snapshot::write_cell(bytes, self.tick, self.tick_hz, cell.key, from, to, &source)
    }

    /// Appends a record of this tick to a packet. Most are short, and a copy of
    /// constant length avoids `memmove`.
    pub fn append(&self, record: Extent, packet: &mut Vec<u8>) {
        let (from, to) = (record.from as usize, record.to as usize);
        match self.records[from..].first_chunk::<SHORT_BYTES>() {
            Some(bytes) if record.len() <= SHORT_BYTES => {
                let end = packet.len() + record.len();
                packet.extend_from_slice(bytes);
                packet.truncate(end);
            }
            _ => packet.extend_from_slice(&self.records[from..to]),
        }
    }
}

struct Source<'a> {
    cells: &'a Cells,
    state: &'a WorldState,
}

impl CellSource for Source<'_> {
    fn details(&self, id: u32) -> Vec<u8> {
        let entity = self.state.space.entities.get(id);
        entity.map_or_else(Vec::new, |entity| entity.details().encode())
    }

    fn cell_of(&self, id: u32) -> Option<(i16, i16)> {
        let home = self.cells.homes.get(&id)?;
        match self.cells.cells[home.cell as usize].key {
            CellKey::Grid { x, z } => Some((x, z)),
            _ => None,
        }
    }
}
