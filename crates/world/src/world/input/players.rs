//! Players and their connections.

use frolic_fleet_api::persist::PlayerState;
use frolic_protocol::avatar::AvatarLooks;
use frolic_protocol::{Inputs, NumberedInput};
use frolic_script::ScriptEvent;
use frolic_sim::Vec3;
use serde::{Deserialize, Serialize};

use super::{Effect, Input, World};
use crate::characters::{place_beside, teleport};
use crate::moment::Moment;
use crate::player::{PlayerNumber, UNHURT};
use crate::saved::put_back;
use crate::state::WorldState;

/// Adds a player; they are in the world at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Join {
    /// Persistent id.
    pub id: String,
    /// Display name.
    pub name: String,
    /// What an earlier process of this world saved of them. They continue at
    /// that place, or at a spawn point if that is no longer possible.
    pub saved: Option<Box<PlayerState>>,
}

impl Join {
    /// A player whom this world does not know.
    pub fn new(id: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            saved: None,
        }
    }
}

impl Effect for Join {
    type Outcome = PlayerNumber;

    fn run(self, world: &mut World) -> PlayerNumber {
        let number = world.next_player;
        world.next_player += 1;
        let mut state = world.state.borrow_mut();
        state.join(number, self.id, self.name);
        if let Some(saved) = self.saved {
            put_back(&mut state.space, number, &saved);
        }
        number
    }
}

/// Removes a player for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leave {
    /// The player.
    pub player: PlayerNumber,
}

impl Effect for Leave {
    type Outcome = ();

    fn player(&self) -> Option<PlayerNumber> {
        Some(self.player)
    }

    fn run(self, world: &mut World) {
        let Self { player } = self;
        // In a closing world all players have left already, as far as scripts
        // are concerned.
        if world.closing || world.entity_of(player).is_none() {
            return;
        }
        world.state.borrow_mut().leave(player);
        world.dispatch_events();
        world.note_cuts();
        world.state.borrow_mut().space.players.remove(&player);
        world.words.forget(player);
    }
}

/// A player's client reconnected: input numbering restarts, and scripts can
/// restore what their page showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reconnect {
    /// The player.
    pub player: PlayerNumber,
}

impl Effect for Reconnect {
    type Outcome = ();

    fn player(&self) -> Option<PlayerNumber> {
        Some(self.player)
    }

    fn run(self, world: &mut World) {
        let number = self.player;
        let mut state = world.state.borrow_mut();
        let Some(player) = state.space.players.get_mut(&number) else {
            return;
        };
        player.inputs.reset();
        player.shown = Default::default();
        player.vitality.sent = UNHURT;
        state.projectiles.forget_sent(number);
        let event = ScriptEvent::PlayerResumed { player: number };
        // However often they reconnect within a tick, scripts are notified
        // once.
        if !state.space.events.contains(&event) {
            state.space.events.push(event);
        }
    }
}

/// Whether a player has a connection. It is only shown to others: neither the
/// simulation nor scripts use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connected {
    /// The player.
    pub player: PlayerNumber,
    /// Whether they have one now.
    pub connected: bool,
}

impl Effect for Connected {
    type Outcome = ();

    fn player(&self) -> Option<PlayerNumber> {
        Some(self.player)
    }

    fn run(self, world: &mut World) {
        let mut state = world.state.borrow_mut();
        let Some(player) = state.space.players.get_mut(&self.player) else {
            return;
        };
        if std::mem::replace(&mut player.connected, self.connected) != self.connected {
            state.space.presence.reconnect(self.player);
        }
    }
}

/// Queues a player's inputs. The outcome is how many were dropped because the
/// queue was full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Controls {
    /// The player.
    pub player: PlayerNumber,
    /// In rising order; clients repeat them, and only new ones count.
    pub inputs: Inputs,
}

impl Controls {
    /// These inputs of a player.
    pub fn new(player: PlayerNumber, inputs: impl IntoIterator<Item = NumberedInput>) -> Self {
        let inputs = inputs.into_iter().collect();
        Self { player, inputs }
    }
}

impl Effect for Controls {
    type Outcome = usize;

    fn player(&self) -> Option<PlayerNumber> {
        Some(self.player)
    }

    fn recorded(&self, world: &World) -> Option<Input> {
        let state = world.state.borrow();
        let queue = &state.space.players.get(&self.player)?.inputs;
        let fresh = self.inputs.iter().filter(|input| queue.is_new(input.seq));
        let inputs: Inputs = fresh.copied().collect();
        let player = self.player;
        (!inputs.is_empty()).then(|| Self { player, inputs }.into())
    }

    fn run(self, world: &mut World) -> usize {
        let mut state = world.state.borrow_mut();
        let player = state.space.players.get_mut(&self.player);
        player.map_or(0, |player| player.inputs.push(&self.inputs))
    }
}

/// The moment at which a client shows other players. It is limited to
/// [`REWIND_MAX_MS`](crate::lag_compensation::REWIND_MAX_MS) before now whenever
/// it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// The player.
    pub player: PlayerNumber,
    /// The tick.
    pub tick: u32,
    /// Progress to the next tick, in 1/256.
    pub fraction: u8,
}

