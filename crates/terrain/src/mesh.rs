//! Meshing of chunks: visible faces, with equal neighbours merged into one, and
//! colours that are darker in corners.
//!
//! No vertex lies on the edge of another triangle, not even of the next
//! chunk's: at such a T-junction rounding would leave uncovered pixels, through
//! which the sky would be visible.

mod seams;

use seams::{Corner, Seams};

use crate::grid::{self, CHUNK_SIDE, ChunkPos};
use crate::material::Material;
use crate::query::NEIGHBOURS;
use crate::terrain::Terrain;

const SIDE: usize = CHUNK_SIDE as usize;
/// Side of a chunk with one block of its neighbours around.
const PADDED: usize = SIDE + 2;
/// Brightness of a vertex by the number of free blocks around it.
const SHADES: [f32; 4] = [0.5, 0.7, 0.86, 1.0];

/// The triangles of a chunk, in the form graphics cards use. Positions are in
/// blocks from the chunk's lowest corner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mesh {
    /// x, y and z of each vertex.
    pub positions: Vec<u8>,
    /// Normal of each vertex, scaled by 127.
    pub normals: Vec<i8>,
    /// Red, green and blue of each vertex, linear.
    pub colors: Vec<u8>,
    /// Three vertices per triangle.
    pub indices: Vec<u32>,
    /// The index from which on triangles are transparent.
    pub clear_from: u32,
}

impl Mesh {
    /// Whether there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }
}

/// A face in one plane of a chunk: its material and the brightness of its
/// corners; none where nothing is visible.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Face {
    material: Material,
    shades: [u8; 4],
}

/// The triangles of a chunk, considering the current state of its neighbours.
pub fn mesh(terrain: &Terrain, at: ChunkPos) -> Mesh {
    let mut mesh = Mesh::default();
    let Some(blocks) = Padded::new(terrain, at) else {
        return mesh;
    };
    let mut quads = Vec::new();
    let mut clear_from = None;
    for clear in [false, true] {
        if clear {
            clear_from = Some(quads.len());
            if !blocks.has_clear() {
                break;
            }
        }
        for (direction, step) in NEIGHBOURS.iter().enumerate() {
            let axis = direction / 2;
            let up = step[axis] > 0;
            let mut plane = [None; SIDE * SIDE];
            for layer in 0..SIDE {
                if blocks.faces(axis, up, layer, clear, &mut plane) {
                    merge(&mut plane, |face, from, to| {
                        quads.push(Quad {
                            face,
                            axis,
                            up,
                            layer,
                            from,
                            to,
                        });
                    });
                }
            }
        }
    }
    let seams = Seams::of(&quads);
    let mut outline = Vec::new();
    for (index, quad) in quads.iter().enumerate() {
        if Some(index) == clear_from {
            mesh.clear_from = mesh.indices.len() as u32;
        }
        mesh.push(quad, &seams, &mut outline);
    }
    if clear_from == Some(quads.len()) {
        mesh.clear_from = mesh.indices.len() as u32;
    }
    mesh
}

/// Blocks of a chunk and around it.
struct Padded(Box<[Material]>);

impl Padded {
    /// None if nothing of the chunk is visible.
    fn new(terrain: &Terrain, at: ChunkPos) -> Option<Self> {
        let chunk = terrain.chunk(at)?;
        if let Some(only) = chunk.only() {
            let hidden = |step: &[i32; 3]| {
                let beside = std::array::from_fn(|axis| at[axis] + step[axis]);
                let beside = terrain.chunk(beside).map(|chunk| chunk.only());
                beside.is_some_and(|beside| {
                    beside.is_some_and(|other| other == only || !other.is_clear())
                })
            };
            if only == Material::AIR || NEIGHBOURS.iter().all(hidden) {
                return None;
            }
        }
        let mut blocks = vec![Material::AIR; PADDED * PADDED * PADDED].into_boxed_slice();
        let bottom = terrain.grid().blocks().min[1];
        let first = grid::first_block(at);
        for dy in -1..=1 {
            for dz in -1..=1 {
                for dx in -1..=1 {
                    let from = [at[0] + dx, at[1] + dy, at[2] + dz];
                    Self::copy(terrain, from, first, bottom, &mut blocks);
                }
            }
        }
        Some(Self(blocks))
    }

