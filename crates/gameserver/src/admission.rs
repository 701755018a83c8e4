//! Who may come in: tickets, each once (NET-4).

use std::collections::HashMap;

use frolic_protocol::ticket::{self, TicketError, TicketKey};

/// Whom a connection belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Lasting id.
    pub player_id: String,
    /// Name to show.
    pub name: String,
}

/// The door of one world.
pub struct Admission {
    world_id: String,
    /// None: everybody who says a name (development).
    key: Option<TicketKey>,
    /// Nonces of used tickets, until they expire.
    used: HashMap<String, u64>,
    strangers: u32,
}

impl Admission {
    /// A door that wants tickets if there is a key.
    pub fn new(world_id: String, key: Option<TicketKey>) -> Self {
        Self {
            world_id,
            key,
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
            });
        };
        let ticket = ticket
            .filter(|ticket| !ticket.is_empty())
            .ok_or(TicketError::Missing)?;
        let claims = ticket::verify(key, ticket, &self.world_id, now_unix_s)?;
        self.used.retain(|_, expires_at| *expires_at >= now_unix_s);
        if self.used.contains_key(&claims.nonce) {
            return Err(TicketError::Used);
        }
        self.used.insert(claims.nonce, claims.expires_at);
        Ok(Identity {
            player_id: claims.player_id,
            name: claims.name,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frolic_protocol::ticket::{TicketClaims, sign, world_key};

    #[test]
    fn a_ticket_works_once() {
        let key = world_key(b"secret", "world_a");
        let ticket = sign(
            &key,
            &TicketClaims {
                world_id: "world_a".into(),
                player_id: "client_1".into(),
                name: "Ada".into(),
                nonce: "n1".into(),
                expires_at: 100,
            },
        );
        let mut door = Admission::new("world_a".into(), Some(key));
        assert_eq!(door.admit(Some(&ticket), None, 50).unwrap().name, "Ada");
        assert_eq!(door.admit(Some(&ticket), None, 51), Err(TicketError::Used));
        assert_eq!(door.admit(None, Some("Eve"), 51), Err(TicketError::Missing));
        assert_eq!(
            door.admit(Some("e30.e30"), None, 51),
            Err(TicketError::Forged)
        );
    }
}
