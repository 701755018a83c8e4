//! Interest management: the set of cells replicated to each client.

use frolic_protocol::snapshot::CellKey;
use frolic_sim::Vec3;

use super::cells::{Cells, Version};
use crate::policy::InterestPolicy;

/// A visible cell leaves the view only at this multiple of the radius.
const HYSTERESIS: f32 = 1.15;
/// Ticks after which the view is computed again even if the viewer does not
/// move.
const LOOK_AGAIN_TICKS: u32 = 600;

/// The cells that one client sees, in order of their slots.
#[derive(Default)]
pub(crate) struct Watch {
    /// Data that every update reads of every cell …
    pub cells: Vec<Watched>,
    /// … and data that is rarely read, in the same order.
    pub backgrounds: Vec<Background>,
    /// Whether some of them are leaving the view.
    pub leaving: bool,
    /// Incremented when cells may have come into view.
    pub changes: u32,
    looked: Option<Looked>,
    /// Buffers of [`look`](Watch::look), which must not allocate.
    slots: Vec<u32>,
    before: (Vec<Watched>, Vec<Background>),
}

/// The viewer.
pub(crate) struct Viewer {
    pub player: u32,
    pub eye: Vec3,
    /// The number of the viewer's next packet.
    pub number: u32,
    /// The world's update turn.
    pub turn: u16,
}

/// The viewpoint and the state of the cells at the last look.
struct Looked {
    from: Vec3,
    births: u32,
    deaths: u32,
    tick: u32,
}

/// A cell that a client sees, and what the client has of it. Kept small,
/// because the cells of all clients together exceed the processor's caches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched {
    pub slot: u32,
    /// Newest version that was sent.
    pub sent: Version,
    /// Newest version that the client is known to have.
    pub known: Version,
    /// The world's turn in which the newest version was sent, or since which
    /// the first is pending. Wraps at 16 bits: a client that has waited for an
    /// hour may wait a moment longer.
    pub sent_turn: u16,
    /// Sent in one of this many turns; a power of two.
    pub interval: u8,
    /// Out of view, but the client has not been notified yet.
    pub leaving: bool,
}

/// Rarely used data of a watched cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Background {
    pub born: u32,
    pub key: CellKey,
    pub distance: f32,
    /// Number of the first packet that can refer to it: packets sent before it
    /// last entered or left the view do not count.
    pub since: u32,
    /// The client's update in which a version became known, or in which the
    /// first unacknowledged one was sent.
    pub known_update: u32,
    /// The client may still have this cell from before it last came into view:
    /// it must be notified when the cell leaves, even if nothing was sent
    /// since.
    pub lingers: bool,
}

impl Watched {
    pub fn new(slot: u32, turn: u16) -> Self {
        Self {
            slot,
            sent: Version::NONE,
            known: Version::NONE,
            sent_turn: turn,
            interval: 1,
            leaving: false,
        }
    }
}

impl Background {
    fn new(born: u32, key: CellKey, since: u32) -> Self {
        Self {
            born,
            key,
            distance: 0.0,
            since,
            known_update: 0,
            lingers: false,
        }
    }
}

impl Watch {
    /// Updates the view; a full look only if something other than new cells can
    /// have come into view.
    pub fn refresh(&mut self, cells: &Cells, policy: &InterestPolicy, who: Viewer) {
        if self.keeps_up(cells, policy, &who) {
            return;
        }
        self.looked = Some(Looked {
            from: who.eye,
            births: cells.births(),
            deaths: cells.deaths(),
            tick: cells.tick(),
        });
        self.look(cells, policy, &who);
    }

    /// Adds the cells created since the last look. Where a crowd spreads there
    /// are some in every tick, visible to all clients, and a full look for each
    /// would dominate the cost. False if a full look is needed.
    fn keeps_up(&mut self, cells: &Cells, policy: &InterestPolicy, who: &Viewer) -> bool {
        let Some(looked) = &mut self.looked else {
            return false;
        };
        // Removed cells have been empty for long, so noticing them late is
        // fine.
        if (looked.from - who.eye).length() >= cells.size() * 0.25
            || cells.tick().wrapping_sub(looked.tick) >= LOOK_AGAIN_TICKS
        {
            return false;
        }
        let Some(born) = cells.born_since(looked.births) else {
            return false;
        };
        // Only the key of a removed cell can be created again.
        let may_return = self.leaving || looked.deaths != cells.deaths();
        for (slot, key) in born {
            let ours = self.cells.binary_search_by_key(&slot, |known| known.slot);
            let Err(place) = ours else {
                // A slot of ours that belongs to another cell now.
                return false;
            };
            if may_return && self.backgrounds.iter().any(|known| known.key == key) {
                return false;
            }
            let distance = cells.distance(key, who.eye);
            let Some(cell) = cells.alive(slot) else {
                continue;
            };
            if is_in_view(key, distance, 1.0, policy, who.player) {
                let mut watched = Watched::new(slot, who.turn);
                watched.interval = policy.interval(distance);
                let mut background = Background::new(cell.born, cell.key, who.number);
                background.distance = distance;
                self.cells.insert(place, watched);
                self.backgrounds.insert(place, background);
                self.changes = self.changes.wrapping_add(1);
            }
        }
        looked.births = cells.births();
        true
    }

