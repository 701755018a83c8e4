//! What clients send to scripts, on its way in: counted, and free of things
//! that do not exist.

use std::borrow::Cow;

use frolic_protocol::{Args, Value};
use frolic_script::ScriptEvent;

use super::World;
use crate::player::PlayerNumber;
use crate::replay::Record;

/// Events and calls that one player's client may send per tick: a script's
/// handler runs for each, inside the tick.
const EVENTS_PER_TICK_MAX: usize = 32;

impl World {
    /// A client fired an event; scripts hear of it in the next step. False
    /// when it has fired too many since the last one.
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

    /// A client calls a function; the answer comes through the outbox. False
    /// when it has called too often since the last step.
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

    /// Whoever is not here has none.
    fn has_room(&mut self, player: PlayerNumber, args: &Args) -> bool {
        if !self.state.borrow().players.contains_key(&player) {
            return false;
        }
        let (tick, tick_hz) = (self.tick(), self.tick_hz());
        let count = self.inbox_counts.entry(player).or_insert(0);
        *count += 1;
        *count <= EVENTS_PER_TICK_MAX && self.words.admit(player, tick, tick_hz, &args.0)
    }

    /// Entities that do not exist become nil: scripts keep what they know of
    /// an entity, and a client must not make them keep what it made up.
    pub(crate) fn known_entities(&self, values: Vec<Value>) -> Vec<Value> {
        let state = self.state.borrow();
        let is_alive = |id| state.alive(id).is_some();
        let values = values.into_iter();
        values.map(|value| value.with_entities(&is_alive)).collect()
    }
}
