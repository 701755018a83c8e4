//! The rate limit of everything that a client may do only from time to time.

/// A number of tokens at once, and a number per second on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimit {
    /// Tokens in a full bucket.
    pub burst: f64,
    /// Tokens that a bucket gains per second; more than none.
    pub per_s: f64,
}

/// A token bucket; a new one is full.
///
/// It holds the time at which it is full again. So a refused request changes nothing:
/// a replay that contains only what was accepted comes to the same results.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TokenBucket {
    full_at_s: f64,
}

/// Rounding may cost this many seconds.
const TOLERANCE_S: f64 = 1e-9;

impl TokenBucket {
    /// Takes `tokens` at `now_s`, which counts from any moment and never falls.
    ///
    /// # Errors
    /// The seconds until there are enough; none are taken.
    pub fn take(&mut self, limit: RateLimit, tokens: f64, now_s: f64) -> Result<(), f64> {
        let full_at_s = self.full_at_s.max(now_s) + tokens / limit.per_s;
        let wait_s = full_at_s - now_s - limit.burst / limit.per_s;
        if wait_s > TOLERANCE_S {
            return Err(wait_s);
        }
        self.full_at_s = full_at_s;
        Ok(())
    }

    /// Whether it is full, and holds no information.
    pub fn is_full(&self, now_s: f64) -> bool {
        self.full_at_s <= now_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: RateLimit = RateLimit {
        burst: 3.0,
        per_s: 2.0,
    };

    fn taken(bucket: &mut TokenBucket, now_s: f64) -> usize {
        (0..10)
            .take_while(|_| bucket.take(LIMIT, 1.0, now_s).is_ok())
            .count()
    }

    #[test]
    fn a_bucket_empties_and_refills_up_to_its_size() {
        let mut bucket = TokenBucket::default();
        assert_eq!(taken(&mut bucket, 100.0), 3);
        assert_eq!(bucket.take(LIMIT, 1.0, 100.0), Err(0.5));
        assert!(!bucket.is_full(101.4) && bucket.is_full(101.5));
        assert_eq!(taken(&mut bucket, 101.0), 2);
        assert_eq!(taken(&mut bucket, 500.0), 3);
    }

    #[test]
    fn a_refusal_changes_nothing() {
        let (mut often, mut seldom) = (TokenBucket::default(), TokenBucket::default());
        for step in 0..10_000 {
            let now_s = f64::from(step) / 7.0;
            if often.take(LIMIT, 1.0, now_s).is_ok() {
                assert_eq!(seldom.take(LIMIT, 1.0, now_s), Ok(()));
            }
        }
        assert_eq!(often, seldom);
    }

    #[test]
    fn more_than_a_bucket_holds_is_never_given() {
        let mut bucket = TokenBucket::default();
        assert!(bucket.take(LIMIT, 4.0, 1_000.0).is_err());
        assert_eq!(taken(&mut bucket, 1_000.0), 3);
    }
}
