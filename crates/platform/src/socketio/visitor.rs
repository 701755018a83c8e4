//! VisitorState of one client: identity, joined world, and message queue.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde_json::Value;
use socketioxide::extract::{AckSender, SocketRef};

use crate::core::auth::Role;
use crate::spells::Principal;
use crate::worlds::remote_commands::WorldRef;

/// Maximum number of queued messages per client.
const QUEUE_MAX: usize = 64;
/// Rate limit of messages per client: burst, and per second.
const BURST: f64 = 60.0;
const PER_SECOND: f64 = 20.0;

/// A received message.
pub struct ReceivedMessage {
    /// Name of the event.
    pub event: String,
    /// Payload.
    pub data: Value,
    /// Sends the acknowledgement.
    pub ack: AckSender,
}

/// A connected client.
pub struct Visitor {
    /// The authenticated user.
    pub actor: Principal,
    /// The user's name, if they are logged in.
    pub username: Option<String>,
    state: Mutex<VisitorState>,
}

struct VisitorState {
    place: Option<WorldRef>,
    queue: VecDeque<(SocketRef, ReceivedMessage)>,
    busy: bool,
    tokens: f64,
    at: Instant,
}

impl Visitor {
    pub fn new(actor: Principal, username: Option<String>) -> Self {
        Self {
            actor,
            username,
            state: Mutex::new(VisitorState {
                place: None,
                queue: VecDeque::new(),
                busy: false,
                tokens: BURST,
                at: Instant::now(),
            }),
        }
    }

    /// The joined world.
    pub fn place(&self) -> Option<WorldRef> {
        self.state().place.clone()
    }

    /// Sets the joined world and returns the previous one.
    pub fn move_to(&self, place: Option<WorldRef>) -> Option<WorldRef> {
        std::mem::replace(&mut self.state().place, place)
    }

    /// Queues a message. True when no task processes this client's messages: the
    /// caller must then process them with [`Visitor::next`] until it returns `None`.
    ///
    /// # Errors
    /// The message, when the client exceeded its rate limit or its queue is full.
    pub fn enqueue(
        &self,
        socket: SocketRef,
        message: ReceivedMessage,
    ) -> Result<bool, ReceivedMessage> {
        let mut state = self.state();
        let now = Instant::now();
        let since = now.duration_since(state.at).as_secs_f64();
        state.at = now;
        state.tokens = (state.tokens + since * PER_SECOND).min(BURST);
        if state.tokens < 1.0 || state.queue.len() >= QUEUE_MAX {
            return Err(message);
        }
        state.tokens -= 1.0;
        state.queue.push_back((socket, message));
        Ok(!std::mem::replace(&mut state.busy, true))
    }

    /// The next queued message.
    pub fn next(&self) -> Option<(SocketRef, ReceivedMessage)> {
        let mut state = self.state();
        let next = state.queue.pop_front();
        if next.is_none() {
            state.busy = false;
            // Free the queue's memory, because most clients are idle.
            state.queue.shrink_to_fit();
        }
        next
    }

    /// Whether the user has the rights of an admin.
    pub fn is_admin(&self) -> bool {
        self.actor.role >= Role::Admin
    }

    fn state(&self) -> MutexGuard<'_, VisitorState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
