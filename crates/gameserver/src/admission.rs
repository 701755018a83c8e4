//! Admission of players: one-time tickets and resume tokens.

use std::collections::HashMap;

use frolic_fleet_api::persist::PlayerState;
use frolic_fleet_api::ticket::{self, CharacterProfile, TicketClaims, TicketError, TicketKey};

/// How long a resume token works on a server that was started after it was issued.
/// A client gets a new one before half of that is over.
pub const TOKEN_LIFETIME_S: u64 = 180;

/// The player of a connection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Identity {
    /// Persistent id.
    pub player_id: String,
    /// Name to show.
    pub name: String,
    /// The character they play as.
    pub character: Option<CharacterProfile>,
    /// Their state when they last left this world, if their ticket has it.
    pub left: Option<PlayerState>,
    /// The friend beside whom they want to appear.
    pub beside: Option<String>,
}

/// The content of a verified resume token.
pub struct ResumeClaims {
    /// The player.
    pub identity: Identity,
    /// The connection it was issued on.
    pub nonce: String,
    /// The session whose counts continue.
    pub session: String,
    /// Whether a server that does not know the session admits its holder: it is
    /// young enough, and was not used here.
    pub admits: bool,
}

/// Admission control of one world.
pub struct Admission {
    world_id: String,
    /// None: any client with a name is admitted (development).
    key: Option<TicketKey>,
    token_key: Option<TicketKey>,
    /// The process generation of the world. Tickets of an earlier one may have been
    /// used there.
    epoch: u64,
    /// Nonces of used tickets and of ended sessions, until they expire.
    used: HashMap<String, u64>,
    strangers: u32,
}

impl Admission {
    /// Requires tickets if there is a key.
    pub fn new(world_id: String, key: Option<TicketKey>, epoch: u64) -> Self {
        // Without a key tokens are valid in this process only.
        let token_key = key.or_else(random).map(|key| ticket::resume_key(&key));
        Self {
            world_id,
            key,
            token_key,
            epoch,
            used: HashMap::new(),
            strangers: 0,
        }
    }

    /// Checks a ticket and uses it up.
    pub fn admit(
        &mut self,
        ticket: Option<&str>,
        name: Option<&str>,
        now_unix_s: u64,
    ) -> Result<Identity, TicketError> {
        let Some(key) = &self.key else {
            self.strangers += 1;
            let name: String = name.unwrap_or("Guest").chars().take(24).collect();
            return Ok(Identity {
                player_id: format!("local_{}", self.strangers),
                name,
                ..Identity::default()
            });
        };
        let ticket = ticket
            .filter(|ticket| !ticket.is_empty())
            .ok_or(TicketError::Missing)?;
        let claims = self.read_ticket(key, ticket, now_unix_s)?;
        self.used.retain(|_, expires_at| *expires_at >= now_unix_s);
        if self.used.contains_key(&claims.nonce) {
            return Err(TicketError::Used);
        }
        self.used.insert(claims.nonce, claims.expires_at);
        Ok(Identity {
            player_id: claims.player_id,
            name: claims.name,
            character: claims.character,
            left: claims.left,
            beside: claims.beside,
        })
    }

    /// The player of a ticket, without using it up; none where tickets are not
    /// checked, or for an invalid or used one: its bearer may have stolen it.
    pub fn holder(&self, ticket: Option<&str>, now_unix_s: u64) -> Option<String> {
        let claims = self.read_ticket(self.key.as_ref()?, ticket?, now_unix_s);
        let unused = claims
            .ok()
            .filter(|claims| !self.used.contains_key(&claims.nonce));
        unused.map(|claims| claims.player_id)
    }

    fn read_ticket(
        &self,
        key: &TicketKey,
        ticket: &str,
        now_unix_s: u64,
    ) -> Result<TicketClaims, TicketError> {
        let claims = ticket::verify(key, ticket, &self.world_id, now_unix_s)?;
        if claims.epoch != self.epoch {
            return Err(TicketError::Outdated);
        }
        Ok(claims)
    }

    /// A resume token for the connection of this nonce, of a session; empty when
    /// the system has no randomness, and then it resumes nothing.
    pub fn token(
        &self,
        identity: &Identity,
        nonce: &str,
        session: &str,
        now_unix_s: u64,
    ) -> String {
        let Some(key) = self.token_key.as_ref().filter(|_| !nonce.is_empty()) else {
            return String::new();
        };
        let claims = TicketClaims {
            world_id: self.world_id.clone(),
            player_id: identity.player_id.clone(),
            name: identity.name.clone(),
            nonce: nonce.to_owned(),
            session: session.to_owned(),
            expires_at: now_unix_s + TOKEN_LIFETIME_S,
            epoch: self.epoch,
            character: identity.character.clone(),
            left: None,
            beside: None,
        };
        ticket::sign(key, &claims)
    }

