//! Password rules and argon2id hashing on blocking threads. Only a few hashes are computed at the
//! same time, because each needs memory and a core.

use std::sync::Arc;

use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};
use tokio::sync::Semaphore;

use crate::api::limits::PASSWORD_BYTES_MAX;
use crate::core::error::ApiError;
use crate::core::{ids, names};

/// Shorter passwords are too easy to guess.
pub const CHARS_MIN: usize = 8;
/// OWASP's smallest recommendation: 19 MiB, two passes, one lane.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
/// Hashes that are computed at the same time.
const AT_ONCE: usize = 2;
/// Requests that may wait for a free thread; further ones are rejected.
const WAITING_MAX: usize = 64;
const SALT_BYTES: usize = 16;

/// The passwords that attackers try first.
const COMMON: [&str; 24] = [
    "password",
    "passwort",
    "password1",
    "password123",
    "12345678",
    "123456789",
    "1234567890",
    "11111111",
    "00000000",
    "87654321",
    "qwertyui",
    "qwertyuiop",
    "qwerty123",
    "1q2w3e4r",
    "1qaz2wsx",
    "iloveyou",
    "princess",
    "sunshine",
    "football",
    "baseball",
    "superman",
    "trustno1",
    "letmein1",
    "abcd1234",
];

/// Hashes and checks passwords.
pub struct Hasher {
    computing: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    /// Verified when there is no account, so that the response takes as long.
    dummy_hash: String,
}

impl Default for Hasher {
    fn default() -> Self {
        Self {
            computing: Arc::new(Semaphore::new(AT_ONCE)),
            waiting: Arc::new(Semaphore::new(WAITING_MAX)),
            dummy_hash: hash_now(&ids::new_token()).unwrap_or_default(),
        }
    }
}

impl Hasher {
    /// Hash to store instead of the password.
    ///
    /// # Errors
    /// 503 when too many requests wait already.
    pub async fn hash(&self, password: String) -> Result<String, ApiError> {
        self.run(move || hash_now(&password))
            .await?
            .ok_or_else(failed)
    }

    /// Whether `password` matches `hash`. Without a hash the result is `false` after the same time,
    /// so that the timing does not reveal whether an account exists.
    ///
    /// # Errors
    /// 503 when too many requests wait already.
    pub async fn matches(&self, password: String, hash: Option<String>) -> Result<bool, ApiError> {
        let known = hash.is_some();
        let hash = hash.unwrap_or_else(|| self.dummy_hash.clone());
        let matched = self.run(move || matches_now(&password, &hash)).await?;
        Ok(matched && known)
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let busy = || {
            ApiError::unavailable(
                "busy",
                "many users are logging in at the moment; try again",
                2,
            )
        };
        let waiting = self
            .waiting
            .clone()
            .try_acquire_owned()
            .map_err(|_| busy())?;
        let computing = self
            .computing
            .clone()
            .acquire_owned()
            .await
            .map_err(|_| busy())?;
        // The blocking task owns both permits: a client that disconnects must not let more work
        // start.
        let done = tokio::task::spawn_blocking(move || {
            let _held = (waiting, computing);
            work()
        });
        done.await.map_err(|error| {
            tracing::error!(%error, "could not hash a password");
            failed()
        })
    }
}

/// Checks whether a new password is acceptable.
///
/// # Errors
/// 400 that names the violated rule.
pub fn check(password: &str, username: &str) -> Result<(), ApiError> {
    let refuse = |message: String| Err(ApiError::bad_request("invalid_password", message));
    if password.chars().count() < CHARS_MIN {
        return refuse(format!(
            "Use a password of at least {CHARS_MIN} characters."
        ));
    }
    if password.len() > PASSWORD_BYTES_MAX {
        return refuse(format!(
            "Use a password of at most {PASSWORD_BYTES_MAX} bytes."
        ));
    }
    let lower = password.to_lowercase();
    if lower == names::key(username) {
        return refuse("Use a password that is not your name.".to_owned());
    }
    let mut chars = lower.chars();
    let first = chars.next();
    if COMMON.contains(&lower.as_str()) || chars.all(|c| Some(c) == first) {
        return refuse("That password is too easy to guess. Try another.".to_owned());
    }
    Ok(())
}

/// Whether the length is possible for a password. Others are rejected without hashing.
pub fn is_plausible(password: &str) -> bool {
    (1..=PASSWORD_BYTES_MAX).contains(&password.len())
}

fn argon2() -> Argon2<'static> {
    let params = Params::new(MEMORY_KIB, PASSES, 1, None).unwrap_or_default();
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

fn hash_now(password: &str) -> Option<String> {
    let salt = SaltString::encode_b64(&ids::random_bytes::<SALT_BYTES>()).ok()?;
    let hash = argon2().hash_password(password.as_bytes(), &salt).ok()?;
    Some(hash.to_string())
}

fn matches_now(password: &str, hash: &str) -> bool {
    // The cost parameters are read from the hash: raising the defaults keeps old passwords valid.
    PasswordHash::new(hash)
        .is_ok_and(|hash| argon2().verify_password(password.as_bytes(), &hash).is_ok())
}

fn failed() -> ApiError {
    ApiError::unavailable("busy", "the password could not be checked; try again", 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weak_passwords_are_refused() {
        for (password, good) in [
            ("correct horse", true),
            ("пароль-лошадь", true),
            ("short", false),
            ("PassWord", false),
            ("aaaaaaaaaaaa", false),
            ("Ada Lovelace", false),
            ("", false),
        ] {
            assert_eq!(check(password, "Ada Lovelace").is_ok(), good, "{password}");
        }
        assert!(check(&"xy".repeat(600), "Ada").is_err());
    }

    #[test]
    fn hashes_are_argon2id_salted_and_match_only_their_password() {
        let [a, b] = [(); 2].map(|()| hash_now("correct horse").unwrap());
        assert!(a.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{a}");
        assert_ne!(a, b);
        assert!(matches_now("correct horse", &a) && matches_now("correct horse", &b));
        assert!(!matches_now("correct horsf", &a));
        assert!(!matches_now("correct horse", "nonsense"));
        assert!(!matches_now("", ""));
    }

    #[tokio::test]
    async fn without_an_account_no_password_matches() {
        let hasher = Hasher::default();
        assert!(!hasher.matches("x".to_owned(), None).await.unwrap());
        let hash = hasher.hash("correct horse".to_owned()).await.unwrap();
        let right = hasher.matches("correct horse".to_owned(), Some(hash));
        assert!(right.await.unwrap());
    }
}
