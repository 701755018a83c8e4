//! One connection of our own client, over either transport.

use frolic_client::Client;
use frolic_protocol::json::BINARY_SUBPROTOCOL;
use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use wtransport::endpoint::endpoint_side;
use wtransport::error::ConnectionError;
use wtransport::tls::Sha256Digest;
use wtransport::{ClientConfig, Endpoint, RecvStream, SendStream};

use crate::server::TestServer;

/// The transport of the messages.
#[derive(Clone, Copy, Debug)]
pub enum Transport {
    WebSocket,
    WebTransport,
}

pub enum Connection {
    WebSocket(Box<WebSocketStream<TcpStream>>),
    WebTransport(Box<WebTransportConnection>),
}

pub struct WebTransportConnection {
    quic: wtransport::Connection,
    send: SendStream,
    receive: RecvStream,
    /// Ends with the connection.
    _endpoint: Endpoint<endpoint_side::Client>,
}

impl Connection {
    pub async fn open(server: &TestServer, transport: Transport) -> Self {
        match transport {
            Transport::WebSocket => Self::open_websocket(server).await,
            Transport::WebTransport => {
                Self::open_webtransport(server, server.webtransport.port).await
            }
        }
    }

    async fn open_websocket(server: &TestServer) -> Self {
        let mut request = server.url().into_client_request().expect("an address");
        let protocol = BINARY_SUBPROTOCOL.parse().expect("a header");
        request
            .headers_mut()
            .insert("sec-websocket-protocol", protocol);
        let stream = TcpStream::connect(server.address).await.expect("connects");
        let upgraded = tokio_tungstenite::client_async(request, stream).await;
        Connection::WebSocket(Box::new(upgraded.expect("upgrades").0))
    }

    /// As a browser connects: by the hash of the server's certificate. The port
    /// may be that of a relay to the server.
    pub async fn open_webtransport(server: &TestServer, port: u16) -> Self {
        let opened = Self::try_open_webtransport(server, port).await;
        opened.expect("connects")
    }

    /// The same, where the server may refuse the connection.
    ///
    /// # Errors
    /// Why it was refused.
    pub async fn try_open_webtransport(server: &TestServer, port: u16) -> Result<Self, String> {
        let mut hash = [0; 32];
        let found = &server.webtransport;
        hex::decode_to_slice(&found.cert_sha256, &mut hash).expect("a hash");
        let config = ClientConfig::builder()
            .with_bind_address(([127, 0, 0, 1], 0).into())
            .with_server_certificate_hashes([Sha256Digest::new(hash)])
            .build();
        let endpoint = Endpoint::client(config).expect("a UDP port");
        let url = format!("https://127.0.0.1:{port}/game");
        let quic = endpoint.connect(url).await;
        let quic = quic.map_err(|refusal| refusal.to_string())?;
        let opening = quic.open_bi().await.expect("the connection holds");
        let (send, receive) = opening.await.expect("a stream");
        Ok(Connection::WebTransport(Box::new(WebTransportConnection {
            quic,
            send,
            receive,
            _endpoint: endpoint,
        })))
    }

    /// Sends all queued messages.
    ///
    /// # Errors
    /// Fails when the connection is closed.
    pub async fn send(&mut self, client: &mut Client) -> Result<(), String> {
        match self {
            Connection::WebSocket(socket) => {
                while let Some(packet) = client.take_packet() {
                    let sent = socket.send(Message::Binary(packet.into())).await;
                    sent.map_err(|error| error.to_string())?;
                }
            }
            Connection::WebTransport(connection) => {
                while let Some(datagram) = client.take_datagram() {
                    // One that cannot be sent is a lost one.
                    let _ = connection.quic.send_datagram(datagram);
                }
                while let Some(reliable) = client.take_reliable() {
                    let sent = connection.send.write_all(&reliable).await;
                    sent.map_err(|error| error.to_string())?;
                }
            }
        }
        Ok(())
    }

    /// Sends bytes as they are, where everything arrives.
    pub async fn send_bytes(&mut self, bytes: Vec<u8>) {
        match self {
            Connection::WebSocket(socket) => {
                let sent = socket.send(Message::Binary(bytes.into())).await;
                sent.expect("the connection is open");
            }
            Connection::WebTransport(connection) => {
                let sent = connection.send.write_all(&bytes).await;
                sent.expect("the connection is open");
            }
        }
    }

    /// Reads to the end, and returns the reason for it. A client is handed what
    /// came before it.
    pub async fn end(&mut self, client: &mut Client) -> String {
        let reason = loop {
            if let Err(reason) = self.receive(client, 0.0).await {
                break reason;
            }
        };
        // The end may be known before all of the stream was read.
        if let Connection::WebTransport(connection) = self {
            let mut buffer = vec![0; 16 * 1024];
            while let Ok(Some(count)) = connection.receive.read(&mut buffer).await {
                let read = client.receive_stream(&buffer[..count], 0.0);
                read.expect("readable");
            }
        }
        reason
    }

    /// Reads once, and hands a client what came. Nothing is lost when the
    /// future is dropped.
    ///
    /// # Errors
    /// The reason that the server gave for closing, or whatever else happened.
    pub async fn receive(&mut self, client: &mut Client, now_ms: f64) -> Result<(), String> {
        match self {
            Connection::WebSocket(socket) => match socket.next().await {
                Some(Ok(Message::Binary(bytes))) => {
                    client.receive(&bytes, now_ms).expect("readable");
                    Ok(())
                }
                Some(Ok(Message::Close(frame))) => Err(frame
                    .map(|frame| frame.reason.to_string())
                    .unwrap_or_default()),
                Some(Ok(_)) => Ok(()),
                Some(Err(error)) => Err(error.to_string()),
                None => Err("closed".into()),
            },
            Connection::WebTransport(connection) => {
                let mut buffer = vec![0; 16 * 1024];
                tokio::select! {
                    datagram = connection.quic.receive_datagram() => {
                        let datagram = datagram.map_err(|error| reason(&error))?;
                        client.receive(&datagram.payload(), now_ms).expect("readable");
                    }
                    read = connection.receive.read(&mut buffer) => match read {
                        Ok(Some(count)) => {
                            client.receive_stream(&buffer[..count], now_ms).expect("readable");
                        }
                        // The end of the stream comes just before the reason.
                        _ => return Err(reason(&connection.quic.closed().await)),
                    },
                }
                Ok(())
            }
        }
    }
}

/// The reason in a closed connection, if one was given.
fn reason(error: &ConnectionError) -> String {
    match error {
        ConnectionError::ApplicationClosed(close) => {
            String::from_utf8_lossy(close.reason()).into_owned()
        }
        other => other.to_string(),
    }
}
