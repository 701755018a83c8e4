//! Presence: the players in the world, and which of them have no connection at
//! the moment, which only the game server knows.

use frolic_protocol::PlayerInfo;

use super::World;
use crate::player::Player;
use crate::state::PRESENCES_MAX;

impl World {
    /// All players in the world, including those without a connection.
    pub fn players(&self) -> Vec<PlayerInfo> {
        let state = self.state.borrow();
        state.players.values().map(Player::info).collect()
    }

    /// Players whose connection state changed since the last call, for clients
    /// that are notified immediately. Take the outbox first, which has older
    /// messages; returns a bounded number at a time.
    pub fn take_reconnected(&mut self) -> Vec<PlayerInfo> {
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        let mut changed = Vec::new();
        while changed.len() < PRESENCES_MAX
            && let Some(number) = state.reconnected.pop_first()
        {
            changed.extend(state.players.get(&number).map(Player::info));
        }
        if !changed.is_empty() {
            state.store_presences(changed.clone());
        }
        changed
    }

    pub(crate) fn presence_changes_after(&self, tick: u32) -> Vec<PlayerInfo> {
        let state = self.state.borrow();
        let changes = state.presence_changes.iter();
        changes
            .filter(|(at, _)| *at > tick)
            .map(|(_, info)| info.clone())
            .collect()
    }
}
