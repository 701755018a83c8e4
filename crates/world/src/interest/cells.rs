//! The world in squares, each with its last versions.

mod records;

use std::collections::VecDeque;
use std::num::NonZeroU32;

use frolic_protocol::entity::flags;
use frolic_protocol::snapshot::CellKey;
use frolic_protocol::{EntityKind, EntityState};
use frolic_sim::Vec3;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

pub(crate) use records::Extent;
use records::Record;

/// Versions kept of each cell: baselines for whoever lags behind. Fewer when
/// very much moves, so that the memory stays bounded.
const VERSIONS_MAX: usize = 128;
const VERSIONS_MIN: usize = 16;
/// Entity states that all versions together may hold, roughly.
const STATES_KEPT: usize = 512 * 1024;
/// Of a cell in which nothing changed for this long only the newest version is
/// kept: whoever has not heard of that by now is told everything.
const RESTS_S: u32 = 5;
/// Who leaves a square by less than this share of its side still counts as
/// inside: walking along a border must not cost anything.
const BORDER: f32 = 0.1;
/// A square that was empty for this long is forgotten.
const EMPTY_S: u32 = 60;
/// Births that are remembered one by one; whoever has missed more looks at
/// everything around.
const NEWBORN_MAX: usize = 64;
/// A square this near to the edge of a circle, as a share of its side, is
/// looked at rather than computed away.
const MARGIN: f32 = 0.05;

/// All squares in which there is, or lately was, something to tell.
pub(crate) struct Cells {
    size: f32,
    tick_hz: u32,
    tick: u32,
    cells: Vec<Cell>,
    /// What every client asks of every cell it sees, apart from the cells.
    heads: Vec<Head>,
    by_key: FxHashMap<CellKey, u32>,
    free: Vec<u32>,
    homes: FxHashMap<u32, Home>,
    changed: Vec<u32>,
    /// Entities in the cells of which older versions are kept.
    lively: usize,
    /// Versions kept of each of them.
    kept: usize,
    /// When it was last looked for what can be forgotten.
    forgot_at: u32,
    /// Rises with every cell that comes into being.
    births: u32,
    /// The last of them, oldest first.
    newborn: VecDeque<(u32, CellKey)>,
    /// Rises with every cell that is forgotten.
    deaths: u32,
    /// Records of this tick, shared by all clients.
    records: Vec<u8>,
    /// Definitions from this one on are looks that scripts made up.
    made_up_from: u16,
    /// How often something that has such a look came into a cell, and the cells
    /// of the last times.
    made_up_arrivals: u32,
    made_up_arrived: VecDeque<u32>,
}

pub(crate) struct Cell {
    pub key: CellKey,
    /// Which cell this is, should its slot be used again.
    pub born: u32,
    alive: bool,
    changed: bool,
    /// How many of its members have a look that scripts made up.
    made_up: u32,
    members: Vec<EntityState>,
    versions: VecDeque<Members>,
}

impl Cell {
    /// What was in it at the tick of a version, if that is still kept.
    fn version(&self, tick: u32) -> Option<&Members> {
        let newest = self.versions.len().checked_sub(1)?;
        let back = self.versions[newest].tick.checked_sub(tick)? as usize;
        // No further back than ticks have gone by, and just there where something
        // moved in each of them.
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

/// The newest version of a cell, and the records that were asked for in this
/// tick: one for each rhythm in which clients are told of it.
struct Head {
    newest: Version,
    records: SmallVec<[Record; 4]>,
}

/// What was in a cell.
struct Members {
    tick: u32,
    entities: Vec<EntityState>,
}

/// The cells an entity is in.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Home {
    cell: u32,
    /// Its owner's cell, for things that belong to a player.
    owned: Option<u32>,
    /// The square in which the scene file has it, while it is in another: who
    /// sees that one is told that it is not there.
    missed: Option<u32>,
}

impl Cells {
    /// Squares of that size; definitions from `made_up_from` on are no prefabs.
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
            kept: VERSIONS_MAX,
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

    /// The tick that the newest versions show.
    pub fn tick(&self) -> u32 {
        self.tick
    }

