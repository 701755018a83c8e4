//! A chunk of 32³ blocks: a palette of materials, and for each block an index
//! into it, in as few bits as possible. A single material takes none.

use crate::grid::CHUNK_BLOCKS;
use crate::material::Material;

/// The blocks of a chunk; see [`crate::grid`] for their order.
#[derive(Clone, Debug)]
pub struct Chunk(Blocks);

#[derive(Clone, Debug)]
enum Blocks {
    Uniform(Material),
    Mixed(Box<Mixed>),
}

#[derive(Clone, Debug)]
struct Mixed {
    palette: Vec<Material>,
    /// Bits per block: 1, 2, 4 or 8, so that none is split between words.
    bits: u32,
    words: Box<[u64]>,
}

/// Equal if all blocks are, whatever their representation.
impl PartialEq for Chunk {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Blocks::Uniform(a), Blocks::Uniform(b)) => a == b,
            _ => (0..CHUNK_BLOCKS).all(|at| self.get(at) == other.get(at)),
        }
    }
}

impl Eq for Chunk {}

/// Bits needed to index this many materials.
fn bits_for(count: usize) -> u32 {
    match count {
        0..=2 => 1,
        3..=4 => 2,
        5..=16 => 4,
        _ => 8,
    }
}

impl Mixed {
    fn new(palette: Vec<Material>) -> Self {
        let bits = bits_for(palette.len());
        Self {
            palette,
            bits,
            words: vec![0; CHUNK_BLOCKS * bits as usize / 64].into(),
        }
    }

    #[inline]
    fn number(&self, at: usize) -> usize {
        let bit = at * self.bits as usize;
        (self.words[bit / 64] >> (bit % 64)) as usize & ((1 << self.bits) - 1)
    }

    #[inline]
    fn set_number(&mut self, at: usize, number: usize) {
        let bit = at * self.bits as usize;
        let mask = ((1u64 << self.bits) - 1) << (bit % 64);
        let word = &mut self.words[bit / 64];
        *word = (*word & !mask) | ((number as u64) << (bit % 64));
    }

    /// The palette index of a material, which is added if necessary.
    fn number_of(&mut self, material: Material) -> usize {
        if let Some(at) = self.palette.iter().position(|known| *known == material) {
            return at;
        }
        if self.palette.len() == 1 << self.bits {
            self.make_room();
        }
        self.palette.push(material);
        self.palette.len() - 1
    }

    /// Removes unused materials from the palette, and widens the indices if
    /// that does not free an entry.
    fn make_room(&mut self) {
        let mut used = [None; 256];
        let mut palette = Vec::new();
        for at in 0..CHUNK_BLOCKS {
            let number = self.number(at);
            if used[number].is_none() {
                used[number] = Some(palette.len());
                palette.push(self.palette[number]);
            }
        }
        let mut fresh = Mixed {
            bits: bits_for(palette.len() + 1),
            palette: Vec::new(),
            words: Box::default(),
        };
        fresh.words = vec![0; CHUNK_BLOCKS * fresh.bits as usize / 64].into();
        fresh.palette = palette;
        for at in 0..CHUNK_BLOCKS {
            fresh.set_number(at, used[self.number(at)].unwrap_or(0));
        }
        *self = fresh;
    }

    /// The one material that all blocks have, if there is one.
    fn only(&self) -> Option<Material> {
        let first = self.number(0);
        let mut pattern = first as u64;
        let mut bits = self.bits;
        while bits < 64 {
            pattern |= pattern << bits;
            bits *= 2;
        }
        let same = self.words.iter().all(|word| *word == pattern);
        same.then(|| self.palette[first])
    }
}

impl Chunk {
    /// A chunk of one material.
    pub fn uniform(material: Material) -> Self {
        Self(Blocks::Uniform(material))
    }

    /// Built block by block.
    pub fn from_fn(mut material: impl FnMut(usize) -> Material) -> Self {
        let mut chunk = Self::uniform(material(0));
        {
            let mut writer = chunk.writer();
            for at in 1..CHUNK_BLOCKS {
                writer.set(at, material(at));
            }
        }
        chunk.tidy();
        chunk
    }

    /// From a palette and each block's index. None if an index is not in the
    /// palette.
    pub(crate) fn from_numbers(palette: Vec<Material>, words: Vec<u64>) -> Option<Self> {
        if let [only] = palette[..] {
            return words.is_empty().then_some(Self::uniform(only));
        }
        let bits = bits_for(palette.len());
        if words.len() != CHUNK_BLOCKS * bits as usize / 64 {
            return None;
        }
        let mixed = Mixed {
            bits,
            words: words.into(),
            palette,
        };
        if !(0..CHUNK_BLOCKS).all(|at| mixed.number(at) < mixed.palette.len()) {
            return None;
        }
        let mut chunk = Self(Blocks::Mixed(Box::new(mixed)));
        chunk.tidy();
        Some(chunk)
    }