    /// The content of a resume token, if it is one of this world's.
    pub fn read_token(&self, token: &str, now_unix_s: u64) -> Option<ResumeClaims> {
        // Age matters only where the session is not known, so not here.
        let claims = ticket::verify(self.token_key.as_ref()?, token, &self.world_id, 0).ok()?;
        let admits = claims.expires_at >= now_unix_s && !self.used.contains_key(&claims.nonce);
        Some(ResumeClaims {
            identity: Identity {
                player_id: claims.player_id,
                name: claims.name,
                character: claims.character,
                left: None,
                beside: None,
            },
            nonce: claims.nonce,
            session: claims.session,
            admits,
        })
    }

    /// A session has ended, or continues under another nonce: its tokens are no
    /// longer accepted.
    pub fn spend(&mut self, nonce: String, now_unix_s: u64) {
        if nonce.is_empty() {
            return;
        }
        self.used.retain(|_, expires_at| *expires_at >= now_unix_s);
        self.used.insert(nonce, now_unix_s + TOKEN_LIFETIME_S);
    }
}

/// A nonce for a session: 128 random bits, or empty.
pub fn new_nonce() -> String {
    random::<16>().map_or_else(String::new, hex::encode)
}

fn random<const N: usize>() -> Option<[u8; N]> {
    let mut bytes = [0u8; N];
    getrandom::fill(&mut bytes).ok().map(|()| bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use frolic_fleet_api::ticket::{sign, world_key};

    fn claims(player_id: &str) -> TicketClaims {
        TicketClaims {
            world_id: "world_a".into(),
            player_id: player_id.into(),
            name: "Ada".into(),
            nonce: "n1".into(),
            expires_at: 100,
            epoch: 4,
            ..TicketClaims::default()
        }
    }

    #[test]
    fn a_ticket_works_once() {
        let key = world_key(b"secret", "world_a");
        let ticket = sign(&key, &claims("client_1"));
        let mut door = Admission::new("world_a".into(), Some(key), 4);
        assert_eq!(door.holder(Some(&ticket), 50).as_deref(), Some("client_1"));
        assert_eq!(door.admit(Some(&ticket), None, 50).unwrap().name, "Ada");
        assert_eq!(door.holder(Some(&ticket), 51), None, "nor does it vouch");
        assert_eq!(door.admit(Some(&ticket), None, 51), Err(TicketError::Used));
        assert_eq!(door.admit(None, Some("Eve"), 51), Err(TicketError::Missing));
        assert_eq!(
            door.admit(Some("e30.e30"), None, 51),
            Err(TicketError::Forged)
        );
        // The next process does not know that it was used, and need not.
        let mut next = Admission::new("world_a".into(), Some(key), 5);
        assert_eq!(next.holder(Some(&ticket), 52), None);
        let refusal = next.admit(Some(&ticket), None, 52).unwrap_err();
        assert_eq!(refusal, TicketError::Outdated);
        assert!(refusal.to_string().contains("join again"), "{refusal}");
    }

    #[test]
    fn a_resume_token_outlives_its_server_for_a_while_and_works_once() {
        let key = world_key(b"secret", "world_a");
        let before = Admission::new("world_a".into(), Some(key), 4);
        let ada = Identity {
            player_id: "client_1".into(),
            name: "Ada".into(),
            character: Some(CharacterProfile {
                id: "default".into(),
                looks: "{}".into(),
            }),
            ..Identity::default()
        };
        let token = before.token(&ada, "nonce", "session", 1000);
        let mut after = Admission::new("world_a".into(), Some(key), 5);
        let read = after.read_token(&token, 1000 + TOKEN_LIFETIME_S).unwrap();
        assert_eq!((read.admits, read.identity), (true, ada.clone()));
        assert_eq!(read.session, "session");
        let late = after.read_token(&token, 1001 + TOKEN_LIFETIME_S).unwrap();
        assert!(!late.admits);
        after.spend("nonce".into(), 1001);
        assert!(!after.read_token(&token, 1002).unwrap().admits);

        // Tickets and tokens are not interchangeable, nor are they across worlds.
        let ticket = sign(&key, &claims("client_1"));
        assert!(after.read_token(&ticket, 50).is_none());
        assert_eq!(
            after.admit(Some(&token), None, 1000),
            Err(TicketError::Forged)
        );
        let key = world_key(b"secret", "world_b");
        let other = Admission::new("world_b".into(), Some(key), 5);
        assert!(other.read_token(&token, 1000).is_none());
        let dev = || Admission::new("world_a".into(), None, 0);
        assert!(
            dev()
                .read_token(&dev().token(&ada, "x", "", 0), 0)
                .is_none()
        );
    }
}
