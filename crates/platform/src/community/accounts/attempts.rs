//! Limits password attempts: per account name, so that many addresses cannot share the work of
//! guessing one password, and per address, so that one address cannot try many names.

use std::net::IpAddr;

use frolic_protocol::token_bucket::RateLimit;
use tokio::time::Instant;

use crate::core::error::ApiError;
use crate::core::limits::{Buckets, RateLimiter};
use crate::core::settings::LimitSettings;

/// An address may make this many times more attempts than a name, because households share one.
const ADDRESS_FACTOR: u32 = 4;

/// Remaining password attempts per account name and per address.
pub struct Attempts {
    names: Buckets<String>,
    addresses: RateLimiter,
}

impl Attempts {
    /// Uses the limits of `settings`.
    pub fn new(settings: &LimitSettings) -> Self {
        let burst = settings.password_tries_burst.max(1);
        let per_s = settings.password_tries_per_s.max(0.000_1);
        Self {
            names: Buckets::new(RateLimit {
                burst: f64::from(burst),
                per_s,
            }),
            addresses: RateLimiter::new(&LimitSettings {
                rate_burst: burst.saturating_mul(ADDRESS_FACTOR),
                rate_per_s: per_s * f64::from(ADDRESS_FACTOR),
                ..settings.clone()
            }),
        }
    }

    /// Consumes one attempt at the password of the account with this key, from this address.
    /// Callers do this before they verify the password, so that concurrent attempts count too.
    ///
    /// # Errors
    /// 429 with the seconds to wait, when no attempt is left.
    pub fn take(
        &self,
        name_key: &str,
        address: Option<IpAddr>,
        now: Instant,
    ) -> Result<(), ApiError> {
        let of_address = address.map_or(Ok(()), |address| self.addresses.take(address, now));
        of_address
            .and_then(|()| self.names.take(name_key.to_owned(), 1.0, now))
            .map_err(|wait| ApiError::rate_limited(wait.as_secs() + 1))
    }

    /// Restores all attempts of an account after a correct password.
    pub fn reset(&self, name_key: &str) {
        self.names.reset(name_key);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn attempts() -> Attempts {
        Attempts::new(&LimitSettings {
            password_tries_burst: 3,
            password_tries_per_s: 0.1,
            ..LimitSettings::default()
        })
    }

    #[test]
    fn many_addresses_cannot_share_the_guessing_of_one_password() {
        let (attempts, now) = (attempts(), Instant::now());
        let from = |last| Some(IpAddr::from([203, 0, 113, last]));
        for last in 0..3 {
            assert!(attempts.take("ada", from(last), now).is_ok());
        }
        assert!(attempts.take("ada", from(9), now).is_err());
        assert!(attempts.take("bob", from(9), now).is_ok());
        let later = now + Duration::from_secs(10);
        assert!(attempts.take("ada", from(9), later).is_ok());
        attempts.reset("ada");
        assert!(attempts.take("ada", from(9), later).is_ok());
    }

    #[test]
    fn one_address_cannot_try_many_names() {
        let (attempts, now) = (attempts(), Instant::now());
        let address = Some(IpAddr::from([203, 0, 113, 1]));
        let tried = (0..100)
            .filter(|i| attempts.take(&format!("name{i}"), address, now).is_ok())
            .count();
        assert_eq!(tried, 12);
    }
}
