//! All sessions of a world, by connection index.
//!
//! The fields that every tick checks for every session are in separate rows, which
//! fit into a processor's caches. Sessions do not, and most have nothing to send in
//! most ticks: those are not touched.

use frolic_protocol::ServerMessage;
use frolic_world::PlayerNumber;

use crate::connection::ConnectionId;
use crate::session::Session;

/// The sessions of all open connections.
#[derive(Default)]
pub struct Sessions {
    /// By connection index, as many as sessions.
    rows: Vec<Row>,
    /// By connection index; none where no client is connected.
    sessions: Vec<Option<Session>>,
}

#[derive(Clone, Copy, Default)]
struct Row {
    connection_id: Option<ConnectionId>,
    viewer: Option<Viewer>,
    /// There may be something to send, or a connection to close.
    restless: bool,
}

/// A session whose player gets snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Viewer {
    /// The player's number.
    pub number: PlayerNumber,
    /// They have not been sent any snapshot yet.
    pub is_new: bool,
    /// The state of their next update.
    pub update: Update,
}

/// The state of a session's next update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// Its turn has not come.
    NotDue,
    /// It waits to be made.
    Due,
    /// It waits to be written.
    Made,
}

impl Sessions {
    /// Adds a connection's session.
    pub fn insert(&mut self, connection_id: ConnectionId, session: Session) {
        let place = connection_id.place();
        if self.sessions.len() <= place {
            self.rows.resize(place + 1, Row::default());
            self.sessions.resize_with(place + 1, || None);
        }
        self.rows[place] = Row {
            connection_id: Some(connection_id),
            viewer: None,
            restless: true,
        };
        self.sessions[place] = Some(session);
    }

    /// The index of a connection, unless it is closed: the index may be reused
    /// by now.
    fn place(&self, connection_id: ConnectionId) -> Option<usize> {
        let row = self.rows.get(connection_id.place())?;
        (row.connection_id == Some(connection_id)).then_some(connection_id.place())
    }

    /// A connection's session.
    pub fn get(&self, connection_id: ConnectionId) -> Option<&Session> {
        let place = self.place(connection_id)?;
        self.sessions[place].as_ref()
    }

    /// A connection's session, to change it or to send to it.
    pub fn get_mut(&mut self, connection_id: ConnectionId) -> Option<&mut Session> {
        let place = self.place(connection_id)?;
        self.rows[place].restless = true;
        self.sessions[place].as_mut()
    }

    /// The same for callers that call [`settle`](Self::settle) afterwards: most
    /// messages of most clients leave nothing to send.
    pub fn get_quietly(&mut self, connection_id: ConnectionId) -> Option<&mut Session> {
        let place = self.place(connection_id)?;
        self.sessions[place].as_mut()
    }

    /// Checks whether a session that was changed quietly has something to send.
    pub fn settle(&mut self, connection_id: ConnectionId) {
        if let Some(place) = self.place(connection_id)
            && let Some(session) = &self.sessions[place]
        {
            self.rows[place].restless |= session.is_restless();
        }
    }

    /// Removes a session.
    pub fn remove(&mut self, connection_id: ConnectionId) -> Option<Session> {
        let place = self.place(connection_id)?;
        self.rows[place] = Row::default();
        self.sessions[place].take()
    }

