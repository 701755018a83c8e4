//! Chunks of terrain: from the network, and stored in packages.

use std::collections::BTreeMap;

use frolic_terrain::{Chunk, Edits, Material, codec};

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

/// Decoded chunks are the same after they are written and read again.
pub fn edits(bytes: &[u8]) {
    let Ok(edits) = Edits::from_bytes(bytes) else {
        return;
    };
    assert_eq!(edits.as_bytes(), bytes);
    let chunks: BTreeMap<_, _> = edits
        .positions()
        .filter_map(|at| Some((at, edits.get(at)?.clone())))
        .collect();
    assert_eq!(Edits::new(&chunks).as_ref(), Ok(&edits));
}

pub fn edit_seeds() -> Vec<Vec<u8>> {
    let stripes =
        Chunk::from_fn(|at| Material::from_number((at / 90 % 5) as u8).unwrap_or_default());
    let all = [
        ([-1, 0, 2], Chunk::uniform(Material::STONE)),
        ([0, 0, 0], stripes),
        ([7, 1, -3], Chunk::uniform(Material::AIR)),
    ];
    let files = (0..=all.len()).map(|count| {
        let chunks = all[..count].iter().cloned().collect();
        Edits::new(&chunks).map(|edits| edits.as_bytes().to_vec())
    });
    files.collect::<Result<_, _>>().expect("few chunks")
}
