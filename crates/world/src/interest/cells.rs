//! The world divided into cells, each with its last versions.

mod records;

use std::collections::VecDeque;
use std::num::NonZeroU32;

use frolic_protocol::entity::flags;
use frolic_protocol::snapshot::CellKey;
use frolic_protocol::{EntityKind, EntityState};
use frolic_sim::Vec3;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::policy;

pub(crate) use records::Extent;
use records::Record;

/// Versions stored per cell: baselines for clients that lag behind. Fewer when
/// very much moves, so that memory stays bounded.
const VERSIONS_MAX: usize = 128;
const VERSIONS_MIN: usize = 16;
/// Approximate limit of entity states in all versions together.
const STATES_MAX: usize = 512 * 1024;
/// Of a cell without changes for this long only the newest version is stored; a
/// client that has not acknowledged it by then receives the whole cell.
const RESTS_S: u32 = 5;
/// An entity that leaves a cell by less than this fraction of its side still
/// belongs to it, so that movement along a border costs nothing.
const BORDER: f32 = 0.1;
/// A cell that was empty for this long is removed.
const EMPTY_S: u32 = 60;
/// New cells that are listed individually; a client that has missed more scans
/// everything around it.
const NEWBORN_MAX: usize = 64;
/// A cell this near to the edge of a circle, as a fraction of its side, is
/// tested individually rather than by index arithmetic.
const MARGIN: f32 = 0.05;

/// All cells that contain, or recently contained, anything replicated.
pub(crate) struct Cells {
    size: f32,
    tick_hz: u32,
    tick: u32,
    cells: Vec<Cell>,
    /// Data that every client reads for every visible cell, stored apart from
    /// the cells.
    heads: Vec<Head>,
    by_key: FxHashMap<CellKey, u32>,
    free: Vec<u32>,
    homes: FxHashMap<u32, Home>,
    changed: Vec<u32>,
    /// Entities in the cells that have older versions.
    lively: usize,
    /// Versions stored of each of them.
    versions_max: usize,
    /// Tick of the last cleanup.
    forgot_at: u32,
    /// Incremented with every new cell.
    births: u32,
    /// The newest cells, oldest first.
    newborn: VecDeque<(u32, CellKey)>,
    /// Incremented with every removed cell.
    deaths: u32,
    /// Records of this tick, shared by all clients.
    records: Vec<u8>,
    /// Definitions from this number on were defined by scripts.
    made_up_from: u16,
    /// How often an entity with such a definition entered a cell, and the most
    /// recent of those cells.
    made_up_arrivals: u32,
    made_up_arrived: VecDeque<u32>,
}

pub(crate) struct Cell {
    pub key: CellKey,
    /// Distinguishes cells that use the same slot one after another.
    pub born: u32,
    alive: bool,
    changed: bool,
    /// Members whose definition comes from a script.
    made_up: u32,
    members: Vec<EntityState>,
    versions: VecDeque<Members>,
}

impl Cell {
    /// The members at the tick of a version, if it is still stored.
    fn version(&self, tick: u32) -> Option<&Members> {
        let newest = self.versions.len().checked_sub(1)?;
        let back = self.versions[newest].tick.checked_sub(tick)? as usize;
        // The version is at most as many entries back as ticks have passed, and
        // exactly there if something moved in each of them.
        let mut later = self.versions.range(newest.saturating_sub(back)..);
        later
            .find(|version| version.tick >= tick)
            .filter(|version| version.tick == tick)
    }
}

/// The tick of a cell's version, or none, in four bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(Option<NonZeroU32>);

impl Version {
    pub const NONE: Self = Self(None);

    pub fn of(tick: u32) -> Self {
        Self(NonZeroU32::new(tick.saturating_add(1)))
    }

    pub fn tick(self) -> Option<u32> {
        self.0.map(|next| next.get() - 1)
    }
}

/// The newest version of a cell, and the records requested in this tick: one
/// per update interval of the clients.
struct Head {
    newest: Version,
    records: SmallVec<[Record; 4]>,
}

/// The members of a cell.
struct Members {
    tick: u32,
    entities: Vec<EntityState>,
}

/// The cells of an entity.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Home {
    cell: u32,
    /// The owner's cell, for an entity that belongs to a player.
    owned: Option<u32>,
    /// The cell in which the scene file has it, while it is in another: clients
    /// that see the first are notified that it is not there.
    missed: Option<u32>,
}

