//! One bot: a socket, the client core, and a clock.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use frolic_client::{Client, ClientEvent};
use frolic_protocol::ClientMessage;
use frolic_protocol::json::BINARY_SUBPROTOCOL;
use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use super::behaviour::Behaviour;
use super::door::Door;
use super::outcome::{Kind, Outcome};

/// What all bots do together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Still coming in.
    Joining,
    /// All are in: what happens now counts.
    Measuring,
    /// Time to go.
    Leaving,
}

pub struct BotSettings {
    pub number: u32,
    pub input_hz: u32,
    pub roam_m: Option<f32>,
}

/// Joins, plays until told to leave, and tells what it saw.
pub async fn run(
    settings: BotSettings,
    door: Arc<Door>,
    joined: mpsc::Sender<u32>,
    mut phase: watch::Receiver<Phase>,
) -> Result<Outcome> {
    let mut joined = Some(joined);
    let name = format!("Bot {}", settings.number + 1);
    let began = Instant::now();
    let entry = door.enter(&reqwest::Client::new(), &name).await?;
    let socket = connect(&entry.address).await?;
    let (mut sink, mut source) = socket.split();

    let mut client = Client::new();
    client.handshake(entry.ticket, None, Some(name));
    let mut behaviour = Behaviour::new(u64::from(settings.number) + 1, settings.roam_m);
    let mut every = tokio::time::interval(Duration::from_secs(1) / settings.input_hz.max(1));
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut outcome = Outcome::new(Kind::Core);
    let mut seen = Seen::default();
    let mut measured_from: Option<(Instant, u64)> = None;
    let mut entities = 0;
    let now_ms = || began.elapsed().as_secs_f64() * 1000.0;
    loop {
        tokio::select! {
            incoming = source.next() => match incoming {
                Some(Ok(Message::Binary(bytes))) => {
                    client.receive(&bytes, now_ms())?;
                    watch_events(&mut client)?;
                    let snapshots = client.stats(now_ms()).snapshots;
                    if snapshots > seen.snapshots {
                        let now = Instant::now();
                        if seen.snapshots == 0 {
                            outcome.join_ms = now_ms();
                            if let Some(joined) = joined.take() {
                                let _ = joined.send(settings.number).await;
                            }
                        } else if measured_from.is_some() && let Some(last) = seen.last {
                            outcome.gaps_ms.push((now - last).as_secs_f32() * 1000.0);
                            entities += client.stats(now_ms()).entities;
                        }
                        seen = Seen { snapshots, last: Some(now) };
                    }
                }
                Some(Ok(Message::Close(frame))) => bail!("closed by the server: {frame:?}"),
                Some(Ok(_)) => {}
                Some(Err(cause)) => bail!("connection lost: {cause}"),
                None => bail!("connection closed"),
            },
            _ = every.tick() => {
                if let Some(state) = client.own_state() {
                    let feet = state.feet;
                    client.set_input(behaviour.input(began.elapsed().as_secs_f64(), feet));
                }
                if behaviour.wants_to_talk() {
                    let text = format!("Hello from bot {}!", settings.number + 1);
                    client.send(&ClientMessage::Chat { text });
                }
                client.advance(now_ms());
                // One message per turn: what is queued leaves together.
                let mut packet = client.take_reliable().unwrap_or_default();
                while let Some(datagram) = client.take_datagram() {
                    packet.extend_from_slice(&datagram);
                }
                if !packet.is_empty() {
                    if measured_from.is_some() {
                        outcome.messages_out += 1;
                        outcome.bytes_out += packet.len() as u64;
                    }
                    sink.send(Message::Binary(packet.into())).await.context("sending")?;
                }
            },
            _ = phase.changed() => match *phase.borrow_and_update() {
                Phase::Joining => {}
                Phase::Measuring => {
                    measured_from = Some((Instant::now(), client.stats(now_ms()).bytes_in));
                }
                Phase::Leaving => break,
            },
        }
    }
    let stats = client.stats(now_ms());
    if let Some((from, bytes)) = measured_from {
        outcome.seconds = from.elapsed().as_secs_f64();
        outcome.bytes_in = stats.bytes_in - bytes;
    }
    outcome.rtt_ms = Some(stats.rtt_ms);
    outcome.corrections = Some(stats.corrections);
    let updates = outcome.gaps_ms.len();
    outcome.entities = Some(if updates == 0 {
        stats.entities as f64
    } else {
        entities as f64 / updates as f64
    });
    client.send(&ClientMessage::Leave);
    if let Some(packet) = client.take_reliable() {
        let _ = sink.send(Message::Binary(packet.into())).await;
    }
    let _ = sink.close().await;
    Ok(outcome)
}

/// A WebSocket that speaks the binary form.
pub type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Opens one.
pub async fn connect(address: &str) -> Result<Socket> {
    let mut request = address.into_client_request()?;
    let protocol = HeaderValue::from_static(BINARY_SUBPROTOCOL);
    request
        .headers_mut()
        .insert("sec-websocket-protocol", protocol);
    let config = WebSocketConfig::default()
        .read_buffer_size(2048)
        .write_buffer_size(0);
    let (socket, _) = tokio_tungstenite::connect_async_with_config(request, Some(config), true)
        .await
        .with_context(|| format!("connecting to {address}"))?;
    Ok(socket)
}

#[derive(Default)]
struct Seen {
    snapshots: u32,
    last: Option<Instant>,
}

fn watch_events(client: &mut Client) -> Result<()> {
    while let Some(event) = client.take_event() {
        match event {
            ClientEvent::Kick { reason } => bail!("kicked: {reason}"),
            ClientEvent::Error { code, message } => tracing::debug!(%code, %message, "bot"),
            _ => {}
        }
    }
    Ok(())
}
