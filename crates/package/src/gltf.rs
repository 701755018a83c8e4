//! Reads positions and indices of a glTF 2 asset, and nothing else.
//!
//! Every number of the file is foreign: offsets and lengths are checked against the bytes that
//! are there before anything is read or kept, and a node is visited once at most.

use std::borrow::Cow;

use serde::Deserialize;

use frolic_scene::{CORNERS_MAX, TRIANGLES_MAX, Triangles};

/// The largest file that is read.
const BYTES_MAX: usize = 16 << 20;
const NODES_MAX: usize = 10_000;

/// Why an asset gives no mesh.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MeshError {
    /// The bytes are not glTF 2.
    #[error("is not a glTF 2 file that can be read: {0}")]
    NotGltf(String),
    /// Something in it points where nothing is.
    #[error("is broken: {0}")]
    Broken(&'static str),
    /// It is in order, but not for a mesh shape.
    #[error("cannot be a mesh shape: {0}")]
    Unsupported(String),
}

use MeshError::{Broken, NotGltf, Unsupported};

/// Reads a glTF asset: `.glb`, or `.gltf` with its buffers inside.
///
/// # Errors
/// When it is not one, is too big, or needs something that is not read here.
pub fn read(bytes: &[u8]) -> Result<Triangles, MeshError> {
    if bytes.len() > BYTES_MAX {
        let message = format!("the file has {} bytes; at most {BYTES_MAX}", bytes.len());
        return Err(Unsupported(message));
    }
    let (json, binary) = match bytes.strip_prefix(b"glTF") {
        Some(rest) => chunks(rest)?,
        None => (bytes, None),
    };
    let document: Document =
        serde_json::from_slice(json).map_err(|cause| NotGltf(cause.to_string()))?;
    if let Some(extension) = document.extensions_required.first() {
        let name = frolic_scene::text::shown(extension);
        let message = format!("it needs the extension {name}; save it without");
        return Err(Unsupported(message));
    }
    let mut reader = Reader {
        buffers: document
            .buffers
            .iter()
            .enumerate()
            .map(|(index, buffer)| buffer.bytes(binary.filter(|_| index == 0)))
            .collect::<Result<_, _>>()?,
        document: &document,
        corners: Vec::new(),
        triangles: Vec::new(),
    };
    reader.walk()?;
    if reader.triangles.is_empty() {
        return Err(Unsupported("it has no triangles".to_owned()));
    }
    Triangles::new(reader.corners, reader.triangles)
        .ok_or(Broken("a corner is not a place within 100 km"))
}

/// The JSON and the binary chunk of a .glb, after its magic.
fn chunks(mut rest: &[u8]) -> Result<(&[u8], Option<&[u8]>), MeshError> {
    let mut word = || -> Result<u32, MeshError> {
        let (bytes, after) = rest
            .split_first_chunk::<4>()
            .ok_or(Broken("the file ends early"))?;
        rest = after;
        Ok(u32::from_le_bytes(*bytes))
    };
    if word()? != 2 {
        return Err(NotGltf("only version 2 is read".to_owned()));
    }
    word()?;
    let (json_bytes, json_kind) = (word()? as usize, word()?);
    let (json, mut rest) = rest
        .split_at_checked(json_bytes)
        .filter(|_| json_kind == u32::from_le_bytes(*b"JSON"))
        .ok_or(Broken("the file has no JSON where it says"))?;
    let mut binary = None;
    if let Some((head, after)) = rest.split_first_chunk::<8>() {
        let bytes = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        rest = after;
        if &head[4..] == b"BIN\0" {
            let bytes = rest.get(..bytes);
            binary = Some(bytes.ok_or(Broken("the binary part is shorter than it says"))?);
        }
    }
    Ok((json, binary))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    scene: Option<usize>,
    #[serde(default)]
    scenes: Vec<Roots>,
    #[serde(default)]
    nodes: Vec<Node>,
    #[serde(default)]
    meshes: Vec<Mesh>,
    #[serde(default)]
    accessors: Vec<Accessor>,
    #[serde(default)]
    buffer_views: Vec<BufferView>,
    #[serde(default)]
    buffers: Vec<Buffer>,
    #[serde(default)]
    extensions_required: Vec<String>,
}