    /// Copies the blocks of a chunk that are within one block of the chunk at
    /// `first`.
    fn copy(terrain: &Terrain, from: ChunkPos, first: [i32; 3], bottom: i32, out: &mut [Material]) {
        let around = grid::BlockRange {
            min: first,
            max: first.map(|at| at + CHUNK_SIDE - 1),
        };
        let range = grid::blocks_of(from).within(&around.grown(1));
        let chunk = terrain.chunk(from);
        for y in range.min[1]..=range.max[1] {
            for z in range.min[2]..=range.max[2] {
                for x in range.min[0]..=range.max[0] {
                    let material = match chunk {
                        Some(chunk) => chunk.get(grid::index_in_chunk([x, y, z])),
                        // The world is never seen from below.
                        None if y < bottom => Material::STONE,
                        None => Material::AIR,
                    };
                    let local = [x - first[0] + 1, y - first[1] + 1, z - first[2] + 1];
                    out[Self::index(local.map(|at| at as usize))] = material;
                }
            }
        }
    }

    /// Whether there is any transparent material besides air.
    fn has_clear(&self) -> bool {
        let mut blocks = self.0.iter();
        blocks.any(|block| *block != Material::AIR && block.is_clear())
    }

    fn index([x, y, z]: [usize; 3]) -> usize {
        (y * PADDED + z) * PADDED + x
    }

    fn get(&self, at: [usize; 3]) -> Material {
        self.0[Self::index(at)]
    }

    /// Fills a plane with the faces of a layer that point along an axis; false
    /// if there are none.
    fn faces(
        &self,
        axis: usize,
        up: bool,
        layer: usize,
        clear: bool,
        plane: &mut [Option<Face>; SIDE * SIDE],
    ) -> bool {
        let (u, v) = ((axis + 1) % 3, (axis + 2) % 3);
        let mut any = false;
        for j in 0..SIDE {
            for i in 0..SIDE {
                let mut at = [0; 3];
                (at[axis], at[u], at[v]) = (layer + 1, i + 1, j + 1);
                let material = self.get(at);
                let face = if material == Material::AIR || material.is_clear() != clear {
                    None
                } else {
                    at[axis] = if up { layer + 2 } else { layer };
                    let beside = self.get(at);
                    let seen = beside.is_clear() && beside != material;
                    seen.then(|| Face {
                        material,
                        shades: if clear { [3; 4] } else { self.shades(at, u, v) },
                    })
                };
                any |= face.is_some();
                plane[j * SIDE + i] = face;
            }
        }
        any
    }

    /// The brightness of a face's corners, from the blocks in front of it.
    fn shades(&self, front: [usize; 3], u: usize, v: usize) -> [u8; 4] {
        let dark = |du: isize, dv: isize| {
            let mut at = front;
            at[u] = at[u].wrapping_add_signed(du);
            at[v] = at[v].wrapping_add_signed(dv);
            u8::from(!self.get(at).is_clear())
        };
        [(-1, -1), (1, -1), (1, 1), (-1, 1)].map(|(du, dv)| {
            let (a, b) = (dark(du, 0), dark(0, dv));
            if a + b == 2 {
                0
            } else {
                3 - a - b - dark(du, dv)
            }
        })
    }
}

/// A rectangle of equal faces in a layer.
struct Quad {
    face: Face,
    axis: usize,
    up: bool,
    layer: usize,
    from: [usize; 2],
    to: [usize; 2],
}

impl Quad {
    /// A point of its plane, in blocks from the chunk's lowest corner.
    fn corner(&self, [along_u, along_v]: [usize; 2]) -> Corner {
        let mut place = [0; 3];
        place[self.axis] = (self.layer + usize::from(self.up)) as u8;
        place[(self.axis + 1) % 3] = along_u as u8;
        place[(self.axis + 2) % 3] = along_v as u8;
        place
    }

    /// The four corners, counter-clockwise seen from above the plane.
    fn corners(&self) -> [[usize; 2]; 4] {
        let ([u0, v0], [u1, v1]) = (self.from, self.to);
        [[u0, v0], [u1, v0], [u1, v1], [u0, v1]]
    }

