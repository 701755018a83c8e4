//! Chunks as triangles: faces that can be seen, equal ones beside each other
//! merged into one, with colours that are darker in corners.

use crate::grid::{self, CHUNK_SIDE, ChunkPos};
use crate::material::Material;
use crate::query::NEIGHBOURS;
use crate::terrain::Terrain;

const SIDE: usize = CHUNK_SIDE as usize;
/// A chunk with one block of its neighbours around.
const PADDED: usize = SIDE + 2;
/// How bright a corner is by how few blocks stand around it.
const SHADES: [f32; 4] = [0.5, 0.7, 0.86, 1.0];

/// The triangles of a chunk, as graphics cards take them. Places are in
/// blocks from the chunk's lowest corner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mesh {
    /// x, y and z of each corner.
    pub positions: Vec<u8>,
    /// Which way each corner faces, 127 for one.
    pub normals: Vec<i8>,
    /// Red, green and blue of each corner, linear.
    pub colors: Vec<u8>,
    /// Three corners per triangle.
    pub indices: Vec<u32>,
    /// The index from which on triangles can be seen through.
    pub clear_from: u32,
}

impl Mesh {
    /// Whether there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }
}

/// A face in one plane of a chunk: its material and how bright its corners
/// are; none where nothing is seen.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Face {
    material: Material,
    shades: [u8; 4],
}

/// The triangles of a chunk, with its neighbours as they are now.
pub fn mesh(terrain: &Terrain, at: ChunkPos) -> Mesh {
    let mut mesh = Mesh::default();
    let Some(blocks) = Padded::new(terrain, at) else {
        return mesh;
    };
    for clear in [false, true] {
        if clear {
            mesh.clear_from = mesh.indices.len() as u32;
        }
        for (direction, step) in NEIGHBOURS.iter().enumerate() {
            let axis = direction / 2;
            let up = step[axis] > 0;
            let mut plane = [None; SIDE * SIDE];
            for layer in 0..SIDE {
                if blocks.faces(axis, up, layer, clear, &mut plane) {
                    merge(&mut plane, |quad| mesh.push(axis, up, layer, quad));
                }
            }
        }
    }
    mesh
}

/// Blocks of a chunk and around it, as numbers of materials.
struct Padded(Box<[Material]>);

impl Padded {
    /// None when nothing of the chunk can be seen.
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

    /// Copies what of a chunk is within one block of the one at `first`.
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
                        // Nobody sees the world from below.
                        None if y < bottom => Material::STONE,
                        None => Material::AIR,
                    };
                    let local = [x - first[0] + 1, y - first[1] + 1, z - first[2] + 1];
                    out[Self::index(local.map(|at| at as usize))] = material;
                }
            }
        }
    }

    fn index([x, y, z]: [usize; 3]) -> usize {
        (y * PADDED + z) * PADDED + x
    }

    fn get(&self, at: [usize; 3]) -> Material {
        self.0[Self::index(at)]
    }

    /// Fills a plane with the faces of a layer that point along an axis;
    /// false when there are none.
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

    /// How bright the corners of a face are, by the blocks in front of it.
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

/// Equal faces that make a rectangle.
struct Quad {
    face: Face,
    from: [usize; 2],
    to: [usize; 2],
}

/// Takes the faces of a plane as rectangles as large as they come.
fn merge(plane: &mut [Option<Face>; SIDE * SIDE], mut push: impl FnMut(Quad)) {
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
            push(Quad {
                face,
                from: [i, j],
                to: [i + width, j + height],
            });
            i += width;
        }
    }
}

impl Mesh {
    fn push(&mut self, axis: usize, up: bool, layer: usize, quad: Quad) {
        let first = (self.positions.len() / 3) as u32;
        let (u, v) = ((axis + 1) % 3, (axis + 2) % 3);
        let color = quad.face.material.color(axis == 1 && up);
        let corners = [[0, 0], [1, 0], [1, 1], [0, 1]];
        for (corner, shade) in corners.iter().zip(quad.face.shades) {
            let mut place = [0u8; 3];
            place[axis] = (layer + usize::from(up)) as u8;
            place[u] = [quad.from[0], quad.to[0]][corner[0]] as u8;
            place[v] = [quad.from[1], quad.to[1]][corner[1]] as u8;
            self.positions.extend(place);
            let mut normal = [0i8; 3];
            normal[axis] = if up { 127 } else { -127 };
            self.normals.extend(normal);
            let shade = SHADES[usize::from(shade)];
            self.colors.extend(color.map(|part| linear(part, shade)));
        }
        // Split so that one dark corner darkens one triangle only.
        let [a, b, c, d] = quad.face.shades;
        let order = if a + c >= b + d {
            [0, 1, 2, 0, 2, 3]
        } else {
            [1, 2, 3, 1, 3, 0]
        };
        let turned = |[a, b, c]: [u32; 3]| if up { [a, b, c] } else { [a, c, b] };
        for triangle in [
            [order[0], order[1], order[2]],
            [order[3], order[4], order[5]],
        ] {
            self.indices
                .extend(turned(triangle).map(|corner| first + corner));
        }
    }
}