impl Cells {
    /// Creates cells of this size; definitions from `made_up_from` on are not
    /// prefabs.
    pub fn new(size: f32, tick_hz: u32, made_up_from: u16) -> Self {
        Self {
            size,
            tick_hz,
            tick: 0,
            cells: Vec::new(),
            heads: Vec::new(),
            by_key: FxHashMap::default(),
            free: Vec::new(),
            homes: FxHashMap::default(),
            changed: Vec::new(),
            lively: 0,
            versions_max: VERSIONS_MAX,
            forgot_at: 0,
            births: 0,
            newborn: VecDeque::with_capacity(NEWBORN_MAX),
            deaths: 0,
            records: Vec::new(),
            made_up_from,
            made_up_arrivals: 0,
            made_up_arrived: VecDeque::new(),
        }
    }

    /// The tick of the newest versions.
    pub fn tick(&self) -> u32 {
        self.tick
    }

    /// Incremented with every new cell.
    pub fn births(&self) -> u32 {
        self.births
    }

    /// Incremented when a cell is removed; its key may be used again.
    pub fn deaths(&self) -> u32 {
        self.deaths
    }

    /// Slots and keys of the cells created since [`births`](Self::births) had
    /// this value; none if that is too long ago.
    pub fn born_since(&self, births: u32) -> Option<impl Iterator<Item = (u32, CellKey)>> {
        let count = self.births.wrapping_sub(births) as usize;
        let known = count <= self.newborn.len();
        known.then(|| self.newborn.iter().rev().take(count).copied())
    }

    pub fn size(&self) -> f32 {
        self.size
    }

    /// Finds the slots of all cells that can be within a radius of a place, of
    /// those without a place, and of those that belong to a player; in any
    /// order, possibly including some that are further away.
    pub fn find_around(&self, place: Vec3, radius: Option<f32>, player: u32, out: &mut Vec<u32>) {
        out.clear();
        let all = 0..self.cells.len() as u32;
        let Some(reach) = radius.map(|radius| radius + self.size * MARGIN) else {
            out.extend(all);
            return;
        };
        let from = Vec3::new(place.x - reach, 0.0, place.z - reach);
        let to = Vec3::new(place.x + reach, 0.0, place.z + reach);
        let (x, z) = (
            self.index(from.x)..=self.index(to.x),
            self.index(from.z)..=self.index(to.z),
        );
        if !place.is_finite() || x.len().saturating_mul(z.len()) >= self.cells.len() {
            out.extend(all);
            return;
        }
        let keys = x.flat_map(|x| z.clone().map(move |z| CellKey::Grid { x, z }));
        let others = [CellKey::Everywhere, CellKey::Owned(player)];
        out.extend(
            keys.chain(others)
                .filter_map(|key| self.by_key.get(&key).copied()),
        );
    }

    /// Number of slots that may hold a cell.
    #[cfg(test)]
    pub fn slots(&self) -> u32 {
        self.cells.len() as u32
    }

    /// The slot of the cell with this key.
    pub fn slot_of(&self, key: CellKey) -> Option<u32> {
        self.by_key.get(&key).copied()
    }

    pub fn alive(&self, slot: u32) -> Option<&Cell> {
        self.cells.get(slot as usize).filter(|cell| cell.alive)
    }

    /// The newest version of a cell.
    pub fn newest(&self, slot: u32) -> Version {
        self.heads[slot as usize].newest
    }

    /// The members of a cell.
    pub fn members(&self, slot: u32) -> &[EntityState] {
        &self.cells[slot as usize].members
    }

    /// The members of all cells, in order of ids.
    pub fn everything(&self) -> Vec<EntityState> {
        let living = self.cells.iter().filter(|cell| cell.alive);
        let members = living.flat_map(|cell| &cell.members);
        let here = members.filter(|state| !state.is_elsewhere());
        let mut all: Vec<EntityState> = here.copied().collect();
        all.sort_unstable_by_key(|state| state.id);
        all.dedup_by_key(|state| state.id);
        all
    }

    /// How often an entity with a script's definition entered a cell.
    pub fn made_up_arrivals(&self) -> u32 {
        self.made_up_arrivals
    }

    /// The cells that such an entity entered since this number of arrivals;
    /// none if that is too long ago.
    pub fn made_up_since(&self, arrivals: u32) -> Option<impl Iterator<Item = u32>> {
        let count = self.made_up_arrivals.wrapping_sub(arrivals) as usize;
        let first = self.made_up_arrived.len().checked_sub(count)?;
        Some(self.made_up_arrived.range(first..).copied())
    }

    /// The members of a cell with a script's definition.
    pub fn made_up(&self, slot: u32) -> impl Iterator<Item = &EntityState> {
        let cell = &self.cells[slot as usize];
        let members = match cell.made_up {
            0 => &[],
            _ => cell.members.as_slice(),
        };
        let from = self.made_up_from;
        members.iter().filter(move |state| state.definition >= from)
    }

