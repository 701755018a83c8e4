//! One bot: a socket, the client core, and a clock.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use frolic_client::{Client, ClientEvent, NextStep, ReconnectPolicy};
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

use crate::behaviour::Behaviour;
use crate::cache::ScriptCache;
use crate::door::{Door, Entry, Place};
use crate::outcome::{Kind, Outcome};

/// State shared by all bots.
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
    pub cache: Option<ScriptCache>,
}

/// Joins, plays until asked to leave, and returns its figures. A lost
/// connection is resumed, as a browser would.
pub async fn run(
    settings: BotSettings,
    door: Arc<Door>,
    joined: mpsc::Sender<u32>,
    phase: watch::Receiver<Phase>,
) -> Result<Outcome> {
    let name = format!("Bot {}", settings.number + 1);
    let began = Instant::now();
    let http = reqwest::Client::new();
    let mut entry = door.enter(&http, &name).await?;
    let mut bot = Bot {
        behaviour: Behaviour::new(u64::from(settings.number) + 1, settings.roam_m),
        settings,
        client: Client::new(),
        policy: ReconnectPolicy::default(),
        name: name.clone(),
        joined: Some(joined),
        phase,
        began,
        seen: Seen::default(),
        measured: Measured::default(),
        outcome: Outcome::new(Kind::Core),
    };
    let mut socket = connect(&entry.address).await?;
    loop {
        if let Some((key, game_id)) = entry.trust.take() {
            bot.client.scripts().trust(key, game_id);
        }
        bot.client
            .handshake(entry.ticket.take(), None, Some(name.clone()));
        bot.policy.connected(bot.client.resume_token().is_some());
        let cause = match bot.play(socket).await? {
            End::Leaving => return Ok(bot.outcome()),
            End::Lost(cause) => cause,
        };
        (entry, socket) = bot.come_back(&door, &http, entry.place, cause).await?;
        bot.lose();
    }
}

/// How a connection ended.
enum End {
    /// The bot was asked to leave.
    Leaving,
    /// For this reason; the player may come back.
    Lost(String),
}

struct Bot {
    settings: BotSettings,
    client: Client,
    policy: ReconnectPolicy,
    name: String,
    behaviour: Behaviour,
    joined: Option<mpsc::Sender<u32>>,
    phase: watch::Receiver<Phase>,
    began: Instant,
    seen: Seen,
    measured: Measured,
    outcome: Outcome,
}

/// Counts across connections.
#[derive(Default)]
struct Measured {
    from: Option<Instant>,
    /// The connection's receive count when measuring began.
    bytes_before: u64,
    entities: usize,
}

impl Bot {
    fn now_ms(&self) -> f64 {
        self.began.elapsed().as_secs_f64() * 1000.0
    }

