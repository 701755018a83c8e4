//! Interest management: the set of cells replicated to each client.

use frolic_protocol::snapshot::CellKey;
use frolic_sim::Vec3;

use super::InterestPolicy;
use super::cells::{Cells, Version};

/// What is in view leaves it only this much further out.
const HYSTERESIS: f32 = 1.15;
/// Even who stands still looks around again after so many ticks.
const LOOK_AGAIN_TICKS: u32 = 600;

/// The cells one client sees, in order of their slots.
#[derive(Default)]
pub(crate) struct Watch {
    /// What every update asks of every cell …
    pub cells: Vec<Watched>,
    /// … and what only some ask of some, in the same order.
    pub backgrounds: Vec<Background>,
    /// Whether some of them are on their way out.
    pub leaving: bool,
    /// Rises when some may have come into view.
    pub changes: u32,
    looked: Option<Looked>,
    /// Buffers of [`look`](Watch::look), so that looking allocates nothing.
    slots: Vec<u32>,
    before: (Vec<Watched>, Vec<Background>),
}

/// Who looks.
pub(crate) struct Viewer {
    pub player: u32,
    pub eye: Vec3,
    /// The number of their next packet.
    pub number: u32,
    /// The world's turn.
    pub turn: u16,
}

/// From where, and at how much of a world, the last look was taken.
struct Looked {
    from: Vec3,
    births: u32,
    deaths: u32,
    tick: u32,
}

/// One cell that a client sees, and what it has of it. All clients' cells
/// together are more than a processor's caches hold, so this is kept small.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched {
    pub slot: u32,
    /// Newest version that was sent.
    pub sent: Version,
    /// Newest version that the client certainly has.
    pub known: Version,
    /// The world's turn in which the newest was sent, or since which it waits
    /// for its first; as far as 16 bits go: whoever has waited for an hour may
    /// wait a moment longer.
    pub sent_turn: u16,
    /// It is told of in one of so many turns; a power of two.
    pub interval: u8,
    /// Out of view; the client has still to hear of it.
    pub leaving: bool,
}

/// What else there is to know of a watched cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Background {
    pub born: u32,
    pub key: CellKey,
    pub distance: f32,
    /// Number of the first packet that can tell of it: what was sent before
    /// it last came into view, or went out of it, does not count.
    pub since: u32,
    /// The client's update in which a version became known, or in which the
    /// first was sent that is not.
    pub known_update: u32,
    /// The client may still have what this square was before it last came into
    /// view: it must hear when it leaves, even if it was told nothing since.
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
    /// Looks around, unless nothing but new cells can have come into view.
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

    /// Takes in the cells that are new since the last look. Where a crowd
    /// spreads there are some in every tick, seen by everybody: a whole look
    /// for each would be most of the work. False when nothing less will do.
    fn keeps_up(&mut self, cells: &Cells, policy: &InterestPolicy, who: &Viewer) -> bool {
        let Some(looked) = &mut self.looked else {
            return false;
        };
        // Cells that are forgotten have been empty for long; once in a while
        // is soon enough to notice.
        if (looked.from - who.eye).length() >= cells.size() * 0.25
            || cells.tick().wrapping_sub(looked.tick) >= LOOK_AGAIN_TICKS
        {
            return false;
        }
        let Some(born) = cells.born_since(looked.births) else {
            return false;
        };
        // Only what was forgotten can come into being again.
        let may_return = self.leaving || looked.deaths != cells.deaths();
        for (slot, key) in born {
            let ours = self.cells.binary_search_by_key(&slot, |known| known.slot);
            let Err(place) = ours else {
                // A slot of ours that is another cell's now.
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

    /// Looks at the cells around, and at those that were seen before. All
    /// others are out of view as they were, so it costs what is seen and not
    /// what there is.
    fn look(&mut self, cells: &Cells, policy: &InterestPolicy, who: &Viewer) {
        self.changes = self.changes.wrapping_add(1);
        let mut slots = std::mem::take(&mut self.slots);
        cells.find_around(who.eye, policy.radius, who.player, &mut slots);
        slots.extend(self.cells.iter().map(|watched| watched.slot));
        // Mostly two runs in order, which this one merges.
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
            // A slot that was used again is there twice until the client has
            // heard that the first one is gone.
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
            // Whoever comes back into view may have been told to forget it, and
            // may not have heard.
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
            // An earlier packet can only have told that it left before.
            background.since = who.number;
        }
        watched.leaving = true;
        self.leaving = true;
        self.cells.push(watched);
        self.backgrounds.push(background);
    }

    /// Forgets what is on its way out and has come into being again, in view.
    /// A client knows squares by their keys alone: it puts the whole record of
    /// the new one in the place of the old one, and would take it for dropped
    /// as well.
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

    /// Which of the watched has the key of one that is on its way out.
    fn heir_of(&self, index: usize, cells: &Cells) -> Option<usize> {
        if !self.cells[index].leaving {
            return None;
        }
        let slot = cells.slot_of(self.backgrounds[index].key)?;
        let born = cells.alive(slot)?.born;
        self.find(slot, born)
            .filter(|heir| !self.cells[*heir].leaving)
    }

    /// Forgets the cells on their way out: the client has heard of it.
    pub fn forget_leaving(&mut self) {
        if !std::mem::take(&mut self.leaving) {
            return;
        }
        let mut kept = 0;
        for index in 0..self.cells.len() {
            if !self.cells[index].leaving {
                self.cells.swap(kept, index);
                self.backgrounds.swap(kept, index);
                kept += 1;
            }
        }
        self.cells.truncate(kept);
        self.backgrounds.truncate(kept);
    }

    /// Forgets one cell that was on its way out.
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

    /// Which of the watched a cell is.
    pub fn find(&self, slot: u32, born: u32) -> Option<usize> {
        let from = self.cells.partition_point(|watched| watched.slot < slot);
        let same_slot = self.cells[from..]
            .iter()
            .take_while(|watched| watched.slot == slot);
        let mut indices = (from..).take(same_slot.count());
        indices.find(|&index| self.backgrounds[index].born == born)
    }
}

/// Whether a client sees a cell at a distance; `reach` stretches the radius.
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
        CellKey::Square { .. } => policy
            .radius
            .is_none_or(|radius| distance <= radius * reach),
    }
}

#[cfg(test)]
mod tests;
