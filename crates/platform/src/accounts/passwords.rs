//! Passwords: which are accepted, and argon2id away from the async threads, a
//! few at a time, because each takes memory and a core.

use std::sync::Arc;

use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};
use tokio::sync::Semaphore;

use crate::error::ApiError;
use crate::{ids, names};

/// Shorter passwords are guessed.
pub const CHARS_MIN: usize = 8;
/// Longer ones only cost time.
const BYTES_MAX: usize = 1024;
/// OWASP's smallest recommendation: 19 MiB, two passes, one lane.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
/// Hashes that are computed at once.
const AT_ONCE: usize = 2;
/// Requests that wait for their turn; who comes after them is sent away.
const WAITING_MAX: usize = 64;
const SALT_BYTES: usize = 16;

/// The first that anybody tries.
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
    turns: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    /// Checked when there is no account, so that it takes as long.
    nobodys: String,
}

impl Default for Hasher {
    fn default() -> Self {
        Self {
            turns: Arc::new(Semaphore::new(AT_ONCE)),
            waiting: Arc::new(Semaphore::new(WAITING_MAX)),
            nobodys: hash_now(&ids::new_token()).unwrap_or_default(),
        }
    }
}

impl Hasher {
    /// The text to keep instead of the password.
    ///
    /// # Errors
    /// 503 when too many wait already.
    pub async fn hash(&self, password: String) -> Result<String, ApiError> {
        self.run(move || hash_now(&password))
            .await?
            .ok_or_else(failed)
    }

    /// Whether this is the password behind `hash`; without a hash it takes as
    /// long and is never so.
    ///
    /// # Errors
    /// 503 when too many wait already.
    pub async fn matches(&self, password: String, hash: Option<String>) -> Result<bool, ApiError> {
        let known = hash.is_some();
        let hash = hash.unwrap_or_else(|| self.nobodys.clone());
        let matched = self.run(move || matches_now(&password, &hash)).await?;
        Ok(matched && known)
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let busy = || ApiError::unavailable("busy", "many people log in right now; try again", 2);
        let place = self
            .waiting
            .clone()
            .try_acquire_owned()
            .map_err(|_| busy())?;
        let turn = self
            .turns
            .clone()
            .acquire_owned()
            .await
            .map_err(|_| busy())?;
        // Both go along: a client that hangs up must not let more work start.
        let done = tokio::task::spawn_blocking(move || {
            let _held = (place, turn);
            work()
        });
        done.await.map_err(|error| {
            tracing::error!(%error, "hashing a password failed");
            failed()
        })
    }
}

/// Whether a new password will do.
///
/// # Errors
/// 400 that says what is wrong with it.
pub fn check(password: &str, username: &str) -> Result<(), ApiError> {
    let refuse = |message: String| Err(ApiError::bad_request("invalid_password", message));
    if password.chars().count() < CHARS_MIN {
        return refuse(format!(
            "Use a password of at least {CHARS_MIN} characters."
        ));
    }
    if password.len() > BYTES_MAX {
        return refuse(format!("Use a password of at most {BYTES_MAX} bytes."));
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

/// Whether this could be anybody's password: nothing else is hashed.
pub fn is_plausible(password: &str) -> bool {
    (1..=BYTES_MAX).contains(&password.len())
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
    // The costs are those in the hash: raising them keeps old passwords valid.
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
