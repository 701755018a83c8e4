//! Client messages to scripts: rate-limited, and without references to entities
//! that do not exist.

use std::borrow::Cow;

use frolic_protocol::{Args, Value};
use frolic_script::ScriptEvent;

use super::World;
use crate::player::PlayerNumber;
use crate::replay::Record;

/// Events and calls that one player's client may send per tick, because a
/// handler runs inside the tick for each.
const EVENTS_PER_TICK_MAX: usize = 32;

impl World {
    /// Queues a client's event for scripts in the next step. False if it has
    /// sent too many since the last one.
    pub fn receive_event(&mut self, player: PlayerNumber, name: String, args: Args) -> bool {
        let room = self.has_room(player, &args);
        if room {
            self.note(&Record::Event {
                player,
                name: Cow::Borrowed(&name),
                args: Cow::Borrowed(&args),
            });
            let args = self.known_entities(args.0);
            self.inbox
                .push(ScriptEvent::ClientEvent { player, name, args });
        }
        room
    }

    /// Queues a client's function call; the answer is sent through the outbox.
    /// False if it has sent too many since the last step.
    pub fn receive_invoke(
        &mut self,
        player: PlayerNumber,
        id: u32,
        name: String,
        args: Args,
    ) -> bool {
        let room = self.has_room(player, &args);
        if room {
            self.note(&Record::Invoke {
                player,
                id,
                name: Cow::Borrowed(&name),
                args: Cow::Borrowed(&args),
            });
            let args = self.known_entities(args.0);
            self.inbox.push(ScriptEvent::ClientInvoke {
                player,
                id,
                name,
                args,
            });
        }
        room
    }

    /// A player who is not in the world has no capacity.
    fn has_room(&mut self, player: PlayerNumber, args: &Args) -> bool {
        if !self.state.borrow().players.contains_key(&player) {
            return false;
        }
        let (tick, tick_hz) = (self.tick(), self.tick_hz());
        let count = self.inbox_counts.entry(player).or_insert(0);
        *count += 1;
        *count <= EVENTS_PER_TICK_MAX && self.words.admit(player, tick, tick_hz, &args.0)
    }

    /// Replaces entities that do not exist by nil: scripts store data by
    /// entity, and a client must not make them store invented ones.
    pub(crate) fn known_entities(&self, values: Vec<Value>) -> Vec<Value> {
        let state = self.state.borrow();
        let is_alive = |id| state.alive(id).is_some();
        let values = values.into_iter();
        values.map(|value| value.with_entities(&is_alive)).collect()
    }
}