    /// A block corner in its interior; none in a single row of faces.
    fn inside(&self) -> Option<[usize; 2]> {
        let wide = (0..2).all(|axis| self.to[axis] - self.from[axis] > 1);
        wide.then(|| std::array::from_fn(|axis| (self.from[axis] + self.to[axis]) / 2))
    }

    /// The brightness of a point. Faces are merged only along a direction of
    /// constant brightness, so the nearest corner's shade is exact.
    fn shade(&self, [along_u, along_v]: [usize; 2]) -> u8 {
        let (far_u, far_v) = (along_u == self.to[0], along_v == self.to[1]);
        self.face.shades[match (far_u, far_v) {
            (false, false) => 0,
            (true, false) => 1,
            (true, true) => 2,
            (false, true) => 3,
        }]
    }
}

/// Merges the faces of a plane into rectangles, as large as possible.
fn merge(
    plane: &mut [Option<Face>; SIDE * SIDE],
    mut push: impl FnMut(Face, [usize; 2], [usize; 2]),
) {
    for j in 0..SIDE {
        let mut i = 0;
        while i < SIDE {
            let Some(face) = plane[j * SIDE + i] else {
                i += 1;
                continue;
            };
            let same = |at: usize| plane[at] == Some(face);
            let mut width = 1;
            while i + width < SIDE && same(j * SIDE + i + width) {
                width += 1;
            }
            let mut height = 1;
            while j + height < SIDE && (i..i + width).all(|i| same((j + height) * SIDE + i)) {
                height += 1;
            }
            for row in j..j + height {
                plane[row * SIDE + i..row * SIDE + i + width].fill(None);
            }
            push(face, [i, j], [i + width, j + height]);
            i += width;
        }
    }
}

impl Mesh {
    /// Adds a quad with every vertex that others have on its edges.
    fn push(&mut self, quad: &Quad, seams: &Seams, outline: &mut Vec<[usize; 2]>) {
        let sides = seams.outline(quad, outline);
        let first = (self.positions.len() / 3) as u32;
        for &at in outline.iter() {
            self.push_corner(quad, at);
        }
        let count = outline.len() as u32;
        if count == 4 {
            // Split so that one dark corner darkens only one triangle.
            let [a, b, c, d] = quad.face.shades;
            let split = if a + c >= b + d {
                [[0, 1, 2], [0, 2, 3]]
            } else {
                [[1, 2, 3], [1, 3, 0]]
            };
            for triangle in split {
                self.push_triangle(quad.up, triangle.map(|corner: u32| first + corner));
            }
        } else if let Some(middle) = quad.inside() {
            // A fan around a block corner in its interior.
            self.push_corner(quad, middle);
            for at in 0..count {
                let next = (at + 1) % count;
                self.push_triangle(quad.up, [first + count, first + at, first + next]);
            }
        } else {
            self.push_strip(quad, first, sides, outline);
        }
    }

    /// A row of faces: triangles between its two long sides.
    fn push_strip(&mut self, quad: &Quad, first: u32, sides: [usize; 4], outline: &[[usize; 2]]) {
        let along = usize::from(quad.to[0] - quad.from[0] == 1);
        let count = outline.len();
        // The side that runs along the row, and the opposite one, which runs
        // back.
        let (near, far) = if along == 0 {
            ((sides[0], sides[1]), (sides[2], sides[3]))
        } else {
            ((sides[1], sides[2]), (sides[3], count))
        };
        let (mut a, a_end) = near;
        // Backwards: from the first vertex's opposite to the last one's.
        let (mut b, b_end) = (far.1, far.0);
        let number = |at: usize| first + (at % count) as u32;
        let way = |at: usize| outline[at % count][along];
        while a < a_end || b > b_end {
            let next_a = (a < a_end).then(|| way(a + 1));
            let next_b = (b > b_end).then(|| way(b - 1));
            let take_a = match (next_a, next_b) {
                (Some(next_a), Some(next_b)) => next_a <= next_b,
                (next_a, _) => next_a.is_some(),
            };
            if take_a {
                self.push_triangle(quad.up, [number(a), number(a + 1), number(b)]);
                a += 1;
            } else {
                self.push_triangle(quad.up, [number(a), number(b - 1), number(b)]);
                b -= 1;
            }
        }
    }

