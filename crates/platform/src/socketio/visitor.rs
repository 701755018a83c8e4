//! One client: who it is, where it is, and what it may still say.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde_json::Value;
use socketioxide::extract::{AckSender, SocketRef};

use crate::auth::Role;
use crate::remote_commands::Place;
use crate::spells::Actor;

/// Messages of one client that wait for their turn.
const WAITING_MAX: usize = 64;
/// Messages that a client may send at once, and per second.
const BURST: f64 = 60.0;
const PER_SECOND: f64 = 20.0;

/// Something that a client said.
pub struct Said {
    /// Which event.
    pub event: String,
    /// With what.
    pub data: Value,
    /// For the answer.
    pub ack: AckSender,
}

/// A connected client.
pub struct Visitor {
    /// Who.
    pub actor: Actor,
    /// Their name, if they are logged in.
    pub username: Option<String>,
    state: Mutex<State>,
}

struct State {
    place: Option<Place>,
    waiting: VecDeque<(SocketRef, Said)>,
    busy: bool,
    left: f64,
    at: Instant,
}

impl Visitor {
    /// Somebody who has just come.
    pub fn new(actor: Actor, username: Option<String>) -> Self {
        Self {
            actor,
            username,
            state: Mutex::new(State {
                place: None,
                waiting: VecDeque::new(),
                busy: false,
                left: BURST,
                at: Instant::now(),
            }),
        }
    }

    /// The world they have joined.
    pub fn place(&self) -> Option<Place> {
        self.state().place.clone()
    }

    /// They are in another one now; gives the one before.
    pub fn move_to(&self, place: Option<Place>) -> Option<Place> {
        std::mem::replace(&mut self.state().place, place)
    }

    /// Takes a message. True when nobody works on this client's messages: the
    /// caller then does, with [`Visitor::next`] until there is none.
    ///
    /// # Errors
    /// The message, when there were too many.
    pub fn take(&self, socket: SocketRef, said: Said) -> Result<bool, Said> {
        let mut state = self.state();
        let now = Instant::now();
        let since = now.duration_since(state.at).as_secs_f64();
        state.at = now;
        state.left = (state.left + since * PER_SECOND).min(BURST);
        if state.left < 1.0 || state.waiting.len() >= WAITING_MAX {
            return Err(said);
        }
        state.left -= 1.0;
        state.waiting.push_back((socket, said));
        Ok(!std::mem::replace(&mut state.busy, true))
    }

    /// The next message to work on.
    pub fn next(&self) -> Option<(SocketRef, Said)> {
        let mut state = self.state();
        let next = state.waiting.pop_front();
        if next.is_none() {
            state.busy = false;
            // An idle client keeps no room for what it once said.
            state.waiting.shrink_to_fit();
        }
        next
    }

    /// The role, for rights beyond their own things.
    pub fn is_admin(&self) -> bool {
        self.actor.role >= Role::Admin
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
