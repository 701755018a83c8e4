//! The world in squares, each with its last versions.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::ops::Range;

use frolic_protocol::EntityState;
use frolic_protocol::snapshot::{self, CellKey, CellSource, CellVersion};
use frolic_sim::Vec3;
use rustc_hash::FxHashMap;

use crate::state::WorldState;

/// Versions kept of each cell: baselines for whoever lags behind. Fewer when
/// very much moves, so that the memory stays bounded.
const VERSIONS_MAX: usize = 128;
const VERSIONS_MIN: usize = 16;
/// Entity states that all versions together may hold, roughly.
const STATES_KEPT: usize = 512 * 1024;
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
    /// Rises with every cell that comes into being.
    births: u32,
    /// The last of them, oldest first.
    newborn: VecDeque<(u32, CellKey)>,
    /// Records of this tick, shared by all clients.
    records: Vec<u8>,
}

pub(crate) struct Cell {
    pub key: CellKey,
    /// Which cell this is, should its slot be used again.
    pub born: u32,
    alive: bool,
    changed: bool,
    members: Vec<EntityState>,
    versions: VecDeque<Members>,
    records: Vec<Record>,
    records_tick: u32,
}

impl Cell {
    /// What was in it at the tick of a version, if that is still kept.
    fn version(&self, tick: u32) -> Option<&Members> {
        let newest = self.versions.len().checked_sub(1)?;
        let back = self.versions[newest].tick.checked_sub(tick)? as usize;
        // Where something moves in every tick each version is one further back.
        let guess = newest.checked_sub(back).map(|place| &self.versions[place]);
        guess.filter(|guess| guess.tick == tick).or_else(|| {
            let found = self.versions.binary_search_by_key(&tick, |v| v.tick);
            self.versions.get(found.ok()?)
        })
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

/// The newest version of a cell, and the record that was last asked for:
/// mostly the next client wants the same.
struct Head {
    newest: Version,
    record: Option<Record>,
}

/// What was in a cell.
struct Members {
    tick: u32,
    entities: Vec<EntityState>,
}

/// Where a record of this tick is in the shared bytes.
#[derive(Clone)]
struct Record {
    baseline: Version,
    bytes: Range<usize>,
}

/// The cells an entity is in.
#[derive(Clone, Copy)]
struct Home {
    cell: u32,
    /// Its owner's cell, for things that belong to a player.
    owned: Option<u32>,
}

impl Cells {
    pub fn new(size: f32, tick_hz: u32) -> Self {
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
            births: 0,
            newborn: VecDeque::with_capacity(NEWBORN_MAX),
            records: Vec::new(),
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
        let mut all: Vec<EntityState> = living.flat_map(|cell| &cell.members).copied().collect();
        all.sort_unstable_by_key(|state| state.id);
        all.dedup_by_key(|state| state.id);
        all
    }

    /// Notes what an entity is now, and where.
    pub fn update(&mut self, state: &EntityState, place: Vec3, relevance: Relevance) {
        let home = self.homes.get(&state.id).copied();
        let cell = match relevance {
            Relevance::Everywhere => self.cell(CellKey::Everywhere),
            Relevance::Near => match home.filter(|home| self.reaches(home.cell, place)) {
                Some(home) => home.cell,
                None => self.cell(self.square(place)),
            },
        };
        let owned = match state.kind {
            frolic_protocol::EntityKind::Thing if state.owner != 0 => {
                Some(self.cell(CellKey::Owned(state.owner)))
            }
            _ => None,
        };
        if let Some(home) = home {
            if home.cell != cell {
                self.take_out(home.cell, state.id);
            }
            if let Some(old) = home.owned.filter(|old| Some(*old) != owned) {
                self.take_out(old, state.id);
            }
        }
        self.put_in(cell, state);
        if let Some(owned) = owned {
            self.put_in(owned, state);
        }
        if home.is_none_or(|home| home.cell != cell || home.owned != owned) {
            self.homes.insert(state.id, Home { cell, owned });
        }
    }

    /// Takes an entity out of the world.
    pub fn remove(&mut self, id: u32) {
        if let Some(home) = self.homes.remove(&id) {
            self.take_out(home.cell, id);
            if let Some(owned) = home.owned {
                self.take_out(owned, id);
            }
        }
    }

    /// Makes a version of every cell that changed.
    pub fn commit(&mut self, tick: u32) {
        self.tick = tick;
        self.records.clear();
        for head in &mut self.heads {
            head.record = None;
        }
        let kept = (STATES_KEPT / self.homes.len().max(1)).clamp(VERSIONS_MIN, VERSIONS_MAX);
        for slot in self.changed.drain(..) {
            let cell = &mut self.cells[slot as usize];
            cell.changed = false;
            let mut entities = Vec::new();
            while cell.versions.len() >= kept {
                // The oldest version's memory is the newest's.
                entities = cell.versions.pop_front().map_or(entities, |v| v.entities);
            }
            entities.clear();
            entities.extend_from_slice(&cell.members);
            cell.versions.push_back(Members { tick, entities });
            self.heads[slot as usize].newest = Version::of(tick);
        }
        if tick.is_multiple_of(self.tick_hz.max(1)) {
            self.forget_empty();
        }
    }

    fn forget_empty(&mut self) {
        for slot in 0..self.cells.len() {
            let cell = &mut self.cells[slot];
            let newest = self.heads[slot].newest.tick();
            let idle = self.tick.saturating_sub(newest.unwrap_or_default());
            if cell.alive && cell.members.is_empty() && idle > EMPTY_S * self.tick_hz {
                cell.alive = false;
                cell.versions = VecDeque::new();
                cell.members = Vec::new();
                cell.records = Vec::new();
                self.by_key.remove(&cell.key);
                self.free.push(slot as u32);
            }
        }
    }

    fn square(&self, place: Vec3) -> CellKey {
        square_of(self.size, place)
    }

    fn index(&self, c: f32) -> i16 {
        index(self.size, c)
    }

    /// Whether a place still counts as inside a square.
    fn reaches(&self, slot: u32, place: Vec3) -> bool {
        let CellKey::Square { x, z } = self.cells[slot as usize].key else {
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
            members: Vec::new(),
            versions: VecDeque::new(),
            records: Vec::new(),
            records_tick: 0,
        };
        let head = Head {
            newest: Version::of(self.tick),
            record: None,
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
            Err(at) => cell.members.insert(at, *state),
        }
        self.note_change(slot);
    }

    fn take_out(&mut self, slot: u32, id: u32) {
        let members = &mut self.cells[slot as usize].members;
        if let Ok(at) = members.binary_search_by_key(&id, |known| known.id) {
            members.remove(at);
            self.note_change(slot);
        }
    }

    fn note_change(&mut self, slot: u32) {
        if !std::mem::replace(&mut self.cells[slot as usize].changed, true) {
            self.changed.push(slot);
        }
    }

    /// The record that brings a client from a version to the newest; made
    /// once per tick. A version that is not kept any more counts as none.
    pub fn record(&mut self, slot: u32, baseline: Version, state: &WorldState) -> Range<usize> {
        let last = self.heads[slot as usize].record.as_ref();
        if let Some(last) = last.filter(|last| last.baseline == baseline) {
            return last.bytes.clone();
        }
        let record = self.find_or_make_record(slot, baseline, state);
        let bytes = record.bytes.clone();
        self.heads[slot as usize].record = Some(record);
        bytes
    }

    fn find_or_make_record(&mut self, slot: u32, baseline: Version, state: &WorldState) -> Record {
        let tick = self.tick;
        let cell = &mut self.cells[slot as usize];
        if cell.records_tick != tick {
            cell.records_tick = tick;
            cell.records.clear();
        }
        let known = cell.records.iter().find(|known| known.baseline == baseline);
        if let Some(known) = known {
            return known.clone();
        }
        let bytes = std::mem::take(&mut self.records);
        let start = bytes.len();
        self.records = self.write_record(bytes, slot, baseline, state);
        let bytes = start..self.records.len();
        let record = Record { baseline, bytes };
        self.cells[slot as usize].records.push(record.clone());
        record
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
        let (tick, entities) = cell
            .versions
            .back()
            .map_or((self.tick, &[][..]), |v| (v.tick, &v.entities[..]));
        let to = CellVersion { tick, entities };
        let from = from.map(|v| CellVersion {
            tick: v.tick,
            entities: &v.entities,
        });
        let source = Source { cells: self, state };
        snapshot::write_cell(bytes, self.tick, self.tick_hz, cell.key, from, to, &source)
    }

    /// Bytes of a record of this tick.
    pub fn bytes(&self, record: Range<usize>) -> &[u8] {
        &self.records[record]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relevance {
    /// Whoever is near enough.
    Near,
    /// Everybody.
    Everywhere,
}

struct Source<'a> {
    cells: &'a Cells,
    state: &'a WorldState,
}

impl CellSource for Source<'_> {
    fn details(&self, id: u32) -> Vec<u8> {
        let entity = self.state.entities.get(&id);
        entity.map_or_else(Vec::new, |entity| entity.details().encode())
    }

    fn square_of(&self, id: u32) -> Option<(i16, i16)> {
        let home = self.cells.homes.get(&id)?;
        match self.cells.cells[home.cell as usize].key {
            CellKey::Square { x, z } => Some((x, z)),
            _ => None,
        }
    }
}
