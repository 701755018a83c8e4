//! Random ids, room codes and tokens, and the hash under which tokens are stored.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Characters of a room code, without 0/O, 1/I/L and U/V, which are confused when read aloud.
const ROOM_ALPHABET: &[u8] = b"23456789ABCDEFGHJKMNPQRSTWXYZ";
const ROOM_CODE_CHARS: usize = 6;
const INVITE_CODE_CHARS: usize = 12;
const ID_ALPHABET: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyz";
/// 16 characters of 36 have 82 bits: unique and not guessable.
const ID_CHARS: usize = 16;

/// Random bytes from the operating system.
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .expect("an operating system without randomness cannot run a server");
    bytes
}

/// A new id such as `world_7k2…`.
pub fn new_id(prefix: &str) -> String {
    format!("{prefix}_{}", random_text(ID_ALPHABET, ID_CHARS))
}

/// A new room code such as `K7QX4M`.
pub fn new_room_code() -> String {
    random_text(ROOM_ALPHABET, ROOM_CODE_CHARS)
}

/// A new invitation code: as readable as a room code, but too long to guess.
pub fn new_invite_code() -> String {
    random_text(ROOM_ALPHABET, INVITE_CODE_CHARS)
}

/// Converts a typed room code to its stored form; `None` if it is not a valid room code.
pub fn canonical_room_code(typed: &str) -> Option<String> {
    let code = typed.trim().to_ascii_uppercase();
    let valid = code.len() == ROOM_CODE_CHARS && code.bytes().all(|c| ROOM_ALPHABET.contains(&c));
    valid.then_some(code)
}

/// A bearer token with 256 random bits.
pub fn new_token() -> String {
    hex::encode(random_bytes::<32>())
}

/// SHA-256 in hex: the form in which tokens are stored and blobs are named.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Whether `given` is the secret whose SHA-256 is `expected_sha256`. Hashes of equal length are
/// compared in constant time, so that the timing reveals neither the length nor the content of the
/// secret.
pub fn matches_secret(given: &str, expected_sha256: &[u8; 32]) -> bool {
    let given: [u8; 32] = Sha256::digest(given.as_bytes()).into();
    given.ct_eq(expected_sha256).into()
}

/// The digest that [`matches_secret`] expects.
pub fn secret_digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// Whether `text` is a SHA-256 in lower-case hex.
pub fn is_sha256_hex(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
}

fn random_text(alphabet: &[u8], chars: usize) -> String {
    // Bytes above the largest multiple are rejected, because otherwise the first letters would be
    // more frequent.
    let limit = 256 - 256 % alphabet.len();
    let mut text = String::with_capacity(chars);
    while text.len() < chars {
        for byte in random_bytes::<32>() {
            if usize::from(byte) < limit && text.len() < chars {
                text.push(char::from(alphabet[usize::from(byte) % alphabet.len()]));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_their_prefix_and_differ() {
        let id = new_id("world");
        assert!(id.starts_with("world_") && id.len() == 6 + ID_CHARS, "{id}");
        assert_ne!(id, new_id("world"));
    }

    #[test]
    fn room_codes_survive_being_typed() {
        let code = new_room_code();
        let typed = format!(" {} ", code.to_lowercase());
        assert_eq!(canonical_room_code(&typed), Some(code));
        for bad in ["", "ABC", "ABCDEFG", "../etc", "ABCD0O", "ABCDÉ"] {
            assert_eq!(canonical_room_code(bad), None, "{bad}");
        }
    }

    #[test]
    fn secrets_match_only_themselves() {
        let digest = secret_digest("open sesame");
        assert!(matches_secret("open sesame", &digest));
        assert!(!matches_secret("open sesam", &digest));
        assert!(!matches_secret("", &digest));
    }
}