#[derive(Deserialize)]
struct Roots {
    #[serde(default)]
    nodes: Vec<usize>,
}

#[derive(Deserialize)]
struct Node {
    mesh: Option<usize>,
    #[serde(default)]
    children: Vec<usize>,
    matrix: Option<[f32; 16]>,
    translation: Option<[f32; 3]>,
    rotation: Option<[f32; 4]>,
    scale: Option<[f32; 3]>,
}

#[derive(Deserialize)]
struct Mesh {
    primitives: Vec<Primitive>,
}

#[derive(Deserialize)]
struct Primitive {
    attributes: Attributes,
    indices: Option<usize>,
    mode: Option<u8>,
}

#[derive(Deserialize)]
struct Attributes {
    #[serde(rename = "POSITION")]
    position: Option<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Accessor {
    buffer_view: Option<usize>,
    #[serde(default)]
    byte_offset: usize,
    component_type: u32,
    count: usize,
    #[serde(rename = "type")]
    kind: String,
    sparse: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BufferView {
    buffer: usize,
    #[serde(default)]
    byte_offset: usize,
    byte_length: usize,
    byte_stride: Option<usize>,
}

#[derive(Deserialize)]
struct Buffer {
    uri: Option<String>,
}

impl Buffer {
    fn bytes<'a>(&'a self, binary: Option<&'a [u8]>) -> Result<Cow<'a, [u8]>, MeshError> {
        let Some(uri) = &self.uri else {
            return binary
                .map(Cow::Borrowed)
                .ok_or(Broken("a buffer has no bytes"));
        };
        let data = uri
            .strip_prefix("data:")
            .and_then(|data| data.split_once(";base64,"));
        let Some((_, text)) = data else {
            let message = "its buffers are in another file; save it as .glb";
            return Err(Unsupported(message.to_owned()));
        };
        let bytes = base64(text).ok_or(Broken("a buffer is not base64"))?;
        Ok(Cow::Owned(bytes))
    }
}

fn base64(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=').as_bytes();
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for group in text.chunks(4) {
        let mut bits = 0u32;
        for letter in group {
            let value = match letter {
                b'A'..=b'Z' => letter - b'A',
                b'a'..=b'z' => letter - b'a' + 26,
                b'0'..=b'9' => letter - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                _ => return None,
            };
            bits = bits << 6 | u32::from(value);
        }
        bits <<= 6 * (4 - group.len());
        let [_, a, b, c] = bits.to_be_bytes();
        bytes.extend_from_slice(&[a, b, c][..group.len() - 1]);
    }
    Some(bytes)
}

/// Three axes and a place: what a node does to its points.
#[derive(Clone, Copy)]
struct Affine([[f32; 3]; 4]);

impl Affine {
    const NONE: Affine = Affine([
        [1.0, 0.0, 0.0],
        [0.0, 1.0, 0.0],
        [0.0, 0.0, 1.0],
        [0.0, 0.0, 0.0],
    ]);

    fn of(node: &Node) -> Self {
        if let Some(m) = node.matrix {
            let column = |at: usize| [m[at], m[at + 1], m[at + 2]];
            return Affine([column(0), column(4), column(8), column(12)]);
        }
        let [x, y, z, w] = node.rotation.unwrap_or([0.0, 0.0, 0.0, 1.0]);
        let [sx, sy, sz] = node.scale.unwrap_or([1.0; 3]);
        let axis = |axis: [f32; 3], scale: f32| axis.map(|part| part * scale);
        Affine([
            axis(
                [
                    1.0 - 2.0 * (y * y + z * z),
                    2.0 * (x * y + w * z),
                    2.0 * (x * z - w * y),
                ],
                sx,
            ),
            axis(
                [
                    2.0 * (x * y - w * z),
                    1.0 - 2.0 * (x * x + z * z),
                    2.0 * (y * z + w * x),
                ],
                sy,
            ),
            axis(
                [
                    2.0 * (x * z + w * y),
                    2.0 * (y * z - w * x),
                    1.0 - 2.0 * (x * x + y * y),
                ],
                sz,
            ),
            node.translation.unwrap_or_default(),
        ])
    }

    fn direction(&self, [x, y, z]: [f32; 3]) -> [f32; 3] {
        let [a, b, c, _] = self.0;
        std::array::from_fn(|i| a[i] * x + b[i] * y + c[i] * z)
    }

    fn point(&self, point: [f32; 3]) -> [f32; 3] {
        let turned = self.direction(point);
        std::array::from_fn(|i| turned[i] + self.0[3][i])
    }

    fn then(&self, inner: &Affine) -> Affine {
        let [a, b, c, place] = inner.0;
        Affine([
            self.direction(a),
            self.direction(b),
            self.direction(c),
            self.point(place),
        ])
    }

    /// Whether it turns things inside out.
    fn mirrors(&self) -> bool {
        let [a, b, c, _] = self.0;
        let cross = [
            a[1] * b[2] - a[2] * b[1],
            a[2] * b[0] - a[0] * b[2],
            a[0] * b[1] - a[1] * b[0],
        ];
        cross[0] * c[0] + cross[1] * c[1] + cross[2] * c[2] < 0.0
    }
}

struct Reader<'d> {
    document: &'d Document,
    buffers: Vec<Cow<'d, [u8]>>,
    corners: Vec<[f32; 3]>,
    triangles: Vec<[u32; 3]>,
}

impl Reader<'_> {
    fn walk(&mut self) -> Result<(), MeshError> {
        let document = self.document;
        if document.nodes.len() > NODES_MAX {
            return Err(Unsupported(format!("it has more than {NODES_MAX} nodes")));
        }
        let Some(roots) = document.scenes.get(document.scene.unwrap_or(0)) else {
            let all = 0..document.meshes.len();
            return all
                .into_iter()
                .try_for_each(|mesh| self.mesh(mesh, &Affine::NONE));
        };
        let mut visited = vec![false; document.nodes.len()];
        let mut open: Vec<(usize, Affine)> = roots
            .nodes
            .iter()
            .rev()
            .map(|root| (*root, Affine::NONE))
            .collect();
        while let Some((index, above)) = open.pop() {
            let node = document
                .nodes
                .get(index)
                .ok_or(Broken("a node is missing"))?;
            if std::mem::replace(&mut visited[index], true) {
                return Err(Broken("a node is in two places"));
            }
            let place = above.then(&Affine::of(node));
            if let Some(mesh) = node.mesh {
                self.mesh(mesh, &place)?;
            }
            if open.len() + node.children.len() > NODES_MAX {
                return Err(Broken("a node has too many children"));
            }
            open.extend(node.children.iter().rev().map(|child| (*child, place)));
        }
        Ok(())
    }

