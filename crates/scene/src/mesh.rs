//! The triangles of mesh shapes: what is solid of a glTF asset.
//!
//! The server reads them from the asset (`frolic_package::gltf`, strict and bounded) and sends them to clients as
//! bytes, so that both collide with the very same numbers and browsers need no glTF reader for it.

/// The most triangles that one mesh shape may have: what is solid should be simple.
pub const TRIANGLES_MAX: usize = 20_000;
/// The most corners.
pub const CORNERS_MAX: usize = 3 * TRIANGLES_MAX;
/// How far from the origin a corner may be, in metres.
const COORDINATE_MAX: f32 = 100_000.0;

/// A surface of triangles. Corners that are shared are there once; each triangle has three
/// different corners, and faces where they go round against the clock.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Triangles {
    corners: Vec<[f32; 3]>,
    triangles: Vec<[u32; 3]>,
}

impl Triangles {
    /// Takes triangles in, if they make sense: not too many, with finite corners that exist.
    /// Triangles with two corners in one place are left out.
    pub fn new(corners: Vec<[f32; 3]>, triangles: Vec<[u32; 3]>) -> Option<Self> {
        let sane = |corner: &[f32; 3]| {
            let near = |part: &f32| part.is_finite() && part.abs() <= COORDINATE_MAX;
            corner.iter().all(near)
        };
        let there = |triangle: &[u32; 3]| {
            let exists = |index: &u32| (*index as usize) < corners.len();
            triangle.iter().all(exists)
        };
        let ok = corners.len() <= CORNERS_MAX
            && triangles.len() <= TRIANGLES_MAX
            && corners.iter().all(sane)
            && triangles.iter().all(there);
        ok.then(|| Self::welded(&corners, &triangles))
    }

    /// One corner for each place, and only triangles with three places.
    fn welded(corners: &[[f32; 3]], triangles: &[[u32; 3]]) -> Self {
        let mut known = std::collections::BTreeMap::new();
        let mut welded = Self::default();
        for triangle in triangles {
            // A zero and a negative zero are one place.
            let places = triangle.map(|index| corners[index as usize].map(|part| part + 0.0));
            let [a, b, c] = places;
            if a == b || b == c || c == a {
                continue;
            }
            welded.triangles.push(places.map(|place| {
                let next = known.len() as u32;
                *known.entry(place.map(f32::to_bits)).or_insert_with(|| {
                    welded.corners.push(place);
                    next
                })
            }));
        }
        welded
    }

    /// Where the corners are.
    pub fn corners(&self) -> &[[f32; 3]] {
        &self.corners
    }

    /// Which three corners each triangle has.
    pub fn triangles(&self) -> &[[u32; 3]] {
        &self.triangles
    }

    /// The bytes for the wire.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(8 + 12 * (self.corners.len() + self.triangles.len()));
        bytes.extend((self.corners.len() as u32).to_le_bytes());
        bytes.extend((self.triangles.len() as u32).to_le_bytes());
        let parts = self.corners.iter().flatten();
        bytes.extend(parts.flat_map(|part| part.to_le_bytes()));
        let indices = self.triangles.iter().flatten();
        bytes.extend(indices.flat_map(|index| index.to_le_bytes()));
        bytes
    }

    /// Reads what [`Triangles::encode`] wrote; none when the bytes are not that.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| {
            let bytes = bytes.get(at..at + 4)?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?))
        };
        let (corners, triangles) = (word(0)? as usize, word(4)? as usize);
        let sane = corners <= CORNERS_MAX && triangles <= TRIANGLES_MAX;
        if !sane || bytes.len() != 8 + 12 * (corners + triangles) {
            return None;
        }
        let three = |index: usize| {
            let at = 8 + 12 * index;
            Some([word(at)?, word(at + 4)?, word(at + 8)?])
        };
        let places = (0..corners).map(|index| Some(three(index)?.map(f32::from_bits)));
        let faces = (corners..corners + triangles).map(three);
        Self::new(
            places.collect::<Option<_>>()?,
            faces.collect::<Option<_>>()?,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_come_back_as_they_were_and_nonsense_does_not() {
        let corners = vec![
            [0.0, 0.0, 0.0],
            [1.0, 0.0, 0.0],
            [0.0, 0.0, 1.0],
            [-0.0, 0.0, 0.0],
        ];
        let mesh = Triangles::new(corners.clone(), vec![[0, 1, 2], [3, 2, 1], [0, 3, 1]]).unwrap();
        assert_eq!(mesh.corners().len(), 3, "one place is one corner");
        assert_eq!(
            mesh.triangles(),
            [[0, 1, 2], [0, 2, 1]],
            "flat ones are gone"
        );
        let bytes = mesh.encode();
        assert_eq!(Triangles::decode(&bytes).as_ref(), Some(&mesh));
        for cut in 0..bytes.len() {
            assert_eq!(Triangles::decode(&bytes[..cut]), None);
        }
        let mut wild = bytes.clone();
        *wild.last_mut().unwrap() = 0xff;
        assert_eq!(Triangles::decode(&wild), None, "a corner that is not there");
        let mut many = bytes;
        many[3] = 0xff;
        assert_eq!(Triangles::decode(&many), None);
        assert!(Triangles::new(vec![[f32::NAN; 3]], vec![]).is_none());
        assert!(Triangles::new(corners, vec![[0, 1, 4]]).is_none());
    }
}
