//! Limits password attempts: per account name, so that many addresses cannot share the work of
//! guessing one password, and per address, so that one address cannot try many names.

use std::net::IpAddr;
use std::time::Duration;

use frolic_protocol::token_bucket::RateLimit;
use tokio::time::Instant;

use crate::core::error::ApiError;
use crate::core::limits::{Buckets, LocalBuckets, RateLimiter};
use crate::core::settings::LimitSettings;

/// An address may make this many times more attempts than a name, because households share one.
const ADDRESS_FACTOR: u32 = 4;

/// Remaining password attempts per account name and per address.
pub struct Attempts {
    names: Box<dyn Buckets>,
    addresses: RateLimiter,
}

impl Attempts {
    /// Uses the limits of `settings`.
    pub fn new(settings: &LimitSettings) -> Self {
        let burst = settings.password_tries_burst.max(1);
        let per_s = settings.password_tries_per_s.max(0.000_1);
        Self {
            names: Box::new(LocalBuckets::new(RateLimit {
                burst: f64::from(burst),
                per_s,
            })),
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
    pub async fn take(
        &self,
        name_key: &str,
        address: Option<IpAddr>,
        now: Instant,
    ) -> Result<(), ApiError> {
        let refused = |wait: Duration| ApiError::rate_limited(wait.as_secs() + 1);
        if let Some(address) = address {
            let taken = self.addresses.take(address, now).await;
            taken.map_err(refused)?;
        }
        let taken = self.names.take(name_key.to_owned(), 1.0, now).await;
        taken.map_err(refused)
    }

    /// Restores all attempts of an account after a correct password.
    pub async fn reset(&self, name_key: &str) {
        self.names.reset(name_key).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempts() -> Attempts {
        Attempts::new(&LimitSettings {
            password_tries_burst: 3,
            password_tries_per_s: 0.1,
            ..LimitSettings::default()
        })
    }

    #[tokio::test]
    async fn many_addresses_cannot_share_the_guessing_of_one_password() {
        let (attempts, now) = (attempts(), Instant::now());
        let from = |last| Some(IpAddr::from([203, 0, 113, last]));
        for last in 0..3 {
            assert!(attempts.take("ada", from(last), now).await.is_ok());
        }
        assert!(attempts.take("ada", from(9), now).await.is_err());
        assert!(attempts.take("bob", from(9), now).await.is_ok());
        let later = now + Duration::from_secs(10);
        assert!(attempts.take("ada", from(9), later).await.is_ok());
        attempts.reset("ada").await;
        assert!(attempts.take("ada", from(9), later).await.is_ok());
    }

    #[tokio::test]
    async fn one_address_cannot_try_many_names() {
        let (attempts, now) = (attempts(), Instant::now());
        let address = Some(IpAddr::from([203, 0, 113, 1]));
        let mut tried = 0;
        for i in 0..100 {
            let taken = attempts.take(&format!("name{i}"), address, now).await;
            tried += u32::from(taken.is_ok());
        }
        assert_eq!(tried, 12);
    }
}
