//! Terrain and clients: change requests, notifications of changes, and chunks to
//! send.

use frolic_protocol::ServerMessage;
use frolic_protocol::packet;
use frolic_protocol::remote_commands::OutsideReply;
use frolic_protocol::terrain::{TerraformApplied, TerrainOp};
use frolic_world::PlayerNumber;

use tokio::sync::oneshot;

use super::Host;
use super::message::Outcome;
use crate::incoming::ConnectionId;

/// A command that is done, and answered once its effect is stored.
pub(super) struct Unstored {
    op: u64,
    asked_by: AskedBy,
}

/// The receiver of the answer.
enum AskedBy {
    /// A client that numbers its commands.
    Client {
        connection_id: ConnectionId,
        seq: u32,
    },
    /// A user outside of the world, through the control plane.
    Outside(oneshot::Sender<OutsideReply>),
}

impl Unstored {
    /// For an outside user.
    pub fn outside(op: u64, answer: oneshot::Sender<OutsideReply>) -> Self {
        Self {
            op,
            asked_by: AskedBy::Outside(answer),
        }
    }
}

impl Host {
    /// TERRAFORM_REQUEST. Returns the number of the operation; none when it changed
    /// nothing.
    pub(super) fn terraform(
        &mut self,
        number: PlayerNumber,
        op: &TerrainOp,
    ) -> Result<Option<u64>, (&'static str, String)> {
        let done = self.world.terraform(number, op);
        done.map_err(|error| (error.code(), error.to_string()))
    }

    /// The same for a client that gets an answer, if it numbers its commands. None:
    /// it is answered later, because a change is stored before it is acknowledged.
    pub(super) fn terraform_and_answer(
        &mut self,
        connection_id: ConnectionId,
        seq: Option<u32>,
        number: PlayerNumber,
        op: &TerrainOp,
    ) -> Option<Outcome> {
        let done = self.terraform(number, op);
        match (done, seq) {
            (Err(refusal), _) => Some(Err(refusal)),
            (Ok(_), None) => Some(Ok(())),
            (Ok(None), Some(_)) => {
                let message = "no block is different for it: there was nothing to change";
                Some(Err(("nothing_changed", message.into())))
            }
            (Ok(Some(op)), Some(seq)) => {
                // Bounded by the operations that may wait to be stored.
                let asked_by = AskedBy::Client { connection_id, seq };
                self.unstored.push_back(Unstored { op, asked_by });
                None
            }
        }
    }

    /// Answers the commands that are stored by now.
    pub(super) fn answer_stored(&mut self) {
        let persisted_op = self.world.persisted_op();
        while let Some(done) = self.unstored.pop_front_if(|waits| waits.op <= persisted_op) {
            match done.asked_by {
                AskedBy::Client { connection_id, seq } => {
                    if let Some(session) = self.sessions.get_mut(connection_id) {
                        session.answer(Some(seq), Ok(()));
                    }
                }
                // The caller may have given up.
                AskedBy::Outside(answer) => drop(answer.send(OutsideReply::Done)),
            }
        }
    }

    /// CHUNK_REQUEST: the chunk is queued.
    pub(super) fn wish_chunk(
        &mut self,
        connection_id: ConnectionId,
        chunk: [i32; 3],
    ) -> Result<(), (&'static str, String)> {
        let inside = self
            .world
            .with_terrain(|terrain| terrain.grid().chunk_index(chunk).is_some());
        match inside {
            None => {
                let message = "this world has no terrain that can be changed or asked for";
                return Err(("no_terrain", message.into()));
            }
            Some(false) => {
                let message = "there is no such chunk in this world's terrain";
                return Err(("no_such_chunk", message.into()));
            }
            Some(true) => {}
        }
        let session = self.sessions.get_mut(connection_id);
        let player = session.and_then(|session| session.player.as_mut());
        if let Some(player) = &player
            && !player.terrain.may_ask(&self.world, chunk)
        {
            let message = "this chunk is further away than this game tells its players of";
            return Err(("too_far", message.into()));
        }
        if player.is_some_and(|player| player.terrain.wish(chunk)) {
            Ok(())
        } else {
            let message = "you wait for too many chunks already; ask again later";
            Err(("too_many", message.into()))
        }
    }

    /// Replicates a change to players who are near enough to see it.
    pub(super) fn send_terraformed(&mut self, applied: TerraformApplied) {
        let message = ServerMessage::TerraformApplied(applied);
        // Encoded once for all binary clients.
        let packet = packet::single(&message);
        let ServerMessage::TerraformApplied(applied) = &message else {
            return;
        };
        for session in self.sessions.iter_mut() {
            // Its first snapshot has the versions.
            if session.awaits_snapshot() {
                continue;
            }
            let Some(player) = &mut session.player else {
                continue;
            };
            if player.terrain.receives(&self.world, &applied.chunks) {
                session.send_packet_or(&packet, &message);
            }
        }
    }

    /// Sends chunks to clients that lack them, as many as each may get now.
    pub(super) fn send_chunks(&mut self) {
        if self.world.with_terrain(|_| ()).is_none() {
            return;
        }
        let world = &mut self.world;
        for session in self.sessions.iter_mut() {
            // Snapshots come first: a client that is behind gets nothing large.
            if session.is_behind() || session.is_over() || session.awaits_snapshot() {
                continue;
            }
            let Some(player) = &mut session.player else {
                continue;
            };
            let mut chunks = Vec::new();
            player.terrain.next(world, &mut |chunk| chunks.push(chunk));
            for chunk in chunks {
                session.send(&ServerMessage::ChunkData(chunk));
            }
        }
    }
}
