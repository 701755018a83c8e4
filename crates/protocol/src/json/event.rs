//! Messages to a JSON client, snapshots aside.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value as Json, json};

use super::projectile;
use crate::message::{PROTOCOL_VERSION, ServerMessage};
use crate::script::ScriptManifest;
use crate::terrain::{ChunkVersion, TerraformApplied, TerrainShape};
use crate::value::{Args, Value};

/// Acknowledges a command.
pub fn ack(seq: u32) -> String {
    json!({ "v": PROTOCOL_VERSION, "kind": "ack", "seq": seq }).to_string()
}

/// Refuses a command, or reports another problem when `seq` is none.
pub fn error(seq: Option<u32>, code: &str, message: &str) -> String {
    json!({
        "v": PROTOCOL_VERSION, "kind": "error", "seq": seq, "code": code, "message": message,
    })
    .to_string()
}

/// The text form of a message; none for those that a JSON client gets in
/// another way (snapshots; presence, which is part of them; and the scene,
/// see [`super::scene()`]).
pub fn encode(message: &ServerMessage) -> Option<String> {
    Some(with_version(body(message)?).to_string())
}

/// The same with a value that the client gets back: the `t` of its ping.
pub fn encode_echoing(message: &ServerMessage, echo: &Json) -> Option<String> {
    let mut body = with_version(body(message)?);
    echo_in(&mut body, message, echo);
    Some(body.to_string())
}

/// The text form of a reliable message, with its number, and with a value that the
/// client gets back: the `id` of its call.
pub fn encode_counted(message: &ServerMessage, number: u32, echo: Option<&Json>) -> Option<String> {
    let mut body = with_version(body(message)?);
    body["n"] = json!(number);
    if let Some(echo) = echo {
        echo_in(&mut body, message, echo);
    }
    Some(body.to_string())
}

fn echo_in(body: &mut Json, message: &ServerMessage, echo: &Json) {
    match message {
        ServerMessage::Pong { .. } => body["t"] = echo.clone(),
        ServerMessage::InvokeResult { .. } => body["id"] = echo.clone(),
        _ => {}
    }
}