    fn mesh(&mut self, index: usize, place: &Affine) -> Result<(), MeshError> {
        let mesh = self
            .document
            .meshes
            .get(index)
            .ok_or(Broken("a mesh is missing"))?;
        mesh.primitives
            .iter()
            .try_for_each(|primitive| self.primitive(primitive, place))
    }

    fn primitive(&mut self, primitive: &Primitive, place: &Affine) -> Result<(), MeshError> {
        let mode = primitive.mode.unwrap_or(4);
        let Some(position) = primitive.attributes.position.filter(|_| mode >= 4) else {
            return Ok(()); // points and lines are not solid
        };
        let first = self.corners.len();
        let positions = self.elements(position, "VEC3", &[(5126, 4)], 3)?;
        if positions.count + first > CORNERS_MAX {
            let message = format!("it has more than {CORNERS_MAX} corners");
            return Err(Unsupported(message));
        }
        let points: Vec<[f32; 3]> = positions
            .map(|bytes| {
                let part = |at: usize| {
                    let part = bytes.get(at..at + 4).and_then(|b| b.try_into().ok());
                    part.map_or(0.0, f32::from_le_bytes)
                };
                place.point([part(0), part(4), part(8)])
            })
            .collect();
        let order: Vec<u32> = match primitive.indices {
            Some(indices) => {
                let sizes = [(5121, 1), (5123, 2), (5125, 4)];
                let elements = self.elements(indices, "SCALAR", &sizes, 1)?;
                if elements.count > 3 * TRIANGLES_MAX {
                    return Err(too_many());
                }
                let number = |bytes: &[u8]| {
                    bytes
                        .iter()
                        .rev()
                        .fold(0u32, |sum, byte| sum << 8 | u32::from(*byte))
                };
                elements.map(number).collect()
            }
            None => (0..points.len() as u32).collect(),
        };
        if order.iter().any(|index| *index as usize >= points.len()) {
            return Err(Broken("a triangle has a corner that is not there"));
        }
        self.corners.extend(points);
        let shifted = |index: u32| index + first as u32;
        let mirrors = place.mirrors();
        for triangle in faces(mode, &order)? {
            if self.triangles.len() >= TRIANGLES_MAX {
                return Err(too_many());
            }
            let [a, b, c] = triangle.map(shifted);
            self.triangles
                .push(if mirrors { [a, c, b] } else { [a, b, c] });
        }
        Ok(())
    }

