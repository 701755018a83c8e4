//! Passing a WebSocket through: messages both ways, and one end for both.
//!
//! Each way reads one message and sends it before it reads the next, so a slow
//! reader slows its own sender down and nothing piles up here. Pings are not
//! passed on: each half has its own, because a game server that hears *us*
//! answer learns nothing about the player behind us.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use axum::extract::ws::{self, CloseFrame, WebSocket, close_code};
use frolic_protocol::packet::CLIENT_MESSAGE_BYTES_MAX;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use tokio::net::TcpStream;
use tokio::time::{Interval, MissedTickBehavior, interval_at, sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{self, protocol};

/// A connection to a game server.
pub type Upstream = WebSocketStream<TcpStream>;

/// How long each side has to take its close frame in and answer it.
const FAREWELL: Duration = Duration::from_secs(2);
/// What is still read after the last word, while its answer is on the way.
const DRAINED_MESSAGES_MAX: usize = 64;
/// Pings per longest silence: one may get lost.
const PINGS_PER_SILENCE: u32 = 3;

/// How patient a relay is.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// A half that says nothing this long, pongs included, is dead; so is one
    /// that takes nothing in.
    pub silence_max: Duration,
    /// Without a message in either direction this long, nobody plays here:
    /// even a client that only watches gets snapshots.
    pub idle_max: Duration,
}

/// What to tell each side at the end; nothing where it had the last word.
struct Ending {
    client: Option<CloseFrame>,
    server: Option<CloseFrame>,
}

/// Copies both ways until either side ends, then ends the other in the same
/// words.
pub async fn relay(client: WebSocket, server: Upstream, patience: Patience) {
    let (mut to_client, mut from_client) = client.split();
    let (mut to_server, mut from_server) = server.split();
    let lively = AtomicBool::new(true);
    let silence_max = patience.silence_max;
    let ending = tokio::select! {
        ending = upward(&mut from_client, &mut to_server, silence_max, &lively) => ending,
        ending = downward(&mut from_server, &mut to_client, silence_max, &lively) => ending,
        () = idle(&lively, patience.idle_max) => Ending::both("nothing was said for too long"),
    };
    let unread = ending.client.as_ref();
    let unread = unread.is_some_and(|frame| frame.code == close_code::SIZE);
    let client_close = ending.client.map(|frame| ws::Message::Close(Some(frame)));
    let server_close = ending.server.map(to_upstream);
    let part_with_client = async {
        part(&mut to_client, &mut from_client, client_close).await;
        // Nothing can be read behind a message that was too long, and a socket
        // that is dropped with unread input is reset: the client would never
        // see why. It stays open for as long as the close frame needs.
        if unread {
            sleep(FAREWELL).await;
        }
    };
    let part_with_server = part(&mut to_server, &mut from_server, server_close);
    let _ = tokio::join!(
        timeout(FAREWELL, part_with_client),
        timeout(FAREWELL, part_with_server)
    );
}

/// From the client to the server.
async fn upward(
    from_client: &mut SplitStream<WebSocket>,
    to_server: &mut SplitSink<Upstream, tungstenite::Message>,
    silence_max: Duration,
    lively: &AtomicBool,
) -> Ending {
    let mut ping = pings(silence_max);
    let mut heard = Instant::now();
    loop {
        let passed_on = tokio::select! {
            incoming = from_client.next() => {
                heard = Instant::now();
                match incoming {
                    Some(Ok(ws::Message::Text(text))) => tungstenite::Message::Text(text.as_str().into()),
                    Some(Ok(ws::Message::Binary(bytes))) => tungstenite::Message::Binary(bytes),
                    Some(Ok(ws::Message::Ping(_) | ws::Message::Pong(_))) => continue,
                    Some(Ok(ws::Message::Close(frame))) => return Ending::by_client(frame),
                    Some(Err(error)) if is_too_long(&error) => return Ending::too_long(),
                    Some(Err(_)) | None => return Ending::by_client(None),
                }
            }
            _ = ping.tick() => {
                if heard.elapsed() > silence_max {
                    return Ending::both("nothing was heard of the client");
                }
                tungstenite::Message::Ping(Default::default())
            }
        };
        lively.fetch_or(!passed_on.is_ping(), Relaxed);
        if !matches!(
            timeout(silence_max, to_server.send(passed_on)).await,
            Ok(Ok(()))
        ) {
            return Ending::both("the world's server takes nothing in; join again");
        }
    }
}