/// A part of an sRGB colour as light, darkened.
fn linear(part: u8, shade: f32) -> u8 {
    let part = f32::from(part) / 255.0;
    // Near enough to sRGB's curve, without a power.
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

    fn quads(mesh: &Mesh) -> usize {
        assert_eq!(mesh.positions.len(), mesh.normals.len());
        assert_eq!(mesh.positions.len(), mesh.colors.len());
        assert_eq!(mesh.indices.len() % 6, 0);
        mesh.indices.len() / 6
    }

    /// Every triangle turns against the clock, seen from where it faces.
    fn assert_facing_out(mesh: &Mesh) {
        for triangle in mesh.indices.chunks(3) {
            let corner = |at: u32, axis: usize| f32::from(mesh.positions[at as usize * 3 + axis]);
            let edge = |to: u32| {
                std::array::from_fn::<f32, 3, _>(|axis| {
                    corner(to, axis) - corner(triangle[0], axis)
                })
            };
            let (a, b) = (edge(triangle[1]), edge(triangle[2]));
            let cross = [
                a[1] * b[2] - a[2] * b[1],
                a[2] * b[0] - a[0] * b[2],
                a[0] * b[1] - a[1] * b[0],
            ];
            let normal = &mesh.normals[triangle[0] as usize * 3..][..3];
            let dot: f32 = (0..3)
                .map(|axis| cross[axis] * f32::from(normal[axis]))
                .sum();
            assert!(dot > 0.0, "{triangle:?}");
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
        assert_eq!(quads(&made), 6);
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
        // Top only: its sides are beside other chunks.
        let made = mesh(&terrain, [0, 1, 0]);
        assert_eq!(quads(&made), 1);
        terrain.apply(&Op::fill(
            [-48.0, 64.0, -48.0],
            [48.0, 70.0, 48.0],
            Material::WATER,
        ));
        let made = mesh(&terrain, [0, 2, 0]);
        assert_eq!(
            (quads(&made), made.clear_from),
            (1, 0),
            "the water's surface"
        );
        assert_eq!(quads(&mesh(&terrain, [0, 1, 0])), 1, "the ground below it");
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
        assert!(quads(&made) > quads(&plain) + 5);
        let darkest = |mesh: &Mesh| mesh.colors.iter().copied().min();
        assert!(darkest(&made) < darkest(&plain));
        assert_facing_out(&made);
    }

    /// As many square blocks of faces as there are faces to be seen.
    #[test]
    fn merged_faces_cover_exactly_what_is_seen() {
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
        let terrain = Terrain::new(&Settings::new([96, 96, 96], generator));
        for at in [[0, 0, 0], [0, 1, 0], [-1, 1, 0], [1, 0, -1]] {
            let made = mesh(&terrain, at);
            assert_facing_out(&made);
            let mut area = 0;
            for quad in made.indices.chunks(6) {
                let corners = quad
                    .iter()
                    .map(|&at| &made.positions[at as usize * 3..][..3]);
                let span = |axis: usize| {
                    let all = corners.clone().map(|corner| u32::from(corner[axis]));
                    all.clone().max().unwrap() - all.min().unwrap()
                };
                area += span(0).max(1) * span(1).max(1) * span(2).max(1);
            }
            let first = grid::first_block(at);
            let mut faces = 0;
            for index in 0..grid::CHUNK_BLOCKS {
                let local = [index & 31, index >> 10, index >> 5 & 31];
                let block: [i32; 3] = std::array::from_fn(|axis| first[axis] + local[axis] as i32);
                let own = terrain.block(block);
                for step in NEIGHBOURS {
                    let beside: [i32; 3] = std::array::from_fn(|axis| block[axis] + step[axis]);
                    let other = terrain.block(beside);
                    let seen = own != Material::AIR && other.is_clear() && other != own;
                    faces += u32::from(seen && beside[1] >= 0);
                }
            }
            assert_eq!(area, faces, "{at:?}");
        }
    }
}
