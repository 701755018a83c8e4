//! How a client reaches a game server: directly at its own port where that is possible, otherwise
//! through `/api/rooms` on the public port.

use std::net::IpAddr;

use axum::http::uri::Authority;
use axum::http::{HeaderMap, header};

use crate::api::{Transports, WebSocketTransport, WebTransportTransport};
use crate::fleet::Endpoints;

/// Addresses by which a client can reach a game server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// By WebSocket.
    pub websocket: WebSocketReach,
    /// Host whose WebTransport port the client may be able to reach: a name or an address, in
    /// brackets if it is IPv6.
    pub webtransport: Option<String>,
}

/// How a client reaches a game server's WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebSocketReach {
    /// The client can open the server's port on this host.
    Direct {
        /// As in [`Reach::webtransport`].
        host: String,
    },
    /// The client can reach only the platform's port, or it needs TLS, for which game servers have
    /// no certificate.
    Proxied {
        /// `ws://host:port` or `wss://host:port`.
        origin: String,
    },
}

/// Listening addresses of the platform and its game servers.
#[derive(Clone, Copy, Debug)]
pub struct Listens {
    /// IP address of both.
    pub ip: IpAddr,
    /// Port of the platform.
    pub port: u16,
    /// Whether that port speaks TLS.
    pub tls: bool,
    /// Whether clients can open no other port of this machine.
    pub single_port: bool,
}

/// Chooses the addresses based on the `Host` header under which the client reached the platform.
/// The header is not trusted: the result is returned to the same client only.
pub fn reach(headers: &HeaderMap, listens: Listens) -> Reach {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let authority = text(header::HOST.as_str())
        .and_then(|host| host.parse::<Authority>().ok())
        .filter(|authority| !authority.as_str().contains('@'));
    let Some(authority) = authority else {
        return Reach::direct(url_host(listens.ip));
    };
    let forwarded_proto = text("x-forwarded-proto");
    let secure =
        listens.tls || forwarded_proto.is_some_and(|proto| proto.eq_ignore_ascii_case("https"));
    let name = authority.host();
    let local_name = is_loopback_name(name);
    let host = if local_name {
        // A browser may resolve "localhost" to ::1, where nothing listens.
        url_host(listens.ip)
    } else {
        name.to_owned()
    };
    // Other machines cannot reach a game server on loopback.
    let in_reach = !listens.single_port && (local_name || !listens.ip.is_loopback());
    // A different port belongs to a tunnel or a proxy, which forwards only that port.
    let forwarded = authority.port_u16().unwrap_or(80) != listens.port;
    if !secure && !forwarded && in_reach {
        return Reach::direct(host);
    }
    let scheme = if secure { "wss" } else { "ws" };
    Reach {
        websocket: WebSocketReach::Proxied {
            origin: format!("{scheme}://{authority}"),
        },
        // An https page may open WebTransport to any host whose certificate hash it knows. If a
        // proxy on another machine blocks UDP, the client falls back to WebSocket after a second.
        webtransport: (secure && in_reach).then_some(host),
    }
}

impl Reach {
    fn direct(host: String) -> Self {
        Self {
            webtransport: Some(host.clone()),
            websocket: WebSocketReach::Direct { host },
        }
    }
}

/// The transports in the response to a join.
pub fn transports(reach: &Reach, endpoints: &Endpoints, room_code: &str) -> Transports {
    let url = match &reach.websocket {
        WebSocketReach::Direct { host } => format!("ws://{host}:{}/ws", endpoints.websocket_port),
        WebSocketReach::Proxied { origin } => format!("{origin}/api/rooms/{room_code}/ws"),
    };
    let webtransport = endpoints
        .webtransport
        .as_ref()
        .zip(reach.webtransport.as_ref());
    Transports {
        websocket: WebSocketTransport { url },
        webtransport: webtransport.map(|(endpoint, host)| WebTransportTransport {
            url: format!("https://{host}:{}/game", endpoint.port),
            cert_sha256: endpoint.cert_sha256.clone(),
        }),
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
    use frolic_fleet_api::process::WebTransportEndpoint;

    use super::*;

    fn given(listen: &str, tls: bool, headers: &[(&'static str, &str)]) -> Transports {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        let endpoints = Endpoints {
            websocket_port: 7777,
            webtransport: Some(WebTransportEndpoint {
                port: 8888,
                cert_sha256: "00".repeat(32),
            }),
        };
        let listens = Listens {
            ip: listen.parse().unwrap(),
            port: 5000,
            tls,
            single_port: false,
        };
        transports(&reach(&map, listens), &endpoints, "ROOM22")
    }

    #[track_caller]
    fn check(listen: &str, headers: &[(&'static str, &str)], expected: &str) {
        let url = given(listen, false, headers).websocket.url;
        assert_eq!(url, expected, "{listen} {headers:?}");
    }

    #[track_caller]
    fn check_webtransport(listen: &str, tls: bool, host: &str, expected: Option<&str>) {
        let forwarded = ("x-forwarded-proto", "https");
        let headers = [("host", host), forwarded];
        let headers = if tls { &headers[..1] } else { &headers[..] };
        let given = given(listen, tls, headers);
        let room = format!("wss://{host}/api/rooms/ROOM22/ws");
        assert_eq!(given.websocket.url, room);
        let url = given.webtransport.map(|transport| transport.url);
        let expected = expected.map(|host| format!("https://{host}:8888/game"));
        assert_eq!(url, expected, "{listen}, TLS {tls}, {host}");
    }

    #[test]
    fn clients_get_a_reachable_address() {
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

    #[test]
    fn a_container_that_publishes_one_port_is_enough() {
        let endpoints = Endpoints {
            websocket_port: 7777,
            webtransport: Some(WebTransportEndpoint {
                port: 8888,
                cert_sha256: "00".repeat(32),
            }),
        };
        for (host, tls, origin) in [
            ("localhost:5000", false, "ws://localhost:5000"),
            ("10.0.0.7:5000", false, "ws://10.0.0.7:5000"),
            ("play.example.org", true, "wss://play.example.org"),
        ] {
            let headers = HeaderMap::from_iter([(header::HOST, host.parse().unwrap())]);
            let listens = Listens {
                ip: IpAddr::from([0, 0, 0, 0]),
                port: 5000,
                tls,
                single_port: true,
            };
            let given = transports(&reach(&headers, listens), &endpoints, "ROOM22");
            assert_eq!(given.websocket.url, format!("{origin}/api/rooms/ROOM22/ws"));
            assert!(given.webtransport.is_none(), "{host}");
        }
    }

    #[test]
    fn webtransport_works_without_an_operator_certificate() {
        for tls in [true, false] {
            let name = Some("play.example.org");
            check_webtransport("0.0.0.0", tls, "play.example.org:5000", name);
            check_webtransport("0.0.0.0", tls, "play.example.org", name);
            check_webtransport("::", tls, "[fd00::7]:5000", Some("[fd00::7]"));
            check_webtransport("127.0.0.1", tls, "play.example.org", None);
            check_webtransport("127.0.0.1", tls, "localhost:5000", Some("127.0.0.1"));
        }
        let tunnel = given("127.0.0.1", false, &[("host", "localhost:8080")]);
        assert!(tunnel.webtransport.is_none());
        let direct = given("127.0.0.1", false, &[("host", "localhost:5000")]);
        assert!(direct.webtransport.is_some());
    }
}
