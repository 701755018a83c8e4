//! Where the edges of a chunk's faces must be split, so that no vertex of one
//! lies on the edge of another.

use super::{Quad, SIDE};

/// A block corner, counted from the chunk's lowest.
pub(super) type Corner = [u8; 3];

/// Block corners along each axis of a chunk.
const CORNERS: usize = SIDE + 1;

/// All vertices of the chunk's faces.
pub(super) struct Seams(Box<[u64]>);

impl Seams {
    pub fn of(quads: &[Quad]) -> Self {
        let words = (CORNERS * CORNERS * CORNERS).div_ceil(64);
        let mut seams = Self(vec![0; words].into_boxed_slice());
        for quad in quads {
            for corner in quad.corners() {
                let index = Self::index(quad.corner(corner));
                seams.0[index / 64] |= 1 << (index % 64);
            }
        }
        seams
    }

    fn index([x, y, z]: Corner) -> usize {
        (usize::from(y) * CORNERS + usize::from(z)) * CORNERS + usize::from(x)
    }

    fn has(&self, corner: Corner) -> bool {
        let index = Self::index(corner);
        self.0[index / 64] >> (index % 64) & 1 == 1
    }

    /// Fills `out` with the corners of a quad and the vertices of others on its
    /// edges, in order; returns where each of the four sides begins.
    ///
    /// The vertices of the next chunk on a border edge are unknown, so both
    /// chunks split such an edge at every block.
    pub fn outline(&self, quad: &Quad, out: &mut Vec<[usize; 2]>) -> [usize; 4] {
        out.clear();
        let corners = quad.corners();
        std::array::from_fn(|side| {
            let begin = out.len();
            let (from, to) = (corners[side], corners[(side + 1) % 4]);
            out.push(from);
            let along = usize::from(from[0] == to[0]);
            let border = on_border(quad.corner(from), quad.corner(to));
            let mut at = from;
            loop {
                at[along] = if to[along] > at[along] {
                    at[along] + 1
                } else {
                    at[along] - 1
                };
                if at == to {
                    break begin;
                }
                if border || self.has(quad.corner(at)) {
                    out.push(at);
                }
            }
        })
    }
}

/// Whether an edge lies in a side of the chunk.
fn on_border(a: Corner, b: Corner) -> bool {
    (0..3).any(|axis| a[axis] == b[axis] && (a[axis] == 0 || usize::from(a[axis]) == SIDE))
}
