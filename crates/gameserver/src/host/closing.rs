//! The end of a world: players are sent to its next process, scripts save what
//! they have to, and what is left is stored.

use std::time::{Duration, Instant};

use frolic_protocol::ServerMessage;

use super::{Counted, Host};
use crate::connection::Connection;
use crate::metrics::KickCause;
use crate::recording;

/// How long clients have to read why the world stops.
const FAREWELL: Duration = Duration::from_millis(500);

/// A world that is about to end.
pub(super) struct Closing {
    /// Why, for players.
    pub reason: String,
    began: Instant,
}

impl Host {
    /// Begins to close the world: notifies and disconnects all players, and runs
    /// `PlayerRemoving` and `World.OnClose` in scripts. The loop continues until
    /// [`Host::has_closed`].
    ///
    /// Clients go first: what a player did after `PlayerRemoving` saved their
    /// progress would be lost. Messages that were not handled are sent again to the
    /// next process, and what scripts send now waits for them there.
    pub(super) fn begin_close(&mut self, reason: String) {
        if self.closing.is_some() {
            return;
        }
        let began = Instant::now();
        for mut session in self.sessions.take_all() {
            // Their places are persisted: a player who joins again continues where
            // they were, on the next server.
            session.send(&ServerMessage::Error {
                code: "restarting".to_owned(),
                message: reason.clone(),
            });
            session.kick(KickCause::Stopped, &reason);
            session.flush(began, &self.metrics);
            if let Connection::WebSocket(connection) = session.connection {
                self.sockets.part(connection, session.permit, began);
            }
        }
        self.world.close();
        self.closing = Some(Closing { reason, began });
    }

    /// Whether closing handlers have finished and all their store requests are
    /// answered, or the time for it is up.
    pub(super) fn has_closed(&mut self) -> bool {
        let Some(closing) = &self.closing else {
            return false;
        };
        let store = &self.settings.store;
        if self.world.has_closed() && store.has_answered(store.asked()) {
            return true;
        }
        let limit_s = self.settings.close_limit_s;
        let is_late = closing.began.elapsed() >= Duration::from_secs(limit_s.into());
        if is_late {
            self.world.end_close(limit_s);
        }
        is_late
    }

    /// The world has closed: hands what is left to storage, and gives clients a
    /// moment to read the last message.
    pub(super) fn stop(mut self, reason: String) -> String {
        // What handlers did in the last moment.
        self.deliver_outbox();
        self.write_logs(Instant::now());
        recording::finish(&mut self.settings.recording, &mut self.world);
        let players = self.checkpoints(Counted::Now, |_| true);
        self.settings.persistence.finish(&mut self.world, players);
        let began = Instant::now();
        while self.sockets.tend_farewells(Instant::now(), &self.metrics) > 0
            && began.elapsed() < FAREWELL
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        reason
    }
}
