//! A*: the cheapest path over the grid, computed incrementally.

use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::grid::{Cell, Grid, Ground, TileKey, middle, on_the_map, tile_of};
use super::links::{self, Link, STRAIGHT};
use super::{Path, Request, Step, smooth};

/// Cells that one search visits before it returns the best path so far.
const CELLS_MAX: u32 = 30_000;
/// How often a search restarts because the grid changed under it.
const RESTARTS_MAX: u32 = 3;
/// How much higher or lower than requested the floors at the ends may be.
const START_HEIGHTS: (f32, f32) = (0.7, 1.5);
const GOAL_HEIGHTS: (f32, f32) = (0.7, 4.0);
/// Rings of cells around an end that are tried if it has no floor.
const RINGS: i32 = 3;

/// The progress of a search.
pub enum Progress {
    /// There is more to do.
    Goes,
    /// The search is finished.
    Ended(Path),
}

#[derive(Clone, Copy)]
struct Known {
    cost: u32,
    from: Option<Cell>,
    leap: bool,
    closed: bool,
}

pub struct Search {
    request: Request,
    started: bool,
    goal: Option<Cell>,
    /// By the estimated total cost, then by cell, so that ties are
    /// deterministic.
    open: BinaryHeap<Reverse<(u32, u32, Cell)>>,
    known: FxHashMap<Cell, Known>,
    tiles: BTreeMap<TileKey, u32>,
    /// The cell nearest to the goal so far.
    nearest: Option<(u32, Cell)>,
    looked_at: u32,
    restarts: u32,
}

impl Search {
    pub fn new(request: Request) -> Self {
        Self {
            request,
            started: false,
            goal: None,
            open: BinaryHeap::new(),
            known: FxHashMap::default(),
            tiles: BTreeMap::new(),
            nearest: None,
            looked_at: 0,
            restarts: 0,
        }
    }

    pub fn who(&self) -> u32 {
        self.request.who
    }

    pub fn looked_at(&self) -> u64 {
        u64::from(self.restarts) << 32 | u64::from(self.looked_at)
    }

    /// Continues within the budget `left`.
    pub fn go_on(&mut self, grid: &mut Grid, ground: &Ground, left: &mut u32) -> Progress {
        let mut current = self.tiles.iter();
        let stale = !current.all(|(key, version)| grid.version(*key) == Some(*version));
        if stale && self.restarts < RESTARTS_MAX {
            self.restarts += 1;
            let restarts = self.restarts;
            *self = Self::new(self.request.clone());
            self.restarts = restarts;
        }
        if !self.started && !self.start(grid, ground, left) {
            return Progress::Ended(Path::default());
        }
        let mut found = Vec::new();
        while *left > 0 {
            let Some(Reverse((_, _, cell))) = self.open.pop() else {
                return Progress::Ended(self.path(grid, ground, left));
            };
            let Some(known) = self.known.get_mut(&cell).filter(|known| !known.closed) else {
                continue;
            };
            known.closed = true;
            let cost = known.cost;
            *left -= 1;
            self.looked_at += 1;
            let ahead = self.ahead(cell);
            if self.nearest.is_none_or(|(least, _)| ahead < least) {
                self.nearest = Some((ahead, cell));
            }
            if self.goal == Some(cell) || self.looked_at >= CELLS_MAX {
                return Progress::Ended(self.path(grid, ground, left));
            }
            links::links(grid, ground, cell, left, &mut found);
            for link in &found {
                self.learn(grid, cell, cost, link);
            }
        }
        Progress::Goes
    }

    fn start(&mut self, grid: &mut Grid, ground: &Ground, left: &mut u32) -> bool {
        self.started = true;
        if !on_the_map(self.request.to) {
            return false;
        }
        let from = grid.locate(ground, self.request.from, START_HEIGHTS, RINGS, left);
        self.goal = grid.locate(ground, self.request.to, GOAL_HEIGHTS, RINGS, left);
        let Some(from) = from else {
            return false;
        };
        self.note_tile(grid, from);
        self.known.insert(
            from,
            Known {
                cost: 0,
                from: None,
                leap: false,
                closed: false,
            },
        );
        let ahead = self.ahead(from);
        self.open.push(Reverse((ahead, ahead, from)));
        true
    }

    fn learn(&mut self, grid: &Grid, from: Cell, cost: u32, link: &Link) {
        let to = link.to;
        if self.request.avoid.contains(&(to.x, to.z)) {
            return;
        }
        let cost = cost + link.cost;
        let known = self.known.get(&to);
        if known.is_some_and(|known| known.closed || known.cost <= cost) {
            return;
        }
        self.note_tile(grid, to);
        self.known.insert(
            to,
            Known {
                cost,
                from: Some(from),
                leap: link.leap,
                closed: false,
            },
        );
        let ahead = self.ahead(to);
        self.open.push(Reverse((cost + ahead, ahead, to)));
    }

    fn note_tile(&mut self, grid: &Grid, cell: Cell) {
        let key = tile_of(cell.x, cell.z);
        if let Some(version) = grid.version(key) {
            self.tiles.entry(key).or_insert(version);
        }
    }

    /// A lower bound of the remaining cost.
    fn ahead(&self, cell: Cell) -> u32 {
        let (x, z) = match self.goal {
            Some(goal) => (goal.x, goal.z),
            None => super::grid::cell_at(self.request.to),
        };
        let (dx, dz) = (cell.x.abs_diff(x), cell.z.abs_diff(z));
        STRAIGHT * dx.max(dz) + 4 * dx.min(dz)
    }

    /// The path to the goal, or to the cell nearest to it.
    fn path(&self, grid: &mut Grid, ground: &Ground, left: &mut u32) -> Path {
        let reached = self
            .goal
            .filter(|goal| self.known.get(goal).is_some_and(|k| k.closed));
        let Some(end) = reached.or(self.nearest.map(|(_, cell)| cell)) else {
            return Path::default();
        };
        let mut steps = Vec::new();
        let mut at = Some(end);
        while let Some(cell) = at {
            let Some(known) = self.known.get(&cell) else {
                break;
            };
            let height = grid
                .floor(cell)
                .map_or(self.request.to.y, |floor| floor.height);
            steps.push(Step {
                place: middle(cell.x, cell.z, height),
                leap: known.leap,
            });
            at = known.from;
        }
        steps.reverse();
        let mut tiles: Vec<(TileKey, u32)> = Vec::new();
        for step in &steps {
            let (x, z) = super::grid::cell_at(step.place);
            let key = tile_of(x, z);
            if tiles.last().is_none_or(|(last, _)| *last != key) {
                tiles.extend(self.tiles.get(&key).map(|version| (key, *version)));
            }
        }
        let mut steps = smooth::smoothed(grid, ground, &steps, left);
        if !steps.is_empty() {
            // The first is the start itself.
            steps.remove(0);
        }
        // The last step ends at the exact goal, if that is in the cell.
        if reached.is_some()
            && let Some(last) = steps.last_mut()
            && super::grid::cell_at(self.request.to) == (end.x, end.z)
        {
            (last.place.x, last.place.z) = (self.request.to.x, self.request.to.z);
        }
        Path {
            steps,
            complete: reached.is_some(),
            tiles,
        }
    }
}
