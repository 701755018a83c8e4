//! WebSocket: the upgrade. Binary packets for our client, JSON for all others. HTTP
//! ends with the response; from then on the world's thread drives the socket (see
//! `connection`), because a task per client costs more than all the work it would do.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{ConnectInfo, Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use frolic_fleet_api::process::CLIENT_ADDRESS_HEADER;
use frolic_protocol::json::{BINARY_SUBPROTOCOL, SUBPROTOCOL};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::net::TcpStream;
use tungstenite::handshake::derive_accept_key;

use super::Transports;
use crate::connection::ConnectionPermit;
use crate::decoder::Encoding;
use crate::inbox::{Carrier, Inbound};

/// How long sending the upgrade response may take.
const UPGRADE_WITHIN: Duration = Duration::from_secs(5);

/// Query parameters of the URL.
#[derive(Deserialize)]
pub struct Address {
    ticket: Option<String>,
}

/// `GET /` and `/ws`
pub async fn upgrade(
    State(transports): State<Transports>,
    ConnectInfo(client): ConnectInfo<SocketAddr>,
    Query(address): Query<Address>,
    mut request: Request,
) -> Response {
    let accept = match accept_key(request.headers()) {
        Ok(accept) => accept,
        Err((status, message)) => {
            return (status, [(header::UPGRADE, "websocket")], message).into_response();
        }
    };
    let Some(on_upgrade) = request.extensions_mut().remove::<OnUpgrade>() else {
        let message = "this connection cannot be upgraded to a WebSocket";
        return (StatusCode::UPGRADE_REQUIRED, message).into_response();
    };
    let platform = request.extensions().get();
    let forwarded = forwarded_for(request.headers(), platform);
    let client = forwarded.unwrap_or(client.ip());
    let permit = match transports.permits.take(client) {
        Ok(permit) => permit,
        Err(full) => return (StatusCode::SERVICE_UNAVAILABLE, full.to_string()).into_response(),
    };
    let protocol = choose_protocol(request.headers());
    // Our own client names the binary subprotocol; a client that names none is a
    // third-party client.
    let encoding = if protocol == Some(BINARY_SUBPROTOCOL) {
        Encoding::Binary
    } else {
        Encoding::Json
    };
    tokio::spawn(hand_over(
        transports,
        on_upgrade,
        encoding,
        address.ticket,
        permit,
    ));
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    if let Some(protocol) = protocol {
        let protocol = HeaderValue::from_static(protocol);
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    response
}

/// Hands the socket to the world's thread once HTTP has released it.
async fn hand_over(
    transports: Transports,
    on_upgrade: OnUpgrade,
    encoding: Encoding,
    ticket: Option<String>,
    permit: ConnectionPermit,
) {
    let Ok(Ok(upgraded)) = tokio::time::timeout(UPGRADE_WITHIN, on_upgrade).await else {
        return;
    };
    let Some((stream, read_ahead)) = raw_socket(upgraded) else {
        tracing::error!("an upgraded connection is not the socket it should be");
        return;
    };
    let open = Inbound::Open {
        encoding,
        ticket,
        carrier: Carrier::Socket { stream, read_ahead },
        permit,
    };
    // Fails only when the world has stopped.
    let _ = transports.inbox.send(open).await;
}

fn raw_socket(upgraded: hyper::upgrade::Upgraded) -> Option<(std::net::TcpStream, Bytes)> {
    let parts = upgraded.downcast::<TokioIo<TcpStream>>().ok()?;
    let stream = parts.io.into_inner().into_std().ok()?;
    Some((stream, parts.read_buf))
}

/// SHA-256 of the world's token, which authenticates the platform.
#[derive(Clone)]
pub struct PlatformToken(pub [u8; 32]);

/// The client address for which the platform opens this connection, if it is the
/// platform: anyone could send the header, but only the platform knows the token.
fn forwarded_for(headers: &HeaderMap, platform: Option<&PlatformToken>) -> Option<IpAddr> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let address = text(CLIENT_ADDRESS_HEADER)?.parse().ok()?;
    let given = text(header::AUTHORIZATION.as_str())?.strip_prefix("Bearer ")?;
    let given: [u8; 32] = Sha256::digest(given).into();
    bool::from(given.ct_eq(&platform?.0)).then_some(address)
}

/// The answer to the client's key, if it requests a WebSocket at all.
fn accept_key(headers: &HeaderMap) -> Result<HeaderValue, (StatusCode, &'static str)> {
    let refuse = |message| (StatusCode::BAD_REQUEST, message);
    if !has_word(headers, header::CONNECTION, "upgrade")
        || !has_word(headers, header::UPGRADE, "websocket")
    {
        let message = "this is a game server: connect with a WebSocket";
        return Err((StatusCode::UPGRADE_REQUIRED, message));
    }
    if !has_word(headers, header::SEC_WEBSOCKET_VERSION, "13") {
        return Err(refuse("this server speaks WebSocket version 13"));
    }
    let key = headers.get(header::SEC_WEBSOCKET_KEY);
    let key = key.ok_or_else(|| refuse("Sec-WebSocket-Key is missing"))?;
    HeaderValue::try_from(derive_accept_key(key.as_bytes()))
        .map_err(|_| refuse("Sec-WebSocket-Key is not usable"))
}

/// The first of the client's subprotocols that is one of ours.
fn choose_protocol(headers: &HeaderMap) -> Option<&'static str> {
    words(headers, header::SEC_WEBSOCKET_PROTOCOL).find_map(|word| {
        [BINARY_SUBPROTOCOL, SUBPROTOCOL]
            .into_iter()
            .find(|ours| *ours == word)
    })
}

fn has_word(headers: &HeaderMap, name: header::HeaderName, wanted: &str) -> bool {
    words(headers, name).any(|word| word.eq_ignore_ascii_case(wanted))
}

fn words(headers: &HeaderMap, name: header::HeaderName) -> impl Iterator<Item = &str> {
    headers
        .get_all(name)
        .into_iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_platform_may_forward_a_client_address() {
        let token = PlatformToken(Sha256::digest("the world's token").into());
        let check = |bearer: Option<&str>, expected: bool| {
            let mut headers = HeaderMap::new();
            let address = HeaderValue::from_static("192.0.2.7");
            headers.insert(CLIENT_ADDRESS_HEADER, address);
            if let Some(bearer) = bearer {
                let value = format!("Bearer {bearer}").parse().unwrap();
                headers.insert(header::AUTHORIZATION, value);
            }
            let believed = forwarded_for(&headers, Some(&token));
            assert_eq!(believed.is_some(), expected, "{bearer:?}");
            assert_eq!(forwarded_for(&headers, None), None);
        };
        check(None, false);
        check(Some("a guess"), false);
        check(Some("the world's token"), true);
    }
}
