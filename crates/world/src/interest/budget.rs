//! The byte budget of a client: saved, owed, and divided.
//!
//! Two things must not happen. A large record, once sent, must not silence
//! everything else until it is paid for; and a large world that is new to a
//! client must not silence the movement that the client already sees, nor the
//! reverse. So debts are repaid with half of the income, and new and known
//! cells alternate for the rest.

use crate::policy::InterestPolicy;

/// Updates' worth of bytes that may accumulate; also the initial budget of a
/// new client.
const SAVED_UPDATES: f32 = 10.0;
/// Fraction of the income that repays a debt.
const PAID_BACK: f32 = 0.5;

/// The byte budget of one client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BandwidthBudget {
    /// Income per update.
    per_update: f32,
    /// Bytes that may be sent now.
    ready: f32,
    /// Bytes that were sent in advance.
    debt: f32,
}

/// The two sides that alternate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    /// Cells that the client has, and that changed.
    Known,
    /// Cells that it does not have.
    New,
}

impl BandwidthBudget {
    /// The budget for the next update, including what is left of the last.
    /// None: there is no limit.
    pub fn refill(left: Option<Self>, policy: &InterestPolicy, snapshot_hz: u32) -> Option<Self> {
        let per_update = policy.bytes_per_s? as f32 / snapshot_hz.max(1) as f32;
        let mut purse = left.unwrap_or(Self {
            per_update,
            ready: per_update * SAVED_UPDATES,
            debt: 0.0,
        });
        purse.per_update = per_update;
        purse.earn();
        Some(purse)
    }

    fn earn(&mut self) {
        let paid = self.debt.min(self.per_update * PAID_BACK);
        self.ready += self.per_update - paid;
        self.debt -= paid;
        // Income above the maximum repays the debt as well.
        let over = (self.ready - self.saved_max()).max(0.0);
        self.ready -= over;
        self.debt = (self.debt - over).max(0.0);
    }

    /// The most that can accumulate.
    pub fn saved_max(&self) -> f32 {
        self.per_update * SAVED_UPDATES
    }

    /// Income per update.
    pub fn per_update(&self) -> f32 {
        self.per_update
    }

    /// Bytes that may be sent now.
    pub fn ready(&self) -> f32 {
        self.ready
    }

    /// What remains after all debts are paid.
    pub fn balance(&self) -> f32 {
        self.ready - self.debt
    }

    /// Whether a record of this length may be sent: one that fits may, and one
    /// that can never fit may when nothing is owed.
    pub fn affords(&self, bytes: f32) -> bool {
        bytes <= self.ready || self.debt == 0.0 && self.ready > 0.0
    }

    pub fn pay(&mut self, bytes: f32) {
        self.ready -= bytes;
        if self.ready < 0.0 {
            self.debt -= self.ready;
            self.ready = 0.0;
        }
    }

    /// Cancels the debt.
    pub fn forgive(&mut self) {
        self.debt = 0.0;
    }
}

/// Which side is next when not everything can be sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turns {
    /// Bytes by which known cells are ahead of new ones.
    known_ahead: f32,
}

impl Turns {
    /// Ends a competition: nothing waits, and known cells are first again.
    pub fn end(&mut self) {
        self.known_ahead = 0.0;
    }

    fn next(&self) -> Side {
        match self.known_ahead <= 0.0 {
            true => Side::Known,
            false => Side::New,
        }
    }

    /// Records what one side was sent. At most one update's bytes count, so
    /// that a large record does not earn the other side a long lead.
    fn took(&mut self, side: Side, bytes: f32, per_update: f32) {
        let ahead = match side {
            Side::Known => self.known_ahead + bytes,
            Side::New => self.known_ahead - bytes,
        };
        self.known_ahead = ahead.clamp(-per_update, per_update);
    }

