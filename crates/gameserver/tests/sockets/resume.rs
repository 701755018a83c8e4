//! Lost connections: players come back, and nothing they said or heard is
//! lost, doubled or out of order.

use std::time::{Duration, Instant};

use frolic_client::{Client, ClientEvent};
use frolic_protocol::json::BINARY_SUBPROTOCOL;
use frolic_protocol::message::Resumption;
use frolic_protocol::{Args, Value};
use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::server::TestServer;
use crate::stranger::Stranger;

/// Sends back every number it is sent.
const ECHO: (&str, &str) = (
    "scripts/ServerScriptService/Echo.luau",
    "Network.OnClientEvent(\"Number\", function(player, number)\n\tNetwork.FireClient(player, \"Echo\", number)\nend)\n",
);
const EVENTS: u32 = 1000;
const PATIENCE: Duration = Duration::from_secs(60);

/// Our own client on a WebSocket that can be cut.
struct Player {
    client: Client,
    socket: Option<WebSocketStream<TcpStream>>,
    began: Instant,
    echoes: Vec<u32>,
    welcomes: Vec<Resumption>,
    players: Vec<String>,
    lost: bool,
}

impl Player {
    fn new() -> Self {
        Self {
            client: Client::new(),
            socket: None,
            began: Instant::now(),
            echoes: Vec::new(),
            welcomes: Vec::new(),
            players: Vec::new(),
            lost: false,
        }
    }

    async fn connect(&mut self, server: &TestServer) {
        let mut request = server.url().into_client_request().expect("an address");
        let protocol = BINARY_SUBPROTOCOL.parse().expect("a header");
        request
            .headers_mut()
            .insert("sec-websocket-protocol", protocol);
        let stream = TcpStream::connect(server.address).await.expect("connects");
        let upgraded = tokio_tungstenite::client_async(request, stream).await;
        self.socket = Some(upgraded.expect("upgrades").0);
        self.client
            .handshake(Some(server.ticket("world_test", "Ada", 60)), None, None);
        self.flush().await;
    }

    /// Without a word, with whatever is on its way.
    fn cut(&mut self) {
        self.socket = None;
        self.client.reconnect();
    }

    fn fire(&mut self, number: u32) {
        let args = Args(vec![Value::Number(f64::from(number))]);
        self.client.fire_server("Number".into(), args);
    }

    async fn flush(&mut self) {
        let Some(socket) = &mut self.socket else {
            return;
        };
        let mut packet = self.client.take_reliable().unwrap_or_default();
        while let Some(datagram) = self.client.take_datagram() {
            packet.extend_from_slice(&datagram);
        }
        if !packet.is_empty() {
            let sent = socket.send(Message::Binary(packet.into())).await;
            sent.expect("the line holds");
        }
    }

    /// Reads for a few milliseconds and says what is due.
    async fn play(&mut self, time: Duration) {
        let until = tokio::time::Instant::now() + time;
        while let Some(socket) = &mut self.socket {
            let now_ms = self.began.elapsed().as_secs_f64() * 1000.0;
            match tokio::time::timeout_at(until, socket.next()).await {
                Ok(Some(Ok(Message::Binary(bytes)))) => {
                    self.client.receive(&bytes, now_ms).expect("readable");
                }
                Ok(Some(Ok(_))) => {}
                Ok(other) => panic!("the server closed: {other:?}"),
                Err(_) => break,
            }
        }
        self.client
            .advance(self.began.elapsed().as_secs_f64() * 1000.0);
        self.flush().await;
        while let Some(event) = self.client.take_event() {
            self.note(event);
        }
    }

