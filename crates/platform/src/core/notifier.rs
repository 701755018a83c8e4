//! Events for clients that keep a connection to the platform. [`Notifier`] delivers them; with
//! several instances of the platform it would also reach the clients of the others.

use serde::Serialize;
use serde_json::Value;

/// Sends events to clients. Each world and each user has a room.
pub trait Notifier: Send + Sync {
    /// Number of connected clients.
    fn clients(&self) -> usize;

    /// Number of clients in a room.
    fn clients_in_room(&self, room: String) -> usize;

    /// Sends an event. Clients that read too slowly miss it.
    fn deliver(&self, to: Recipients, event: &'static str, data: Value);
}

/// Recipients of an event.
pub enum Recipients {
    /// All clients.
    All,
    /// The clients in any of these rooms.
    Rooms(Vec<String>),
}

impl Recipients {
    /// The clients in a world.
    pub fn world(world_id: &str) -> Self {
        Self::Rooms(vec![world_room(world_id)])
    }
}

/// The room of a world.
pub fn world_room(world_id: &str) -> String {
    format!("world:{world_id}")
}

/// The room of all connections of one user.
pub fn user_room(user_id: &str) -> String {
    format!("user:{user_id}")
}

impl dyn Notifier {
    /// Number of clients in a world.
    pub fn clients_in(&self, world_id: &str) -> usize {
        self.clients_in_room(world_room(world_id))
    }

    /// Sends an event, unless no client is connected.
    pub fn send(&self, to: Recipients, event: &'static str, data: &impl Serialize) {
        if self.clients() > 0
            && let Ok(data) = serde_json::to_value(data)
        {
            self.deliver(to, event, data);
        }
    }

    /// Sends an event to all clients.
    pub fn broadcast(&self, event: &'static str, data: &impl Serialize) {
        self.send(Recipients::All, event, data);
    }

    /// Sends an event to the clients in a world.
    pub fn send_to_world(&self, world_id: &str, event: &'static str, data: &impl Serialize) {
        self.send(Recipients::world(world_id), event, data);
    }

    /// Sends an event to all connections of one user.
    pub fn send_to_user(&self, user_id: &str, event: &'static str, data: &impl Serialize) {
        self.send(Recipients::Rooms(vec![user_room(user_id)]), event, data);
    }
}