    /// The elements of an accessor, each as its bytes; all of them are there.
    fn elements(
        &self,
        accessor: usize,
        kind: &str,
        sizes: &[(u32, usize)],
        parts: usize,
    ) -> Result<Elements<'_>, MeshError> {
        let document = self.document;
        let accessor = document
            .accessors
            .get(accessor)
            .ok_or(Broken("an accessor is missing"))?;
        if accessor.sparse.is_some() {
            return Err(Unsupported("it has sparse accessors".to_owned()));
        }
        let size = sizes
            .iter()
            .find(|(code, _)| *code == accessor.component_type);
        let Some((_, size)) = size.filter(|_| accessor.kind == kind) else {
            let message =
                "its positions or indices are of an unusual type; save it without quantization";
            return Err(Unsupported(message.to_owned()));
        };
        let view = accessor
            .buffer_view
            .and_then(|view| document.buffer_views.get(view));
        let view = view.ok_or(Broken("an accessor has no bytes"))?;
        let buffer = self
            .buffers
            .get(view.buffer)
            .ok_or(Broken("a buffer is missing"))?;
        let end = view.byte_offset.checked_add(view.byte_length);
        let bytes = end.and_then(|end| buffer.get(view.byte_offset..end));
        let bytes = bytes.and_then(|bytes| bytes.get(accessor.byte_offset..));
        let bytes = bytes.ok_or(Broken("a view reaches beyond its buffer"))?;
        let element = size * parts;
        let stride = view.byte_stride.unwrap_or(element);
        let needed = (accessor.count.max(1) - 1)
            .checked_mul(stride)
            .and_then(|before| before.checked_add(element));
        let fits = needed.is_some_and(|needed| needed <= bytes.len());
        if stride < element || accessor.count > 0 && !fits {
            return Err(Broken("an accessor reaches beyond its view"));
        }
        Ok(Elements {
            bytes,
            element,
            stride,
            count: accessor.count,
        })
    }
}

struct Elements<'b> {
    bytes: &'b [u8],
    element: usize,
    stride: usize,
    count: usize,
}

impl<'b> Elements<'b> {
    fn map<T: 'b>(self, read: impl Fn(&'b [u8]) -> T + 'b) -> impl Iterator<Item = T> + 'b {
        let Elements {
            bytes,
            element,
            stride,
            count,
        } = self;
        (0..count).map(move |index| {
            let at = index * stride;
            read(bytes.get(at..at + element).unwrap_or_default())
        })
    }
}

fn too_many() -> MeshError {
    let message = format!("it has more than {TRIANGLES_MAX} triangles; use a simpler mesh");
    Unsupported(message)
}

/// Triangles, a strip of them, or a fan.
fn faces(mode: u8, order: &[u32]) -> Result<Vec<[u32; 3]>, MeshError> {
    let strip = |(index, three): (usize, &[u32])| match index % 2 {
        0 => [three[0], three[1], three[2]],
        _ => [three[1], three[0], three[2]],
    };
    Ok(match mode {
        4 => order.as_chunks::<3>().0.to_vec(),
        5 => order.windows(3).enumerate().map(strip).collect(),
        6 => match order.split_first() {
            Some((first, rest)) => rest
                .windows(2)
                .map(|two| [*first, two[0], two[1]])
                .collect(),
            None => Vec::new(),
        },
        _ => return Err(Broken("a primitive is of an unknown mode")),
    })
}

#[cfg(test)]
mod tests;
