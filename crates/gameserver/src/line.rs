//! The way back to a client: a socket that the world's thread drives itself,
//! or a queue to the task that does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use bytes::Bytes;
use frolic_protocol::packet::SERVER_MESSAGE_BYTES_MAX;
use frolic_world::Delivery;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use crate::metrics::Metrics;
use crate::pace::{Backlog, Uptake};
use crate::transport::socket::SocketLine;

/// Packets that may wait in the queue of a connection's task.
pub const OUTBOX_PACKETS: usize = 64;
/// Bytes that may wait for a client that does not read: the largest message
/// there is, and some more behind it.
pub const WAITING_BYTES_MAX: usize = SERVER_MESSAGE_BYTES_MAX + 4 * 1024 * 1024;

/// What a connection's task carries to its client.
#[derive(Debug)]
pub enum Outbound {
    /// Has to arrive, in order.
    Reliable(Bytes),
    /// May be lost.
    Unreliable(Bytes),
    /// The end, with the reason for the closing frame.
    Close(String),
}

/// Why a connection ends, as a WebSocket close frame says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseCode {
    /// As agreed.
    Normal = 1000,
    /// Not WebSocket.
    Protocol = 1002,
    /// A text that is none.
    Invalid = 1007,
    /// The client broke a rule.
    Policy = 1008,
    /// A message that is too long.
    Size = 1009,
}

/// What carries messages to one client. Nothing here waits.
pub enum Line {
    /// A WebSocket.
    Socket(SocketLine),
    /// A connection with a task of its own.
    Channel(ChannelLine),
}

impl Line {
    /// How it delivers.
    pub fn delivery(&self) -> Delivery {
        match self {
            Line::Socket(_) => Delivery::Ordered,
            Line::Channel(_) => Delivery::Lossy,
        }
    }

    /// Queues a packet that has to arrive.
    pub fn reliable(&mut self, packet: &[u8]) {
        match self {
            Line::Socket(line) => line.binary(packet),
            Line::Channel(line) => line.push(Outbound::Reliable(Bytes::copy_from_slice(packet))),
        }
    }

    /// Queues a packet that may be lost where the line is lossy.
    pub fn unreliable(&mut self, packet: Vec<u8>) {
        match self {
            Line::Socket(line) => line.binary(&packet),
            Line::Channel(line) => line.push(Outbound::Unreliable(packet.into())),
        }
    }

    /// Queues a text; only sockets carry JSON.
    pub fn text(&mut self, text: &str) {
        match self {
            Line::Socket(line) => line.text(text),
            Line::Channel(_) => {}
        }
    }

    /// Queues the end. Nothing goes out behind it.
    pub fn close(&mut self, code: CloseCode, reason: &str) {
        match self {
            Line::Socket(line) => line.close(code, reason),
            Line::Channel(line) => line.push(Outbound::Close(reason.to_owned())),
        }
    }

    /// Sends what the other side takes now.
    pub fn flush(&mut self, now: Instant, metrics: &Metrics) {
        match self {
            Line::Socket(line) => line.flush(now, metrics),
            Line::Channel(line) => line.flush(now),
        }
    }

    /// Exchanges the memory that frames are gathered in, if there are none.
    pub fn exchange_buffer(&mut self, other: &mut Vec<u8>) {
        match self {
            Line::Socket(line) => line.exchange_buffer(other),
            Line::Channel(_) => {}
        }
    }

    /// Bytes that the other side has not taken yet.
    pub fn waiting_bytes(&self) -> usize {
        match self {
            Line::Socket(line) => line.waiting_bytes(),
            Line::Channel(line) => line.waiting_bytes(),
        }
    }

    /// Whether the other side is behind with what it was sent before.
    pub fn is_behind(&self) -> bool {
        match self {
            Line::Socket(line) => line.waiting_bytes() > 0,
            Line::Channel(line) => line.is_behind(),
        }
    }

