//! Which cells a client sees.

use frolic_protocol::snapshot::CellKey;
use frolic_sim::Vec3;

use super::InterestPolicy;
use super::cells::Cells;

/// What is in view leaves it only this much further out.
const HYSTERESIS: f32 = 1.15;

/// The cells one client sees, in order of their slots.
#[derive(Default)]
pub(crate) struct Watch {
    pub cells: Vec<Watched>,
    /// Whether some of them are on their way out.
    pub leaving: bool,
    looked: Option<Looked>,
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
    /// Looks around, unless nothing can have changed much.
    pub fn refresh(&mut self, cells: &Cells, policy: &InterestPolicy, who: Viewer) {
        let Viewer {
            player,
            eye,
            number,
        } = who;
        let fresh = self.looked.as_ref().is_some_and(|looked| {
            // Cells that are forgotten have been empty for long; once in a
            // while is soon enough to notice.
            looked.births == cells.births()
                && (looked.from - eye).length() < cells.size() * 0.25
                && cells.tick().wrapping_sub(looked.tick) < 600
        });
        if fresh {
            return;
        }
        self.looked = Some(Looked {
            from: eye,
            births: cells.births(),
            tick: cells.tick(),
        });
        self.leaving = false;
        let before = std::mem::take(&mut self.cells);
        let mut before = before.into_iter().peekable();
        for slot in 0..cells.slots() {
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
            let distance = cells.distance(cell.key, eye);
            let inside = old.as_ref().is_some_and(|watched| !watched.leaving);
            let reach = if inside { HYSTERESIS } else { 1.0 };
            let in_view = match cell.key {
                CellKey::Owned(owner) => owner == player,
                CellKey::Everywhere => true,
                CellKey::Square { .. } => policy
                    .radius
                    .is_none_or(|radius| distance <= radius * reach),
            };
            if !in_view {
                self.leave(old);
                continue;
            }
            // Whoever comes back into view may have been told to forget it.
            let old = old.filter(|watched| !watched.leaving);
            let mut watched = old.unwrap_or_else(|| Watched {
                since: number,
                ..Watched::new(slot, cell.born, cell.key)
            });
            watched.distance = distance;
            self.cells.push(watched);
        }
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