fn body(message: &ServerMessage) -> Option<Json> {
    let body = match message {
        ServerMessage::Snapshot(_)
        | ServerMessage::Fragment(_)
        | ServerMessage::Presence(_)
        | ServerMessage::Scene { .. } => return None,
        ServerMessage::Welcome(welcome) => json!({
            "kind": "welcome",
            "tick": welcome.tick,
            "entityId": welcome.entity_id,
            "playerId": welcome.player_id,
            "playerNumber": welcome.player_number,
            "worldId": welcome.world_id,
            "roomCode": welcome.room_code,
            "tickHz": welcome.tick_hz,
            "snapshotHz": welcome.snapshot_hz,
            "resumeToken": welcome.resume_token,
            "serverTime": welcome.server_time,
            "revision": welcome.revision,
            "resumption": welcome.resumption,
            "received": welcome.received,
            "sent": welcome.sent,
        }),
        ServerMessage::Definition { index, components } => event(
            "definition",
            json!({
                "index": index,
                "components": serde_json::from_str::<Json>(components).unwrap_or(Json::Null),
            }),
        ),
        ServerMessage::Pong {
            t,
            server_time,
            tick,
            received,
        } => json!({
            "kind": "pong", "t": t, "serverTime": server_time, "tick": tick, "received": received,
        }),
        ServerMessage::Error { code, message } => json!({
            "kind": "error", "seq": null, "code": code, "message": message,
        }),
        ServerMessage::Kick { reason } => json!({
            "kind": "error", "seq": null, "code": "kick", "message": reason,
        }),
        ServerMessage::Event { name, args } | ServerMessage::UnreliableEvent { name, args } => {
            event("network", json!({ "name": name, "args": args }))
        }
        ServerMessage::InvokeResult { id, result } => event(
            "network.result",
            match result {
                Ok(values) => json!({ "id": id, "ok": true, "value": one_or_list(values) }),
                Err(error) => json!({ "id": id, "ok": false, "error": error }),
            },
        ),
        ServerMessage::Chat {
            from,
            text,
            player_id,
        } => event(
            "chat",
            json!({ "from": from, "text": text, "playerId": player_id }),
        ),
        ServerMessage::ScriptManifest(manifest) => event(
            "scripts",
            json!({ "action": "manifest", "manifest": manifest_body(manifest) }),
        ),
        ServerMessage::ScriptChunk(chunk) => event(
            "scripts",
            json!({
                "action": "chunk", "path": chunk.path, "index": chunk.index,
                "total": chunk.total, "data": BASE64.encode(&chunk.data),
            }),
        ),
        ServerMessage::ExecuteScript { path, run_context } => event(
            "scripts",
            json!({ "action": "execute", "path": path, "runContext": run_context }),
        ),
        ServerMessage::Cast(cast) => {
            let mut body = json!(cast);
            body["action"] = json!("cast");
            event("spell", body)
        }
        ServerMessage::Figures(figures) => {
            let mut body = json!(figures);
            body["action"] = json!("figures");
            event("session", body)
        }
        ServerMessage::Saving { delayed } => {
            event("session", json!({ "action": "saving", "delayed": delayed }))
        }
        ServerMessage::ResumeToken { token } => event(
            "session",
            json!({ "action": "token", "resumeToken": token }),
        ),
        ServerMessage::Weapon(weapon) => projectile::weapon(weapon),
        ServerMessage::Armed { player, weapon } => event(
            "projectile",
            json!({ "action": "armed", "player": player, "weapon": weapon }),
        ),
        ServerMessage::ProjectileLaunch(launches) => projectile::launches(launches),
        ServerMessage::ProjectileHit(hits) => projectile::hits(hits),
        ServerMessage::Vitals(vitals) => event(
            "presence",
            json!({
                "action": "vitals", "health": vitals.health,
                "maxHealth": vitals.health_max, "alive": vitals.alive,
            }),
        ),
        ServerMessage::Facing { yaw } => event(
            "presence",
            json!({ "action": "facing", "yaw": yaw.radians() }),
        ),
        ServerMessage::Npc(npc) => event(
            "npc",
            json!({
                "action": "state", "id": npc.entity, "before": npc.before, "state": npc.state,
                "target": npc.target, "suspicion": npc.suspicion, "p": npc.position,
            }),
        ),
        ServerMessage::TerraformApplied(applied) => event("terrain", applied_body(applied)),
        ServerMessage::ChunkData(chunk) => {
            let [x, y, z] = chunk.at.chunk;
            let data = BASE64.encode(&chunk.zstd);
            event(
                "terrain",
                json!({
                    "action": "chunk", "x": x, "y": y, "z": z,
                    "version": chunk.at.version, "data": data,
                }),
            )
        }
        ServerMessage::Mesh { asset, zstd } => event(
            "mesh",
            json!({ "asset": asset, "zstd": BASE64.encode(zstd) }),
        ),
        ServerMessage::LogsWanted { prints } => {
            event("scripts", json!({ "action": "logs", "prints": prints }))
        }
        ServerMessage::Character(params) => event(
            "character",
            json!({ "gravity": params.gravity, "walkSpeed": params.walk_speed }),
        ),
    };
    Some(body)
}

/// The operation, with the field names of the command that requests one.
fn applied_body(applied: &TerraformApplied) -> Json {
    let op = &applied.op;
    let chunks: Vec<Json> = applied.chunks.iter().map(chunk_version).collect();
    let mut body = json!({
        "action": "applied", "seq": applied.seq, "op": op.action, "center": op.center,
        "material": op.material, "chunks": chunks,
    });
    match op.shape {
        TerrainShape::Sphere { radius } => body["radius"] = json!(radius),
        TerrainShape::Box { size } => body["size"] = json!(size),
    }
    body
}

/// A chunk and its version, as sent to clients.
pub(super) fn chunk_version(at: &ChunkVersion) -> Json {
    let [x, y, z] = at.chunk;
    json!({ "x": x, "y": y, "z": z, "version": at.version })
}

/// The manifest and the list in one object.
fn manifest_body(manifest: &ScriptManifest) -> Json {
    let list = manifest.list.as_ref();
    json!({
        "version": manifest.version,
        "server_tick": manifest.server_tick,
        "revision": manifest.revision,
        "hash": manifest.hash,
        "size_bytes": manifest.size_bytes,
        "url": manifest.url,
        "signature": manifest.signature,
        "game_id": list.map_or("", |list| &list.game_id),
        "scripts": list.map_or(&[][..], |list| &list.scripts),
        "bundles": list.map_or(&[][..], |list| &list.bundles),
    })
}

fn with_version(mut body: Json) -> Json {
    body["v"] = json!(PROTOCOL_VERSION);
    body
}

pub(super) fn event(feature: &str, mut body: Json) -> Json {
    body["kind"] = json!("event");
    body["feature"] = json!(feature);
    body
}

/// A function that returned one value gives that value, not a list of one.
fn one_or_list(values: &Args) -> Json {
    match values.0.as_slice() {
        [] => Json::Null,
        [one] => one.to_json(),
        many => Json::Array(many.iter().map(Value::to_json).collect()),
    }
}
