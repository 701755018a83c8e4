//! Ways through a world: where one can walk, and how to get from here to there.
//!
//! The map is a [`grid`] of cells with floors, built tile by tile where
//! somebody asks and thrown away where solids change. A [`search`] is A* over
//! it; all of them together do a bounded amount of work per tick, so that a
//! crowd that sets off at once waits a little and the tick does not.

pub mod grid;
mod links;
mod search;
mod smooth;

use std::collections::VecDeque;

use frolic_sim::Vec3;

use grid::{Grid, Ground, TileKey};
use search::{Progress, Search};

/// Cells that all searches together look at in a tick.
const CELLS_PER_TICK: u32 = 1500;
/// Building a tile counts as that many.
pub(crate) const TILE_COST: u32 = 60;

/// A place on a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Where the feet go.
    pub place: Vec3,
    /// Whether one gets there by a jump up or a drop.
    pub leap: bool,
}

/// A way to somewhere.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Path {
    /// Where to go, one after the other; empty when there is no way at all.
    pub steps: Vec<Step>,
    /// Whether it ends where it was meant to; else as near as one can get.
    pub complete: bool,
    /// What it was found on.
    tiles: Vec<(TileKey, u32)>,
}

impl Path {
    /// Straight to a place that somebody has made sure of.
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

/// What is wanted of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Who asks; a second request replaces the first.
    pub who: u32,
    /// From which feet.
    pub from: Vec3,
    /// To which.
    pub to: Vec3,
    /// Columns of cells where something stood in the way that the grid does
    /// not know.
    pub avoid: Vec<(i32, i32)>,
}

/// Everything about ways.
#[derive(Default)]
pub(crate) struct Nav {
    grid: Grid,
    waiting: VecDeque<Request>,
    /// The one that is worked on.
    current: Option<Search>,
    found: Vec<(u32, Path)>,
    /// What is left of this tick's work.
    left: u32,
}

impl Nav {
    /// Something solid came, went or moved within a box.
    pub fn changed(&mut self, low: Vec3, high: Vec3) {
        self.grid.forget(low, high);
    }

    /// Whether there is anything that a change could touch.
    pub fn is_empty(&self) -> bool {
        self.grid.is_empty()
    }

    /// Rises whenever the grid changes somewhere.
    pub fn changes(&self) -> u32 {
        self.grid.changes()
    }

    /// Asks for a way; [`Nav::take`] has it some ticks later.
    pub fn request(&mut self, request: Request) {
        self.cancel(request.who);
        self.waiting.push_back(request);
    }

    /// Forgets what somebody asked for.
    pub fn cancel(&mut self, who: u32) {
        self.waiting.retain(|request| request.who != who);
        self.found.retain(|(owner, _)| *owner != who);
        if self.current.as_ref().is_some_and(|s| s.who() == who) {
            self.current = None;
        }
    }

    /// The way that was found for somebody.
    pub fn take(&mut self, who: u32) -> Option<Path> {
        let at = self.found.iter().position(|(owner, _)| *owner == who)?;
        Some(self.found.swap_remove(at).1)
    }

    /// Whether nothing has changed where a path leads.
    pub fn holds(&self, path: &Path) -> bool {
        let mut tiles = path.tiles.iter();
        tiles.all(|(key, version)| self.grid.version(*key) == Some(*version))
    }

    /// A new tick: there is work to be done again.
    pub fn begin_tick(&mut self) {
        self.left = CELLS_PER_TICK;
    }

    /// Goes on with the searches, as far as this tick's work reaches.
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

    /// Whether one can walk straight from here to there. No, too, when it
    /// would take more than is left of this tick.
    pub fn is_straight(&mut self, ground: &Ground, from: Vec3, to: Vec3) -> bool {
        if self.left == 0 {
            return false;
        }
        smooth::is_straight(&mut self.grid, ground, from, to, &mut self.left)
    }

    /// For a fingerprint: what of this decides the future.
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
