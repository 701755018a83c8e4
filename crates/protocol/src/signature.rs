//! Signed manifests: the platform signs the scripts of its games with Ed25519, and
//! clients verify that before they use any of them.
//!
//! Game servers run untrusted code, so they never have the key: they send their
//! list to the platform, which signs its hash for that game and no other.

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};

/// Bytes of a key, secret or public.
pub const KEY_BYTES: usize = 32;

/// The signed text: distinct from everything else that the key signs.
fn statement(game_id: &str, hash: &str) -> Vec<u8> {
    format!("frolic script manifest 1\n{game_id}\n{hash}\n").into_bytes()
}

/// The platform's key.
pub struct ManifestSigner(SigningKey);

impl ManifestSigner {
    /// From 32 secret random bytes.
    pub fn new(secret: &[u8; KEY_BYTES]) -> Self {
        Self(SigningKey::from_bytes(secret))
    }

    /// The public key, with which clients verify signatures.
    pub fn public_key(&self) -> [u8; KEY_BYTES] {
        self.0.verifying_key().to_bytes()
    }

    /// Signs the list with this hash (`sha256:…`) for a game; in hex.
    pub fn sign(&self, game_id: &str, hash: &str) -> String {
        let signature = self.0.sign(&statement(game_id, hash));
        to_hex(&signature.to_bytes())
    }
}

/// Whether the owner of `public_key` has signed this list for this game.
pub fn verify(public_key: &[u8; KEY_BYTES], game_id: &str, hash: &str, signature: &str) -> bool {
    let Some(signature) = from_hex::<64>(signature) else {
        return false;
    };
    let Ok(key) = VerifyingKey::from_bytes(public_key) else {
        return false;
    };
    let signature = Signature::from_bytes(&signature);
    key.verify_strict(&statement(game_id, hash), &signature)
        .is_ok()
}

/// Lower-case hexadecimal.
pub fn to_hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Exactly `N` bytes in hexadecimal.
pub fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let text = text.as_bytes();
    if text.len() != 2 * N {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = u8::try_from(digit(pair[0])? << 4 | digit(pair[1])?).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_for_one_list_of_one_game_by_one_platform() {
        let signer = ManifestSigner::new(&[7; 32]);
        let key = signer.public_key();
        let signature = signer.sign("obby", "sha256:aa");
        assert!(verify(&key, "obby", "sha256:aa", &signature));
        assert!(!verify(&key, "arena", "sha256:aa", &signature));
        assert!(!verify(&key, "obby", "sha256:ab", &signature));
        let other = ManifestSigner::new(&[8; 32]).public_key();
        assert!(!verify(&other, "obby", "sha256:aa", &signature));
        let mut forged = signature.clone().into_bytes();
        forged[10] = if forged[10] == b'0' { b'1' } else { b'0' };
        let forged = String::from_utf8(forged).unwrap();
        assert!(!verify(&key, "obby", "sha256:aa", &forged));
    }

    #[test]
    fn what_is_no_signature_is_refused() {
        let key = ManifestSigner::new(&[7; 32]).public_key();
        for text in [
            "",
            "00",
            "zz",
            &"ü".repeat(64),
            &"0".repeat(128),
            &"f".repeat(129),
        ] {
            assert!(!verify(&key, "obby", "sha256:aa", text), "{text}");
        }
        assert!(!verify(&[0; 32], "obby", "sha256:aa", &"0".repeat(128)));
    }
}