    async fn play(&mut self, socket: Socket) -> Result<End> {
        let (mut sink, mut source) = socket.split();
        let mut every =
            tokio::time::interval(Duration::from_secs(1) / self.settings.input_hz.max(1));
        every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                incoming = source.next() => match incoming {
                    Some(Ok(Message::Binary(bytes))) => self.receive(&bytes).await?,
                    Some(Ok(Message::Close(frame))) => {
                        return Ok(End::Lost(format!("closed by the server: {frame:?}")));
                    }
                    Some(Ok(_)) => {}
                    Some(Err(cause)) => return Ok(End::Lost(format!("connection lost: {cause}"))),
                    None => return Ok(End::Lost("connection closed".into())),
                },
                _ = every.tick() => {
                    self.turn();
                    while let Some(packet) = self.client.take_packet() {
                        self.count_out(packet.len());
                        if let Err(cause) = sink.send(Message::Binary(packet.into())).await {
                            return Ok(End::Lost(format!("sending: {cause}")));
                        }
                    }
                },
                _ = self.phase.changed() => {
                    let phase = *self.phase.borrow_and_update();
                    match phase {
                        Phase::Joining => {}
                        Phase::Measuring => {
                            self.measured.from = Some(Instant::now());
                            self.measured.bytes_before = self.client.stats(self.now_ms()).bytes_in;
                        }
                        Phase::Leaving => break,
                    }
                },
            }
        }
        self.client.send(&ClientMessage::Leave);
        while let Some(packet) = self.client.take_reliable() {
            let _ = sink.send(Message::Binary(packet.into())).await;
        }
        let _ = sink.close().await;
        Ok(End::Leaving)
    }

    async fn receive(&mut self, bytes: &[u8]) -> Result<()> {
        self.client.receive(bytes, self.now_ms())?;
        self.watch_events()?;
        let stats = self.client.stats(self.now_ms());
        if stats.snapshots <= self.seen.snapshots {
            return Ok(());
        }
        let now = Instant::now();
        if let Some(joined) = self.joined.take() {
            self.outcome.join_ms = self.now_ms();
            let _ = joined.send(self.settings.number).await;
        } else if self.measured.from.is_some()
            && let Some(last) = self.seen.last
        {
            self.outcome
                .gaps_ms
                .push((now - last).as_secs_f32() * 1000.0);
            self.measured.entities += stats.entities;
        }
        self.seen = Seen {
            snapshots: stats.snapshots,
            last: Some(now),
        };
        Ok(())
    }

    fn watch_events(&mut self) -> Result<()> {
        while let Some(event) = self.client.take_event() {
            if let Some(cache) = &self.settings.cache {
                cache.follow(&mut self.client, &event);
            }
            match event {
                ClientEvent::Welcome(_) => self.policy.welcomed(),
                ClientEvent::Error { code, message } => {
                    tracing::debug!(%code, %message, "bot");
                    self.policy.error(&code, &message);
                }
                ClientEvent::Kick { reason } => {
                    if let Some(ending) = self.policy.kicked(&reason) {
                        bail!(ending);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Connects again after a loss, as a browser would.
    async fn come_back(
        &mut self,
        door: &Door,
        http: &reqwest::Client,
        place: Option<Place>,
        cause: String,
    ) -> Result<(Entry, Socket)> {
        let mut next = self.policy.closed(&cause, false, self.now_ms());
        let mut last_error = anyhow!(cause.clone());
        loop {
            let entered = match next {
                NextStep::Return { pause_ms } => {
                    let Some(place) = &place else {
                        return Err(last_error);
                    };
                    tokio::time::sleep(Duration::from_secs_f64(pause_ms / 1000.0)).await;
                    door.enter_again(http, place).await
                }
                NextStep::JoinAgain => door.enter(http, &self.name).await,
                NextStep::End { ending } => return Err(last_error.context(ending)),
            };
            let again = async {
                let entry = entered?;
                let socket = connect(&entry.address).await?;
                anyhow::Ok((entry, socket))
            };
            match again.await {
                Ok(again) => return Ok(again),
                Err(error) => {
                    tracing::debug!(%error, "not back yet");
                    let mut causes = error.chain();
                    let refusal = causes.find_map(|cause| cause.downcast_ref::<reqwest::Error>());
                    let status = refusal.and_then(reqwest::Error::status);
                    let status = status.map_or(0, |status| status.as_u16());
                    next = self.policy.failed(status, self.now_ms());
                    last_error = error.context(cause.clone());
                }
            }
        }
    }

    /// One turn at the keys.
    fn turn(&mut self) {
        if let Some(state) = self.client.own_state() {
            let feet = state.feet;
            let input = self
                .behaviour
                .input(self.began.elapsed().as_secs_f64(), feet);
            self.client.set_input(input);
        }
        if self.behaviour.wants_to_talk() {
            let text = format!("Hello from bot {}!", self.settings.number + 1);
            self.client.send(&ClientMessage::Chat { text });
        }
        self.client.advance(self.now_ms());
    }

    fn count_out(&mut self, bytes: usize) {
        if self.measured.from.is_some() {
            self.outcome.messages_out += 1;
            self.outcome.bytes_out += bytes as u64;
        }
    }

    /// The connection is lost: stores the session for the next one. The gap
    /// until the next snapshot counts like any other.
    fn lose(&mut self) {
        self.count_bytes();
        self.client.reconnect();
        self.seen.snapshots = 0;
        self.outcome.returns += 1;
    }

    fn count_bytes(&mut self) {
        if self.measured.from.is_some() {
            let received = self.client.stats(self.now_ms()).bytes_in;
            self.outcome.bytes_in += received - self.measured.bytes_before;
            self.measured.bytes_before = 0;
        }
    }

    fn outcome(mut self) -> Outcome {
        self.count_bytes();
        let stats = self.client.stats(self.now_ms());
        if let Some(from) = self.measured.from {
            self.outcome.seconds = from.elapsed().as_secs_f64();
        }
        self.outcome.rtt_ms = stats.rtt_ms;
        self.outcome.corrections = Some(stats.corrections);
        let updates = self.outcome.gaps_ms.len();
        self.outcome.entities = Some(if updates == 0 {
            stats.entities as f64
        } else {
            self.measured.entities as f64 / updates as f64
        });
        self.outcome
    }
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
