//! Client messages to scripts: rate-limited, and without references to entities
//! that do not exist.

use frolic_protocol::packet::CHAT_BYTES_MAX;
use frolic_protocol::{Args, Value};
use frolic_script::ScriptEvent;
use serde::{Deserialize, Serialize};

use super::{Effect, World};
use crate::player::PlayerNumber;

/// Events and calls that one player's client may send per tick, because a
/// handler runs inside the tick for each.
const EVENTS_PER_TICK_MAX: usize = 32;
/// Chat messages in a burst.
const CHAT_BURST: u32 = 6;
/// Chat messages per two seconds after that.
const CHAT_PER_TWO_SECONDS: u32 = 3;

/// A client's event, for scripts in the next step. The outcome is false if it
/// has sent too many since the last one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The player.
    pub player: PlayerNumber,
    /// Name of the event.
    pub name: String,
    /// Its arguments.
    pub args: Args,
}

impl Event {
    /// An event of this name.
    pub fn new(player: PlayerNumber, name: impl Into<String>, args: Args) -> Self {
        Self {
            player,
            name: name.into(),
            args,
        }
    }
}

impl Effect for Event {
    type Outcome = bool;

    fn player(&self) -> Option<PlayerNumber> {
        Some(self.player)
    }

    fn run(self, world: &mut World) -> bool {
        let Self { player, name, args } = self;
        let room = world.has_room(player, &args);
        if room {
            let args = world.known_entities(args.0);
            let event = ScriptEvent::ClientEvent { player, name, args };
            world.inbox.push(event);
        }
        room
    }
}

/// A client's function call; the answer is sent through the outbox. The outcome
/// is false if the client has sent too many since the last step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Invoke {
    /// The player.
    pub player: PlayerNumber,
    /// Chosen by the client.
    pub id: u32,
    /// Name of the function.
    pub name: String,
    /// Its arguments.
    pub args: Args,
}

impl Effect for Invoke {
    type Outcome = bool;

    fn player(&self) -> Option<PlayerNumber> {
        Some(self.player)
    }

    fn run(self, world: &mut World) -> bool {
        let Self {
            player,
            id,
            name,
            args,
        } = self;
        let room = world.has_room(player, &args);
        if room {
            let args = world.known_entities(args.0);
            world.inbox.push(ScriptEvent::ClientInvoke {
                player,
                id,
                name,
                args,
            });
        }
        room
    }
}

/// A player's chat message; scripts may change or suppress it, and in the next
/// step the result is sent to all players.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chat {
    /// The player.
    pub player: PlayerNumber,
    /// The text.
    pub text: String,
}

/// Why a chat message was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChatRefusal {
    /// Empty, or too long.
    #[error("A chat message has 1 to {CHAT_BYTES_MAX} bytes.")]
    Length,
    /// Too many in a short time.
    #[error("You're chatting too fast. Wait a moment.")]
    TooFast,
    /// The player has left.
    #[error("The player is no longer in this world.")]
    NotHere,
}

impl Effect for Chat {
    type Outcome = Result<(), ChatRefusal>;

    fn player(&self) -> Option<PlayerNumber> {
        Some(self.player)
    }

    fn run(self, world: &mut World) -> Result<(), ChatRefusal> {
        let text: String = self.text.chars().filter(|c| !c.is_control()).collect();
        let text = text.trim();
        if text.is_empty() || text.len() > CHAT_BYTES_MAX {
            return Err(ChatRefusal::Length);
        }
        let (tick, tick_hz) = (world.tick(), world.tick_hz());
        let each = (tick_hz * 2 / CHAT_PER_TWO_SECONDS).max(1);
        {
            let mut state = world.state.borrow_mut();
            let player = state.space.players.get_mut(&self.player);
            let player = player.ok_or(ChatRefusal::NotHere)?;
            let free = player.chat_used_until.max(tick);
            if free - tick > each * (CHAT_BURST - 1) {
                return Err(ChatRefusal::TooFast);
            }
            player.chat_used_until = free + each;
        }
        world.inbox.push(ScriptEvent::Chat {
            player: self.player,
            text: text.to_owned(),
        });
        Ok(())
    }
}

impl World {
    /// A player who is not in the world has no capacity.
    fn has_room(&mut self, player: PlayerNumber, args: &Args) -> bool {
        if self.entity_of(player).is_none() {
            return false;
        }
        let (tick, tick_hz) = (self.tick(), self.tick_hz());
        let count = self.inbox_counts.entry(player).or_insert(0);
        *count += 1;
        *count <= EVENTS_PER_TICK_MAX && self.words.admit(player, tick, tick_hz, &args.0)
    }

    /// Replaces entities that do not exist by nil: scripts store data by
    /// entity, and a client must not make them store invented ones.
    pub(super) fn known_entities(&self, values: Vec<Value>) -> Vec<Value> {
        let state = self.state.borrow();
        let is_alive = |id| state.space.alive(id).is_some();
        let values = values.into_iter();
        values.map(|value| value.with_entities(&is_alive)).collect()
    }
}