    /// Updates an entity's state and place.
    pub fn update(&mut self, state: &EntityState, place: Vec3, relevance: Relevance) {
        let home = self.homes.get(&state.id).copied();
        let cell = match relevance {
            Relevance::Everywhere => self.cell(CellKey::Everywhere),
            // Clients near its place in the scene file must know that it is
            // missing, and no others; all clients if it was replicated to all.
            Relevance::Part(file_place) if state.has(flags::DESTROYED) => {
                match home.filter(|home| self.key_of(home.cell) == CellKey::Everywhere) {
                    Some(home) => home.cell,
                    None => self.cell(self.grid_key(file_place)),
                }
            }
            Relevance::Near | Relevance::Part(_) => {
                match home.filter(|home| self.reaches(home.cell, place)) {
                    Some(home) => home.cell,
                    None => self.cell(self.grid_key(place)),
                }
            }
        };
        let owned = match state.kind {
            EntityKind::Thing if state.owner != 0 => Some(self.cell(CellKey::Owned(state.owner))),
            _ => None,
        };
        let missed = self.missed_in(cell, home, relevance);
        let new = Home {
            cell,
            owned,
            missed,
        };
        if home != Some(new) {
            self.move_home(state.id, home, new);
        }
        let away;
        let sent = match missed {
            Some(_) => {
                let flags = state.flags | flags::AWAY;
                away = EntityState { flags, ..*state };
                &away
            }
            None => state,
        };
        self.put_in(cell, sent);
        if let Some(owned) = owned {
            self.put_in(owned, sent);
        }
    }

    /// The cell of the scene file in which an entity is missing while it is in
    /// `cell`.
    fn missed_in(&mut self, cell: u32, home: Option<Home>, relevance: Relevance) -> Option<u32> {
        let Relevance::Part(file_place) = relevance else {
            return None;
        };
        let key = self.grid_key(file_place);
        if [key, CellKey::Everywhere].contains(&self.key_of(cell)) {
            return None;
        }
        // Its place in the scene file never changes.
        let missed = home.and_then(|home| home.missed);
        Some(missed.unwrap_or_else(|| self.cell(key)))
    }

    /// Removes an entity from the cells that it left, except those that it
    /// enters next, and marks it as missing where the scene file has it.
    fn move_home(&mut self, id: u32, old: Option<Home>, new: Home) {
        if let Some(old) = old {
            let left = [Some(old.cell), old.owned, old.missed];
            for left in left.into_iter().flatten() {
                if left != new.cell && Some(left) != new.owned && Some(left) != new.missed {
                    self.take_out(left, id);
                }
            }
        }
        if let Some(missed) = new.missed {
            self.put_in(missed, &EntityState::elsewhere(id));
        }
        self.homes.insert(id, new);
    }

    /// Removes an entity.
    pub fn remove(&mut self, id: u32) {
        if let Some(home) = self.homes.remove(&id) {
            let cells = [Some(home.cell), home.owned, home.missed];
            for cell in cells.into_iter().flatten() {
                self.take_out(cell, id);
            }
        }
    }

    /// Creates a version of every cell that changed.
    pub fn commit(&mut self, tick: u32) {
        self.tick = tick;
        self.records.clear();
        for head in &mut self.heads {
            head.records.clear();
        }
        let changed = self.changed.iter();
        let changing = changed.map(|slot| self.cells[*slot as usize].members.len());
        self.lively = self.lively.max(changing.sum());
        self.versions_max = (STATES_MAX / self.lively.max(1)).clamp(VERSIONS_MIN, VERSIONS_MAX);
        for slot in self.changed.drain(..) {
            let cell = &mut self.cells[slot as usize];
            cell.changed = false;
            let mut entities = Vec::new();
            while cell.versions.len() >= self.versions_max {
                // Reuse the memory of the oldest version for the newest.
                entities = cell.versions.pop_front().map_or(entities, |v| v.entities);
            }
            entities.clear();
            entities.extend_from_slice(&cell.members);
            cell.versions.push_back(Members { tick, entities });
            self.heads[slot as usize].newest = Version::of(tick);
        }
        if tick.saturating_sub(self.forgot_at) >= self.tick_hz {
            self.forgot_at = tick;
            self.forget();
        }
    }

