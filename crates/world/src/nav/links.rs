//! Which cells are reachable from which.

use frolic_sim::{CharacterParams, Vec3};

use super::grid::{CELL_M, Cell, Floor, Grid, Ground, middle};

/// Highest ledge that is jumped onto, and deepest that is dropped from.
const JUMP_MAX_M: f32 = 1.15;
const DROP_MAX_M: f32 = 2.5;
/// Cells between the foot of a ledge and its top: next to a wall there is no
/// clearance to stand.
const LEAP_CELLS: std::ops::RangeInclusive<i32> = 2..=3;
/// A floor with a lower value is a slope, where neighbours differ by more than
/// a step.
const LEVEL_SLOPE_MIN: f32 = 0.98;
/// The cost of a straight step to the next cell.
pub const STRAIGHT: u32 = 10;
const DIAGONAL: u32 = 14;
const JUMP: u32 = 40;
const DROP: u32 = 20;
/// The cost of checking the clearance of a leap, in cells.
const LEAP_WORK: u32 = 8;

/// A connection to another cell.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    pub to: Cell,
    pub cost: u32,
    pub leap: bool,
}

const AXES: [(i32, i32); 4] = [(1, 0), (0, 1), (-1, 0), (0, -1)];

/// Whether one can walk between two floors at this distance.
pub fn can_walk(params: &CharacterParams, from: Floor, to: Floor, distance: f32) -> bool {
    let level = from.slope.min(to.slope) >= LEVEL_SLOPE_MIN;
    let rise_max = match level {
        true => params.step_height,
        false => (distance * 1.05 + 0.1).max(params.step_height),
    };
    (to.height - from.height).abs() <= rise_max
}

/// The storey of a column that is reached by walking from a floor.
pub fn walked_level(
    params: &CharacterParams,
    from: Floor,
    column: &[Floor],
    distance: f32,
) -> Option<u8> {
    let reachable = column
        .iter()
        .enumerate()
        .filter(|(_, floor)| can_walk(params, from, **floor, distance));
    let rise = |floor: &Floor| (floor.height - from.height).abs();
    let nearest = reachable.min_by(|a, b| rise(a.1).total_cmp(&rise(b.1)));
    nearest.map(|(level, _)| level as u8)
}

/// Fills `out` with the cells reachable from a cell.
pub fn links(grid: &mut Grid, ground: &Ground, cell: Cell, left: &mut u32, out: &mut Vec<Link>) {
    out.clear();
    let Some(floor) = grid.floor(cell) else {
        return;
    };
    let params = &ground.params;
    let mut walk = |dx: i32, dz: i32, distance: f32| {
        let (x, z) = (cell.x + dx, cell.z + dz);
        let column = grid.column(ground, x, z, left);
        let level = walked_level(params, floor, column, distance)?;
        Some(Cell { x, z, level })
    };
    let straight = AXES.map(|(dx, dz)| walk(dx, dz, CELL_M));
    for (at, (dx, dz)) in AXES.into_iter().enumerate() {
        let next = (at + 1) % AXES.len();
        let (ex, ez) = AXES[next];
        // Not around a corner that the capsule would touch.
        if straight[at].is_some()
            && straight[next].is_some()
            && let Some(to) = walk(dx + ex, dz + ez, CELL_M * core::f32::consts::SQRT_2)
        {
            let (cost, leap) = (DIAGONAL, false);
            out.push(Link { to, cost, leap });
        }
    }
    for (at, axis) in AXES.into_iter().enumerate() {
        match straight[at] {
            Some(to) => {
                let (cost, leap) = (STRAIGHT, false);
                out.push(Link { to, cost, leap });
            }
            None => out.extend(leap(grid, ground, cell, floor, axis, left)),
        }
    }
}

/// A jump up or a drop in one direction, where the grid ends at a ledge.
fn leap(
    grid: &mut Grid,
    ground: &Ground,
    cell: Cell,
    floor: Floor,
    (dx, dz): (i32, i32),
    left: &mut u32,
) -> Option<Link> {
    for cells in LEAP_CELLS {
        let (x, z) = (cell.x + dx * cells, cell.z + dz * cells);
        let column = grid.column(ground, x, z, left).to_vec();
        for (level, there) in column.iter().enumerate().rev() {
            let rise = there.height - floor.height;
            let jump = rise > 0.0 && rise <= JUMP_MAX_M;
            let drop = (-DROP_MAX_M..0.0).contains(&rise);
            if !jump && !drop {
                continue;
            }
            *left = left.saturating_sub(LEAP_WORK);
            // The capsule must pass at the height of the upper end.
            let height = floor.height.max(there.height) + 0.1;
            let here = middle(cell.x, cell.z, height);
            if has_room(ground, here, middle(x, z, height)) {
                let level = level as u8;
                let way = STRAIGHT * cells.unsigned_abs();
                return Some(Link {
                    to: Cell { x, z, level },
                    cost: way + if jump { JUMP } else { DROP },
                    leap: true,
                });
            }
        }
    }
    None
}

/// Whether a capsule fits through from one end to the other.
fn has_room(ground: &Ground, from: Vec3, to: Vec3) -> bool {
    let (radius, height) = (ground.params.radius * 0.9, ground.params.height);
    let margin = Vec3::new(radius, 0.0, radius);
    let low = from.min(to) - margin;
    let high = from.max(to) + margin + Vec3::Y * height;
    let around = ground.around(low, high);
    let steps = ((to - from).length() / (CELL_M * 0.5)).ceil().max(1.0) as u32;
    (0..=steps).all(|step| {
        let feet = from + (to - from) * (step as f32 / steps as f32);
        around.is_free(feet, radius, height)
    })
}