    /// Rises when there is a cell that was not there before.
    pub fn births(&self) -> u32 {
        self.births
    }

    /// Rises when a cell is forgotten; its key may come into being again.
    pub fn deaths(&self) -> u32 {
        self.deaths
    }

    /// Slots and keys of the cells that came into being since
    /// [`births`](Self::births) was this; none when it is too long ago.
    pub fn born_since(&self, births: u32) -> Option<impl Iterator<Item = (u32, CellKey)>> {
        let count = self.births.wrapping_sub(births) as usize;
        let known = count <= self.newborn.len();
        known.then(|| self.newborn.iter().rev().take(count).copied())
    }

    pub fn size(&self) -> f32 {
        self.size
    }

    /// Finds the slots of all cells that can be within a radius of a place,
    /// of those without a place, and of those that belong to a player; in any
    /// order, some of them perhaps further away.
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
        let squares = x.flat_map(|x| z.clone().map(move |z| CellKey::Square { x, z }));
        let others = [CellKey::Everywhere, CellKey::Owned(player)];
        out.extend(
            squares
                .chain(others)
                .filter_map(|key| self.by_key.get(&key).copied()),
        );
    }

    /// Slots that may hold a living cell.
    #[cfg(test)]
    pub fn slots(&self) -> u32 {
        self.cells.len() as u32
    }

    /// The slot of the living cell with this key.
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

    /// What is in a cell.
    pub fn members(&self, slot: u32) -> &[EntityState] {
        &self.cells[slot as usize].members
    }

    /// Everything in all cells, in order of ids.
    pub fn everything(&self) -> Vec<EntityState> {
        let living = self.cells.iter().filter(|cell| cell.alive);
        let members = living.flat_map(|cell| &cell.members);
        let here = members.filter(|state| !state.is_elsewhere());
        let mut all: Vec<EntityState> = here.copied().collect();
        all.sort_unstable_by_key(|state| state.id);
        all.dedup_by_key(|state| state.id);
        all
    }

    /// How often something with a look that scripts made up came into a cell.
    pub fn made_up_arrivals(&self) -> u32 {
        self.made_up_arrivals
    }

    /// The cells into which something came since there were so many arrivals;
    /// none when that is too long ago.
    pub fn made_up_since(&self, arrivals: u32) -> Option<impl Iterator<Item = u32>> {
        let count = self.made_up_arrivals.wrapping_sub(arrivals) as usize;
        let first = self.made_up_arrived.len().checked_sub(count)?;
        Some(self.made_up_arrived.range(first..).copied())
    }

    /// What has such a look in a cell.
    pub fn made_up(&self, slot: u32) -> impl Iterator<Item = &EntityState> {
        let cell = &self.cells[slot as usize];
        let members = match cell.made_up {
            0 => &[],
            _ => cell.members.as_slice(),
        };
        let from = self.made_up_from;
        members.iter().filter(move |state| state.definition >= from)
    }

