//! Blocking, invitations and suspensions.

use std::collections::BTreeSet;

use frolic_protocol::avatar::AvatarLooks;
use frolic_protocol::fleet::BLOCKS_MAX;
use frolic_world::PlayerNumber;

use super::Host;
use crate::admission::Identity;
use crate::metrics::KickCause;
use crate::seats::{Seat, Seats};

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
            if let Some(friend) = self.seats.of_player(&friend_id) {
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
        let Some(seat) = self.seats.get_mut(number) else {
            return Ok(());
        };
        if !hidden {
            seat.blocked.remove(&player_id);
            return Ok(());
        }
        if player_id.is_empty()
            || player_id.len() > ID_BYTES_MAX
            || player_id == seat.identity.player_id
        {
            let advice = "give the id of another player".to_owned();
            return Err(("bad_player", advice));
        }
        if seat.blocked.len() >= BLOCKS_MAX {
            let advice = format!("at most {BLOCKS_MAX} players can be hidden; show some again");
            return Err(("too_many", advice));
        }
        seat.blocked.insert(player_id);
        Ok(())
    }

    /// Applies a player's block list from the platform.
    pub(super) fn note_blocks(&mut self, player_id: &str, blocked: BTreeSet<String>) {
        let number = self.seats.of_player(player_id);
        if let Some(seat) = number.and_then(|number| self.seats.get_mut(number)) {
            // Players that were hidden here meanwhile stay hidden.
            seat.blocked.extend(blocked);
        }
    }

    /// Disconnects a player whom moderators have suspended.
    pub(super) fn expel(&mut self, player_id: &str, reason: &str) {
        let Some(number) = self.seats.of_player(player_id) else {
            return;
        };
        let link = self.seats.get(number).and_then(Seat::link);
        if let Some(session) = link.and_then(|link| self.sessions.get_mut(link)) {
            session.player = None;
            session.kick(KickCause::Expelled, reason);
        }
        // Their place is not reserved: coming back needs a new ticket.
        self.part(number);
    }
}

/// The players from whom the chat of `speaker` is hidden.
pub(super) fn deaf_to(seats: &Seats, speaker: &str) -> BTreeSet<PlayerNumber> {
    if speaker.is_empty() {
        return BTreeSet::new();
    }
    let number = seats.of_player(speaker);
    let blocked = number
        .and_then(|number| seats.get(number))
        .map(|seat| &seat.blocked);
    seats
        .iter()
        .filter(|(_, seat)| {
            let blocked = blocked.is_some_and(|all| all.contains(&seat.identity.player_id));
            blocked || seat.blocked.contains(speaker)
        })
        .map(|(number, _)| number)
        .collect()
}
