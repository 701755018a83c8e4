//! How a client reaches a game server: straight at its own port where that
//! can work, else through `/api/rooms` on the one public port (NET-10).

use std::net::IpAddr;

use axum::http::uri::Authority;
use axum::http::{HeaderMap, header};

use crate::api::{Transports, WebSocketTransport, WebTransportTransport};
use crate::fleet::Endpoints;

/// A way to a game server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The client can open the server's ports on this host.
    Direct {
        /// Name or address, in brackets where it is IPv6.
        host: String,
    },
    /// Only the platform's own port is open to the client.
    Proxied {
        /// `ws://host:port` or `wss://host:port`.
        origin: String,
    },
}

/// Decides from the address under which the client found the platform.
///
/// The `Host` header is the client's own word, and what is made of it goes
/// back to that client only.
pub fn reach(headers: &HeaderMap, listen: IpAddr, port: u16) -> Reach {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let authority = text(header::HOST.as_str())
        .and_then(|host| host.parse::<Authority>().ok())
        .filter(|authority| !authority.as_str().contains('@'));
    let Some(authority) = authority else {
        return Reach::Direct {
            host: url_host(listen),
        };
    };
    let secure = text("x-forwarded-proto").is_some_and(|proto| proto.eq_ignore_ascii_case("https"));
    let name = authority.host();
    let local_name = is_loopback_name(name);
    // Another port than ours is a tunnel or a proxy, which forwards only that
    // one; and a game server on loopback is out of reach of other machines.
    let forwarded = secure || authority.port_u16().unwrap_or(80) != port;
    if forwarded || (listen.is_loopback() && !local_name) {
        let scheme = if secure { "wss" } else { "ws" };
        return Reach::Proxied {
            origin: format!("{scheme}://{authority}"),
        };
    }
    let host = if local_name {
        // "localhost" may mean ::1 to a browser, where nobody listens.
        url_host(listen)
    } else {
        name.to_owned()
    };
    Reach::Direct { host }
}

/// The transports of a join's answer.
pub fn transports(reach: &Reach, endpoints: &Endpoints, room_code: &str) -> Transports {
    match reach {
        Reach::Direct { host } => Transports {
            websocket: WebSocketTransport {
                url: format!("ws://{host}:{}/ws", endpoints.websocket_port),
            },
            webtransport: endpoints
                .webtransport
                .as_ref()
                .map(|endpoint| WebTransportTransport {
                    url: format!("https://{host}:{}/game", endpoint.port),
                    cert_sha256: endpoint.cert_sha256.clone(),
                }),
        },
        Reach::Proxied { origin } => Transports {
            websocket: WebSocketTransport {
                url: format!("{origin}/api/rooms/{room_code}/ws"),
            },
            webtransport: None,
        },
    }
}

/// The address by which this machine reaches a socket that listens on `ip`.
pub fn local_ip(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(v4) if v4.is_unspecified() => IpAddr::from([127, 0, 0, 1]),
        IpAddr::V6(v6) if v6.is_unspecified() => IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
        other => other,
    }
}

fn url_host(ip: IpAddr) -> String {
    match local_ip(ip) {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => format!("[{v6}]"),
    }
}

fn is_loopback_name(name: &str) -> bool {
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(listen: &str, headers: &[(&'static str, &str)], expected: &str) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        let endpoints = Endpoints {
            websocket_port: 7777,
            webtransport: None,
        };
        let reach = reach(&map, listen.parse().unwrap(), 5000);
        let url = transports(&reach, &endpoints, "ROOM22").websocket.url;
        assert_eq!(url, expected, "{listen} {headers:?}");
    }

    #[test]
    fn clients_are_sent_where_they_can_get() {
        let direct = "ws://127.0.0.1:7777/ws";
        check("127.0.0.1", &[("host", "127.0.0.1:5000")], direct);
        check("127.0.0.1", &[("host", "localhost:5000")], direct);
        check("127.0.0.1", &[], direct);
        check("127.0.0.1", &[("host", "user@evil:5000")], direct);
        check("0.0.0.0", &[("host", "localhost:5000")], direct);
        check(
            "0.0.0.0",
            &[("host", "10.0.0.7:5000")],
            "ws://10.0.0.7:7777/ws",
        );
        check(
            "::",
            &[("host", "[fd00::7]:5000")],
            "ws://[fd00::7]:7777/ws",
        );
    }

    #[test]
    fn one_public_port_is_enough() {
        check(
            "127.0.0.1",
            &[("host", "play.example.org"), ("x-forwarded-proto", "https")],
            "wss://play.example.org/api/rooms/ROOM22/ws",
        );
        check(
            "127.0.0.1",
            &[("host", "localhost:8080")],
            "ws://localhost:8080/api/rooms/ROOM22/ws",
        );
        check(
            "127.0.0.1",
            &[("host", "box.lan:5000")],
            "ws://box.lan:5000/api/rooms/ROOM22/ws",
        );
    }
}