    /// Notes what an entity is now, and where.
    pub fn update(&mut self, state: &EntityState, place: Vec3, relevance: Relevance) {
        let home = self.homes.get(&state.id).copied();
        let cell = match relevance {
            Relevance::Everywhere => self.cell(CellKey::Everywhere),
            // It is missed where the file has it and nowhere else; but by
            // everybody, if everybody was told of it.
            Relevance::Part(file_place) if state.has(flags::DESTROYED) => {
                match home.filter(|home| self.key_of(home.cell) == CellKey::Everywhere) {
                    Some(home) => home.cell,
                    None => self.cell(self.square(file_place)),
                }
            }
            Relevance::Near | Relevance::Part(_) => {
                match home.filter(|home| self.reaches(home.cell, place)) {
                    Some(home) => home.cell,
                    None => self.cell(self.square(place)),
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
        let told = match missed {
            Some(_) => {
                let flags = state.flags | flags::AWAY;
                away = EntityState { flags, ..*state };
                &away
            }
            None => state,
        };
        self.put_in(cell, told);
        if let Some(owned) = owned {
            self.put_in(owned, told);
        }
    }

    /// The square in which a part of the scene is missed that is in a cell now.
    fn missed_in(&mut self, cell: u32, home: Option<Home>, relevance: Relevance) -> Option<u32> {
        let Relevance::Part(file_place) = relevance else {
            return None;
        };
        let key = self.square(file_place);
        if [key, CellKey::Everywhere].contains(&self.key_of(cell)) {
            return None;
        }
        // The file has it in the same square all the time.
        let missed = home.and_then(|home| home.missed);
        Some(missed.unwrap_or_else(|| self.cell(key)))
    }

    /// Takes an entity out of the cells that it left, all but those into which
    /// it is put next, and says where it is missed.
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

    /// Takes an entity out of the world.
    pub fn remove(&mut self, id: u32) {
        if let Some(home) = self.homes.remove(&id) {
            let cells = [Some(home.cell), home.owned, home.missed];
            for cell in cells.into_iter().flatten() {
                self.take_out(cell, id);
            }
        }
    }

    /// Makes a version of every cell that changed.
    pub fn commit(&mut self, tick: u32) {
        self.tick = tick;
        self.records.clear();
        for head in &mut self.heads {
            head.records.clear();
        }
        let changed = self.changed.iter();
        let changing = changed.map(|slot| self.cells[*slot as usize].members.len());
        self.lively = self.lively.max(changing.sum());
        self.kept = (STATES_KEPT / self.lively.max(1)).clamp(VERSIONS_MIN, VERSIONS_MAX);
        for slot in self.changed.drain(..) {
            let cell = &mut self.cells[slot as usize];
            cell.changed = false;
            let mut entities = Vec::new();
            while cell.versions.len() >= self.kept {
                // The oldest version's memory is the newest's.
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

    /// Updates after which the version that a client was told of last is still
    /// kept, even of a cell that changes in every tick; a power of two.
    pub fn updates_kept(&self, snapshot_hz: u32) -> u16 {
        // A quarter is for whoever is late.
        let ticks = self.kept as u32 * 3 / 4;
        let updates = (ticks * snapshot_hz / self.tick_hz.max(1)).max(1);
        1 << updates.ilog2().min(15)
    }

    /// Forgets the cells that have been empty for long, and what those were
    /// that rest.
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

    fn square(&self, place: Vec3) -> CellKey {
        square_of(self.size, place)
    }

    fn index(&self, c: f32) -> i16 {
        index(self.size, c)
    }

    fn key_of(&self, slot: u32) -> CellKey {
        self.cells[slot as usize].key
    }

    /// Whether a place still counts as inside a square.
    fn reaches(&self, slot: u32, place: Vec3) -> bool {
        let CellKey::Square { x, z } = self.key_of(slot) else {
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

    /// How far a place is from a cell; nothing for cells without a place.
    pub fn distance(&self, key: CellKey, place: Vec3) -> f32 {
        distance(self.size, key, place)
    }
}

/// The square with sides of this size that a place is in.
pub(crate) fn square_of(size: f32, place: Vec3) -> CellKey {
    CellKey::Square {
        x: index(size, place.x),
        z: index(size, place.z),
    }
}

/// The square that a coordinate is in; the outermost have no end.
fn index(size: f32, c: f32) -> i16 {
    libm::floorf(c / size) as i16
}

/// See [`Cells::distance`].
pub(crate) fn distance(size: f32, key: CellKey, place: Vec3) -> f32 {
    let CellKey::Square { x, z } = key else {
        return 0.0;
    };
    let outside = |index: i16, c: f32| {
        let from = f32::from(index) * size;
        (from - c).max(c - from - size).max(0.0)
    };
    let (dx, dz) = (outside(x, place.x), outside(z, place.z));
    libm::sqrtf(dx * dx + dz * dz)
}

/// Who has to know of an entity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Relevance {
    /// Whoever is near enough.
    Near,
    /// The same of a part of the scene, and whoever is near the place where the
    /// file has it: they would believe it there.
    Part(Vec3),
    /// Everybody.
    Everywhere,
}

#[cfg(test)]
mod tests;
