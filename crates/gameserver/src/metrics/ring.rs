//! The newest of many measurements. Whoever measures never waits for whoever
//! reads: the world's thread must not stand behind a page that is being made.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

/// The newest `KEPT` measurements, of `FIELDS` numbers each. One that is being
/// noted while they are read may be read as what was in its place before; among
/// thousands that says nothing.
pub struct Ring<const FIELDS: usize, const KEPT: usize> {
    values: Box<[[AtomicU32; FIELDS]]>,
    /// How many there were.
    noted: AtomicUsize,
    /// How many of them are to be left out.
    forgotten: AtomicUsize,
}

impl<const FIELDS: usize, const KEPT: usize> Default for Ring<FIELDS, KEPT> {
    fn default() -> Self {
        let nothing = || std::array::from_fn(|_| AtomicU32::new(0));
        Self {
            values: std::iter::repeat_with(nothing).take(KEPT).collect(),
            noted: AtomicUsize::new(0),
            forgotten: AtomicUsize::new(0),
        }
    }
}

impl<const FIELDS: usize, const KEPT: usize> Ring<FIELDS, KEPT> {
    /// Notes a measurement, in place of the oldest.
    pub fn note(&self, value: [u32; FIELDS]) {
        let number = self.noted.fetch_add(1, Relaxed);
        for (place, number) in self.values[number % KEPT].iter().zip(value) {
            place.store(number, Relaxed);
        }
    }

    /// Leaves out what was noted so far.
    pub fn forget(&self) {
        self.forgotten.store(self.noted.load(Relaxed), Relaxed);
    }

    /// What there is, the oldest first.
    pub fn values(&self) -> Vec<[u32; FIELDS]> {
        let noted = self.noted.load(Relaxed);
        let first = noted.saturating_sub(KEPT);
        let first = first.max(self.forgotten.load(Relaxed));
        let read = |number: usize| {
            let place = self.values[number % KEPT].each_ref();
            place.map(|number| number.load(Relaxed))
        };
        (first..noted).map(read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_until_they_are_forgotten() {
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
