//! Stored chunks of a terrain, as an editor writes them: the file `terrain/edits.bin` of a package.
//!
//! The file begins with [`MARK`] and the number of chunks. Each chunk follows with its position,
//! its length and its compressed form ([`codec`]), in ascending order of positions; all
//! numbers are little-endian and have four bytes. Input is not trusted: counts and lengths are
//! checked before memory of that size is allocated, and the memory of all chunks has a limit.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::chunk::Chunk;
use crate::codec::{self, ChunkError};
use crate::grid::ChunkPos;

/// Longest file.
pub const EDITS_BYTES_MAX: usize = 3 << 20;
/// Memory that its chunks may take: a short file can hold many large chunks.
const HEAP_BYTES_MAX: usize = 128 << 20;
/// Start of a file; the last byte is the version of the format.
const MARK: &[u8; 5] = b"FRTE\x01";

/// Chunks that replace those of generator and operations.
#[derive(Clone, Debug, Default)]
pub struct Edits {
    chunks: Arc<BTreeMap<ChunkPos, Chunk>>,
    /// The file: the exact bytes are written again.
    file: Arc<[u8]>,
}

/// Why bytes are not stored chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditsError {
    /// The file is too long.
    #[error("stored chunks have at most {EDITS_BYTES_MAX} bytes")]
    TooLong,
    /// It is another kind of file, or of a later version.
    #[error("not a file of stored chunks that this version reads")]
    WrongMark,
    /// It ends in the middle of a chunk.
    #[error("the file ends early")]
    Truncated,
    /// Bytes follow the last chunk.
    #[error("the file continues after its last chunk")]
    TrailingBytes,
    /// A chunk appears twice or before one with a lower position.
    #[error("chunk {0:?} is not in ascending order")]
    Unordered(ChunkPos),
    /// A chunk cannot be decoded.
    #[error("chunk {0:?}: {1}")]
    Chunk(ChunkPos, ChunkError),
    /// All chunks together take too much memory.
    #[error("the chunks take more than {HEAP_BYTES_MAX} bytes of memory")]
    TooLarge,
}

impl Edits {
    /// Reads a file.
    ///
    /// # Errors
    /// If it is not exactly a file of stored chunks.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, EditsError> {
        if bytes.len() > EDITS_BYTES_MAX {
            return Err(EditsError::TooLong);
        }
        let rest = bytes.strip_prefix(MARK).ok_or(EditsError::WrongMark)?;
        let mut rest = Reader(rest);
        let mut chunks: BTreeMap<ChunkPos, Chunk> = BTreeMap::new();
        let mut heap_bytes = 0;
        for _ in 0..rest.number()? {
            let at = [rest.number()?, rest.number()?, rest.number()?].map(u32::cast_signed);
            let last = chunks.last_key_value();
            if last.is_some_and(|(last, _)| *last >= at) {
                return Err(EditsError::Unordered(at));
            }
            let length = rest.number()? as usize;
            let chunk = codec::unpack(rest.take(length)?);
            let chunk = chunk.map_err(|error| EditsError::Chunk(at, error))?;
            heap_bytes += size_of::<Chunk>() + chunk.heap_bytes();
            if heap_bytes > HEAP_BYTES_MAX {
                return Err(EditsError::TooLarge);
            }
            chunks.insert(at, chunk);
        }
        if !rest.0.is_empty() {
            return Err(EditsError::TrailingBytes);
        }
        Ok(Self {
            chunks: Arc::new(chunks),
            file: bytes.into(),
        })
    }

    /// Stores chunks.
    ///
    /// # Errors
    /// If they are too many.
    #[cfg(feature = "compress")]
    pub fn new(chunks: &BTreeMap<ChunkPos, Chunk>) -> Result<Self, EditsError> {
        let mut bytes = MARK.to_vec();
        bytes.extend_from_slice(&(chunks.len() as u32).to_le_bytes());
        for (at, chunk) in chunks {
            let packed = codec::pack(chunk);
            at.iter().for_each(|part| bytes.extend(part.to_le_bytes()));
            bytes.extend((packed.len() as u32).to_le_bytes());
            bytes.extend(packed);
        }
        Self::from_bytes(&bytes)
    }

    /// The file.
    pub fn as_bytes(&self) -> &[u8] {
        &self.file
    }

    /// Whether no chunk is stored.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// A stored chunk.
    pub fn get(&self, at: ChunkPos) -> Option<&Chunk> {
        self.chunks.get(&at)
    }

    /// Positions of all stored chunks, in ascending order.
    pub fn positions(&self) -> impl Iterator<Item = ChunkPos> + '_ {
        self.chunks.keys().copied()
    }
}

impl PartialEq for Edits {
    fn eq(&self, other: &Self) -> bool {
        self.chunks == other.chunks
    }
}

/// Base64 of the file: as clients receive it with the scene.
impl Serialize for Edits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64.encode(&self.file))
    }
}

impl<'de> Deserialize<'de> for Edits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.len() > EDITS_BYTES_MAX.div_ceil(3) * 4 {
            return Err(D::Error::custom(EditsError::TooLong));
        }
        let bytes = BASE64.decode(text).map_err(D::Error::custom)?;
        Edits::from_bytes(&bytes).map_err(D::Error::custom)
    }
}

