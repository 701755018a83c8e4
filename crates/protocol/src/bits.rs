//! Writing and reading single bits, and the variable-length numbers of snapshots.

/// Why bits could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the message ends too early or holds a number out of range")]
pub struct BitError;

/// Collects bits, least significant first.
#[derive(Default)]
pub struct BitWriter {
    bytes: Vec<u8>,
    pending: u64,
    pending_bits: u32,
}

impl BitWriter {
    /// An empty writer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes behind what `bytes` holds already.
    pub fn after(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            ..Self::default()
        }
    }

    /// The lowest `count` (at most 32) bits of `value`.
    pub fn bits(&mut self, value: u32, count: u32) {
        debug_assert!(count == 32 || value < 1 << count);
        self.pending |= u64::from(value) << self.pending_bits;
        self.pending_bits += count;
        if self.pending_bits >= 32 {
            self.bytes
                .extend_from_slice(&(self.pending as u32).to_le_bytes());
            self.pending >>= 32;
            self.pending_bits -= 32;
        }
    }

    /// The lowest `count` (at most 32) bits of a number in two's complement.
    pub fn signed_bits(&mut self, value: i32, count: u32) {
        self.bits(value as u32 & (u32::MAX >> (32 - count)), count);
    }

    /// One bit.
    pub fn flag(&mut self, flag: bool) {
        self.bits(u32::from(flag), 1);
    }

    /// A float, bit for bit.
    pub fn float(&mut self, value: f32) {
        self.bits(value.to_bits(), 32);
    }

    /// Any number; numbers below `1 << low_bits` are shortest (Exp-Golomb).
    pub fn number(&mut self, value: u32, low_bits: u32) {
        let shifted = (u64::from(value) >> low_bits) + 1;
        let width = 63 - shifted.leading_zeros();
        self.bits(0, width);
        self.flag(true);
        if width > 0 {
            self.bits((shifted & ((1 << width) - 1)) as u32, width);
        }
        if low_bits > 0 {
            self.bits(value & ((1 << low_bits) - 1), low_bits);
        }
    }

    /// A signed number; small ones of either sign are shortest.
    pub fn signed(&mut self, value: i32, low_bits: u32) {
        self.number(((value << 1) ^ (value >> 31)) as u32, low_bits);
    }

    /// All bytes; the last one is padded with zeros.
    pub fn finish(mut self) -> Vec<u8> {
        let left = self.pending_bits.div_ceil(8) as usize;
        self.bytes
            .extend_from_slice(&self.pending.to_le_bytes()[..left]);
        self.bytes
    }
}

/// Reads what [`BitWriter`] wrote.
pub struct BitReader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> BitReader<'a> {
    /// Reads from the first bit of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// How many bits are left: a bound on how much can still follow.
    pub fn remaining(&self) -> usize {
        self.bytes.len() * 8 - self.position
    }

    /// Skips to the next whole byte.
    pub fn align(&mut self) {
        self.position = self.position.next_multiple_of(8);
    }

    /// The next `count` (at most 32) bits.
    ///
    /// # Errors
    /// When fewer are left.
    pub fn bits(&mut self, count: u32) -> Result<u32, BitError> {
        if self.remaining() < count as usize {
            return Err(BitError);
        }
        let first = self.position / 8;
        let mut window = [0u8; 8];
        let take = (self.bytes.len() - first).min(8);
        window[..take].copy_from_slice(&self.bytes[first..first + take]);
        let value = u64::from_le_bytes(window) >> (self.position % 8);
        self.position += count as usize;
        Ok((value & ((1u64 << count) - 1)) as u32)
    }

    /// One bit.
    ///
    /// # Errors
    /// At the end.
    pub fn flag(&mut self) -> Result<bool, BitError> {
        Ok(self.bits(1)? == 1)
    }

    /// A finite float; others would poison whatever computes with them.
    ///
    /// # Errors
    /// At the end, or when it is not finite.
    pub fn float(&mut self) -> Result<f32, BitError> {
        let value = f32::from_bits(self.bits(32)?);
        if value.is_finite() {
            Ok(value)
        } else {
            Err(BitError)
        }
    }

    /// A number in two's complement of `count` (1 to 32) bits.
    ///
    /// # Errors
    /// When fewer are left.
    pub fn signed_bits(&mut self, count: u32) -> Result<i32, BitError> {
        let unused = 32 - count;
        Ok((self.bits(count)? << unused) as i32 >> unused)
    }

    /// A number written with the same `low_bits`.
    ///
    /// # Errors
    /// At the end, or when it does not fit 32 bits.
    pub fn number(&mut self, low_bits: u32) -> Result<u32, BitError> {
        let mut width = 0;
        while !self.flag()? {
            width += 1;
            if width > 32 {
                return Err(BitError);
            }
        }
        let rest = if width > 0 { self.bits(width)? } else { 0 };
        let high = ((1u64 << width) | u64::from(rest)) - 1;
        let low = if low_bits > 0 {
            self.bits(low_bits)?
        } else {
            0
        };
        u32::try_from((high << low_bits) | u64::from(low)).map_err(|_| BitError)
    }

    /// A signed number written with the same `low_bits`.
    ///
    /// # Errors
    /// As [`BitReader::number`].
    pub fn signed(&mut self, low_bits: u32) -> Result<i32, BitError> {
        let value = self.number(low_bits)?;
        Ok((value >> 1) as i32 ^ -((value & 1) as i32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_round_trip(values in prop::collection::vec((any::<u32>(), any::<i32>(), 0u32..12, any::<bool>()), 1..50)) {
            let mut writer = BitWriter::new();
            for &(number, signed, low, flag) in &values {
                writer.number(number, low);
                writer.flag(flag);
                writer.signed(signed, low);
                writer.bits(number, 32);
                writer.signed_bits(signed >> 9, 23);
            }
            let bytes = writer.finish();
            let mut reader = BitReader::new(&bytes);
            for &(number, signed, low, flag) in &values {
                prop_assert_eq!(reader.number(low).unwrap(), number);
                prop_assert_eq!(reader.flag().unwrap(), flag);
                prop_assert_eq!(reader.signed(low).unwrap(), signed);
                prop_assert_eq!(reader.bits(32).unwrap(), number);
                prop_assert_eq!(reader.signed_bits(23).unwrap(), signed >> 9);
            }
            prop_assert!(reader.remaining() < 8);
            prop_assert!(reader.bits(8).is_err());
        }
    }
}