    /// Number of updates for which the version last sent to a client is still
    /// stored, even of a cell that changes in every tick; a power of two.
    pub fn updates_retained(&self, snapshot_hz: u32) -> u16 {
        // A quarter is reserved for late acknowledgements.
        let ticks = self.versions_max as u32 * 3 / 4;
        let updates = (ticks * snapshot_hz / self.tick_hz.max(1)).max(1);
        1 << updates.ilog2().min(15)
    }

    /// Removes cells that have been empty for long, and old versions of cells
    /// at rest.
    fn forget(&mut self) {
        self.lively = 0;
        for slot in 0..self.cells.len() {
            let cell = &mut self.cells[slot];
            let newest = self.heads[slot].newest.tick();
            let idle = self.tick.saturating_sub(newest.unwrap_or_default());
            if idle <= RESTS_S * self.tick_hz {
                self.lively += cell.members.len();
                continue;
            }
            let older = cell.versions.len().saturating_sub(1);
            cell.versions.drain(..older);
            if cell.alive && cell.members.is_empty() && idle > EMPTY_S * self.tick_hz {
                cell.alive = false;
                cell.versions = VecDeque::new();
                cell.members = Vec::new();
                self.by_key.remove(&cell.key);
                self.free.push(slot as u32);
                self.deaths = self.deaths.wrapping_add(1);
            }
        }
    }

    fn grid_key(&self, place: Vec3) -> CellKey {
        policy::cell_of(self.size, place)
    }

    fn index(&self, c: f32) -> i16 {
        policy::index(self.size, c)
    }

    fn key_of(&self, slot: u32) -> CellKey {
        self.cells[slot as usize].key
    }

    /// Whether a place still belongs to a cell.
    fn reaches(&self, slot: u32, place: Vec3) -> bool {
        let CellKey::Grid { x, z } = self.key_of(slot) else {
            return false;
        };
        let inside = |index: i16, c: f32| {
            let from = f32::from(index) * self.size;
            let border = self.size * BORDER;
            c >= from - border && c <= from + self.size + border
        };
        inside(x, place.x) && inside(z, place.z)
    }

    fn cell(&mut self, key: CellKey) -> u32 {
        if let Some(slot) = self.by_key.get(&key) {
            return *slot;
        }
        self.births += 1;
        let cell = Cell {
            key,
            born: self.births,
            alive: true,
            changed: false,
            made_up: 0,
            members: Vec::new(),
            versions: VecDeque::new(),
        };
        let head = Head {
            newest: Version::of(self.tick),
            records: SmallVec::new(),
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.cells[slot as usize] = cell;
                self.heads[slot as usize] = head;
                slot
            }
            None => {
                self.cells.push(cell);
                self.heads.push(head);
                self.cells.len() as u32 - 1
            }
        };
        self.by_key.insert(key, slot);
        if self.newborn.len() == NEWBORN_MAX {
            self.newborn.pop_front();
        }
        self.newborn.push_back((slot, key));
        slot
    }

    fn put_in(&mut self, slot: u32, state: &EntityState) {
        let cell = &mut self.cells[slot as usize];
        match cell
            .members
            .binary_search_by_key(&state.id, |known| known.id)
        {
            Ok(at) if cell.members[at] == *state => return,
            Ok(at) => cell.members[at] = *state,
            Err(at) => {
                cell.members.insert(at, *state);
                if state.definition >= self.made_up_from {
                    cell.made_up += 1;
                    self.made_up_arrivals = self.made_up_arrivals.wrapping_add(1);
                    if self.made_up_arrived.len() == NEWBORN_MAX {
                        self.made_up_arrived.pop_front();
                    }
                    self.made_up_arrived.push_back(slot);
                }
            }
        }
        self.note_change(slot);
    }

    fn take_out(&mut self, slot: u32, id: u32) {
        let cell = &mut self.cells[slot as usize];
        if let Ok(at) = cell.members.binary_search_by_key(&id, |known| known.id) {
            let state = cell.members.remove(at);
            cell.made_up -= u32::from(state.definition >= self.made_up_from);
            self.note_change(slot);
        }
    }

    fn note_change(&mut self, slot: u32) {
        if !std::mem::replace(&mut self.cells[slot as usize].changed, true) {
            self.changed.push(slot);
        }
    }

    /// The distance of a place from a cell; zero for cells without a place.
    pub fn distance(&self, key: CellKey, place: Vec3) -> f32 {
        policy::distance(self.size, key, place)
    }
}

/// Which clients an entity is replicated to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Relevance {
    /// Clients that are near enough.
    Near,
    /// The same for an entity of the scene, and also clients near its place in
    /// the scene file, which would otherwise believe that it is there.
    Part(Vec3),
    /// All clients.
    Everywhere,
}

#[cfg(test)]
mod tests;
