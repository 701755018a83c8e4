//! Path smoothing: straight lines instead of the grid's corners.

use frolic_sim::Vec3;

use super::Step;
use super::grid::{CELL_M, Cell, Grid, Ground, cell_at, on_the_map};
use super::links::walked_level;

/// Cells that one straight line may skip.
const LINE_CELLS_MAX: usize = 32;
/// Longest line that is checked.
const LINE_M_MAX: f32 = 24.0;
/// Distance between samples along a line.
const SAMPLE_M: f32 = CELL_M * 0.4;

/// The same path with as few straight steps as possible.
pub fn smoothed(grid: &mut Grid, ground: &Ground, steps: &[Step], left: &mut u32) -> Vec<Step> {
    let mut out: Vec<Step> = steps.first().copied().into_iter().collect();
    let mut at = 0;
    while at + 1 < steps.len() {
        let mut next = at + 1;
        // A step that begins or ends with a leap stays as it is.
        while next + 1 < steps.len()
            && next - at < LINE_CELLS_MAX
            && !steps[next].leap
            && !steps[next + 1].leap
            && is_straight(grid, ground, steps[at].place, steps[next + 1].place, left)
        {
            next += 1;
        }
        out.push(steps[next]);
        at = next;
    }
    out
}

/// Whether the floor is continuous along a straight line.
pub fn is_straight(grid: &mut Grid, ground: &Ground, from: Vec3, to: Vec3, left: &mut u32) -> bool {
    let way = Vec3::new(to.x - from.x, 0.0, to.z - from.z);
    let length = way.length();
    if !on_the_map(to) || length.is_nan() || length > LINE_M_MAX {
        return false;
    }
    let Some(mut cell) = grid.locate(ground, from, (0.7, 1.5), 1, left) else {
        return false;
    };
    let samples = (length / SAMPLE_M).ceil() as u32;
    for sample in 1..=samples {
        let place = from + way * (sample as f32 / samples as f32);
        let (x, z) = cell_at(place);
        if (x, z) == (cell.x, cell.z) {
            continue;
        }
        let Some(floor) = grid.floor(cell) else {
            return false;
        };
        let distance = CELL_M * (((x - cell.x).abs() + (z - cell.z).abs()) as f32).sqrt();
        let column = grid.column(ground, x, z, left);
        let Some(level) = walked_level(&ground.params, floor, column, distance) else {
            return false;
        };
        cell = Cell { x, z, level };
    }
    let end = grid.floor(cell).map_or(f32::INFINITY, |floor| floor.height);
    (end - to.y).abs() <= 1.5
}
