//! A client in another language would look like this: WebSocket and JSON, nothing of ours.

use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value as Json, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::OpCode;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::server::TestServer;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

pub struct Stranger {
    sink: SplitSink<Socket, Message>,
    source: SplitStream<Socket>,
    pub welcome: Json,
    pub warned: bool,
    /// The code and reason of the server's close frame.
    pub close_code: Option<u16>,
    seq: u32,
}

/// Nothing here takes long; a test that waits longer has failed.
const PATIENCE: Duration = Duration::from_secs(60);

impl Stranger {
    pub async fn join(server: &TestServer, name: &str) -> Self {
        let ticket = server.ticket("world_test", name, 60);
        Self::join_with(server, &ticket).await.expect("comes in")
    }

    /// Joins with a ticket in the first message; fails with the error's code.
    pub async fn join_with(server: &TestServer, ticket: &str) -> Result<Self, String> {
        Self::handshake(server, json!({ "ticket": ticket, "resumeToken": null })).await
    }

    pub async fn resume(server: &TestServer, token: &str) -> Result<Self, String> {
        Self::handshake(server, json!({ "resumeToken": token })).await
    }

    /// Comes back with a token, and a ticket beside it.
    pub async fn resume_with(
        server: &TestServer,
        token: &str,
        ticket: &str,
    ) -> Result<Self, String> {
        Self::handshake(server, json!({ "ticket": ticket, "resumeToken": token })).await
    }

    /// Joins with a socket that holds next to nothing which is not read.
    pub async fn join_with_small_ears(server: &TestServer, name: &str) -> Self {
        let ticket = server.ticket("world_test", name, 60);
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(4096).expect("a small buffer");
        let stream = socket.connect(server.address).await.expect("connects");
        let payload = json!({ "ticket": ticket });
        let joined = Self::handshake_on(server, stream, payload).await;
        joined.expect("comes in")
    }

    /// Reconnects with a token, a new ticket and its receive count.
    pub async fn resume_from(server: &TestServer, token: &str, received: u64) -> Self {
        let payload = json!({ "resumeToken": token, "received": received });
        Self::handshake(server, payload).await.expect("resumes")
    }

    async fn handshake(server: &TestServer, payload: Json) -> Result<Self, String> {
        let stream = TcpStream::connect(server.address).await.expect("connects");
        Self::handshake_on(server, stream, payload).await
    }

    async fn handshake_on(
        server: &TestServer,
        stream: TcpStream,
        payload: Json,
    ) -> Result<Self, String> {
        let mut stranger = Self::connect_on(server, stream).await;
        stranger.command("session", "handshake", payload).await;
        loop {
            let message = stranger
                .next()
                .await
                .map_err(|reason| format!("closed: {reason}"))?;
            match message["kind"].as_str() {
                Some("welcome") => {
                    stranger.welcome = message;
                    return Ok(stranger);
                }
                Some("error") => return Err(message["code"].as_str().unwrap_or("").to_owned()),
                _ => {}
            }
        }
    }

    /// A connection on which nothing was said yet.
    pub async fn connect(server: &TestServer) -> Self {
        let stream = TcpStream::connect(server.address).await.expect("connects");
        Self::connect_on(server, stream).await
    }

    async fn connect_on(server: &TestServer, stream: TcpStream) -> Self {
        let mut request = server.url().into_client_request().expect("an address");
        let protocol = "frolic.v2.json".parse().expect("a header");
        request
            .headers_mut()
            .insert("sec-websocket-protocol", protocol);
        let stream = MaybeTlsStream::Plain(stream);
        let (socket, answer) = tokio_tungstenite::client_async(request, stream)
            .await
            .expect("upgrades");
        assert_eq!(answer.headers()["sec-websocket-protocol"], "frolic.v2.json");
        let (sink, source) = socket.split();
        Self {
            sink,
            source,
            welcome: Json::Null,
            warned: false,
            close_code: None,
            seq: 0,
        }
    }

    /// Number of the last command.
    pub fn seq(&self) -> u32 {
        self.seq
    }

    pub async fn command(&mut self, feature: &str, action: &str, payload: Json) {
        self.seq += 1;
        let command = json!({
            "v": 2, "kind": "command", "seq": self.seq,
            "feature": feature, "action": action, "payload": payload,
        });
        self.send_text(command.to_string()).await;
    }

    pub async fn send_text(&mut self, text: String) {
        self.sink
            .send(Message::Text(text.into()))
            .await
            .expect("sends");
    }

    /// Sends a frame that no library would send.
    pub async fn send_frame(&mut self, opcode: OpCode, payload: Vec<u8>) {
        let frame = Frame::message(payload, opcode, true);
        let sent = self.sink.send(Message::Frame(frame)).await;
        sent.expect("sends");
    }

    /// Sends many texts at once.
    pub async fn send_all(&mut self, texts: impl Iterator<Item = String>) {
        for text in texts {
            let fed = self.sink.feed(Message::Text(text.into())).await;
            fed.expect("sends");
        }
        self.sink.flush().await.expect("sends");
    }

    /// Goes on counting commands from here.
    pub fn skip_to(&mut self, seq: u32) {
        self.seq = seq;
    }

    pub async fn send_binary(&mut self, bytes: Vec<u8>) {
        let sent = self.sink.send(Message::Binary(bytes.into())).await;
        sent.expect("sends");
    }

    /// The next message, or why there is none.
    pub async fn next(&mut self) -> Result<Json, String> {
        loop {
            let message = tokio::time::timeout(PATIENCE, self.source.next()).await;
            match message.map_err(|_| "nothing came".to_owned())? {
                Some(Ok(Message::Text(text))) => {
                    let json: Json = serde_json::from_str(&text).expect("JSON");
                    assert_eq!(json["v"], 2, "every message names its version");
                    return Ok(json);
                }
                Some(Ok(Message::Close(frame))) => {
                    self.close_code = frame.as_ref().map(|frame| frame.code.into());
                    return Err(frame.map(|f| f.reason.to_string()).unwrap_or_default());
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.to_string()),
                None => return Err("closed".into()),
            }
        }
    }

    /// The next message of a kind.
    pub async fn next_of(&mut self, kind: &str) -> Json {
        let search = async {
            loop {
                let message = self.next().await;
                let message = message.unwrap_or_else(|reason| panic!("no {kind}: {reason}"));
                if message["kind"] == kind {
                    return message;
                }
            }
        };
        let found = tokio::time::timeout(PATIENCE, search).await;
        found.unwrap_or_else(|_| panic!("no {kind} came"))
    }

    /// The next chat message.
    pub async fn next_chat(&mut self) -> Json {
        loop {
            let event = self.next_of("event").await;
            if event["feature"] == "chat" {
                return event;
            }
        }
    }

    /// The next event of a feature.
    pub async fn next_of_feature(&mut self, feature: &str) -> Json {
        loop {
            let event = self.next_of("event").await;
            if event["feature"] == feature {
                return event;
            }
        }
    }

    /// Sends the same text again and again until thrown out; returns why.
    pub async fn flood(&mut self, text: &str, times: usize) -> String {
        for _ in 0..times {
            let sent = self.sink.feed(Message::Text(text.to_owned().into())).await;
            if sent.is_err() {
                break;
            }
        }
        let _ = self.sink.flush().await;
        loop {
            match self.next().await {
                Ok(message) => self.warned |= message["code"] == "flood",
                Err(reason) => return reason,
            }
        }
    }

    /// Goes without a word, as a lost connection does.
    pub async fn disconnect(self) {
        drop(self.source.reunite(self.sink).expect("two halves"));
    }
}