    /// Whether anything is left to be sent.
    pub fn is_restless(&self) -> bool {
        match self {
            Line::Socket(line) => line.waiting_bytes() > 0,
            Line::Channel(line) => line.is_restless(),
        }
    }

    /// Whether the other side has taken so little that it is to be let go.
    pub fn is_stuck(&self, now: Instant) -> bool {
        match self {
            Line::Socket(line) => line.is_stuck(now),
            Line::Channel(line) => line.is_stuck(now),
        }
    }

    /// Forgets what waits, so that the last word has a chance to be heard.
    pub fn abandon(&mut self, reason: &str) {
        match self {
            Line::Socket(line) => line.abandon(),
            Line::Channel(line) => line.abandon(reason),
        }
    }

    /// Whether nothing can be sent any more: closed by us, or gone.
    pub fn is_over(&self) -> bool {
        match self {
            Line::Socket(line) => line.is_over(),
            Line::Channel(line) => line.is_over(),
        }
    }
}

/// The queue to a connection's task, and what did not fit it, in order.
pub struct ChannelLine {
    outbox: mpsc::Sender<Outbound>,
    /// Bytes that were put into it.
    queued: u64,
    /// Ends the connection past everything that waits.
    end: Option<oneshot::Sender<String>>,
    /// What its task got rid of, and had when last looked.
    written: Arc<AtomicU64>,
    written_before: u64,
    backlog: Vec<Outbound>,
    backlog_bytes: usize,
    uptake: Uptake,
    overfull: bool,
    lost: bool,
}

impl ChannelLine {
    /// The line of a task that reads from the other end of `outbox`, counts
    /// in `written` what it got rid of, and closes the connection when `end`
    /// gives it a reason.
    pub fn new(
        outbox: mpsc::Sender<Outbound>,
        end: oneshot::Sender<String>,
        written: Arc<AtomicU64>,
    ) -> Self {
        Self {
            outbox,
            queued: 0,
            end: Some(end),
            written,
            written_before: 0,
            backlog: Vec::new(),
            backlog_bytes: 0,
            uptake: Uptake::default(),
            overfull: false,
            lost: false,
        }
    }

    fn is_over(&self) -> bool {
        self.lost || self.outbox.is_closed()
    }

    fn is_behind(&self) -> bool {
        !self.backlog.is_empty() || self.outbox.capacity() < self.outbox.max_capacity() / 2
    }

    fn is_restless(&self) -> bool {
        !self.backlog.is_empty() || self.outbox.capacity() < self.outbox.max_capacity()
    }

    fn waiting_bytes(&self) -> usize {
        self.backlog_bytes
    }

    fn is_stuck(&self, now: Instant) -> bool {
        self.overfull || self.uptake.is_too_slow(now)
    }

    fn abandon(&mut self, reason: &str) {
        self.backlog.clear();
        self.backlog_bytes = 0;
        if let Some(end) = self.end.take() {
            // Fails only when the task is gone already.
            let _ = end.send(reason.to_owned());
        }
    }

    fn flush(&mut self, now: Instant) {
        let mut waiting = std::mem::take(&mut self.backlog).into_iter();
        for outbound in waiting.by_ref() {
            if let Err(back) = self.try_send(outbound) {
                self.backlog.push(back);
                break;
            }
        }
        self.backlog.extend(waiting);
        self.backlog_bytes = self.backlog.iter().map(size).sum();
        self.note_progress(now);
    }

    /// The queue alone does not tell how it goes: who is behind gets no updates
    /// that would fill it.
    fn note_progress(&mut self, now: Instant) {
        let written = self.written.load(Relaxed);
        let taken = std::mem::replace(&mut self.written_before, written) != written;
        let left = if self.is_behind() {
            let queued = self.queued.saturating_sub(written);
            let queued = usize::try_from(queued).unwrap_or(usize::MAX);
            Backlog::Large(queued.saturating_add(self.backlog_bytes))
        } else if self.is_restless() {
            Backlog::Small
        } else {
            Backlog::Empty
        };
        self.uptake.note(taken, left, now);
    }

