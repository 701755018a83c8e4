//! The newest of many measurements. Writers never wait for readers: the world's
//! thread must not wait while `/metrics` is rendered.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

/// The newest `LEN` measurements, of `FIELDS` numbers each. A measurement that is
/// recorded during a read may be read as its predecessor; among thousands that is
/// negligible.
pub struct Ring<const FIELDS: usize, const LEN: usize> {
    values: Box<[[AtomicU32; FIELDS]]>,
    /// How many were recorded.
    noted: AtomicUsize,
    /// How many of them to skip.
    forgotten: AtomicUsize,
}

impl<const FIELDS: usize, const LEN: usize> Default for Ring<FIELDS, LEN> {
    fn default() -> Self {
        let nothing = || std::array::from_fn(|_| AtomicU32::new(0));
        Self {
            values: std::iter::repeat_with(nothing).take(LEN).collect(),
            noted: AtomicUsize::new(0),
            forgotten: AtomicUsize::new(0),
        }
    }
}

impl<const FIELDS: usize, const LEN: usize> Ring<FIELDS, LEN> {
    /// Records a measurement, in place of the oldest.
    pub fn note(&self, value: [u32; FIELDS]) {
        let number = self.noted.fetch_add(1, Relaxed);
        for (place, number) in self.values[number % LEN].iter().zip(value) {
            place.store(number, Relaxed);
        }
    }

    /// Skips what was recorded so far.
    pub fn forget(&self) {
        self.forgotten.store(self.noted.load(Relaxed), Relaxed);
    }

    /// All measurements, the oldest first.
    pub fn values(&self) -> Vec<[u32; FIELDS]> {
        let noted = self.noted.load(Relaxed);
        let first = noted.saturating_sub(LEN);
        let first = first.max(self.forgotten.load(Relaxed));
        let read = |number: usize| {
            let place = self.values[number % LEN].each_ref();
            place.map(|number| number.load(Relaxed))
        };
        (first..noted).map(read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_remain_until_they_are_cleared() {
        let ring = Ring::<2, 3>::default();
        assert!(ring.values().is_empty());
        for number in 1..=2 {
            ring.note([number, 10 * number]);
        }
        assert_eq!(ring.values(), [[1, 10], [2, 20]]);
        for number in 3..=4 {
            ring.note([number, 10 * number]);
        }
        assert_eq!(ring.values(), [[2, 20], [3, 30], [4, 40]]);
        ring.forget();
        assert!(ring.values().is_empty());
        ring.note([5, 50]);
        assert_eq!(ring.values(), [[5, 50]]);
    }
}