    /// The materials in order of first occurrence, and each block's index among
    /// them.
    pub(crate) fn to_numbers(&self) -> (Vec<Material>, Box<[u64]>) {
        let mixed = match &self.0 {
            Blocks::Uniform(material) => return (vec![*material], Box::default()),
            Blocks::Mixed(mixed) => mixed,
        };
        let mut used = [None; 256];
        let mut palette = Vec::new();
        for at in 0..CHUNK_BLOCKS {
            let number = mixed.number(at);
            if used[number].is_none() {
                used[number] = Some(palette.len());
                palette.push(mixed.palette[number]);
            }
        }
        let mut packed = Mixed::new(palette);
        for at in 0..CHUNK_BLOCKS {
            packed.set_number(at, used[mixed.number(at)].unwrap_or(0));
        }
        (packed.palette, packed.words)
    }

    pub(crate) fn words_of(palette_len: usize) -> usize {
        match palette_len {
            1 => 0,
            count => CHUNK_BLOCKS * bits_for(count) as usize / 64,
        }
    }

    /// The material of a block.
    #[inline]
    pub fn get(&self, at: usize) -> Material {
        match &self.0 {
            Blocks::Uniform(material) => *material,
            Blocks::Mixed(mixed) => mixed.palette[mixed.number(at)],
        }
    }

    /// The one material of all blocks, if there is only one.
    pub fn only(&self) -> Option<Material> {
        match &self.0 {
            Blocks::Uniform(material) => Some(*material),
            Blocks::Mixed(_) => None,
        }
    }

    /// For changing many blocks; call [`Chunk::tidy`] afterwards.
    pub(crate) fn writer(&mut self) -> Writer<'_> {
        Writer { chunk: self }
    }

    /// Drops the indices if all blocks have become the same.
    pub(crate) fn tidy(&mut self) {
        if let Blocks::Mixed(mixed) = &self.0
            && let Some(material) = mixed.only()
        {
            self.0 = Blocks::Uniform(material);
        }
    }

    /// Heap memory in bytes.
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Blocks::Uniform(_) => 0,
            Blocks::Mixed(mixed) => {
                size_of::<Mixed>() + mixed.palette.capacity() + mixed.words.len() * 8
            }
        }
    }
}

/// Changes blocks of a chunk.
pub(crate) struct Writer<'a> {
    chunk: &'a mut Chunk,
}

impl Writer<'_> {
    pub fn get(&self, at: usize) -> Material {
        self.chunk.get(at)
    }

    /// Changes a block; false if it had that material already.
    #[inline]
    pub fn set(&mut self, at: usize, material: Material) -> bool {
        if let Blocks::Uniform(only) = self.chunk.0 {
            if only == material {
                return false;
            }
            self.chunk.0 = Blocks::Mixed(Box::new(Mixed::new(vec![only, material])));
        }
        let Blocks::Mixed(mixed) = &mut self.chunk.0 else {
            return false;
        };
        if mixed.palette[mixed.number(at)] == material {
            return false;
        }
        let number = mixed.number_of(material);
        mixed.set_number(at, number);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn material(number: u8) -> Material {
        Material::from_number(number % Material::COUNT as u8).unwrap()
    }

    #[test]
    fn one_material_takes_no_memory() {
        let mut chunk = Chunk::uniform(Material::STONE);
        assert_eq!(chunk.heap_bytes(), 0);
        assert!(!chunk.writer().set(5, Material::STONE));
        assert_eq!(chunk.only(), Some(Material::STONE));
        assert!(chunk.writer().set(5, Material::AIR));
        assert!((4096..4300).contains(&chunk.heap_bytes()), "one bit each");
        assert_eq!(
            (chunk.get(5), chunk.get(6)),
            (Material::AIR, Material::STONE)
        );
        chunk.writer().set(5, Material::STONE);
        chunk.tidy();
        assert_eq!(chunk.heap_bytes(), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// Behaves like an array while palettes grow and shrink.
        #[test]
        fn a_chunk_is_an_array(edits in prop::collection::vec((0..CHUNK_BLOCKS, 0..40u8), 0..400)) {
            let mut chunk = Chunk::uniform(Material::AIR);
            let mut model = vec![Material::AIR; CHUNK_BLOCKS];
            for (at, number) in edits {
                let wanted = material(number);
                let changed = chunk.writer().set(at, wanted);
                prop_assert_eq!(changed, model[at] != wanted);
                model[at] = wanted;
            }
            prop_assert!((0..CHUNK_BLOCKS).all(|at| chunk.get(at) == model[at]));
            let (palette, words) = chunk.to_numbers();
            let again = Chunk::from_numbers(palette, words.into_vec()).unwrap();
            prop_assert_eq!(&again, &chunk);
            prop_assert_eq!(Chunk::from_fn(|at| model[at]), chunk);
        }
    }
}
