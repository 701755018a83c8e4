//! Terrain for clients: notifications of changes, and the chunks that they lack.

use frolic_protocol::ServerMessage;
use frolic_protocol::packet;
use frolic_protocol::terrain::TerraformApplied;
use frolic_world::World;

use super::message::Outcome;
use crate::session::Session;
use crate::sessions::Sessions;

/// CHUNK_REQUEST: the chunk is queued.
pub(super) fn request_chunk(world: &World, session: &mut Session, chunk: [i32; 3]) -> Outcome {
    match world.with_terrain(|terrain| terrain.grid().chunk_index(chunk).is_some()) {
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
    let player = session.player.as_mut();
    if let Some(player) = &player
        && !player.terrain.may_ask(world, chunk)
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
pub(super) fn send_change(world: &World, sessions: &mut Sessions, applied: TerraformApplied) {
    let message = ServerMessage::TerraformApplied(applied);
    // Encoded once for all binary clients.
    let packet = packet::single(&message);
    let ServerMessage::TerraformApplied(applied) = &message else {
        return;
    };
    for session in sessions.iter_mut() {
        // Its first snapshot has the versions.
        if session.awaits_snapshot() {
            continue;
        }
        let Some(player) = &mut session.player else {
            continue;
        };
        if player.terrain.receives(world, &applied.chunks) {
            session.send_packet_or(&packet, &message);
        }
    }
}

/// Sends chunks to clients that lack them, as many as each may get now.
pub(super) fn send_chunks(world: &mut World, sessions: &mut Sessions) {
    if world.with_terrain(|_| ()).is_none() {
        return;
    }
    for session in sessions.iter_mut() {
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
