//! VisitorState of one client: identity, joined world, and message queue.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use frolic_protocol::token_bucket::{RateLimit, TokenBucket};
use serde_json::Value;
use socketioxide::extract::{AckSender, SocketRef};

use crate::community::auth::Principal;
use crate::worlds::remote_commands::WorldRef;

/// Maximum number of queued messages per client.
const QUEUE_MAX: usize = 64;
/// Rate limit of messages per client.
const MESSAGES: RateLimit = RateLimit {
    burst: 60.0,
    per_s: 20.0,
};

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
    /// The authenticated user, or an anonymous one.
    pub actor: Principal,
    state: Mutex<VisitorState>,
}

struct VisitorState {
    place: Option<WorldRef>,
    queue: VecDeque<(SocketRef, ReceivedMessage)>,
    busy: bool,
    messages: TokenBucket,
    created_at: Instant,
}

impl Visitor {
    pub fn new(actor: Principal) -> Self {
        Self {
            actor,
            state: Mutex::new(VisitorState {
                place: None,
                queue: VecDeque::new(),
                busy: false,
                messages: TokenBucket::default(),
                created_at: Instant::now(),
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
        let now_s = state.created_at.elapsed().as_secs_f64();
        if state.queue.len() >= QUEUE_MAX || state.messages.take(MESSAGES, 1.0, now_s).is_err() {
            return Err(message);
        }
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

    fn state(&self) -> MutexGuard<'_, VisitorState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
