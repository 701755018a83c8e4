//! Chunks of terrain from the network.

use frolic_terrain::{Chunk, Material, codec};

/// The first byte says whether what follows is packed.
pub fn chunk(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else {
        return;
    };
    let read = if kind % 2 == 0 {
        codec::from_bytes(rest)
    } else {
        codec::unpack(rest)
    };
    if let Ok(chunk) = read {
        let plain = codec::to_bytes(&chunk);
        assert_eq!(codec::from_bytes(&plain).as_ref(), Ok(&chunk));
        assert_eq!(codec::unpack(&codec::pack(&chunk)), Ok(chunk));
    }
}

pub fn seeds() -> Vec<Vec<u8>> {
    let kinds = |count: usize| {
        Chunk::from_fn(|at| Material::from_number((at / 700 % count) as u8).unwrap_or_default())
    };
    let chunks = [1, 2, 3, 9].map(kinds);
    let plain = chunks.iter().map(|chunk| (0, codec::to_bytes(chunk)));
    let packed = chunks.iter().map(|chunk| (1, codec::pack(chunk)));
    plain
        .chain(packed)
        .map(|(kind, bytes)| [vec![kind], bytes].concat())
        .collect()
}
