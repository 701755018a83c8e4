//! Which cells a client sees.

use frolic_protocol::snapshot::CellKey;
use frolic_sim::Vec3;

use super::InterestPolicy;
use super::cells::Cells;

/// What is in view leaves it only this much further out.
const HYSTERESIS: f32 = 1.15;
/// Even who stands still looks around again after so many ticks.
const LOOK_AGAIN_TICKS: u32 = 600;

/// The cells one client sees, in order of their slots.
#[derive(Default)]
pub(crate) struct Watch {
    pub cells: Vec<Watched>,
    /// Whether some of them are on their way out.
    pub leaving: bool,
    looked: Option<Looked>,
    /// Buffers of [`look`](Watch::look), so that looking allocates nothing.
    slots: Vec<u32>,
    before: Vec<Watched>,
}

/// Who looks.
pub(crate) struct Viewer {
    pub player: u32,
    pub eye: Vec3,
    /// The number of their next packet.
    pub number: u32,
}

/// From where, and at how much of a world, the last look was taken.
struct Looked {
    from: Vec3,
    births: u32,
    tick: u32,
}

/// One cell that a client sees, and what it has of it.
#[derive(Clone, Debug)]
pub(crate) struct Watched {
    pub slot: u32,
    pub born: u32,
    pub key: CellKey,
    pub distance: f32,
    /// Newest version that the client certainly has.
    pub known: Option<u32>,
    /// Newest version that was sent.
    pub sent: Option<u32>,
    /// The client's update in which that was.
    pub sent_update: u32,
    /// Out of view; the client has still to hear of it.
    pub leaving: bool,
    /// Number of the first packet that can tell of it: what was sent before
    /// it last came into view does not count.
    pub since: u32,
    /// The client's update in which a version became known.
    pub known_update: u32,
}

impl Watched {
    fn new(slot: u32, born: u32, key: CellKey) -> Self {
        Self {
            slot,
            born,
            key,
            distance: 0.0,
            known: None,
            sent: None,
            sent_update: 0,
            leaving: false,
            since: 0,
            known_update: 0,
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
        for (slot, key) in born {
            let ours = self.cells.binary_search_by_key(&slot, |known| known.slot);
            let Err(place) = ours else {
                // A slot of ours that is another cell's now.
                return false;
            };
            let distance = cells.distance(key, who.eye);
            let Some(cell) = cells.alive(slot) else {
                continue;
            };
            if is_in_view(key, distance, 1.0, policy, who.player) {
                let watched = Watched {
                    since: who.number,
                    distance,
                    ..Watched::new(slot, cell.born, cell.key)
                };
                self.cells.insert(place, watched);
            }
        }
        looked.births = cells.births();
        true
    }

    /// Looks at the cells around, and at those that were seen before. All
    /// others are out of view as they were, so it costs what is seen and not
    /// what there is.
    fn look(&mut self, cells: &Cells, policy: &InterestPolicy, who: &Viewer) {
        let mut slots = std::mem::take(&mut self.slots);
        cells.find_around(who.eye, policy.radius, who.player, &mut slots);
        slots.extend(self.cells.iter().map(|watched| watched.slot));
        // Mostly two runs in order, which this one merges.
        slots.sort();
        slots.dedup();

        let mut seen_before = std::mem::take(&mut self.before);
        std::mem::swap(&mut self.cells, &mut seen_before);
        self.leaving = false;
        let mut before = seen_before.drain(..).peekable();
        for &slot in &slots {
            let cell = cells.alive(slot);
            let mut old = None;
            // A slot that was used again is there twice until the client has
            // heard that the first one is gone.
            while let Some(watched) = before.next_if(|watched| watched.slot == slot) {
                if cell.is_some_and(|cell| cell.born == watched.born) {
                    old = Some(watched);
                } else {
                    self.leave(Some(watched));
                }
            }
            let Some(cell) = cell else {
                continue;
            };
            let distance = cells.distance(cell.key, who.eye);
            let inside = old.as_ref().is_some_and(|watched| !watched.leaving);
            let reach = if inside { HYSTERESIS } else { 1.0 };
            if !is_in_view(cell.key, distance, reach, policy, who.player) {
                self.leave(old);
                continue;
            }
            // Whoever comes back into view may have been told to forget it.
            let old = old.filter(|watched| !watched.leaving);
            let mut watched = old.unwrap_or_else(|| Watched {
                since: who.number,
                ..Watched::new(slot, cell.born, cell.key)
            });
            watched.distance = distance;
            self.cells.push(watched);
        }
        drop(before);
        self.before = seen_before;
        self.slots = slots;
    }

    fn leave(&mut self, watched: Option<Watched>) {
        let Some(mut watched) = watched else {
            return;
        };
        if watched.sent.is_some() || watched.leaving {
            watched.leaving = true;
            self.leaving = true;
            self.cells.push(watched);
        }
    }

    /// Forgets the cells on their way out: the client has heard of it.
    pub fn forget_leaving(&mut self) {
        self.cells.retain(|watched| !watched.leaving);
        self.leaving = false;
    }

    pub fn find(&mut self, slot: u32, born: u32) -> Option<&mut Watched> {
        let from = self.cells.partition_point(|watched| watched.slot < slot);
        let mut same_slot = self.cells[from..]
            .iter_mut()
            .take_while(|watched| watched.slot == slot);
        same_slot.find(|watched| watched.born == born)
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
