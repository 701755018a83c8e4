//! The replicated state of the world: cells with their versions, and the recent
//! states of every entity.

use std::collections::{BTreeMap, HashMap, VecDeque};

use frolic_protocol::details::Details;
use frolic_protocol::entity::{EntityKind, SCENE_DEFINITION, flags};
use frolic_protocol::snapshot::{
    self, CellContent, CellKey, KnownCells, SnapshotError, SnapshotHeader,
};
use frolic_protocol::{EntityState, PacketAck};
use frolic_sim::Vec3;

use crate::track::{Ride, Track};

/// Versions stored per cell; the server stores no more.
const VERSIONS_MAX: usize = 128;
/// The lowest update rate of a far cell: one in this many updates.
const SLOWEST_UPDATES: f32 = 32.0;
/// Cells out of view that are remembered, so that a late packet does not bring them
/// back.
const GONE_CELLS_MAX: usize = 4096;
/// A carried character moves exactly as far as its carrier, except for rounding.
const CARRIED_OFF_MAX_M: f32 = 0.02;

#[derive(Default)]
pub(crate) struct Replication {
    tick_hz: u32,
    update_ticks: f32,
    cells: Cells,
    tracks: BTreeMap<u32, Track>,
    /// Entities that left a cell for a neighbour that has not replicated them yet.
    on_the_way: Vec<Departure>,
    newest_tick: Option<u32>,
    /// Tick of the newest snapshot whose first packet arrived: that packet has the
    /// own character, and a later packet of the same snapshot may arrive before it.
    newest_own: Option<u32>,
    ack: Option<PacketAck>,
    /// Snapshots the server should have sent by now, and those that arrived.
    pub expected: u32,
    pub received: u32,
}

#[derive(Default)]
struct Cells(HashMap<CellKey, Cell>);

#[derive(Default)]
struct Cell {
    versions: VecDeque<(u32, Vec<EntityState>)>,
    /// Tick of the last snapshot with this cell.
    updated: u32,
}

struct Departure {
    id: u32,
    from: CellKey,
    to: Option<CellKey>,
    tick: u32,
    /// A part of the scene that the cell reports to be elsewhere.
    elsewhere: bool,
}

/// What a snapshot changed.
#[derive(Default)]
pub(crate) struct Applied {
    /// Entities that appeared or changed, in their current state.
    pub changed: Vec<EntityState>,
    /// Removed entities: out of view, destroyed, or not where the scene file has
    /// them.
    pub removed: Vec<u32>,
    /// Parts of the scene that left the view where the file has them: they retain
    /// their last state.
    pub out_of_view: Vec<u32>,
    /// Details that changed.
    pub details: Vec<(u32, Details)>,
}

impl KnownCells for Cells {
    fn entities(&self, key: CellKey, version: u32) -> Option<&[EntityState]> {
        let versions = self.0.get(&key)?.versions.iter();
        let mut newest_first = versions.rev();
        let (_, entities) = newest_first.find(|(tick, _)| *tick == version)?;
        Some(entities)
    }
}

impl Cells {
    /// The other cell that an entity is in: an entity owned by a player is in a
    /// spatial cell, or in the global one, and in a cell of its owner.
    fn other_home(&self, id: u32, from: CellKey, owner: u32) -> Option<CellKey> {
        let owned = CellKey::Owned(owner);
        if from != owned {
            return self.has(owned, id).then_some(owned);
        }
        let mut others = self.0.keys().copied().filter(|key| *key != from);
        others.find(|key| self.has(*key, id))
    }

    /// Whether an entity is in a cell now.
    fn has(&self, key: CellKey, id: u32) -> bool {
        let newest = self.0.get(&key).and_then(|cell| cell.versions.back());
        let state = newest.and_then(|(_, now)| find(now, id));
        state.is_some_and(|state| !state.is_elsewhere())
    }
}

impl Replication {
    pub fn new(tick_hz: u32, snapshot_hz: u32) -> Self {
        Self {
            tick_hz: tick_hz.max(1),
            update_ticks: tick_hz as f32 / snapshot_hz.max(1) as f32,
            ..Self::default()
        }
    }