impl Shown {
    fn moment(&self) -> Moment {
        Moment::new(self.tick, self.fraction)
    }
}

impl Effect for Shown {
    type Outcome = ();

    fn player(&self) -> Option<PlayerNumber> {
        Some(self.player)
    }

    fn recorded(&self, world: &World) -> Option<Input> {
        let state = world.state.borrow();
        let mut shown = state.space.players.get(&self.player)?.shown;
        let is_new = shown.note(self.moment(), state.space.tick_hz);
        is_new.then(|| (*self).into())
    }

    fn run(self, world: &mut World) {
        let mut state = world.state.borrow_mut();
        let tick_hz = state.space.tick_hz;
        if let Some(player) = state.space.players.get_mut(&self.player) {
            player.shown.note(self.moment(), tick_hz);
        }
    }
}

/// The round-trip time of a player's connection. Used only for clients that do
/// not report what they show, such as JSON clients: they are assumed to show
/// others a round trip and a tenth of a second late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundTrip {
    /// The player.
    pub player: PlayerNumber,
    /// Milliseconds.
    pub ms: u16,
}

impl Effect for RoundTrip {
    type Outcome = ();

    fn player(&self) -> Option<PlayerNumber> {
        Some(self.player)
    }

    fn recorded(&self, world: &World) -> Option<Input> {
        let state = world.state.borrow();
        let known = state.space.players.get(&self.player)?.shown.round_trip_ms;
        (known != self.ms).then(|| (*self).into())
    }

    fn run(self, world: &mut World) {
        let mut state = world.state.borrow_mut();
        if let Some(player) = state.space.players.get_mut(&self.player) {
            player.shown.round_trip_ms = self.ms;
        }
    }
}

/// Sets the appearance of a player's character and replicates it to all clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dress {
    /// The player.
    pub player: PlayerNumber,
    /// The new appearance.
    pub looks: AvatarLooks,
}

impl Effect for Dress {
    type Outcome = ();

    fn player(&self) -> Option<PlayerNumber> {
        Some(self.player)
    }

    fn run(self, world: &mut World) {
        let mut state = world.state.borrow_mut();
        let Some(player) = state.space.players.get_mut(&self.player) else {
            return;
        };
        if player.style.looks != self.looks {
            player.style.looks = self.looks;
            let info = player.info();
            state.space.announce(info);
        }
    }
}

/// Moves a player next to another, who invited them. The outcome is false, and
/// the player stays, if there is no free place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beside {
    /// The player.
    pub player: PlayerNumber,
    /// The player who invited them.
    pub friend: PlayerNumber,
}

impl Effect for Beside {
    type Outcome = bool;

    fn player(&self) -> Option<PlayerNumber> {
        Some(self.player)
    }

    fn run(self, world: &mut World) -> bool {
        let Self { player, friend } = self;
        let mut state = world.state.borrow_mut();
        if player == friend || !state.space.players.contains_key(&player) {
            return false;
        }
        let Some(feet) = place_beside(&state.space, player, friend) else {
            return false;
        };
        teleport(&mut state.space, player, feet);
        true
    }
}

/// Seconds that a character lives before a player may reset it, so that a client
/// cannot flood scripts with deaths.
const RESET_AFTER_S: u32 = 2;

/// Ends the life of a player's character, which respawns by the rules of the
/// game. The outcome is false, without an effect, shortly after a spawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reset {
    /// The player.
    pub player: PlayerNumber,
}

impl Effect for Reset {
    type Outcome = bool;

    fn player(&self) -> Option<PlayerNumber> {
        Some(self.player)
    }

    fn run(self, world: &mut World) -> bool {
        let mut state = world.state.borrow_mut();
        let WorldState {
            space, characters, ..
        } = &mut *state;
        let Some(player) = space.players.get(&self.player) else {
            return false;
        };
        let lived = space.tick.saturating_sub(player.vitality.life.first_tick);
        let may = lived >= RESET_AFTER_S * space.tick_hz;
        if may {
            characters.die(space, self.player, None, None);
        }
        may
    }
}

/// Teleports a player's character.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Teleport {
    /// The player.
    pub player: PlayerNumber,
    /// New position of the feet.
    pub feet: [f32; 3],
}

impl Teleport {
    /// To this position of the feet.
    pub fn new(player: PlayerNumber, feet: impl Into<[f32; 3]>) -> Self {
        let feet = feet.into();
        Self { player, feet }
    }
}

impl Effect for Teleport {
    type Outcome = ();

    fn player(&self) -> Option<PlayerNumber> {
        Some(self.player)
    }

    fn run(self, world: &mut World) {
        let feet = Vec3::from(self.feet);
        // A recording may contain anything.
        if world.entity_of(self.player).is_some() && feet.is_finite() {
            teleport(&mut world.state.borrow_mut().space, self.player, feet);
        }
    }
}
