//! The scene for clients that request it: JSON clients. Others get it with their
//! welcome.

use std::collections::BTreeSet;

use bytes::Bytes;
use frolic_protocol::ServerMessage;
use frolic_protocol::packet;

use super::message::Outcome;
use crate::connection::ConnectionId;
use crate::decoder::Encoding;
use crate::session::{AskedScene, Session};
use crate::sessions::Sessions;

/// A connection may ask again after this many seconds …
const AGAIN_S: u64 = 10;
/// … and after the time the scene takes at this rate: no command may make a server
/// send much for little.
const BYTES_PER_S: u64 = 64 * 1024;

/// The scene in the forms that clients get it in, encoded once for all.
pub struct EncodedScene {
    /// SHA-256 of the scene's text.
    pub hash: String,
    /// The compressed text.
    pub zstd: Vec<u8>,
    /// Compressed collision meshes of assets, by path: clients need them before the
    /// scene.
    pub meshes: Vec<(String, Vec<u8>)>,
    /// Both as JSON.
    pub texts: Vec<String>,
}

/// Sends the scene.
pub(super) struct SceneServer {
    /// The meshes and the scene, for binary clients.
    packet: Bytes,
    texts: Vec<String>,
    /// JSON clients that have not received all of it.
    readers: BTreeSet<ConnectionId>,
}

impl SceneServer {
    /// A server of this scene.
    pub fn new(scene: EncodedScene) -> Self {
        let mut bytes = Vec::new();
        for (asset, zstd) in scene.meshes {
            packet::write(&mut bytes, &ServerMessage::Mesh { asset, zstd });
        }
        let (hash, zstd) = (scene.hash, scene.zstd);
        packet::write(&mut bytes, &ServerMessage::Scene { hash, zstd });
        Self {
            packet: bytes.into(),
            texts: scene.texts,
            readers: BTreeSet::new(),
        }
    }

    /// The whole scene for a binary client.
    pub fn packet(&self) -> &[u8] {
        &self.packet
    }

    /// Sends the scene to a client that asks for it, unless it did a moment ago.
    pub fn request(
        &mut self,
        connection_id: ConnectionId,
        session: &mut Session,
        (tick, tick_hz): (u32, u32),
    ) -> Outcome {
        let bytes: usize = self.texts.iter().map(String::len).sum();
        let patience_s = again_after_s(bytes as u64);
        let is_clogged = session.is_clogged();
        let encoding = session.encoding;
        let Some(player) = &mut session.player else {
            return Ok(());
        };
        let waited = |asked: AskedScene| u64::from(tick.saturating_sub(asked.tick));
        if self.readers.contains(&connection_id)
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
            Encoding::Binary => session.send_packet(&self.packet),
            Encoding::Json => {
                self.readers.insert(connection_id);
            }
        }
        Ok(())
    }

    /// Sends the next piece to each client that waits for one and has read the
    /// last, so that no copies of the whole accumulate.
    pub fn send_next(&mut self, sessions: &mut Sessions) {
        let texts = &self.texts;
        self.readers.retain(|connection_id| {
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