    /// Every session, to send to it.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        for row in &mut self.rows {
            row.restless = true;
        }
        self.sessions.iter_mut().flatten()
    }

    /// Sends a message to every player.
    pub fn send_to_players(&mut self, message: &ServerMessage) {
        for session in self.iter_mut() {
            if session.player.is_some() {
                session.send(message);
            }
        }
    }

    /// Removes all sessions.
    pub fn take_all(&mut self) -> impl Iterator<Item = Session> + use<> {
        std::mem::take(self).sessions.into_iter().flatten()
    }

    /// From now on a session's player is sent updates.
    pub fn add_viewer(&mut self, connection_id: ConnectionId, number: PlayerNumber) {
        if let Some(place) = self.place(connection_id) {
            self.rows[place].viewer = Some(Viewer {
                number,
                is_new: true,
                update: Update::NotDue,
            });
        }
    }

    /// All sessions that are sent updates.
    pub fn viewers(&mut self) -> impl Iterator<Item = (ConnectionId, &mut Viewer)> {
        let rows = self.rows.iter_mut();
        rows.filter_map(|row| row.connection_id.zip(row.viewer.as_mut()))
    }

    /// One of them.
    pub fn viewer(&mut self, connection_id: ConnectionId) -> Option<&mut Viewer> {
        let place = self.place(connection_id)?;
        self.rows[place].viewer.as_mut()
    }

    /// Visits the sessions in which there may be something to do, and every `of`th
    /// of the others, a different one with each `turn`. `tend` receives whether an
    /// update waits to be written.
    pub fn tend(
        &mut self,
        turn: usize,
        of: usize,
        mut tend: impl FnMut(ConnectionId, bool, &mut Session),
    ) {
        for (place, row) in self.rows.iter_mut().enumerate() {
            let its_turn = place % of == turn % of;
            let Some(connection_id) = row.connection_id.filter(|_| row.restless || its_turn) else {
                continue;
            };
            if let Some(session) = &mut self.sessions[place] {
                let update = row.viewer.map(|viewer| viewer.update);
                tend(connection_id, update == Some(Update::Made), session);
                row.restless = session.is_restless();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use tokio::sync::{mpsc, oneshot};

    use super::*;
    use crate::connection::{Connection, ConnectionPermits, QuicConnection};
    use crate::decoder::Encoding;
    use crate::metrics::Metrics;

    /// A connection that is never read, without a handshake yet.
    fn connect(sessions: &mut Sessions, permits: &ConnectionPermits) -> ConnectionId {
        let permit = permits.take([127, 0, 0, 1].into()).unwrap();
        let connection_id = permit.connection_id();
        let (outbox, unread) = mpsc::channel(4);
        // Keeps it open until the test ends.
        std::mem::forget(unread);
        let (end, _) = oneshot::channel();
        let connection = Connection::Quic(QuicConnection::new(outbox, end, Arc::default()));
        let session = Session::new(
            Encoding::Binary,
            None,
            connection,
            permit,
            0,
            Instant::now(),
        );
        sessions.insert(connection_id, session);
        connection_id
    }

    fn tended(sessions: &mut Sessions, turn: usize) -> Vec<ConnectionId> {
        let mut tended = Vec::new();
        sessions.tend(turn, 100, |connection_id, _, _| tended.push(connection_id));
        tended
    }

    #[test]
    fn a_name_is_not_its_successors() {
        let permits = ConnectionPermits::new(8, Arc::new(Metrics::default()));
        let mut sessions = Sessions::default();
        let first = connect(&mut sessions, &permits);
        sessions.add_viewer(first, 7);
        assert!(sessions.remove(first).is_some());
        let second = connect(&mut sessions, &permits);
        assert_eq!(first.place(), second.place());
        assert!(sessions.get(first).is_none() && sessions.get_mut(first).is_none());
        assert!(sessions.remove(first).is_none() && sessions.viewer(first).is_none());
        assert!(sessions.get(second).is_some());
        assert_eq!(sessions.viewer(second), None, "that was the first one's");
    }

    #[test]
    fn a_session_with_something_to_send_is_tended_in_every_tick() {
        let permits = ConnectionPermits::new(8, Arc::new(Metrics::default()));
        let mut sessions = Sessions::default();
        let connection_id = connect(&mut sessions, &permits);
        assert_eq!(tended(&mut sessions, 1), [connection_id]);
        assert_eq!(
            tended(&mut sessions, 2),
            [connection_id],
            "no handshake came"
        );

        // Changed quietly and not settled: not noticed.
        sessions.rows[0].restless = false;
        let session = sessions.get_quietly(connection_id).unwrap();
        let kick = ServerMessage::Kick {
            reason: String::new(),
        };
        session.send(&kick);
        assert_eq!(tended(&mut sessions, 3), []);
        assert_eq!(tended(&mut sessions, 100), [connection_id], "its turn");
        sessions.rows[0].restless = false;
        sessions.settle(connection_id);
        assert_eq!(tended(&mut sessions, 4), [connection_id]);

        sessions.rows[0].restless = false;
        sessions.get_mut(connection_id);
        assert_eq!(tended(&mut sessions, 5), [connection_id]);
        sessions.rows[0].restless = false;
        assert_eq!(sessions.iter_mut().count(), 1);
        assert_eq!(tended(&mut sessions, 6), [connection_id]);
    }
}
