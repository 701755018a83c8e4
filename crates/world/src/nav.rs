//! Pathfinding: where a character can walk, and how to get from one place to
//! another.
//!
//! The map is a [`grid`] of cells with floors, built tile by tile on demand and
//! discarded where solids change. A [`search`] is A* over it; all searches
//! together do a bounded amount of work per tick, so that a crowd that starts
//! at once waits a little and the tick does not.

pub mod grid;
mod links;
mod search;
mod smooth;

use std::collections::VecDeque;

use frolic_sim::Vec3;

use grid::{Grid, Ground, TileKey};
use search::{Progress, Search};

/// Cells that all searches together visit in a tick.
const CELLS_PER_TICK: u32 = 1500;
/// The cost of building a tile, in cells.
pub(crate) const TILE_COST: u32 = 60;

/// A waypoint of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Position of the feet.
    pub place: Vec3,
    /// Whether it is reached by a jump up or a drop.
    pub leap: bool,
}

/// A path to a goal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Path {
    /// Waypoints in order; empty if there is no path at all.
    pub steps: Vec<Step>,
    /// Whether it ends at the goal; otherwise it ends as near as possible.
    pub complete: bool,
    /// The tiles, with their versions, that it was found on.
    tiles: Vec<(TileKey, u32)>,
}

impl Path {
    /// A straight path that the caller has verified.
    pub fn straight(to: Vec3) -> Self {
        let step = Step {
            place: to,
            leap: false,
        };
        Self {
            steps: vec![step],
            complete: true,
            tiles: Vec::new(),
        }
    }
}

/// A search request.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The requester; a second request replaces the first.
    pub who: u32,
    /// Start position of the feet.
    pub from: Vec3,
    /// Goal position of the feet.
    pub to: Vec3,
    /// Columns of cells with an obstacle that the grid does not know.
    pub avoid: Vec<(i32, i32)>,
}

/// The state of pathfinding.
#[derive(Default)]
pub(crate) struct Nav {
    grid: Grid,
    waiting: VecDeque<Request>,
    /// The search in progress.
    current: Option<Search>,
    found: Vec<(u32, Path)>,
    /// Work left in this tick.
    left: u32,
}

impl Nav {
    /// Invalidates the grid in a box in which something solid was added,
    /// removed or moved.
    pub fn changed(&mut self, low: Vec3, high: Vec3) {
        self.grid.forget(low, high);
    }

    /// Whether there is nothing that a change could affect.
    pub fn is_empty(&self) -> bool {
        self.grid.is_empty()
    }

    /// Incremented whenever the grid changes.
    pub fn changes(&self) -> u32 {
        self.grid.changes()
    }

    /// Queues a search; [`Nav::take`] returns its result some ticks later.
    pub fn request(&mut self, request: Request) {
        self.cancel(request.who);
        self.waiting.push_back(request);
    }

    /// Cancels a requester's search.
    pub fn cancel(&mut self, who: u32) {
        self.waiting.retain(|request| request.who != who);
        self.found.retain(|(owner, _)| *owner != who);
        if self.current.as_ref().is_some_and(|s| s.who() == who) {
            self.current = None;
        }
    }

    /// Takes the path that was found for a requester.
    pub fn take(&mut self, who: u32) -> Option<Path> {
        let at = self.found.iter().position(|(owner, _)| *owner == who)?;
        Some(self.found.swap_remove(at).1)
    }

    /// Whether nothing has changed along a path.
    pub fn holds(&self, path: &Path) -> bool {
        let mut tiles = path.tiles.iter();
        tiles.all(|(key, version)| self.grid.version(*key) == Some(*version))
    }

    /// Resets the work budget for a new tick.
    pub fn begin_tick(&mut self) {
        self.left = CELLS_PER_TICK;
    }

    /// Continues the searches within this tick's work budget.
    pub fn work(&mut self, ground: &Ground) {
        while self.left > 0 {
            let Some(mut search) = self.current.take().or_else(|| {
                let request = self.waiting.pop_front()?;
                Some(Search::new(request))
            }) else {
                return;
            };
            match search.go_on(&mut self.grid, ground, &mut self.left) {
                Progress::Goes => self.current = Some(search),
                Progress::Ended(path) => self.found.push((search.who(), path)),
            }
        }
    }

    /// Whether one can walk straight from `from` to `to`. Also false if
    /// answering would exceed this tick's budget.
    pub fn is_straight(&mut self, ground: &Ground, from: Vec3, to: Vec3) -> bool {
        if self.left == 0 {
            return false;
        }
        smooth::is_straight(&mut self.grid, ground, from, to, &mut self.left)
    }

    /// The state that determines future results, as numbers for a fingerprint.
    pub fn words(&self) -> impl Iterator<Item = u64> {
        let current = self
            .current
            .iter()
            .flat_map(|s| [u64::from(s.who()), s.looked_at()]);
        let waiting = self.waiting.iter().map(|request| u64::from(request.who));
        let found = self
            .found
            .iter()
            .map(|(who, path)| u64::from(*who) << 32 | path.steps.len() as u64);
        let grid = [u64::from(self.grid.changes()), self.grid.built()];
        grid.into_iter().chain(current).chain(waiting).chain(found)
    }
}

#[cfg(test)]
mod tests;