/// From the server to the client.
async fn downward(
    from_server: &mut SplitStream<Upstream>,
    to_client: &mut SplitSink<WebSocket, ws::Message>,
    silence_max: Duration,
    lively: &AtomicBool,
) -> Ending {
    let mut ping = pings(silence_max);
    let mut heard = Instant::now();
    loop {
        let passed_on = tokio::select! {
            incoming = from_server.next() => {
                heard = Instant::now();
                match incoming {
                    Some(Ok(tungstenite::Message::Text(text))) => ws::Message::Text(text.as_str().into()),
                    Some(Ok(tungstenite::Message::Binary(bytes))) => ws::Message::Binary(bytes),
                    Some(Ok(tungstenite::Message::Close(frame))) => return Ending::by_server(frame),
                    Some(Ok(_)) => continue,
                    Some(Err(_)) | None => return Ending::by_server(None),
                }
            }
            _ = ping.tick() => {
                if heard.elapsed() > silence_max {
                    return Ending::both("the world's server does not answer; join again");
                }
                ws::Message::Ping(Default::default())
            }
        };
        lively.fetch_or(!matches!(passed_on, ws::Message::Ping(_)), Relaxed);
        if !matches!(
            timeout(silence_max, to_client.send(passed_on)).await,
            Ok(Ok(()))
        ) {
            return Ending::both("the client reads too slowly");
        }
    }
}

fn pings(silence_max: Duration) -> Interval {
    let every = silence_max / PINGS_PER_SILENCE;
    let mut pings = interval_at(tokio::time::Instant::now() + every, every);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    pings
}

/// Returns once nothing was said for a whole `idle_max`.
async fn idle(lively: &AtomicBool, idle_max: Duration) {
    while lively.swap(false, Relaxed) {
        sleep(idle_max).await;
    }
}

/// Sends the last word and reads until the other side has closed too.
async fn part<M, E>(
    sink: &mut (impl Sink<M> + Unpin),
    source: &mut (impl Stream<Item = Result<M, E>> + Unpin),
    last_word: Option<M>,
) {
    if let Some(last_word) = last_word {
        let _ = sink.send(last_word).await;
    }
    // Also sends the answer to a close frame that came from there.
    let _ = sink.close().await;
    for _ in 0..DRAINED_MESSAGES_MAX {
        if !matches!(source.next().await, Some(Ok(_))) {
            break;
        }
    }
}

impl Ending {
    /// The client closed, or its line broke.
    fn by_client(frame: Option<CloseFrame>) -> Self {
        Self {
            client: None,
            server: Some(frame.unwrap_or_else(|| away("the client's line was lost"))),
        }
    }

    /// The server closed, or crashed.
    fn by_server(frame: Option<protocol::CloseFrame>) -> Self {
        let frame = frame.map(|frame| CloseFrame {
            code: frame.code.into(),
            reason: frame.reason.as_str().into(),
        });
        Self {
            client: Some(frame.unwrap_or_else(|| away("the world's server went away; join again"))),
            server: None,
        }
    }

    fn too_long() -> Self {
        let reason = format!("a message may have at most {CLIENT_MESSAGE_BYTES_MAX} bytes");
        Self {
            client: Some(CloseFrame {
                code: close_code::SIZE,
                reason: reason.into(),
            }),
            server: Some(away("the client sent too long a message")),
        }
    }

    /// Neither closed: we do.
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
    // Codes that say "there was no code" may be received but not sent.
    let code = match frame.code {
        1005 | 1006 | 1015 => close_code::NORMAL,
        code => code,
    };
    tungstenite::Message::Close(Some(protocol::CloseFrame {
        code: code.into(),
        reason: frame.reason.as_str().into(),
    }))
}

/// Whether a client's message was over the limit. By its words, because axum
/// has a WebSocket library of its own, and hides the type of its errors.
fn is_too_long(error: &axum::Error) -> bool {
    let error = error.to_string();
    error.contains("too long") || error.contains("limit")
}
