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
use futures_util::{FutureExt, Sink, SinkExt, Stream, StreamExt};
use tokio::net::TcpStream;
use tokio::time::{Interval, MissedTickBehavior, interval_at, sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{self, protocol};

use super::newcomers::{Newcomer, is_welcome};

/// A connection to a game server.
pub type Upstream = WebSocketStream<TcpStream>;

/// How long each side has to take its close frame in and answer it.
const FAREWELL: Duration = Duration::from_secs(2);
/// What is still read after the last word, while its answer is on the way: a
/// socket that is dropped with unread input is reset, and the other side may
/// never see why. Far above what a client has under way that keeps to the rules.
const DRAINED_BYTES_MAX: usize = 4 * 1024 * 1024;
/// What a message counts for at least, so that empty ones are not for nothing.
const MESSAGE_BYTES_MIN: usize = 16;
/// Closes behind which the rest of what a client sent makes no sense.
const UNREADABLE: [u16; 3] = [close_code::SIZE, close_code::INVALID, close_code::PROTOCOL];
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
/// words. The client is a newcomer until the server welcomes it.
pub async fn relay(
    client: WebSocket,
    server: Upstream,
    patience: Patience,
    mut newcomer: Option<Newcomer>,
) {
    let (mut to_client, mut client) = client.split();
    let (mut to_server, mut server) = server.split();
    let lively = AtomicBool::new(true);
    let silence_max = patience.silence_max;
    let upward = Way {
        source: &mut client,
        target: &mut to_server,
        ping: || tungstenite::Message::Ping(Default::default()),
        silent: "nothing was heard of the client",
        stuck: "the world's server takes nothing in; join again",
    };
    let downward = Way {
        source: &mut server,
        target: &mut to_client,
        ping: || ws::Message::Ping(Default::default()),
        silent: "the world's server does not answer; join again",
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
        ending = upward.go(from_client, silence_max, &lively) => ending,
        ending = downward.go(from_server, silence_max, &lively) => ending,
        () = idle(&lively, patience.idle_max) => Ending::both("nothing was said for too long"),
    };
    let unread = ending.client.as_ref();
    let unread = unread.is_some_and(|frame| UNREADABLE.contains(&frame.code));
    let client_close = ending.client.map(|frame| ws::Message::Close(Some(frame)));
    let server_close = ending.server.map(to_upstream);
    let part_with_client = async {
        let bytes = |message: ws::Message| message.into_data().len();
        part(&mut to_client, &mut client, client_close, bytes).await;
        // Nothing can be read behind what could not be read, and a socket
        // that is dropped with unread input is reset: the client would never
        // see why. It stays open for as long as the close frame needs.
        if unread {
            sleep(FAREWELL).await;
        }
    };
    let bytes = |message: tungstenite::Message| message.len();
    let part_with_server = part(&mut to_server, &mut server, server_close, bytes);
    let _ = tokio::join!(
        timeout(FAREWELL, part_with_client),
        timeout(FAREWELL, part_with_server)
    );
}

/// What becomes of something that was read.
enum Heard<M> {
    Message(M),
    /// Pings and pongs: each half has its own.
    Nothing,
    End(Ending),
}

/// One of the two ways.
struct Way<'a, Source, Target, M> {
    source: &'a mut Source,
    target: &'a mut Target,
    /// The target's.
    ping: fn() -> M,
    /// To tell both when the source says nothing, or the target takes nothing.
    silent: &'static str,
    stuck: &'static str,
}

