//! Relays a WebSocket between a client and a game server. Each direction reads one message and
//! sends it before it reads the next, so a slow receiver slows its own sender down and nothing is
//! buffered here. Pings are not forwarded: each side is pinged separately, because a pong from this
//! relay would tell a game server nothing about the player behind it.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use axum::extract::ws::{self, CloseFrame, WebSocket, close_code};
use frolic_protocol::packet::CLIENT_MESSAGE_BYTES_MAX;
use futures_util::{FutureExt, Sink, SinkExt, Stream, StreamExt};
use tokio::net::TcpStream;
use tokio::time::{Interval, MissedTickBehavior, interval_at, sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{self, protocol};

use super::newcomers::{Newcomer, is_welcome};

/// A connection to a game server.
pub type Upstream = WebSocketStream<TcpStream>;

/// Time that each side has to receive and answer a close frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes that are still read after a close frame was sent. A socket that is dropped with unread
/// input is reset, and the peer may then never see the close reason. Far above what a correct
/// client has in flight.
const DRAINED_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Minimum size that a message counts for, so that empty ones are limited too.
const MESSAGE_BYTES_MIN: usize = 16;
/// Close codes after which the remaining input of a client cannot be parsed.
const UNREADABLE: [u16; 3] = [close_code::SIZE, close_code::INVALID, close_code::PROTOCOL];
/// Pings per `silence_max`, because one may get lost.
const PINGS_PER_SILENCE: u32 = 3;

/// Timeouts of a relay.
#[derive(Clone, Copy, Debug)]
pub struct IdleTimeouts {
    /// A side that sends nothing for this long, pongs included, or accepts nothing, counts as
    /// disconnected.
    pub silence_max: Duration,
    /// The relay is closed after this time without a message in either direction. A connected
    /// client receives snapshots even if it only watches.
    pub idle_max: Duration,
}

/// Close frames to send at the end; `None` for a side that sent the last one.
struct Ending {
    client: Option<CloseFrame>,
    server: Option<CloseFrame>,
}

/// Relays both directions until either side closes, then closes the other with the same reason.
/// `newcomer` is dropped when the server welcomes the client.
pub async fn relay(
    client: WebSocket,
    server: Upstream,
    timeouts: IdleTimeouts,
    mut newcomer: Option<Newcomer>,
) {
    let (mut to_client, mut client) = client.split();
    let (mut to_server, mut server) = server.split();
    let active = AtomicBool::new(true);
    let silence_max = timeouts.silence_max;
    let upward = Direction {
        source: &mut client,
        target: &mut to_server,
        ping: || tungstenite::Message::Ping(Default::default()),
        silent: "the client stopped responding",
        stuck: "the world's server accepts no data; join again",
    };
    let downward = Direction {
        source: &mut server,
        target: &mut to_client,
        ping: || ws::Message::Ping(Default::default()),
        silent: "the world's server does not respond; join again",
        stuck: "the client reads too slowly",
    };
    let from_server = |incoming: Option<_>| {
        if let Some(Ok(message)) = &incoming
            && newcomer.is_some()
            && is_welcome(message)
        {
            newcomer = None;
        }
        from_server(incoming)
    };
    let ending = tokio::select! {
        ending = upward.relay(from_client, silence_max, &active) => ending,
        ending = downward.relay(from_server, silence_max, &active) => ending,
        () = idle(&active, timeouts.idle_max) => Ending::both("the connection was idle for too long"),
    };
    let unread = ending.client.as_ref();
    let unread = unread.is_some_and(|frame| UNREADABLE.contains(&frame.code));
    let client_close = ending.client.map(|frame| ws::Message::Close(Some(frame)));
    let server_close = ending.server.map(to_upstream);
    let close_client = async {
        let bytes = |message: ws::Message| message.into_data().len();
        close(&mut to_client, &mut client, client_close, bytes).await;
        // After a message that cannot be parsed nothing more can be read, and a socket that is
        // dropped with unread input is reset, which would hide the close reason from the client.
        // The socket stays open until the close frame has arrived.
        if unread {
            sleep(CLOSE_TIMEOUT).await;
        }
    };
    let bytes = |message: tungstenite::Message| message.len();
    let close_server = close(&mut to_server, &mut server, server_close, bytes);
    let _ = tokio::join!(
        timeout(CLOSE_TIMEOUT, close_client),
        timeout(CLOSE_TIMEOUT, close_server)
    );
}

/// Meaning of a received frame.
enum Incoming<M> {
    Message(M),
    /// Pings and pongs, which are not forwarded.
    Control,
    End(Ending),
}

/// One direction of the relay.
struct Direction<'a, Source, Target, M> {
    source: &'a mut Source,
    target: &'a mut Target,
    /// Creates a ping for the target.
    ping: fn() -> M,
    /// Close reasons when the source is silent or the target accepts nothing.
    silent: &'static str,
    stuck: &'static str,
}

