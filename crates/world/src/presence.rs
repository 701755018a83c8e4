//! Presence: the players in the world, as replicated to clients.

use std::collections::{BTreeMap, BTreeSet};

use frolic_protocol::{PlayerInfo, ServerMessage};

use crate::outbox::Outbox;
use crate::player::{Player, PlayerNumber};

/// Changes that are sent at once; the rest follow.
const CHANGES_MAX: usize = 64;

type Players = BTreeMap<PlayerNumber, Player>;

#[derive(Default)]
pub(crate) struct Presence {
    /// Players who joined or changed, and players who left, with the tick.
    changes: Vec<(u32, PlayerInfo)>,
    /// Players whose team or leaderstats changed since they were last
    /// replicated.
    restyled: BTreeSet<PlayerNumber>,
    /// Players whose connection state changed since it was last replicated.
    reconnected: BTreeSet<PlayerNumber>,
}

impl Presence {
    /// Records a change of a player's team or leaderstats.
    pub fn restyle(&mut self, player: PlayerNumber) {
        self.restyled.insert(player);
    }

    /// Records a change of a player's connection.
    pub fn reconnect(&mut self, player: PlayerNumber) {
        self.reconnected.insert(player);
    }

    /// Replicates changed teams and leaderstats to all clients, at most five
    /// times a second, because scripts may change them in every tick.
    pub fn send_restyled(
        &mut self,
        players: &Players,
        outbox: &mut Outbox,
        (tick, tick_hz): (u32, u32),
    ) {
        if self.restyled.is_empty() || !tick.is_multiple_of((tick_hz / 5).max(1)) {
            return;
        }
        let changed = first_of(&mut self.restyled, players);
        self.announce(changed, outbox, (tick, tick_hz));
    }

    /// Replicates changes to all clients.
    pub fn announce(&mut self, changed: Vec<PlayerInfo>, outbox: &mut Outbox, time: (u32, u32)) {
        outbox.broadcast(ServerMessage::Presence(changed.clone()));
        self.store(changed, time);
    }

    /// Players whose connection changed since the last call; a bounded number
    /// at a time.
    pub fn take_reconnected(&mut self, players: &Players, time: (u32, u32)) -> Vec<PlayerInfo> {
        let changed = first_of(&mut self.reconnected, players);
        if !changed.is_empty() {
            self.store(changed.clone(), time);
        }
        changed
    }

    /// Stores changes for the next snapshots of JSON clients.
    fn store(&mut self, changed: Vec<PlayerInfo>, (tick, tick_hz): (u32, u32)) {
        self.changes
            .retain(|(_, known)| changed.iter().all(|info| info.number != known.number));
        // Between two steps the snapshot of this tick may have been sent
        // already, so the change belongs to the next one.
        let next = tick + 1;
        self.changes
            .extend(changed.into_iter().map(|info| (next, info)));
        // JSON clients receive changes since their baseline, which is a few
        // seconds old at most.
        let forget_before = tick.saturating_sub(tick_hz * 30);
        self.changes
            .retain(|(tick, info)| !info.left || *tick >= forget_before);
    }

    /// The changes after a tick.
    pub fn changes_after(&self, tick: u32) -> Vec<PlayerInfo> {
        let changes = self.changes.iter();
        changes
            .filter(|(at, _)| *at > tick)
            .map(|(_, info)| info.clone())
            .collect()
    }
}

/// Takes the first players of a queue, as they are now.
fn first_of(queue: &mut BTreeSet<PlayerNumber>, players: &Players) -> Vec<PlayerInfo> {
    let mut changed = Vec::new();
    while changed.len() < CHANGES_MAX
        && let Some(number) = queue.pop_first()
    {
        changed.extend(players.get(&number).map(Player::info));
    }
    changed
}