impl<Source, Target, M> Way<'_, Source, Target, M>
where
    Source: Stream + Unpin,
    Target: Sink<M> + Unpin,
{
    /// Passes everything on until one of both sides ends.
    async fn go(
        self,
        mut translate: impl FnMut(Option<Source::Item>) -> Heard<M>,
        silence_max: Duration,
        lively: &AtomicBool,
    ) -> Ending {
        let mut pings = pings(silence_max);
        let mut heard = Instant::now();
        loop {
            let incoming = tokio::select! {
                incoming = self.source.next() => incoming,
                _ = pings.tick() => {
                    // What waits to be read was said in time: on a machine that
                    // was held up it is us who did not listen.
                    let waiting = self.source.next().now_or_never();
                    if waiting.is_none() && heard.elapsed() > silence_max {
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
            heard = Instant::now();
            let message = match translate(incoming) {
                Heard::Message(message) => message,
                Heard::Nothing => continue,
                Heard::End(ending) => return ending,
            };
            lively.store(true, Relaxed);
            if !send(self.target, message, silence_max).await {
                return Ending::both(self.stuck);
            }
        }
    }
}

async fn send<M>(target: &mut (impl Sink<M> + Unpin), message: M, patience: Duration) -> bool {
    matches!(timeout(patience, target.send(message)).await, Ok(Ok(())))
}

/// For the server, what the client said.
fn from_client(incoming: Option<Result<ws::Message, axum::Error>>) -> Heard<tungstenite::Message> {
    match incoming {
        Some(Ok(ws::Message::Text(text))) => {
            Heard::Message(tungstenite::Message::Text(text.as_str().into()))
        }
        Some(Ok(ws::Message::Binary(bytes))) => Heard::Message(tungstenite::Message::Binary(bytes)),
        Some(Ok(ws::Message::Ping(_) | ws::Message::Pong(_))) => Heard::Nothing,
        Some(Ok(ws::Message::Close(frame))) => Heard::End(Ending::by_client(frame)),
        Some(Err(error)) => Heard::End(match complaint(&error.to_string()) {
            Some((code, reason)) => Ending::refused(code, reason),
            None => Ending::by_client(None),
        }),
        None => Heard::End(Ending::by_client(None)),
    }
}

/// For the client, what the server said.
fn from_server(
    incoming: Option<Result<tungstenite::Message, tungstenite::Error>>,
) -> Heard<ws::Message> {
    match incoming {
        Some(Ok(tungstenite::Message::Text(text))) => {
            Heard::Message(ws::Message::Text(text.as_str().into()))
        }
        Some(Ok(tungstenite::Message::Binary(bytes))) => Heard::Message(ws::Message::Binary(bytes)),
        Some(Ok(tungstenite::Message::Close(frame))) => Heard::End(Ending::by_server(frame)),
        Some(Ok(_)) => Heard::Nothing,
        Some(Err(_)) | None => Heard::End(Ending::by_server(None)),
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

/// Sends the last word and reads until the other side has closed too, or has sent
/// more than there is any reason for.
async fn part<M, E>(
    sink: &mut (impl Sink<M> + Unpin),
    source: &mut (impl Stream<Item = Result<M, E>> + Unpin),
    last_word: Option<M>,
    bytes_of: impl Fn(M) -> usize,
) {
    if let Some(last_word) = last_word {
        let _ = sink.send(last_word).await;
    }
    // Also sends the answer to a close frame that came from there.
    let _ = sink.close().await;
    let mut drained = 0;
    while drained <= DRAINED_BYTES_MAX
        && let Some(Ok(message)) = source.next().await
    {
        drained += bytes_of(message).max(MESSAGE_BYTES_MIN);
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

    /// The client sent what cannot be passed on.
    fn refused(code: u16, reason: String) -> Self {
        Self {
            client: Some(CloseFrame {
                code,
                reason: reason.into(),
            }),
            server: Some(away("the client sent what cannot be read")),
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

/// What is wrong with what a client sent, in the codes and words of a game
/// server; none where its line was lost. By the words of the error, because axum
/// has a WebSocket library of its own, and hides the type of its errors.
fn complaint(error: &str) -> Option<(u16, String)> {
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
    async fn what_was_said_while_the_machine_was_held_up_was_said_in_time() {
        const SILENCE_MAX: Duration = Duration::from_millis(20);
        let (say, mut said) = mpsc::unbounded_channel();
        let mut source = stream::poll_fn(move |context| said.poll_recv(context));
        let way = Way {
            source: &mut source,
            target: &mut sink::drain(),
            ping: || (),
            silent: "nothing was heard",
            stuck: "nothing was taken in",
        };
        let translate = |incoming: Option<()>| match incoming {
            Some(()) => Heard::Nothing,
            None => Heard::End(Ending::by_client(None)),
        };
        let talk = async move {
            for _ in 0..20 {
                say.send(()).expect("somebody listens");
                // This thread is the only one: nothing runs meanwhile.
                std::thread::sleep(2 * SILENCE_MAX);
                tokio::task::yield_now().await;
            }
        };
        let lively = AtomicBool::new(false);
        let (ending, ()) = tokio::join!(way.go(translate, SILENCE_MAX, &lively), talk);
        assert!(ending.client.is_none(), "{:?}", ending.client);
    }
}