    fn note(&mut self, event: ClientEvent) {
        match event {
            ClientEvent::Remote { name, args } if name == "Echo" => match args.0.as_slice() {
                [Value::Number(number)] => self.echoes.push(*number as u32),
                other => panic!("not an echo: {other:?}"),
            },
            ClientEvent::Welcome(welcome) => {
                self.welcomes.push(welcome.resumption);
                self.players.push(welcome.player_id);
            }
            ClientEvent::Error { code, message } => {
                self.lost |= code == "messages_lost";
                assert_ne!(code, "events_dropped", "{message}");
            }
            ClientEvent::Kick { reason } => panic!("kicked: {reason}"),
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_line_cut_in_the_middle_of_a_thousand_events_loses_and_doubles_none() {
    let server = TestServer::start_with(&[ECHO]).await;
    let mut ada = Player::new();
    ada.connect(&server).await;
    let mut fired = 0;
    let mut turn = 0u32;
    while ada.echoes.len() < EVENTS as usize {
        assert!(ada.began.elapsed() < PATIENCE, "{} came", ada.echoes.len());
        turn += 1;
        for _ in 0..5.min(EVENTS - fired) {
            fired += 1;
            ada.fire(fired);
        }
        if turn.is_multiple_of(47) && fired < EVENTS {
            // The last words were written, and nobody knows how far they got.
            ada.flush().await;
            ada.cut();
            for _ in 0..3.min(EVENTS - fired) {
                fired += 1;
                ada.fire(fired);
            }
            ada.connect(&server).await;
            if turn.is_multiple_of(94) {
                // Cut again before the welcome could be read.
                ada.cut();
                ada.connect(&server).await;
            }
        }
        ada.play(Duration::from_millis(20)).await;
    }
    ada.play(Duration::from_millis(300)).await;
    assert_eq!(ada.echoes, (1..=EVENTS).collect::<Vec<_>>());
    assert!(!ada.lost);
    let resumed = ada.welcomes.iter().filter(|w| **w == Resumption::Resumed);
    assert!(resumed.count() >= 3, "{:?}", ada.welcomes);
    server.stop().await;
}

#[tokio::test]
async fn a_restarted_server_knows_its_players_by_their_tokens() {
    let before = TestServer::start_with(&[ECHO]).await;
    let mut ada = Player::new();
    ada.connect(&before).await;
    while ada.welcomes.is_empty() {
        ada.play(Duration::from_millis(20)).await;
    }
    before.stop().await;
    ada.cut();
    ada.fire(1);

    let after = TestServer::start_with(&[ECHO]).await;
    ada.connect(&after).await;
    while ada.echoes.is_empty() {
        assert!(ada.began.elapsed() < PATIENCE);
        ada.play(Duration::from_millis(20)).await;
    }
    assert_eq!(ada.welcomes, [Resumption::New, Resumption::Restarted]);
    assert_eq!(ada.players[0], ada.players[1]);
    assert_eq!(ada.echoes, [1]);
    after.stop().await;
}

#[tokio::test]
async fn a_stranger_hears_what_was_said_while_away_exactly_once() {
    let server = TestServer::start().await;
    let mut ada = Stranger::join(&server, "Ada").await;
    let mut eve = Stranger::join(&server, "Eve").await;
    let token = eve.welcome["resumeToken"]
        .as_str()
        .expect("a token")
        .to_owned();
    let say = |text: &str| json!({ "text": text });
    ada.command("chat", "say", say("one")).await;
    let first = eve.next_chat().await;
    assert_eq!(first["text"], "one");
    let received = first["n"].as_u64().expect("a number");
    eve.drop_line().await;
    ada.command("chat", "say", say("two")).await;
    assert_eq!(ada.next_chat().await["text"], "one");
    assert_eq!(ada.next_chat().await["text"], "two");

    let mut eve = Stranger::resume_from(&server, &token, received).await;
    assert_eq!(eve.welcome["resumption"], "resumed");
    assert_eq!(eve.welcome["sent"], received);
    let second = eve.next_chat().await;
    assert_eq!(
        (&second["text"], &second["n"]),
        (&json!("two"), &json!(received + 1))
    );
    ada.command("chat", "say", say("three")).await;
    assert_eq!(eve.next_chat().await["text"], "three");
    server.stop().await;
}