    /// Applies a snapshot packet. Packets may arrive late and twice.
    pub fn apply(&mut self, bytes: &[u8]) -> Result<(SnapshotHeader, Applied), SnapshotError> {
        let snapshot = snapshot::decode(bytes, self.tick_hz, &self.cells)?;
        let header = snapshot.header;
        self.count(&header);
        let mut applied = Applied::default();
        for record in snapshot.cells {
            match record.content {
                Some(content) => self.update_cell(header.tick, record.key, content, &mut applied),
                None => self.drop_cell(header.tick, record.key, &mut applied),
            }
        }
        self.settle_departures(header.tick, &mut applied);
        self.note_carriers(&applied.changed);
        self.newest_tick = self.newest_tick.max(Some(header.tick));
        Ok((header, applied))
    }

    /// Records which packets arrived, for the acknowledgement and for the loss
    /// statistics.
    fn count(&mut self, header: &SnapshotHeader) {
        if let Some(number) = header.number {
            self.ack = Some(acknowledge(self.ack, number));
        }
        let newer = self.newest_own.is_none_or(|newest| header.tick > newest);
        if header.own.is_some() && newer {
            self.received += 1;
            self.expected += self.newest_own.map_or(1, |newest| {
                let due = (header.tick - newest) as f32 / self.update_ticks;
                (due.round() as u32).clamp(1, 100)
            });
            self.newest_own = Some(header.tick);
        }
    }

    fn update_cell(
        &mut self,
        tick: u32,
        key: CellKey,
        content: CellContent,
        applied: &mut Applied,
    ) {
        let cell = self.cells.0.entry(key).or_default();
        let newest = cell.versions.back().map(|(version, _)| *version);
        if tick < cell.updated {
            return;
        }
        // Even if nothing changed: it is back in view, and a packet that dropped it
        // before may still be in flight.
        cell.updated = tick;
        if newest.is_some_and(|newest| newest >= content.version) {
            return;
        }
        let old = cell.versions.back().map_or(&[][..], |(_, old)| old);
        for gone in old.iter().filter(|state| !state.is_elsewhere()) {
            let now = find(&content.entities, gone.id);
            if now.is_some_and(|state| !state.is_elsewhere()) {
                continue;
            }
            let mut next_door = content.gone_next_door.iter();
            let to = next_door.find(|(id, _)| *id == gone.id);
            self.on_the_way.push(Departure {
                id: gone.id,
                from: key,
                to: to.map(|(_, to)| *to),
                tick,
                elsewhere: now.is_some(),
            });
        }
        let known = applied.changed.len();
        for state in &content.entities {
            if state.is_elsewhere() {
                // If another cell has the entity, that cell's state is valid and is
                // replicated there.
                let is_new = find(old, state.id) != Some(state);
                if is_new && !self.tracks.contains_key(&state.id) {
                    applied.removed.push(state.id);
                }
                continue;
            }
            let track = self
                .tracks
                .entry(state.id)
                .or_insert_with(|| Track::new(key));
            if track.learn(key, content.version, *state, self.update_ticks) {
                applied.changed.push(*state);
                if state.has(flags::DESTROYED) {
                    applied.removed.push(state.id);
                }
            }
        }
        // Only those: details from another cell are newer.
        let new = &applied.changed[known..];
        for (id, bytes) in &content.details {
            let is_new = new.binary_search_by_key(id, |state| state.id).is_ok();
            if let Some(details) = Details::decode(bytes).filter(|_| is_new) {
                applied.details.push((*id, details));
            }
        }
        // The server has advanced its baseline: it never goes back further. A
        // record without a baseline implies no such thing: it may have been sent
        // before the server knew what we have, and the next one builds on that.
        let built_on = content.baseline.unwrap_or(0);
        while cell.versions.front().is_some_and(|(v, _)| *v < built_on) {
            cell.versions.pop_front();
        }
        if cell.versions.len() == VERSIONS_MAX {
            cell.versions.pop_front();
        }
        cell.versions.push_back((content.version, content.entities));
    }