impl<Source, Target, M> Direction<'_, Source, Target, M>
where
    Source: Stream + Unpin,
    Target: Sink<M> + Unpin,
{
    /// Forwards messages until either side closes.
    async fn relay(
        self,
        mut translate: impl FnMut(Option<Source::Item>) -> Incoming<M>,
        silence_max: Duration,
        active: &AtomicBool,
    ) -> Ending {
        let mut pings = pings(silence_max);
        let mut received_at = Instant::now();
        loop {
            let incoming = tokio::select! {
                incoming = self.source.next() => incoming,
                _ = pings.tick() => {
                    // Input that is already waiting arrived in time: on a stalled machine it is the
                    // relay that did not read.
                    let waiting = self.source.next().now_or_never();
                    if waiting.is_none() && received_at.elapsed() > silence_max {
                        return Ending::both(self.silent);
                    }
                    if !send(self.target, (self.ping)(), silence_max).await {
                        return Ending::both(self.stuck);
                    }
                    let Some(incoming) = waiting else {
                        continue;
                    };
                    incoming
                }
            };
            received_at = Instant::now();
            let message = match translate(incoming) {
                Incoming::Message(message) => message,
                Incoming::Control => continue,
                Incoming::End(ending) => return ending,
            };
            active.store(true, Relaxed);
            if !send(self.target, message, silence_max).await {
                return Ending::both(self.stuck);
            }
        }
    }
}

async fn send<M>(target: &mut (impl Sink<M> + Unpin), message: M, limit: Duration) -> bool {
    matches!(timeout(limit, target.send(message)).await, Ok(Ok(())))
}

/// Converts a frame of the client for the server.
fn from_client(
    incoming: Option<Result<ws::Message, axum::Error>>,
) -> Incoming<tungstenite::Message> {
    match incoming {
        Some(Ok(ws::Message::Text(text))) => {
            Incoming::Message(tungstenite::Message::Text(text.as_str().into()))
        }
        Some(Ok(ws::Message::Binary(bytes))) => {
            Incoming::Message(tungstenite::Message::Binary(bytes))
        }
        Some(Ok(ws::Message::Ping(_) | ws::Message::Pong(_))) => Incoming::Control,
        Some(Ok(ws::Message::Close(frame))) => Incoming::End(Ending::by_client(frame)),
        Some(Err(error)) => Incoming::End(match violation(&error.to_string()) {
            Some((code, reason)) => Ending::refused(code, reason),
            None => Ending::by_client(None),
        }),
        None => Incoming::End(Ending::by_client(None)),
    }
}

/// Converts a frame of the server for the client.
fn from_server(
    incoming: Option<Result<tungstenite::Message, tungstenite::Error>>,
) -> Incoming<ws::Message> {
    match incoming {
        Some(Ok(tungstenite::Message::Text(text))) => {
            Incoming::Message(ws::Message::Text(text.as_str().into()))
        }
        Some(Ok(tungstenite::Message::Binary(bytes))) => {
            Incoming::Message(ws::Message::Binary(bytes))
        }
        Some(Ok(tungstenite::Message::Close(frame))) => Incoming::End(Ending::by_server(frame)),
        Some(Ok(_)) => Incoming::Control,
        Some(Err(_)) | None => Incoming::End(Ending::by_server(None)),
    }
}

fn pings(silence_max: Duration) -> Interval {
    let every = silence_max / PINGS_PER_SILENCE;
    let mut pings = interval_at(tokio::time::Instant::now() + every, every);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    pings
}

/// Completes after `idle_max` without a message.
async fn idle(active: &AtomicBool, idle_max: Duration) {
    while active.swap(false, Relaxed) {
        sleep(idle_max).await;
    }
}

