//! The HTTP exchange that opens a WebSocket, without waiting for a socket.

use anyhow::{Context, Result, ensure};
use frolic_protocol::json::BINARY_SUBPROTOCOL;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::generate_request;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::http::HeaderValue;

/// More than any answer needs.
const ANSWER_BYTES_MAX: usize = 16 * 1024;

/// An upgrade that was asked for.
pub struct Upgrade {
    accept: String,
    answer: Vec<u8>,
}

impl Upgrade {
    /// The request's bytes, and what waits for the answer.
    ///
    /// # Errors
    /// When the address is not one of a WebSocket.
    pub fn request(address: &str) -> Result<(Vec<u8>, Self)> {
        let mut request = address.into_client_request()?;
        let protocol = HeaderValue::from_static(BINARY_SUBPROTOCOL);
        request
            .headers_mut()
            .insert("sec-websocket-protocol", protocol);
        let (bytes, key) = generate_request(request)?;
        let upgrade = Self {
            accept: derive_accept_key(key.as_bytes()),
            answer: Vec::new(),
        };
        Ok((bytes, upgrade))
    }

    /// Takes the next bytes. Once the answer is whole and good, returns what
    /// came behind it: the first bytes of the WebSocket.
    ///
    /// # Errors
    /// When the server does not agree.
    pub fn answer(&mut self, bytes: &[u8]) -> Result<Option<Vec<u8>>> {
        self.answer.extend_from_slice(bytes);
        let end = self.answer.windows(4).position(|four| four == b"\r\n\r\n");
        let Some(end) = end else {
            ensure!(
                self.answer.len() <= ANSWER_BYTES_MAX,
                "the answer to the upgrade does not end"
            );
            return Ok(None);
        };
        let head = std::str::from_utf8(&self.answer[..end]).context("the answer is no text")?;
        let status = head.lines().next().unwrap_or_default();
        ensure!(
            status.split(' ').nth(1) == Some("101"),
            "the server refused: {status}"
        );
        let header = |name: &str| {
            let mut fields = head.lines().filter_map(|line| line.split_once(':'));
            fields
                .find(|(field, _)| field.eq_ignore_ascii_case(name))
                .map(|(_, value)| value.trim())
        };
        ensure!(
            header("sec-websocket-accept") == Some(&self.accept),
            "the server answered another request"
        );
        ensure!(
            header("sec-websocket-protocol") == Some(BINARY_SUBPROTOCOL),
            "the server does not speak {BINARY_SUBPROTOCOL}"
        );
        Ok(Some(self.answer.split_off(end + 4)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server's answer to `request`, made by tungstenite.
    fn answer_to(request: &[u8]) -> Vec<u8> {
        let text = std::str::from_utf8(request).unwrap();
        let key = text
            .lines()
            .filter_map(|line| line.split_once(": "))
            .find(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-key"))
            .map(|(_, key)| derive_accept_key(key.as_bytes()))
            .unwrap();
        format!(
            "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nSec-WebSocket-Accept: {key}\r\n\
             sec-websocket-protocol: {BINARY_SUBPROTOCOL}\r\n\r\n"
        )
        .into_bytes()
    }

    #[test]
    fn a_good_answer_in_pieces_leaves_the_first_frames() {
        let (request, mut upgrade) = Upgrade::request("ws://127.0.0.1:7777/ws?ticket=a").unwrap();
        assert!(request.starts_with(b"GET /ws?ticket=a HTTP/1.1\r\n"));
        let mut answer = answer_to(&request);
        answer.extend_from_slice(b"frame");
        let (first, rest) = answer.split_at(40);
        assert_eq!(upgrade.answer(first).unwrap(), None);
        assert_eq!(upgrade.answer(rest).unwrap(), Some(b"frame".to_vec()));
    }

    #[test]
    fn refusals_and_answers_to_others_are_errors() {
        let check = |answer: &[u8], because: &str| {
            let (_, mut upgrade) = Upgrade::request("ws://127.0.0.1:7777/ws").unwrap();
            let error = upgrade.answer(answer).unwrap_err().to_string();
            assert!(error.contains(because), "{error}");
        };
        check(b"HTTP/1.1 503 Service Unavailable\r\n\r\n", "503");
        let (request, _) = Upgrade::request("ws://127.0.0.1:7777/ws").unwrap();
        check(&answer_to(&request), "another request");
        check(&[b'x'; ANSWER_BYTES_MAX + 1], "does not end");
        assert!(Upgrade::request("no address").is_err());
    }
}