    fn drop_cell(&mut self, tick: u32, key: CellKey, applied: &mut Applied) {
        let cell = self.cells.0.entry(key).or_default();
        if tick < cell.updated {
            return;
        }
        cell.updated = tick;
        let entities = cell.versions.pop_back().map(|(_, entities)| entities);
        cell.versions.clear();
        let entities = entities.into_iter().flatten();
        for state in entities.filter(|state| !state.is_elsewhere()) {
            self.remove(state.id, key, false, applied);
        }
        if self.cells.0.len() > GONE_CELLS_MAX {
            let recent = tick.saturating_sub(self.tick_hz.saturating_mul(5));
            let in_use = |cell: &Cell| !cell.versions.is_empty() || cell.updated > recent;
            self.cells.0.retain(|_, cell| in_use(cell));
        }
    }

    /// Entities that left a cell are removed, unless they are back, or another cell
    /// has them by now or is about to replicate them.
    fn settle_departures(&mut self, tick: u32, applied: &mut Applied) {
        for departure in std::mem::take(&mut self.on_the_way) {
            let elsewhere = self
                .tracks
                .get(&departure.id)
                .is_none_or(|track| track.cell != departure.from);
            if elsewhere || self.cells.has(departure.from, departure.id) {
                continue;
            }
            let expected = departure.to.is_some_and(|to| {
                let cell = self
                    .cells
                    .0
                    .get(&to)
                    .filter(|cell| !cell.versions.is_empty());
                cell.is_some_and(|cell| cell.updated < departure.tick)
            });
            let waited = tick.saturating_sub(departure.tick);
            if expected && waited < self.patience_ticks() {
                self.on_the_way.push(departure);
            } else {
                let Departure {
                    id,
                    from,
                    elsewhere,
                    ..
                } = departure;
                self.remove(id, from, elsewhere, applied);
            }
        }
    }

    /// Finds the carriers of characters that move without walking: entities that
    /// moved the same way in the same time.
    fn note_carriers(&mut self, changed: &[EntityState]) {
        let characters = changed.iter();
        for state in characters.filter(|state| state.kind == EntityKind::Character) {
            let track = self.tracks.get(&state.id);
            let Some((from, to, way)) = track.and_then(Track::unexplained_way) else {
                continue;
            };
            let paths = self.tracks.iter();
            let off = paths.filter_map(|(id, track)| {
                let went = track.way_of_path(from, to)?;
                Some((*id, (went - way).length()))
            });
            let nearest = off.min_by(|(_, a), (_, b)| a.total_cmp(b));
            let Some((carrier, _)) = nearest.filter(|(_, off)| *off < CARRIED_OFF_MAX_M) else {
                continue;
            };
            if let Some(track) = self.tracks.get_mut(&state.id) {
                track.note_carrier(carrier);
            }
        }
    }

    /// The offset of a carried entity from the straight line between two states:
    /// that of its carrier.
    pub fn detour(&self, ride: &Ride, tick_s: f64) -> Vec3 {
        let carrier = self.tracks.get(&ride.carrier);
        let place = |tick: f64| carrier?.place_since(ride.from, tick, tick_s);
        let (from, to) = (f64::from(ride.from), f64::from(ride.to));
        let (Some(start), Some(end), Some(here)) = (place(from), place(to), place(ride.at)) else {
            return Vec3::ZERO;
        };
        let done = match ride.to > ride.from {
            true => ((ride.at - from) / (to - from)) as f32,
            false => 0.0,
        };
        here - (start + (end - start) * done)
    }

    /// How long a cell may take to replicate an entity that arrived from a
    /// neighbour: until its next update, plus tolerance for late packets.
    fn patience_ticks(&self) -> u32 {
        ((SLOWEST_UPDATES * self.update_ticks) as u32).saturating_add(self.tick_hz / 2)
    }