/// The rest of the file.
struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn take(&mut self, length: usize) -> Result<&'b [u8], EditsError> {
        let (taken, rest) = self
            .0
            .split_at_checked(length)
            .ok_or(EditsError::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u32, EditsError> {
        let (number, rest) = self.0.split_first_chunk().ok_or(EditsError::Truncated)?;
        self.0 = rest;
        Ok(u32::from_le_bytes(*number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, Generator, Material, Op, Settings, Shape, Terrain};

    fn two() -> BTreeMap<ChunkPos, Chunk> {
        let stripes = Chunk::from_fn(|at| match at % 3 {
            0 => Material::SAND,
            _ => Material::AIR,
        });
        BTreeMap::from([
            ([-1, 0, 0], Chunk::uniform(Material::STONE)),
            ([0, 0, 0], stripes),
        ])
    }

    #[test]
    fn stored_chunks_come_back_from_file_and_json() {
        let edits = Edits::new(&two()).unwrap();
        let again = Edits::from_bytes(edits.as_bytes()).unwrap();
        assert_eq!(
            again.positions().collect::<Vec<_>>(),
            [[-1, 0, 0], [0, 0, 0]]
        );
        assert_eq!(again.get([0, 0, 0]), two().get(&[0, 0, 0]));
        let text = serde_json::to_string(&edits).unwrap();
        let read: Edits = serde_json::from_str(&text).unwrap();
        assert_eq!(read, edits);
        assert_eq!(read.as_bytes(), edits.as_bytes());
    }

    #[test]
    fn a_stored_chunk_replaces_generator_and_operations_and_is_restored_by_a_reset() {
        let mut settings = Settings::new([64, 32, 64], Generator::Empty);
        settings.ops.push(Op {
            action: Action::Add,
            center: [0.0, 4.0, 0.0],
            shape: Shape::Sphere { radius: 3.0 },
            material: Material::WOOD,
        });
        settings.edits = Edits::new(&two()).unwrap();
        let mut terrain = Terrain::new(&settings);
        let stored = two();
        assert_eq!(terrain.chunk([0, 0, 0]), stored.get(&[0, 0, 0]));
        assert_eq!(terrain.edited().count(), 0, "as the package has it");
        let dig = Op {
            action: Action::Subtract,
            center: [4.0, 4.0, 4.0],
            shape: Shape::Sphere { radius: 3.0 },
            material: Material::AIR,
        };
        assert!(!terrain.apply(&dig).is_empty());
        assert_ne!(terrain.chunk([0, 0, 0]), stored.get(&[0, 0, 0]));
        terrain.reset();
        assert_eq!(terrain.chunk([0, 0, 0]), stored.get(&[0, 0, 0]));
    }

    #[test]
    fn chunks_outside_of_the_terrain_are_a_problem() {
        let mut settings = Settings::new([32, 32, 32], Generator::Empty);
        settings.edits = Edits::new(&two()).unwrap();
        let keys: Vec<_> = settings.check().iter().map(|problem| problem.key).collect();
        assert_eq!(keys, ["edits"]);
    }

    #[test]
    fn wrong_files_are_refused() {
        let good = Edits::new(&two()).unwrap().as_bytes().to_vec();
        let refused = |bytes: &[u8]| Edits::from_bytes(bytes).unwrap_err();
        assert_eq!(refused(b""), EditsError::WrongMark);
        assert_eq!(refused(b"FRTE\x02"), EditsError::WrongMark);
        for end in MARK.len()..good.len() {
            assert_eq!(refused(&good[..end]), EditsError::Truncated, "{end}");
        }
        let mut longer = good.clone();
        longer.push(0);
        assert_eq!(refused(&longer), EditsError::TrailingBytes);
        assert_eq!(refused(&vec![0; EDITS_BYTES_MAX + 1]), EditsError::TooLong);
        // The same chunk twice.
        let chunk = &good[MARK.len() + 4..];
        let length = 16 + u32::from_le_bytes(chunk[12..16].try_into().unwrap()) as usize;
        let mut twice = [&MARK[..], &2u32.to_le_bytes()].concat();
        twice.extend([&chunk[..length], &chunk[..length]].concat());
        assert_eq!(refused(&twice), EditsError::Unordered([-1, 0, 0]));
        // A chunk that is none, and a count without chunks.
        let mut broken = good.clone();
        let last = MARK.len() + 4 + 16;
        broken[last] ^= 0xff;
        assert!(matches!(refused(&broken), EditsError::Chunk([-1, 0, 0], _)));
        let many = [&MARK[..], &u32::MAX.to_le_bytes()].concat();
        assert_eq!(refused(&many), EditsError::Truncated);
    }

    /// Each of these chunks compresses to a few hundred bytes.
    #[test]
    fn a_short_file_cannot_take_much_memory() {
        let materials = Material::COUNT as u8;
        let chunk =
            Chunk::from_fn(|at| Material::from_number((at as u8) % materials).unwrap_or_default());
        let count = HEAP_BYTES_MAX / chunk.heap_bytes() + 1;
        let packed = codec::pack(&chunk);
        let mut bytes = [&MARK[..], &(count as u32).to_le_bytes()].concat();
        for x in 0..count as i32 {
            bytes.extend([x, 0, 0].into_iter().flat_map(i32::to_le_bytes));
            bytes.extend((packed.len() as u32).to_le_bytes());
            bytes.extend(&packed);
        }
        assert!(bytes.len() < EDITS_BYTES_MAX, "{}", bytes.len());
        assert_eq!(Edits::from_bytes(&bytes), Err(EditsError::TooLarge));
    }
}
