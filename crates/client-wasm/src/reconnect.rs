//! The reconnect policy for the page.

use frolic_client::NextStep;
use wasm_bindgen::prelude::*;

use crate::to_json;

/// Whether and when the page connects again; one per visit. Next steps are the JSON
/// of a `NextStep`.
#[wasm_bindgen]
#[derive(Default)]
pub struct ReconnectPolicy(frolic_client::ReconnectPolicy);

#[wasm_bindgen]
impl ReconnectPolicy {
    /// The policy of a visit that has no connection yet.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// A handshake was sent on a new connection, with or without a resume token.
    pub fn connected(&mut self, resuming: bool) {
        self.0.connected(resuming);
    }

    /// The server has welcomed the player.
    pub fn welcomed(&mut self) {
        self.0.welcomed();
    }

    /// The page was suspended and runs again.
    pub fn rested(&mut self) {
        self.0.rested();
    }

    /// The server has sent an error.
    pub fn error(&mut self, code: &str, message: &str) {
        self.0.error(code, message);
    }

    /// The server closes the connection. Returns the JSON of a `SessionEnd` if that
    /// ends the visit.
    pub fn kicked(&mut self, reason: &str) -> Option<String> {
        Some(to_json(&self.0.kicked(reason)?))
    }

    /// The connection is closed; returns what to do next.
    pub fn closed(&mut self, reason: &str, unreadable: bool, now_ms: f64) -> String {
        step(self.0.closed(reason, unreadable, now_ms))
    }

    /// An attempt to return failed, with the HTTP status of the join or 0.
    pub fn failed(&mut self, http_status: u16, now_ms: f64) -> String {
        step(self.0.failed(http_status, now_ms))
    }

    /// The next attempt to return.
    pub fn try_again(&mut self, now_ms: f64) -> String {
        step(self.0.try_again(now_ms))
    }
}

fn step(next: NextStep) -> String {
    to_json(&next)
}
