//! Fragmentation of packets that do not fit a datagram.
//!
//! A lost fragment loses its packet, as if that had been one datagram; fragments
//! may arrive in any order, twice, or mixed with those of other packets.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Bytes of a packet in one fragment. QUIC starts with packets of 1,200 bytes, of
/// which its own headers take some.
const PART_BYTES: usize = 1100;
/// Largest datagram of a fragment, header and framing included.
pub const PART_DATAGRAM_BYTES: usize = PART_BYTES + 24;
/// Most fragments of a packet.
pub const PARTS_MAX: usize = 256;
/// Packets that may be incomplete at a time; the oldest is dropped.
const INCOMPLETE_MAX: usize = 8;

/// One fragment of a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fragment {
    /// Which packet; counted by the sender.
    pub packet: u32,
    /// Its index.
    pub index: u16,
    /// How many fragments the packet has.
    pub count: u16,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Splits a packet into fragments that fit a datagram each; none when it is too
/// large even for that.
pub fn cut(packet: u32, bytes: &[u8]) -> Option<impl Iterator<Item = Fragment>> {
    let count = bytes.len().div_ceil(PART_BYTES);
    let parts = bytes.chunks(PART_BYTES).enumerate();
    (count <= PARTS_MAX).then(|| {
        parts.map(move |(index, bytes)| Fragment {
            packet,
            index: index as u16,
            count: count as u16,
            bytes: bytes.to_vec(),
        })
    })
}

/// Reassembles packets.
#[derive(Default)]
pub struct Assembler {
    incomplete: VecDeque<Incomplete>,
}

struct Incomplete {
    packet: u32,
    parts: Vec<Option<Vec<u8>>>,
    missing: usize,
}

impl Assembler {
    /// Adds a fragment, and returns its packet when that is complete. Invalid
    /// fragments are ignored: they count as lost.
    pub fn push(&mut self, fragment: Fragment) -> Option<Vec<u8>> {
        let (index, count) = (usize::from(fragment.index), usize::from(fragment.count));
        let sane = index < count && count <= PARTS_MAX && fragment.bytes.len() <= PART_BYTES;
        if !sane {
            return None;
        }
        let known = |incomplete: &Incomplete| incomplete.packet == fragment.packet;
        let at = match self.incomplete.iter().position(known) {
            Some(at) => at,
            None => {
                if self.incomplete.len() == INCOMPLETE_MAX {
                    self.incomplete.pop_front();
                }
                self.incomplete.push_back(Incomplete {
                    packet: fragment.packet,
                    parts: vec![None; count],
                    missing: count,
                });
                self.incomplete.len() - 1
            }
        };
        let incomplete = &mut self.incomplete[at];
        let part = incomplete.parts.get_mut(index)?;
        if part.is_none() {
            *part = Some(fragment.bytes);
            incomplete.missing -= 1;
        }
        if incomplete.missing > 0 {
            return None;
        }
        let whole = self.incomplete.remove(at)?;
        Some(whole.parts.into_iter().flatten().flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ServerMessage;
    use crate::packet;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packets_come_together_in_any_order(lengths in prop::collection::vec(1usize..9_000, 1..4), shuffle in any::<u64>(), doubled in any::<bool>()) {
            let packets: Vec<Vec<u8>> = lengths.iter().enumerate().map(|(n, &length)| vec![n as u8; length]).collect();
            let mut parts: Vec<Fragment> = packets.iter().zip(5u32..).flat_map(|(bytes, n)| cut(n, bytes).unwrap()).collect();
            if doubled {
                parts.insert(0, parts[parts.len() - 1].clone());
            }
            parts.sort_by_key(|part| (u64::from(part.packet) * 31 + u64::from(part.index) + 1).wrapping_mul(shuffle | 1));
            let mut assembler = Assembler::default();
            let mut whole: Vec<Vec<u8>> = parts.into_iter().filter_map(|part| assembler.push(part)).collect();
            whole.sort();
            whole.dedup();
            prop_assert_eq!(whole, packets);
        }

        #[test]
        fn any_part_fits_a_datagram(packet in any::<u32>(), length in 1usize..20_000) {
            for part in cut(packet, &vec![1; length]).unwrap() {
                let bytes = packet::single(&ServerMessage::Fragment(part));
                prop_assert!(bytes.len() <= PART_DATAGRAM_BYTES);
            }
        }
    }

    #[test]
    fn nonsense_is_as_good_as_lost() {
        let part = |index, count, bytes| Fragment {
            packet: 1,
            index,
            count,
            bytes,
        };
        let mut assembler = Assembler::default();
        assert_eq!(assembler.push(part(3, 3, vec![1])), None);
        assert_eq!(assembler.push(part(0, 0, vec![1])), None);
        assert_eq!(assembler.push(part(0, u16::MAX, vec![1])), None);
        assert_eq!(assembler.push(part(0, 1, vec![1; 5000])), None);
        assert_eq!(assembler.push(part(0, 2, vec![1])), None);
        assert_eq!(assembler.push(part(2, 9, vec![1])), None, "another count");
        assert_eq!(assembler.push(part(1, 2, vec![2])), Some(vec![1, 2]));
        assert!(cut(1, &vec![0; 1 << 20]).is_none());
    }
}
