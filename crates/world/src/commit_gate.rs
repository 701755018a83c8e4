//! Apply, persist, publish: what happens in a world is applied at once, and
//! published once it is stored, because a crash could undo it before.

use std::collections::VecDeque;

/// Holds what may be published once an operation is stored: notifications of
/// players, replication, acknowledgements. The tick never waits.
#[derive(Debug)]
pub struct CommitGate<T> {
    /// In the order of the operations.
    waiting: VecDeque<(u64, T)>,
}

impl<T> Default for CommitGate<T> {
    fn default() -> Self {
        let waiting = VecDeque::new();
        Self { waiting }
    }
}

impl<T> CommitGate<T> {
    /// Holds something until operation `op` is stored. Operations are numbered
    /// in rising order.
    pub fn hold(&mut self, op: u64, publication: T) {
        self.waiting.push_back((op, publication));
    }

    /// Releases what waits for operations up to `stored`, in order.
    pub fn release(&mut self, stored: u64) -> impl Iterator<Item = T> {
        let due = self.waiting.partition_point(|(op, _)| *op <= stored);
        self.waiting
            .drain(..due)
            .map(|(_, publication)| publication)
    }

    /// What waits, and the operations that it waits for.
    pub fn waiting(&self) -> impl Iterator<Item = (u64, &T)> {
        self.waiting.iter().map(|(op, held)| (*op, held))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_published_before_its_operation_is_stored() {
        let mut gate = CommitGate::default();
        for (op, publication) in [(3, 'a'), (3, 'b'), (5, 'c')] {
            gate.hold(op, publication);
        }
        assert_eq!(gate.release(2).count(), 0);
        assert_eq!(gate.release(4).collect::<String>(), "ab");
        assert_eq!(gate.waiting().collect::<Vec<_>>(), [(5, &'c')]);
        assert_eq!(gate.release(5).collect::<String>(), "c");
    }
}
