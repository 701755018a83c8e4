//! Presence: the players in the world, and which of them have no connection at
//! the moment, which only the game server knows.

use frolic_protocol::PlayerInfo;

use super::World;
use crate::player::Player;

impl World {
    /// All players in the world, including those without a connection.
    pub fn players(&self) -> Vec<PlayerInfo> {
        let state = self.state.borrow();
        state.space.players.values().map(Player::info).collect()
    }

    /// Players whose connection state changed since the last call, for clients
    /// that are notified immediately. Take the outbox first, which has older
    /// messages; returns a bounded number at a time.
    pub fn take_reconnected(&mut self) -> Vec<PlayerInfo> {
        let mut state = self.state.borrow_mut();
        let time = state.space.time();
        let space = &mut state.space;
        space.presence.take_reconnected(&space.players, time)
    }
}