    /// Scans the cells around the viewer and those that were visible before.
    /// All others are still out of view, so the cost is proportional to what is
    /// visible.
    fn look(&mut self, cells: &Cells, policy: &InterestPolicy, who: &Viewer) {
        self.changes = self.changes.wrapping_add(1);
        let mut slots = std::mem::take(&mut self.slots);
        cells.find_around(who.eye, policy.radius, who.player, &mut slots);
        slots.extend(self.cells.iter().map(|watched| watched.slot));
        // Usually two sorted runs, which the stable sort merges.
        slots.sort();
        slots.dedup();

        let (mut cells_before, mut backgrounds_before) = std::mem::take(&mut self.before);
        std::mem::swap(&mut self.cells, &mut cells_before);
        std::mem::swap(&mut self.backgrounds, &mut backgrounds_before);
        self.leaving = false;
        let before = cells_before.drain(..).zip(backgrounds_before.drain(..));
        let mut before = before.peekable();
        for &slot in &slots {
            let cell = cells.alive(slot);
            let mut old = None;
            // A reused slot is listed twice until the client has acknowledged
            // that the first cell left.
            while let Some(watched) = before.next_if(|(watched, _)| watched.slot == slot) {
                if cell.is_some_and(|cell| cell.born == watched.1.born) {
                    old = Some(watched);
                } else {
                    self.leave(Some(watched), who);
                }
            }
            let Some(cell) = cell else {
                continue;
            };
            let distance = cells.distance(cell.key, who.eye);
            let inside = old.is_some_and(|(watched, _)| !watched.leaving);
            let reach = if inside { HYSTERESIS } else { 1.0 };
            if !is_in_view(cell.key, distance, reach, policy, who.player) {
                self.leave(old, who);
                continue;
            }
            // A client whose cell comes back into view may have been notified
            // that it left, and may not have received that.
            let lingers = old.is_some() && !inside;
            let (mut watched, mut background) = old.filter(|_| inside).unwrap_or_else(|| {
                let mut background = Background::new(cell.born, cell.key, who.number);
                background.lingers = lingers;
                (Watched::new(slot, who.turn), background)
            });
            watched.interval = policy.interval(distance);
            background.distance = distance;
            self.cells.push(watched);
            self.backgrounds.push(background);
        }
        drop(before);
        self.before = (cells_before, backgrounds_before);
        self.slots = slots;
        if self.leaving {
            self.give_way(cells);
        }
    }

    fn leave(&mut self, watched: Option<(Watched, Background)>, who: &Viewer) {
        let Some((mut watched, mut background)) = watched else {
            return;
        };
        if watched.sent == Version::NONE && !watched.leaving && !background.lingers {
            return;
        }
        if !watched.leaving {
            // An earlier packet can only have reported an earlier departure.
            background.since = who.number;
        }
        watched.leaving = true;
        self.leaving = true;
        self.cells.push(watched);
        self.backgrounds.push(background);
    }

    /// Forgets a leaving cell whose key was created again in view. A client
    /// identifies cells by key alone: the whole record of the new cell replaces
    /// the old one, and a drop would remove the new one as well.
    fn give_way(&mut self, cells: &Cells) {
        for index in (0..self.cells.len()).rev() {
            if let Some(heir) = self.heir_of(index, cells) {
                self.backgrounds[heir].lingers = true;
                self.cells.remove(index);
                self.backgrounds.remove(index);
            }
        }
        self.leaving = self.cells.iter().any(|watched| watched.leaving);
    }

    /// The index of a watched cell with the same key as a leaving one.
    fn heir_of(&self, index: usize, cells: &Cells) -> Option<usize> {
        if !self.cells[index].leaving {
            return None;
        }
        let slot = cells.slot_of(self.backgrounds[index].key)?;
        let born = cells.alive(slot)?.born;
        self.find(slot, born)
            .filter(|heir| !self.cells[*heir].leaving)
    }

    /// Forgets leaving cells after the client was notified.
    pub fn forget_leaving(&mut self) {
        if !std::mem::take(&mut self.leaving) {
            return;
        }
        let mut retained = 0;
        for index in 0..self.cells.len() {
            if !self.cells[index].leaving {
                self.cells.swap(retained, index);
                self.backgrounds.swap(retained, index);
                retained += 1;
            }
        }
        self.cells.truncate(retained);
        self.backgrounds.truncate(retained);
    }

    /// Forgets one leaving cell.
    pub fn forget(&mut self, index: usize) {
        self.cells.remove(index);
        self.backgrounds.remove(index);
        self.leaving = self.cells.iter().any(|watched| watched.leaving);
    }

    /// Whether the cell in this slot is in view.
    pub fn sees(&self, slot: u32) -> bool {
        let from = self.cells.partition_point(|watched| watched.slot < slot);
        let mut same = self.cells[from..].iter();
        let mut same = same.by_ref().take_while(|watched| watched.slot == slot);
        same.any(|watched| !watched.leaving)
    }

    /// The index of a cell among the watched ones.
    pub fn find(&self, slot: u32, born: u32) -> Option<usize> {
        let from = self.cells.partition_point(|watched| watched.slot < slot);
        let same_slot = self.cells[from..]
            .iter()
            .take_while(|watched| watched.slot == slot);
        let mut indices = (from..).take(same_slot.count());
        indices.find(|&index| self.backgrounds[index].born == born)
    }
}

/// Whether a client sees a cell at a distance; `reach` scales the radius.
fn is_in_view(
    key: CellKey,
    distance: f32,
    reach: f32,
    policy: &InterestPolicy,
    player: u32,
) -> bool {
    match key {
        CellKey::Owned(owner) => owner == player,
        CellKey::Everywhere => true,
        CellKey::Grid { .. } => policy
            .radius
            .is_none_or(|radius| distance <= radius * reach),
    }
}

#[cfg(test)]
mod tests;
