//! The scene for clients that request it: JSON clients. Others get it with their
//! welcome.

use super::Host;
use super::message::Outcome;
use crate::incoming::{ConnectionId, Encoding};
use crate::session::{AskedScene, Session};

/// A connection may ask again after so many seconds …
const AGAIN_S: u64 = 10;
/// … and after the time the scene takes at this rate: no command may make a server
/// send much for little.
const BYTES_PER_S: u64 = 64 * 1024;

impl Host {
    /// Sends the scene to a client, unless it was sent a moment ago.
    pub(super) fn ask_scene(&mut self, connection_id: ConnectionId) -> Outcome {
        let (tick, tick_hz) = (self.world.tick(), self.world.tick_hz());
        let bytes: usize = self.settings.scene_texts.iter().map(String::len).sum();
        let patience_s = again_after_s(bytes as u64);
        let Some(session) = self.sessions.get_mut(connection_id) else {
            return Ok(());
        };
        let is_clogged = session.is_clogged();
        let encoding = session.encoding;
        let Some(player) = &mut session.player else {
            return Ok(());
        };
        let waited = |asked: AskedScene| u64::from(tick.saturating_sub(asked.tick));
        if self.scene_readers.contains(&connection_id)
            || player
                .scene
                .is_some_and(|asked| waited(asked) < patience_s * u64::from(tick_hz))
        {
            let message =
                format!("you have asked for the scene already; ask again after {patience_s} s");
            return Err(("too_fast", message));
        }
        if is_clogged {
            let advice = "too much waits for you already; read it and ask again".into();
            return Err(("slow_reader", advice));
        }
        player.scene = Some(AskedScene { tick, sent: 0 });
        match encoding {
            Encoding::Binary => session.send_packet(&self.scene_packet),
            Encoding::Json => self.scene_readers.push(connection_id),
        }
        Ok(())
    }

    /// Sends the next piece to each client that waits for one and has read the
    /// last, so that no copies of the whole accumulate.
    pub(super) fn send_scene(&mut self) {
        let (texts, sessions) = (&self.settings.scene_texts, &mut self.sessions);
        self.scene_readers.retain(|connection_id| {
            let session = sessions.get_mut(*connection_id);
            session.is_some_and(|session| send_next(session, texts))
        });
    }
}

/// Whether there is more to send after that.
fn send_next(session: &mut Session, texts: &[String]) -> bool {
    if session.is_over() || session.kicked().is_some() {
        return false;
    }
    // The protocol requires the full snapshot first.
    if session.awaits_snapshot() || session.is_behind() {
        return true;
    }
    let Some(asked) = session
        .player
        .as_mut()
        .and_then(|player| player.scene.as_mut())
    else {
        return false;
    };
    let next = asked.sent;
    asked.sent += 1;
    if let Some(text) = texts.get(next) {
        session.send_text(text);
    }
    next + 1 < texts.len()
}

/// The interval between two requests of one connection.
fn again_after_s(scene_bytes: u64) -> u64 {
    scene_bytes.div_ceil(BYTES_PER_S).max(AGAIN_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_scene_can_be_requested_less_often() {
        assert_eq!(again_after_s(0), 10);
        assert_eq!(again_after_s(600 * 1024), 10);
        assert_eq!(again_after_s(64 * 1024 * 1024), 1024);
    }
}
