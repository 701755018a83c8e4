//! Limits connections that have not sent a ticket yet per address, because each takes up a proxied
//! socket.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
use frolic_protocol::ServerMessage;
use frolic_protocol::packet::{self, SERVER_MESSAGE_BYTES_MAX};
use serde::Deserialize;
use tokio_tungstenite::tungstenite::Message;

use crate::core::error::ApiError;
use crate::core::limits::network_of;

/// Factor for programs on this machine (bots, tests, benchmarks).
const LOCAL_FACTOR: usize = 8;
/// By then a game server has closed connections that sent no handshake.
const RETRY_AFTER_S: u64 = 5;

/// Number of connections without a ticket, by address.
#[derive(Clone)]
pub struct Newcomers {
    each_max: usize,
    counts: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

impl Newcomers {
    /// Allows `each_max` such connections per address.
    pub fn new(each_max: usize) -> Self {
        Self {
            each_max,
            counts: Arc::default(),
        }
    }

    /// Registers a connection without a ticket.
    ///
    /// # Errors
    /// 429 when the address has too many.
    pub fn enter(&self, address: IpAddr) -> Result<Newcomer, ApiError> {
        let factor = if address.is_loopback() {
            LOCAL_FACTOR
        } else {
            1
        };
        let address = network_of(address);
        let mut counts = self.counts();
        let count = counts.get(&address).copied().unwrap_or(0);
        if count >= self.each_max * factor {
            return Err(ApiError::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too_many_newcomers",
                "too many connections from your address have not sent a ticket; send the ticket of \
                 POST /join right after opening, or as ?ticket=, and close what you do not use",
            )
            .with_retry_after(RETRY_AFTER_S));
        }
        counts.insert(address, count + 1);
        Ok(Newcomer {
            newcomers: self.clone(),
            address,
        })
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One connection without a ticket. Drop it when the player is admitted.
pub struct Newcomer {
    newcomers: Newcomers,
    address: IpAddr,
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        let mut counts = self.newcomers.counts();
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

/// Whether the game server has accepted the ticket. Other messages do not count: a client without a
/// ticket receives errors.
pub fn is_welcome(message: &Message) -> bool {
    #[derive(Deserialize)]
    struct Kind<'a> {
        kind: &'a str,
    }
    match message {
        Message::Text(text) => {
            serde_json::from_str::<Kind>(text).is_ok_and(|message| message.kind == "welcome")
        }
        Message::Binary(bytes) => {
            packet::messages::<ServerMessage>(bytes, SERVER_MESSAGE_BYTES_MAX)
                .any(|message| matches!(message, Ok(ServerMessage::Welcome(_))))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_without_a_ticket_are_limited_per_address() {
        let newcomers = Newcomers::new(2);
        let [eve, mallory, ada] =
            ["2001:db8::1", "2001:db8::2", "192.0.2.1"].map(|text| text.parse().unwrap());
        let first = newcomers.enter(eve).unwrap();
        let second = newcomers.enter(mallory).unwrap();
        let refused = newcomers.enter(eve).err().unwrap();
        assert_eq!(refused.code(), "too_many_newcomers");
        let other = newcomers.enter(ada).unwrap();
        drop(first);
        let third = newcomers.enter(eve).unwrap();
        drop((second, third, other));
        assert!(newcomers.counts().is_empty());
    }

    #[test]
    fn only_a_welcome_message_counts() {
        let error = ServerMessage::Error {
            code: "no_handshake".to_owned(),
            message: "\"kind\":\"welcome\"".to_owned(),
        };
        for stranger in [
            Message::text(r#"{"v":2,"kind":"error","message":"\"kind\":\"welcome\""}"#),
            Message::text("welcome"),
            Message::binary(packet::single(&error)),
            Message::binary(vec![0xff; 9]),
            Message::Ping(Default::default()),
        ] {
            assert!(!is_welcome(&stranger), "{stranger:?}");
        }
        assert!(is_welcome(&Message::text(r#"{"v":2,"kind":"welcome"}"#)));
    }
}
