//! All WebSockets of a world: which of them have data to read.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use super::websocket::{Farewell, READ_BYTES_PER_TICK, WebSocketConnection};
use super::{ConnectionId, ConnectionPermit};
use crate::decoder::Encoding;
use crate::metrics::Metrics;

/// Events taken from the kernel at once.
const EVENTS_AT_ONCE: usize = 4096;
/// Unsent bytes that the kernel buffers per client, beyond those in flight. Less
/// would starve a fast connection between two ticks; more would hide for seconds
/// that a client has stopped reading.
const UNSENT_BYTES: u32 = 128 * 1024;

/// A socket that may have data to read.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    /// Its connection.
    pub connection_id: ConnectionId,
    /// The client has closed its sending side.
    pub closed: bool,
}

/// Sockets to read, each queued once, however often the kernel reports it.
#[derive(Default)]
struct Queue {
    /// ConnectionPermits, with those first that had to wait before, or were not read
    /// completely.
    order: VecDeque<usize>,
    /// The current or last connection of each index.
    places: Vec<Option<Waiting>>,
}

#[derive(Clone, Copy)]
struct Waiting {
    connection_id: ConnectionId,
    /// It is in the queue.
    waits: bool,
    /// It has closed its sending side.
    closed: bool,
}

impl Queue {
    /// Adds a socket, which may have data to read.
    fn adopt(&mut self, connection_id: ConnectionId) {
        let place = connection_id.place();
        if self.places.len() <= place {
            self.places.resize(place + 1, None);
        }
        // The previous connection of this index may still be queued: the new one
        // takes over its turn.
        let waits = self.places[place].is_some_and(|last| last.waits);
        self.places[place] = Some(Waiting {
            connection_id,
            waits,
            closed: false,
        });
        self.push(place, false);
    }

    fn push(&mut self, place: usize, closed: bool) {
        let Some(Some(waiting)) = self.places.get_mut(place) else {
            return;
        };
        waiting.closed |= closed;
        if !std::mem::replace(&mut waiting.waits, true) {
            self.order.push_back(place);
        }
    }

    /// Sorts all but the first `count` by index, the order of sessions and players
    /// in memory: neighbours share pages.
    fn sort_behind(&mut self, count: usize) {
        if let Some(rest) = self.order.make_contiguous().get_mut(count..) {
            rest.sort_unstable();
        }
    }

    fn pop(&mut self) -> Option<Ready> {
        let place = self.order.pop_front()?;
        let waiting = self.places.get_mut(place)?.as_mut()?;
        waiting.waits = false;
        Some(Ready {
            connection_id: waiting.connection_id,
            closed: waiting.closed,
        })
    }
}

/// The sockets of a world, polled once per tick.
pub struct Sockets {
    poll: Poll,
    events: Events,
    ready: Queue,
    farewells: Vec<Farewell>,
    /// The buffer that every socket is read into.
    memory: Vec<u8>,
}

impl Sockets {
    /// No sockets yet.
    ///
    /// # Errors
    /// When the system provides no epoll or equivalent.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            poll: Poll::new()?,
            events: Events::with_capacity(EVENTS_AT_ONCE),
            ready: Queue::default(),
            farewells: Vec::new(),
            memory: vec![0; READ_BYTES_PER_TICK],
        })
    }

    /// Adds a socket.
    ///
    /// # Errors
    /// When it is broken already.
    pub fn adopt(
        &mut self,
        connection_id: ConnectionId,
        stream: std::net::TcpStream,
        encoding: Encoding,
        read_ahead: &[u8],
        now: Instant,
    ) -> io::Result<WebSocketConnection> {
        stream.set_nonblocking(true)?;
        // Without it a client that stops reading is only noticed later.
        let _ = socket2::SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT_BYTES);
        let mut stream = TcpStream::from_std(stream);
        let token = Token(connection_id.place());
        self.poll
            .registry()
            .register(&mut stream, token, Interest::READABLE)?;
        self.ready.adopt(connection_id);
        Ok(WebSocketConnection::new(stream, encoding, read_ahead, now))
    }

    /// Polls the kernel for sockets with data, without blocking.
    pub fn look(&mut self) {
        let waited = self.ready.order.len();
        self.take_events();
        self.ready.sort_behind(waited);
    }

    fn take_events(&mut self) {
        loop {
            if let Err(error) = self.poll.poll(&mut self.events, Some(Duration::ZERO)) {
                if error.kind() == io::ErrorKind::Interrupted {
                    continue;
                }
                tracing::error!(%error, "the sockets cannot be polled");
                return;
            }
            let mut count = 0;
            for event in &self.events {
                count += 1;
                let closed = event.is_read_closed() || event.is_error();
                self.ready.push(event.token().0, closed);
            }
            if count < EVENTS_AT_ONCE {
                return;
            }
        }
    }

    /// The next socket to read.
    pub fn next_ready(&mut self) -> Option<Ready> {
        self.ready.pop()
    }

    /// How many sockets wait to be read.
    pub fn ready_count(&self) -> usize {
        self.ready.order.len()
    }

    /// The buffer to read a socket into.
    pub fn memory(&mut self) -> &mut [u8] {
        &mut self.memory
    }

    /// Reads a socket in the next tick as well: it has more data than its quota.
    pub fn again(&mut self, connection_id: ConnectionId) {
        self.ready.push(connection_id.place(), false);
    }

    /// Closes a socket after what was queued for it is sent.
    pub fn part(
        &mut self,
        connection: WebSocketConnection,
        permit: ConnectionPermit,
        now: Instant,
    ) {
        self.farewells.extend(connection.into_farewell(permit, now));
    }

    /// Continues with the sockets that are being closed; returns how many are left.
    pub fn tend_farewells(&mut self, now: Instant, metrics: &Metrics) -> usize {
        let memory = &mut self.memory;
        self.farewells
            .retain_mut(|farewell| !farewell.is_over(now, memory, metrics));
        self.farewells.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_waits_once_and_in_its_turn() {
        let mut queue = Queue::default();
        let connection_ids = [0, 1, 2].map(|place| ConnectionId::new(place, place + 5));
        for connection_id in connection_ids {
            queue.adopt(connection_id);
        }
        for (place, closed) in [(0, false), (1, false), (0, true), (2, false), (1, false)] {
            queue.push(place, closed);
        }
        let next = |queue: &mut Queue| queue.pop().map(|ready| (ready.connection_id, ready.closed));
        let first = next(&mut queue);
        assert_eq!(
            first,
            Some((connection_ids[0], true)),
            "what was said meanwhile"
        );
        assert_eq!(next(&mut queue), Some((connection_ids[1], false)));
        queue.push(1, false);
        queue.push(7, true);
        queue.push(0, false);
        queue.sort_behind(1);
        assert_eq!(
            next(&mut queue),
            Some((connection_ids[2], false)),
            "it waited before"
        );
        assert_eq!(next(&mut queue), Some((connection_ids[0], true)));
        assert_eq!(next(&mut queue), Some((connection_ids[1], false)));
        assert_eq!(next(&mut queue), None);
    }

    #[test]
    fn a_new_connection_gets_its_turn_and_no_state_of_its_predecessor() {
        let mut queue = Queue::default();
        queue.adopt(ConnectionId::new(0, 1));
        queue.push(0, true);
        let newcomer = ConnectionId::new(0, 2);
        queue.adopt(newcomer);
        let turn = queue.pop().map(|ready| (ready.connection_id, ready.closed));
        assert_eq!(turn, Some((newcomer, false)));
        assert!(queue.pop().is_none());
    }
}