    /// Removes an entity that its cell no longer replicates, or reports to be
    /// elsewhere.
    fn remove(&mut self, id: u32, from: CellKey, elsewhere: bool, applied: &mut Applied) {
        let track = self.tracks.get_mut(&id);
        let Some(track) = track.filter(|track| track.cell == from) else {
            return;
        };
        let owner = track.newest().map_or(0, |state| state.owner);
        if let Some(other) = self.cells.other_home(id, from, owner) {
            track.cell = other;
            return;
        }
        let track = self.tracks.remove(&id);
        let last_seen = track.as_ref().and_then(Track::newest);
        let at_home = last_seen.is_some_and(|state| is_at_home(state, from));
        match at_home && !elsewhere {
            true => applied.out_of_view.push(id),
            false => applied.removed.push(id),
        }
    }

    /// Parts of the scene that are neither where the file has them nor anywhere
    /// else in view; in order of ids.
    pub fn missing_parts(&self) -> Vec<u32> {
        let newest = self
            .cells
            .0
            .values()
            .filter_map(|cell| cell.versions.back());
        let known = newest.flat_map(|(_, states)| states);
        let elsewhere =
            known.filter(|state| state.is_elsewhere() && !self.tracks.contains_key(&state.id));
        let destroyed = self.states().filter(|state| state.has(flags::DESTROYED));
        let mut missing: Vec<u32> = elsewhere.chain(destroyed).map(|state| state.id).collect();
        missing.sort_unstable();
        missing
    }

    /// The newest known tick; none before the first snapshot.
    pub fn newest_tick(&self) -> Option<u32> {
        self.newest_tick
    }

    /// The newest tick with a known position of the own character.
    pub fn newest_own(&self) -> Option<u32> {
        self.newest_own
    }

    /// Which numbered packets arrived.
    pub fn ack(&self) -> Option<PacketAck> {
        self.ack
    }

    /// The current state of an entity, as far as known.
    pub fn state_of(&self, id: u32) -> Option<&EntityState> {
        self.tracks.get(&id)?.newest()
    }

    /// The current states of all entities.
    pub fn states(&self) -> impl Iterator<Item = &EntityState> {
        self.tracks.values().filter_map(Track::newest)
    }

    /// The same, each with its tick.
    pub fn dated_states(&self) -> impl Iterator<Item = (u32, &EntityState)> {
        self.tracks.values().filter_map(Track::newest_dated)
    }

    pub fn tracks_mut(&mut self) -> impl Iterator<Item = &mut Track> {
        self.tracks.values_mut()
    }

    pub fn entities(&self) -> usize {
        self.tracks.len()
    }
}

/// Whether an entity was replicated in the cell in which the scene file has it.
/// When that cell leaves the view, the entity retains its state: all clients have
/// the file, and the cell sends updates when it comes back into view. From any
/// other cell a part of the scene may move unseen, so it is removed with the view.
fn is_at_home(state: &EntityState, cell: CellKey) -> bool {
    state.kind == EntityKind::Thing
        && state.definition == SCENE_DEFINITION
        && !state.has(flags::AWAY)
        && matches!(cell, CellKey::Grid { .. })
}

/// Finds an entity's state in a list sorted by id.
fn find(states: &[EntityState], id: u32) -> Option<&EntityState> {
    let at = states.binary_search_by_key(&id, |state| state.id).ok()?;
    states.get(at)
}

fn acknowledge(known: Option<PacketAck>, number: u32) -> PacketAck {
    let Some(ack) = known else {
        return PacketAck {
            newest: number,
            earlier: 0,
        };
    };
    let bit = |back: u32| 1u32.checked_shl(back - 1).unwrap_or(0);
    if number > ack.newest {
        let ahead = number - ack.newest;
        PacketAck {
            newest: number,
            earlier: ack.earlier.checked_shl(ahead).unwrap_or(0) | bit(ahead),
        }
    } else if number < ack.newest {
        PacketAck {
            earlier: ack.earlier | bit(ack.newest - number),
            ..ack
        }
    } else {
        ack
    }
}

#[cfg(test)]
mod tests;