    /// Spends the available bytes on competing items, alternating between the
    /// sides. Items must be ordered: known ones first, each side by urgency.
    /// `about` returns an item's side and cost, `take` receives whether it is
    /// sent.
    pub fn share_out<T>(
        &mut self,
        purse: &mut BandwidthBudget,
        competing: &mut [T],
        about: impl Fn(&T) -> (Side, f32),
        mut take: impl FnMut(&mut T, bool),
    ) {
        let first_new = competing.partition_point(|one| about(one).0 == Side::Known);
        let (known, new) = competing.split_at_mut(first_new);
        let (mut known, mut new) = (known.iter_mut(), new.iter_mut());
        while let Some(one) = match self.next() {
            Side::Known => known.next().or_else(|| new.next()),
            Side::New => new.next().or_else(|| known.next()),
        } {
            let (side, bytes) = about(one);
            let goes = purse.affords(bytes);
            if goes {
                purse.pay(bytes);
                self.took(side, bytes, purse.per_update);
            }
            take(one, goes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: InterestPolicy = InterestPolicy {
        radius: None,
        by_distance: true,
        bytes_per_s: Some(2_000),
    };

    fn refilled(left: Option<BandwidthBudget>) -> BandwidthBudget {
        BandwidthBudget::refill(left, &POLICY, 20).expect("there is a budget")
    }

    #[test]
    fn a_debt_leaves_half_for_what_is_small_and_ends() {
        let mut purse = refilled(None);
        assert_eq!(purse.ready(), 1_000.0, "ten updates at once");
        assert!(purse.affords(5_000.0));
        purse.pay(5_000.0);
        assert!(!purse.affords(1.0), "and nothing else in this update");
        let mut updates = 0;
        while purse.balance() < 0.0 {
            purse = refilled(Some(purse));
            assert!(purse.affords(40.0) && !purse.affords(2_000.0));
            purse.pay(40.0);
            updates += 1;
        }
        // 4,000 in advance and 40 in each update; the income is 100.
        assert_eq!(updates, 67);
    }

    #[test]
    fn what_is_not_used_pays_the_debt_and_is_saved_up_after_it() {
        let mut purse = refilled(None);
        purse.pay(5_000.0);
        for _ in 0..60 {
            purse = refilled(Some(purse));
        }
        assert_eq!(purse.balance(), 1_000.0);
        assert!(purse.affords(5_000.0));
    }

    /// How many known and new items of the given count and size are sent in a
    /// number of updates if all of them always compete.
    fn shares(updates: u32, known: (usize, f32), new: (usize, f32)) -> [usize; 2] {
        let (mut purse, mut turns) = (None, Turns::default());
        let mut went = [0; 2];
        for _ in 0..updates {
            let mut left = refilled(purse);
            let mut competing = vec![(Side::Known, known.1); known.0];
            competing.extend(vec![(Side::New, new.1); new.0]);
            turns.share_out(
                &mut left,
                &mut competing,
                |one| *one,
                |(side, _), goes| went[*side as usize] += usize::from(goes),
            );
            purse = Some(left);
        }
        went
    }

    #[test]
    fn known_and_new_things_have_half_of_it_each() {
        // 100 bytes per update, and ten updates' worth at the start.
        assert_eq!(shares(91, (50, 50.0), (50, 50.0)), [100, 100]);
        // Each costs the budget of ten updates.
        let [known, new] = shares(990, (3, 1_000.0), (3, 1_000.0));
        assert!(known.abs_diff(new) <= 1, "{known} and {new}");
        assert!((99..=101).contains(&(known + new)), "{known} and {new}");
        // What one side does not need goes to the other.
        assert_eq!(shares(91, (1, 10.0), (50, 90.0)), [91, 101]);
    }

    #[test]
    fn what_is_small_and_known_goes_on_beside_what_is_large_and_new() {
        let [known, new] = shares(400, (1, 10.0), (5, 5_000.0));
        assert!(known > 380, "{known} of 400");
        assert!(new >= 7, "{new}");
    }
}