/// Sends a close frame and reads until the other side has closed too or has sent more than
/// `DRAINED_BYTES_MAX`.
async fn close<M, E>(
    sink: &mut (impl Sink<M> + Unpin),
    source: &mut (impl Stream<Item = Result<M, E>> + Unpin),
    close_frame: Option<M>,
    bytes_of: impl Fn(M) -> usize,
) {
    if let Some(close_frame) = close_frame {
        let _ = sink.send(close_frame).await;
    }
    // Also answers a close frame of the peer.
    let _ = sink.close().await;
    let mut drained = 0;
    while drained <= DRAINED_BYTES_MAX
        && let Some(Ok(message)) = source.next().await
    {
        drained += bytes_of(message).max(MESSAGE_BYTES_MIN);
    }
}

impl Ending {
    /// The client closed the connection, or it was lost.
    fn by_client(frame: Option<CloseFrame>) -> Self {
        Self {
            client: None,
            server: Some(frame.unwrap_or_else(|| away("the client's connection was lost"))),
        }
    }

    /// The server closed the connection, or crashed.
    fn by_server(frame: Option<protocol::CloseFrame>) -> Self {
        let frame = frame.map(|frame| CloseFrame {
            code: frame.code.into(),
            reason: frame.reason.as_str().into(),
        });
        Self {
            client: Some(
                frame.unwrap_or_else(|| {
                    away("the world's server closed the connection; join again")
                }),
            ),
            server: None,
        }
    }

    /// The client sent an invalid message.
    fn refused(code: u16, reason: String) -> Self {
        Self {
            client: Some(CloseFrame {
                code,
                reason: reason.into(),
            }),
            server: Some(away("the client sent an invalid message")),
        }
    }

    /// The relay closes both sides.
    fn both(reason: &'static str) -> Self {
        Self {
            client: Some(away(reason)),
            server: Some(away(reason)),
        }
    }
}

fn away(reason: &'static str) -> CloseFrame {
    CloseFrame {
        code: close_code::AWAY,
        reason: reason.into(),
    }
}

fn to_upstream(frame: CloseFrame) -> tungstenite::Message {
    // Codes that mean "no code" may be received but not sent.
    let code = match frame.code {
        1005 | 1006 | 1015 => close_code::NORMAL,
        code => code,
    };
    tungstenite::Message::Close(Some(protocol::CloseFrame {
        code: code.into(),
        reason: frame.reason.as_str().into(),
    }))
}

/// Close code and reason for an invalid message of a client, as a game server would send them;
/// `None` if the connection was lost. Matches the error's text, because axum uses its own WebSocket
/// library and hides the type of its errors.
fn violation(error: &str) -> Option<(u16, String)> {
    if error.contains("too long") || error.contains("limit") {
        let reason = format!("a message may have at most {CLIENT_MESSAGE_BYTES_MAX} bytes");
        Some((close_code::SIZE, reason))
    } else if error.to_ascii_lowercase().contains("utf-8") {
        Some((close_code::INVALID, "a text frame must be UTF-8".into()))
    } else if error.contains("protocol error") && !error.contains("without closing handshake") {
        Some((close_code::PROTOCOL, "this is not WebSocket".into()))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::{sink, stream};
    use tokio::sync::mpsc;

    #[tokio::test]
    async fn input_received_while_the_machine_stalled_is_in_time() {
        const SILENCE_MAX: Duration = Duration::from_millis(20);
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let mut source = stream::poll_fn(move |context| receiver.poll_recv(context));
        let direction = Direction {
            source: &mut source,
            target: &mut sink::drain(),
            ping: || (),
            silent: "silent",
            stuck: "stuck",
        };
        let translate = |incoming: Option<()>| match incoming {
            Some(()) => Incoming::Control,
            None => Incoming::End(Ending::by_client(None)),
        };
        let send = async move {
            for _ in 0..20 {
                sender.send(()).expect("the receiver exists");
                // The test has only this thread, so nothing else runs during the sleep.
                std::thread::sleep(2 * SILENCE_MAX);
                tokio::task::yield_now().await;
            }
        };
        let active = AtomicBool::new(false);
        let (ending, ()) = tokio::join!(direction.relay(translate, SILENCE_MAX, &active), send);
        assert!(ending.client.is_none(), "{:?}", ending.client);
    }
}