    fn push_corner(&mut self, quad: &Quad, at: [usize; 2]) {
        self.positions.extend(quad.corner(at));
        let mut normal = [0i8; 3];
        normal[quad.axis] = if quad.up { 127 } else { -127 };
        self.normals.extend(normal);
        let shade = SHADES[usize::from(quad.shade(at))];
        let color = quad.face.material.color(quad.axis == 1 && quad.up);
        self.colors.extend(color.map(|part| linear(part, shade)));
    }

    fn push_triangle(&mut self, up: bool, [a, b, c]: [u32; 3]) {
        self.indices.extend(if up { [a, b, c] } else { [a, c, b] });
    }
}

/// Converts an sRGB component to linear light, darkened.
fn linear(part: u8, shade: f32) -> u8 {
    let part = f32::from(part) / 255.0;
    // A polynomial close to sRGB's curve, without a power function.
    let light = part * (part * (part * 0.305_306 + 0.682_171_1) + 0.012_522_878);
    libm::roundf(light * shade * 255.0) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::Op;
    use crate::settings::{Generator, Settings};

    fn empty() -> Terrain {
        Terrain::new(&Settings::new([96, 96, 96], Generator::Empty))
    }

    fn triangles(mesh: &Mesh) -> usize {
        assert_eq!(mesh.positions.len(), mesh.normals.len());
        assert_eq!(mesh.positions.len(), mesh.colors.len());
        assert_eq!(mesh.indices.len() % 3, 0);
        mesh.indices.len() / 3
    }

    fn hills() -> Terrain {
        let generator = Generator::Hills {
            seed: 3,
            height: 30,
            amplitude: 20,
            scale: 40,
            water: 28,
            snow: 0,
            trees: 1.0,
            clearing: None,
        };
        Terrain::new(&Settings::new([96, 96, 96], generator))
    }

    fn cross(mesh: &Mesh, triangle: &[u32]) -> [i32; 3] {
        let corner = |at: u32, axis: usize| i32::from(mesh.positions[at as usize * 3 + axis]);
        let edge = |to: u32| {
            std::array::from_fn::<i32, 3, _>(|axis| corner(to, axis) - corner(triangle[0], axis))
        };
        let (a, b) = (edge(triangle[1]), edge(triangle[2]));
        [
            a[1] * b[2] - a[2] * b[1],
            a[2] * b[0] - a[0] * b[2],
            a[0] * b[1] - a[1] * b[0],
        ]
    }

    /// Area of the triangles in block faces.
    fn area(mesh: &Mesh) -> i32 {
        let twice: i32 = mesh
            .indices
            .chunks(3)
            .map(|triangle| {
                cross(mesh, triangle)
                    .iter()
                    .map(|part| part.abs())
                    .sum::<i32>()
            })
            .sum();
        assert_eq!(twice % 2, 0);
        twice / 2
    }

    /// Every triangle is counter-clockwise, seen from where it faces.
    fn assert_facing_out(mesh: &Mesh) {
        for triangle in mesh.indices.chunks(3) {
            let cross = cross(mesh, triangle);
            let normal = &mesh.normals[triangle[0] as usize * 3..][..3];
            let dot: i32 = (0..3)
                .map(|axis| cross[axis] * i32::from(normal[axis]))
                .sum();
            assert!(dot > 0, "{triangle:?}");
        }
    }

    #[test]
    fn a_box_has_six_faces_however_large() {
        let mut terrain = empty();
        assert!(mesh(&terrain, [0, 1, 0]).is_empty());
        terrain.apply(&Op::fill(
            [4.0, 40.0, 4.0],
            [20.0, 50.0, 9.0],
            Material::STONE,
        ));
        let made = mesh(&terrain, [0, 1, 0]);
        assert_eq!(triangles(&made), 12);
        assert_eq!(made.clear_from as usize, made.indices.len());
        assert_facing_out(&made);
    }

    #[test]
    fn what_lies_between_chunks_is_not_drawn() {
        let mut terrain = empty();
        terrain.apply(&Op::fill(
            [-48.0, 0.0, -48.0],
            [48.0, 64.0, 48.0],
            Material::STONE,
        ));
        assert!(mesh(&terrain, [0, 0, 0]).is_empty(), "all around is stone");
        // Top only: its sides are adjacent to other chunks.
        let made = mesh(&terrain, [0, 1, 0]);
        assert_eq!(area(&made), 32 * 32);
        assert_facing_out(&made);
        terrain.apply(&Op::fill(
            [-48.0, 64.0, -48.0],
            [48.0, 70.0, 48.0],
            Material::WATER,
        ));
        let made = mesh(&terrain, [0, 2, 0]);
        assert_eq!(
            (area(&made), made.clear_from),
            (32 * 32, 0),
            "the water's surface"
        );
        let below = area(&mesh(&terrain, [0, 1, 0]));
        assert_eq!(below, 32 * 32, "the ground below it");
    }

    #[test]
    fn corners_are_darker() {
        let mut terrain = empty();
        terrain.apply(&Op::fill(
            [0.0, 8.0, 0.0],
            [32.0, 12.0, 32.0],
            Material::STONE,
        ));
        let plain = mesh(&terrain, [0, 0, 0]);
        terrain.apply(&Op::fill(
            [10.0, 12.0, 10.0],
            [12.0, 14.0, 12.0],
            Material::STONE,
        ));
        let made = mesh(&terrain, [0, 0, 0]);
        assert!(triangles(&made) > triangles(&plain) + 10);
        let darkest = |mesh: &Mesh| mesh.colors.iter().copied().min();
        assert!(darkest(&made) < darkest(&plain));
        assert_facing_out(&made);
    }

    /// The triangles cover exactly as many block faces as are visible.
    #[test]
    fn merged_faces_cover_exactly_what_is_seen() {
        let terrain = hills();
        for at in [[0, 0, 0], [0, 1, 0], [-1, 1, 0], [1, 0, -1]] {
            let made = mesh(&terrain, at);
            assert_facing_out(&made);
            let first = grid::first_block(at);
            let mut faces = 0i32;
            for index in 0..grid::CHUNK_BLOCKS {
                let local = [index & 31, index >> 10, index >> 5 & 31];
                let block: [i32; 3] = std::array::from_fn(|axis| first[axis] + local[axis] as i32);
                let own = terrain.block(block);
                for step in NEIGHBOURS {
                    let beside: [i32; 3] = std::array::from_fn(|axis| block[axis] + step[axis]);
                    let other = terrain.block(beside);
                    let seen = own != Material::AIR && other.is_clear() && other != own;
                    faces += i32::from(seen && beside[1] >= 0);
                }
            }
            assert_eq!(area(&made), faces, "{at:?}");
        }
    }

    /// A vertex on another triangle's edge causes visible cracks.
    #[test]
    fn no_corner_lies_on_the_edge_of_another_triangle() {
        let mut terrain = hills();
        // A structure across the border of chunks.
        terrain.apply(&Op::fill(
            [-3.0, 40.0, -2.0],
            [5.0, 47.0, 1.0],
            Material::from_name("planks").unwrap(),
        ));
        let chunks =
            (-1..=1).flat_map(|x| (0..3).flat_map(move |y| (-1..=1).map(move |z| [x, y, z])));
        let mut corners = std::collections::BTreeSet::new();
        let mut edges = std::collections::BTreeSet::new();
        for at in chunks {
            let made = mesh(&terrain, at);
            let first = grid::first_block(at);
            let corner = |index: u32| -> [i32; 3] {
                let local = &made.positions[index as usize * 3..][..3];
                std::array::from_fn(|axis| first[axis] + i32::from(local[axis]))
            };
            for triangle in made.indices.chunks(3) {
                for side in 0..3 {
                    let (a, b) = (corner(triangle[side]), corner(triangle[(side + 1) % 3]));
                    corners.insert(a);
                    edges.insert((a.min(b), a.max(b)));
                }
            }
        }
        assert!(corners.len() > 1000);
        for (a, b) in edges {
            let way: [i32; 3] = std::array::from_fn(|axis| b[axis] - a[axis]);
            let steps = way.iter().fold(0i32, |all, part| gcd(all, part.abs()));
            for step in 1..steps {
                let between = std::array::from_fn(|axis| a[axis] + way[axis] / steps * step);
                assert!(
                    !corners.contains(&between),
                    "{between:?} between {a:?} and {b:?}"
                );
            }
        }
    }

    fn gcd(a: i32, b: i32) -> i32 {
        if b == 0 { a } else { gcd(b, a % b) }
    }
}
