//! Tickets: signed by the control plane and verified by the game server.
//!
//! A ticket admits one player to one world once, for a short time. It is
//! `base64url(claims).base64url(hmac)`, keyed per world, so that a compromised game
//! server can forge tickets for its own world only. The game server enforces single
//! use: it remembers nonces until they expire, and accepts only tickets that were
//! issued for its own process, because it does not know which tickets the previous
//! one accepted.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::persist::PlayerState;

/// Seconds from signing to expiry: enough for a slow page to load.
pub const TICKET_LIFETIME_S: u64 = 60;
/// Longest ticket a game server accepts.
pub const TICKET_BYTES_MAX: usize = 4096;

/// A world's ticket key.
pub type TicketKey = [u8; 32];

/// The claims of a ticket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TicketClaims {
    /// The only world it admits to.
    pub world_id: String,
    /// The player's persistent id (`client_id` of the session).
    pub player_id: String,
    /// Name to show.
    pub name: String,
    /// Random; used once.
    pub nonce: String,
    /// Unix time in seconds after which it is invalid.
    pub expires_at: u64,
    /// The only process of the world that it admits to: `epoch` of its
    /// [`WorldBoot`](crate::process::WorldBoot). Resume tokens admit to any.
    #[serde(default)]
    pub epoch: u64,
    /// Of a resume token: the session whose counts continue, across connections.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub session: String,
    /// The character they play as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub character: Option<CharacterProfile>,
    /// Their state when they last left this world.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<PlayerState>,
    /// Persistent id of the player who invited them: they appear beside that
    /// player.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<String>,
}

/// A user's character, as far as worlds need it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CharacterProfile {
    /// Its id among those of its user.
    pub id: String,
    /// Its looks: JSON of at most [`LOOKS_BYTES_MAX`] bytes.
    pub looks: String,
}

/// Longest description of a character's looks.
pub const LOOKS_BYTES_MAX: usize = 512;

/// Why a ticket was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TicketError {
    /// There is none.
    #[error("a ticket is needed: POST /join gives one")]
    Missing,
    /// Not of the form `claims.signature`.
    #[error("the ticket is not well-formed")]
    Malformed,
    /// Signed with another key, or changed.
    #[error("the ticket's signature does not match")]
    Forged,
    /// Too old.
    #[error("the ticket has expired; join again for a new one")]
    Expired,
    /// For an earlier process of this world.
    #[error("this world was restarted after the ticket was issued; join again for a new one")]
    Outdated,
    /// For another world.
    #[error("the ticket is for another world")]
    WrongWorld,
    /// Seen before.
    #[error("the ticket was used already; join again for a new one")]
    Used,
}

impl TicketError {
    /// The code that clients see in an error message.
    pub fn code(self) -> &'static str {
        match self {
            TicketError::Missing => "ticket_missing",
            TicketError::Malformed => "ticket_malformed",
            TicketError::Forged => "ticket_forged",
            TicketError::Expired | TicketError::Outdated => "ticket_expired",
            TicketError::WrongWorld => "ticket_wrong_world",
            TicketError::Used => "ticket_used",
        }
    }
}

/// Derives the key of one world from the platform's secret.
pub fn world_key(secret: &[u8], world_id: &str) -> TicketKey {
    tag(secret, format!("frolic ticket key\0{world_id}").as_bytes())
}

/// The key of a world's resume tokens, which have the form of tickets. It differs,
/// so that neither can be used as the other.
pub fn resume_key(world_key: &TicketKey) -> TicketKey {
    tag(world_key, b"frolic resume token")
}

/// Signs `claims`.
pub fn sign(key: &TicketKey, claims: &TicketClaims) -> String {
    let body = serde_json::to_vec(claims).expect("strings and integers always serialise");
    let signature = tag(key, &body);
    format!("{}.{}", BASE64.encode(&body), BASE64.encode(signature))
}

/// Checks signature, world and age, in this order, and returns the claims.
///
/// # Errors
/// The first check that fails.
pub fn verify(
    key: &TicketKey,
    ticket: &str,
    world_id: &str,
    now_unix_s: u64,
) -> Result<TicketClaims, TicketError> {
    if ticket.len() > TICKET_BYTES_MAX {
        return Err(TicketError::Malformed);
    }
    let (body, signature) = ticket.split_once('.').ok_or(TicketError::Malformed)?;
    let body = BASE64.decode(body).map_err(|_| TicketError::Malformed)?;
    let signature = BASE64
        .decode(signature)
        .map_err(|_| TicketError::Malformed)?;
    mac(key, &body)
        .verify_slice(&signature)
        .map_err(|_| TicketError::Forged)?;
    let claims: TicketClaims = serde_json::from_slice(&body).map_err(|_| TicketError::Malformed)?;
    if claims.world_id != world_id {
        return Err(TicketError::WrongWorld);
    }
    if claims.expires_at < now_unix_s {
        return Err(TicketError::Expired);
    }
    Ok(claims)
}

fn mac(key: &[u8], message: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(message);
    mac
}

fn tag(key: &[u8], message: &[u8]) -> TicketKey {
    mac(key, message).finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims() -> TicketClaims {
        TicketClaims {
            world_id: "world_a".into(),
            player_id: "client_1".into(),
            name: "Ada".into(),
            nonce: "n1".into(),
            expires_at: 1_000,
            epoch: 3,
            session: String::new(),
            character: None,
            left: None,
            beside: Some("client_2".into()),
        }
    }

    #[test]
    fn a_ticket_opens_its_world_until_it_expires() {
        let key = world_key(b"secret", "world_a");
        let ticket = sign(&key, &claims());
        assert_eq!(verify(&key, &ticket, "world_a", 1_000), Ok(claims()));
        assert_eq!(
            verify(&key, &ticket, "world_a", 1_001),
            Err(TicketError::Expired)
        );
        assert_eq!(
            verify(&key, &ticket, "world_b", 0),
            Err(TicketError::WrongWorld)
        );
    }

    #[test]
    fn forged_and_malformed_tickets_are_distinguished() {
        let key = world_key(b"secret", "world_a");
        let other = world_key(b"secret", "world_b");
        assert_eq!(
            verify(&key, &sign(&other, &claims()), "world_a", 0),
            Err(TicketError::Forged)
        );
        for bad in ["", ".", "x", "a.b.c", "!!.!!"] {
            assert!(verify(&key, bad, "world_a", 0).is_err(), "{bad}");
        }
        let huge = "a".repeat(100_000);
        assert_eq!(
            verify(&key, &huge, "world_a", 0),
            Err(TicketError::Malformed)
        );
    }
}
