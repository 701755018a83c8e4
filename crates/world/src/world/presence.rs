//! Who is here, as everybody is told; and which of them are away: in the world
//! without a connection, which only the game server knows.

use frolic_protocol::PlayerInfo;

use super::World;
use crate::player::{Player, PlayerNumber};
use crate::state::PRESENCES_MAX;

impl World {
    /// Everybody here, those who are away among them.
    pub fn players(&self) -> Vec<PlayerInfo> {
        let state = self.state.borrow();
        state.players.values().map(Player::info).collect()
    }

    /// Notes whether a player has a connection. It is shown to others, and that
    /// is all: neither the simulation nor scripts ask for it, and a recording
    /// does not have it.
    pub fn set_connected(&mut self, player: PlayerNumber, connected: bool) {
        let news = self.with_player(player, |player| {
            std::mem::replace(&mut player.connected, connected) != connected
        });
        if news {
            self.state_mut().reconnected.insert(player);
        }
    }

    /// Who lost their connection or has one again since the last call: for all
    /// who are told when it happens. To be taken after the outbox, which has
    /// older news; a bounded number at a time.
    pub fn take_reconnected(&mut self) -> Vec<PlayerInfo> {
        let mut state = self.state_mut();
        let state = &mut *state;
        let mut changed = Vec::new();
        while changed.len() < PRESENCES_MAX
            && let Some(number) = state.reconnected.pop_first()
        {
            changed.extend(state.players.get(&number).map(Player::info));
        }
        if !changed.is_empty() {
            state.keep_presences(changed.clone());
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
