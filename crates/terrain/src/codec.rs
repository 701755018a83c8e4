//! Binary form of chunks: the number of materials, their numbers, then each
//! block's index, bit-packed as in memory; compressed with zstd for the
//! network.
//!
//! Input is not trusted: every length is checked before memory of that length
//! is allocated.

use std::io::Read;

use crate::chunk::Chunk;
use crate::grid::CHUNK_BLOCKS;
use crate::material::Material;

/// Longest uncompressed form: the palette and one byte per block.
const PLAIN_BYTES_MAX: usize = 1 + 256 + CHUNK_BLOCKS;
/// Longest compressed form; even noise does not exceed it.
pub const PACKED_BYTES_MAX: usize = PLAIN_BYTES_MAX + 1024;

/// Why bytes are not a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChunkError {
    /// The compressed form is longer than any chunk's.
    #[error("a chunk has at most {PACKED_BYTES_MAX} bytes")]
    TooLong,
    /// Not a zstd frame, or one of something larger.
    #[error("the chunk does not decompress")]
    NotCompressed,
    /// A material that does not exist, or a duplicate.
    #[error("the chunk's list of materials is wrong")]
    BadPalette,
    /// Too few or too many bytes for its materials.
    #[error("the chunk's blocks have the wrong length")]
    BadLength,
    /// A block with an index outside the palette.
    #[error("a block of the chunk has a material that is not in its list")]
    BadBlock,
}

/// A chunk as uncompressed bytes; deterministic.
pub fn to_bytes(chunk: &Chunk) -> Vec<u8> {
    let (palette, words) = chunk.to_numbers();
    let mut bytes = Vec::with_capacity(1 + palette.len() + words.len() * 8);
    bytes.push(palette.len() as u8);
    bytes.extend(palette.iter().map(|material| material.number()));
    for word in &words {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// Decodes a chunk from uncompressed bytes.
///
/// # Errors
/// If they are not exactly one chunk.
pub fn from_bytes(bytes: &[u8]) -> Result<Chunk, ChunkError> {
    let (&count, rest) = bytes.split_first().ok_or(ChunkError::BadLength)?;
    let count = usize::from(count);
    if count == 0 || count > Material::COUNT {
        return Err(ChunkError::BadPalette);
    }
    let (numbers, rest) = rest.split_at_checked(count).ok_or(ChunkError::BadLength)?;
    let mut palette = Vec::with_capacity(count);
    for &number in numbers {
        let material = Material::from_number(number).ok_or(ChunkError::BadPalette)?;
        if palette.contains(&material) {
            return Err(ChunkError::BadPalette);
        }
        palette.push(material);
    }
    if rest.len() != Chunk::words_of(count) * 8 {
        return Err(ChunkError::BadLength);
    }
    let words = rest.chunks_exact(8).map(|eight| {
        let mut word = [0; 8];
        word.copy_from_slice(eight);
        u64::from_le_bytes(word)
    });
    Chunk::from_numbers(palette, words.collect()).ok_or(ChunkError::BadBlock)
}

/// A chunk in compressed form.
#[cfg(feature = "compress")]
pub fn pack(chunk: &Chunk) -> Vec<u8> {
    let plain = to_bytes(chunk);
    // Compression into memory with a valid level cannot fail.
    zstd::bulk::compress(&plain, 3).unwrap_or_default()
}

/// Decodes a chunk from its compressed form.
///
/// # Errors
/// If it is not exactly one chunk.
pub fn unpack(packed: &[u8]) -> Result<Chunk, ChunkError> {
    if packed.len() > PACKED_BYTES_MAX {
        return Err(ChunkError::TooLong);
    }
    let mut decoder =
        ruzstd::decoding::StreamingDecoder::new(packed).map_err(|_| ChunkError::NotCompressed)?;
    let mut plain = Vec::new();
    let limit = PLAIN_BYTES_MAX as u64 + 1;
    decoder
        .by_ref()
        .take(limit)
        .read_to_end(&mut plain)
        .map_err(|_| ChunkError::NotCompressed)?;
    if plain.len() > PLAIN_BYTES_MAX {
        return Err(ChunkError::BadLength);
    }
    from_bytes(&plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn wrong_bytes_are_refused() {
        assert_eq!(from_bytes(&[]), Err(ChunkError::BadLength));
        assert_eq!(from_bytes(&[0]), Err(ChunkError::BadPalette));
        assert_eq!(from_bytes(&[255]), Err(ChunkError::BadPalette));
        assert_eq!(from_bytes(&[1]), Err(ChunkError::BadLength));
        assert_eq!(from_bytes(&[1, 250]), Err(ChunkError::BadPalette));
        assert_eq!(from_bytes(&[1, 3, 0]), Err(ChunkError::BadLength));
        assert_eq!(from_bytes(&[2, 3, 3]), Err(ChunkError::BadPalette));
        assert_eq!(from_bytes(&[1, 3]), Ok(Chunk::uniform(Material::STONE)));
        let mut three = vec![3, 0, 1, 2];
        three.resize(4 + 8192, 0xff);
        assert_eq!(from_bytes(&three), Err(ChunkError::BadBlock));
        assert_eq!(unpack(&[]), Err(ChunkError::NotCompressed));
        assert_eq!(
            unpack(&vec![0; PACKED_BYTES_MAX + 1]),
            Err(ChunkError::TooLong)
        );
        let bomb = zstd::bulk::compress(&vec![0u8; 50_000_000], 3).unwrap();
        assert!(bomb.len() < PACKED_BYTES_MAX);
        assert!(unpack(&bomb).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn packed_chunks_come_back(
            seed in any::<u64>(),
            kinds in 1..=Material::COUNT as u64,
            run in 1..500usize,
        ) {
            let mut state = seed | 1;
            let mut material = Material::AIR;
            let chunk = Chunk::from_fn(|at| {
                if at % run == 0 {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    material = Material::from_number(((state >> 33) % kinds) as u8).unwrap();
                }
                material
            });
            let packed = pack(&chunk);
            prop_assert!(packed.len() <= PACKED_BYTES_MAX);
            let again = unpack(&packed).unwrap();
            prop_assert_eq!(to_bytes(&again), to_bytes(&chunk));
            prop_assert_eq!(again, chunk);
        }
    }
}
