//! QUIC connections that never become a session: what they cost, and for how
//! long.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use wtransport::ClientConfig;
use wtransport::quinn::{Connection, ConnectionError, Endpoint, SendStream};
use wtransport::tls::Sha256Digest;

use crate::player::Player;
use crate::server::TestServer;

const PATIENCE: Duration = Duration::from_secs(120);
/// Begins a number that is never finished.
const UNFINISHED: [u8; 1] = [0xc0];
const CONNECTIONS: &str = "frolic_connections";

/// A client that speaks QUIC but no HTTP/3.
struct Lurker {
    endpoint: Endpoint,
    address: std::net::SocketAddr,
}

impl Lurker {
    fn new(server: &TestServer) -> Self {
        let mut hash = [0; 32];
        let found = &server.webtransport;
        hex::decode_to_slice(&found.cert_sha256, &mut hash).expect("a hash");
        let config = ClientConfig::builder()
            .with_bind_address(([127, 0, 0, 1], 0).into())
            .with_server_certificate_hashes([Sha256Digest::new(hash)])
            .keep_alive_interval(Some(Duration::from_secs(1)))
            .build();
        let mut endpoint = Endpoint::client(([127, 0, 0, 1], 0).into()).expect("a UDP port");
        endpoint.set_default_client_config(config.quic_config().clone());
        Self {
            endpoint,
            address: ([127, 0, 0, 1], found.port).into(),
        }
    }

    async fn connect(&self) -> Result<Connection, ConnectionError> {
        let connecting = self.endpoint.connect(self.address, "localhost");
        connecting.expect("an address").await
    }
}

async fn until_gone(server: &TestServer) {
    let search = async {
        while server.metric(CONNECTIONS).await > 0.0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let gone = tokio::time::timeout(PATIENCE, search).await;
    gone.expect("the connection was not closed");
}

/// A connection that was given up takes a moment to end.
async fn until_admitted(lurker: &Lurker) {
    let again = async {
        while lurker.connect().await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let again = tokio::time::timeout(PATIENCE, again).await;
    again.expect("the address is shut out for good");
}

#[tokio::test]
async fn a_connection_that_asks_for_no_session_is_counted_and_let_go() {
    let server = TestServer::start().await;
    let silent = Lurker::new(&server).connect().await.expect("connects");
    assert_eq!(server.metric(CONNECTIONS).await, 1.0);
    let closed = tokio::time::timeout(PATIENCE, silent.closed()).await;
    closed.expect("the connection was not closed");
    until_gone(&server).await;
    server.stop().await;
}

#[tokio::test]
async fn where_there_is_no_place_quic_is_refused_before_its_handshake() {
    let manifest = include_str!("../../../../games/obby/game.toml");
    let small = manifest.replace("max_players = 50", "max_players = 1");
    let server = TestServer::start_with(&[("game.toml", &small)]).await;
    let lurker = Lurker::new(&server);
    // All at once: each has its place for five seconds.
    let all = join_all((0..100).map(|_| lurker.connect())).await;
    let (open, refused): (Vec<_>, Vec<_>) = all.into_iter().partition(Result::is_ok);
    assert!((50..=66).contains(&open.len()), "{}", open.len());
    for refusal in refused.into_iter().filter_map(Result::err) {
        assert!(refusal.to_string().contains("refused"), "{refusal}");
    }
    // They have had their time, and others come in.
    until_gone(&server).await;
    let mut ada = Player::new("Ada");
    let admitted = tokio::time::timeout(PATIENCE, ada.connect_when_admitted(&server)).await;
    admitted.expect("the address is shut out for good");
    while ada.welcomes.is_empty() {
        ada.play(Duration::from_millis(20)).await;
    }
    server.stop().await;
}

#[tokio::test]
async fn connections_that_cannot_be_closed_are_few_for_each_address() {
    let server = TestServer::start().await;
    let lurker = Lurker::new(&server);
    let mut held = Vec::new();
    for _ in 0..8 {
        let connection = lurker.connect().await.expect("connects");
        let mut stream = connection.open_uni().await.expect("a stream");
        stream
            .write_all(&UNFINISHED)
            .await
            .expect("the connection is open");
        held.push((connection, stream));
    }
    until_gone(&server).await;
    assert!(lurker.connect().await.is_err(), "it comes back at once");
    // They go, and so does what was held against them.
    drop(held);
    until_admitted(&lurker).await;
    server.stop().await;
}

/// Writes until the server has to read before there can be more.
fn fill(stream: &mut SendStream) -> usize {
    let bytes = vec![0; 16 * 1024];
    std::iter::from_fn(|| stream.write(&bytes).now_or_never())
        .map(|written| written.expect("the connection is open"))
        .sum()
}

#[tokio::test]
async fn a_connection_without_a_session_uses_little_memory() {
    let server = TestServer::start().await;
    let connection = Lurker::new(&server).connect().await.expect("connects");
    // The first one blocks `wtransport` from accepting the others.
    let mut first = connection.open_bi().await.expect("a stream").0;
    first
        .write_all(&UNFINISHED)
        .await
        .expect("the connection is open");
    let more = std::iter::from_fn(|| connection.open_bi().now_or_never());
    let mut streams: Vec<_> = more.map(|stream| stream.expect("a stream").0).collect();
    let single = std::iter::from_fn(|| connection.open_uni().now_or_never());
    let single = single.map(|stream| stream.expect("a stream"));
    streams.extend(single);
    assert!((4..16).contains(&streams.len()), "{}", streams.len());
    let bytes: Vec<usize> = streams.iter_mut().map(fill).collect();
    assert!(bytes.iter().all(|each| *each <= 128 * 1024), "{bytes:?}");
    assert!(bytes.iter().sum::<usize>() <= 512 * 1024, "{bytes:?}");
    let datagram = connection.max_datagram_size();
    assert!(datagram.is_some_and(|most| most > 1000), "{datagram:?}");
    server.stop().await;
}