    fn push(&mut self, outbound: Outbound) {
        let outbound = if self.backlog.is_empty() {
            match self.try_send(outbound) {
                Ok(()) => return,
                Err(back) => back,
            }
        } else {
            outbound
        };
        // What may be lost is lost first.
        if matches!(outbound, Outbound::Unreliable(_)) {
            return;
        }
        if self.backlog_bytes > WAITING_BYTES_MAX {
            self.overfull = true;
            return;
        }
        self.backlog_bytes += size(&outbound);
        self.backlog.push(outbound);
    }

    fn try_send(&mut self, outbound: Outbound) -> Result<(), Outbound> {
        let bytes = size(&outbound) as u64;
        match self.outbox.try_send(outbound) {
            Ok(()) => {
                self.queued += bytes;
                Ok(())
            }
            Err(TrySendError::Full(back)) => Err(back),
            Err(TrySendError::Closed(_)) => {
                self.lost = true;
                Ok(())
            }
        }
    }
}

fn size(outbound: &Outbound) -> usize {
    match outbound {
        Outbound::Reliable(bytes) | Outbound::Unreliable(bytes) => bytes.len(),
        Outbound::Close(text) => text.len(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A line, and what its task has: it takes something only when told to.
    struct Slow {
        line: ChannelLine,
        outgoing: mpsc::Receiver<Outbound>,
        written: Arc<AtomicU64>,
        start: Instant,
    }

    const PACKET_BYTES: usize = 1024;

    impl Slow {
        fn new() -> Self {
            let (outbox, outgoing) = mpsc::channel(OUTBOX_PACKETS);
            let (end, _) = oneshot::channel();
            let written = Arc::new(AtomicU64::new(0));
            Self {
                line: ChannelLine::new(outbox, end, written.clone()),
                outgoing,
                written,
                start: Instant::now(),
            }
        }

        fn send(&mut self, packets: usize) {
            let packet = Bytes::from(vec![7; PACKET_BYTES]);
            (0..packets).for_each(|_| self.line.push(Outbound::Reliable(packet.clone())));
        }

        /// Whether it is let go of in this second, in which it takes so many
        /// packets.
        fn is_let_go_of(&mut self, second: u64, packets: usize) -> bool {
            let taken = (0..packets).map_while(|_| self.outgoing.try_recv().ok());
            let bytes: usize = taken.map(|outbound| size(&outbound)).sum();
            self.written.fetch_add(bytes as u64, Relaxed);
            let now = self.start + Duration::from_secs(second);
            self.line.flush(now);
            self.line.is_stuck(now)
        }
    }

    #[test]
    fn a_client_that_takes_too_little_for_too_long_is_let_go_of() {
        let mut slow = Slow::new();
        slow.send(100);
        // 2 KiB a second, and as much comes after it: it stays behind, at 100 KiB.
        let let_go = (0..120).find(|second| {
            slow.send(2);
            assert!(slow.line.is_behind(), "after {second} s");
            slow.is_let_go_of(*second, 2)
        });
        assert_eq!(let_go, Some(34), "30 s, and what 100 KiB take");
    }

    #[test]
    fn a_client_that_catches_up_is_not_let_go_of() {
        let mut slow = Slow::new();
        slow.send(100);
        let let_go = (0..300).find(|second| slow.is_let_go_of(*second, 3));
        assert_eq!(let_go, None);
        assert!(!slow.line.is_restless());
    }

    #[test]
    fn a_client_that_takes_nothing_is_let_go_of_soon() {
        let mut slow = Slow::new();
        slow.send(1);
        let let_go = (0..300).find(|second| slow.is_let_go_of(*second, 0));
        assert_eq!(let_go, Some(9));
    }
}
