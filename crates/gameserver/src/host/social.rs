//! Blocking, invitations and suspensions.

use std::collections::BTreeSet;

use frolic_protocol::avatar::AvatarLooks;
use frolic_protocol::fleet::BLOCKS_MAX;
use frolic_world::PlayerNumber;

use super::Host;
use crate::admission::Identity;
use crate::metrics::KickCause;
use crate::player_sessions::{PlayerSession, PlayerSessions};

/// Longest id of a player.
const ID_BYTES_MAX: usize = 128;

impl Host {
    /// Applies the appearance of a player who has just joined, or came back with
    /// another one.
    pub(super) fn dress(&mut self, number: PlayerNumber, identity: &Identity) {
        if let Some(character) = &identity.character {
            let looks = AvatarLooks::from_json(&character.looks);
            self.world.set_avatar(number, looks);
        }
    }

    /// Places players who joined since the last tick beside their friends. After
    /// the step, so that scripts that place newcomers have done so.
    pub(super) fn place_arrivals(&mut self) {
        for (number, friend_id) in std::mem::take(&mut self.arrivals) {
            if let Some(friend) = self.player_sessions.of_player(&friend_id) {
                let placed = self.world.spawn_beside(number, friend);
                tracing::debug!(number, friend, placed, "a player came by invitation");
            }
        }
    }

    /// Hides the chat between two players, or shows it again.
    pub(super) fn hide(
        &mut self,
        number: PlayerNumber,
        player_id: String,
        hidden: bool,
    ) -> Result<(), (&'static str, String)> {
        let Some(player_session) = self.player_sessions.get_mut(number) else {
            return Ok(());
        };
        if !hidden {
            player_session.blocked.remove(&player_id);
            return Ok(());
        }
        if player_id.is_empty()
            || player_id.len() > ID_BYTES_MAX
            || player_id == player_session.identity.player_id
        {
            let advice = "give the id of another player".to_owned();
            return Err(("bad_player", advice));
        }
        if player_session.blocked.len() >= BLOCKS_MAX {
            let advice = format!("at most {BLOCKS_MAX} players can be hidden; show some again");
            return Err(("too_many", advice));
        }
        player_session.blocked.insert(player_id);
        Ok(())
    }

    /// Applies a player's block list from the platform.
    pub(super) fn note_blocks(&mut self, player_id: &str, blocked: BTreeSet<String>) {
        let number = self.player_sessions.of_player(player_id);
        if let Some(player_session) = number.and_then(|number| self.player_sessions.get_mut(number))
        {
            // Players that were hidden here meanwhile stay hidden.
            player_session.blocked.extend(blocked);
        }
    }

    /// Disconnects a player whom moderators have suspended.
    pub(super) fn expel(&mut self, player_id: &str, reason: &str) {
        let Some(number) = self.player_sessions.of_player(player_id) else {
            return;
        };
        let connection_id = self
            .player_sessions
            .get(number)
            .and_then(PlayerSession::connection_id);
        if let Some(session) =
            connection_id.and_then(|connection_id| self.sessions.get_mut(connection_id))
        {
            session.player = None;
            session.kick(KickCause::Expelled, reason);
        }
        // Their place is not reserved: coming back needs a new ticket.
        self.part(number);
    }
}

/// The players from whom the chat of `speaker` is hidden.
pub(super) fn deaf_to(player_sessions: &PlayerSessions, speaker: &str) -> BTreeSet<PlayerNumber> {
    if speaker.is_empty() {
        return BTreeSet::new();
    }
    let number = player_sessions.of_player(speaker);
    let blocked = number
        .and_then(|number| player_sessions.get(number))
        .map(|player_session| &player_session.blocked);
    player_sessions
        .iter()
        .filter(|(_, player_session)| {
            let blocked =
                blocked.is_some_and(|all| all.contains(&player_session.identity.player_id));
            blocked || player_session.blocked.contains(speaker)
        })
        .map(|(number, _)| number)
        .collect()
}
