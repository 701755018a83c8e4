//! Events as JSON for the page.

use frolic_client::ClientEvent;
use frolic_protocol::Value;
use serde_json::{Value as Json, json};

/// The JSON form of an event; `type` names its kind.
pub(crate) fn to_json(event: &ClientEvent) -> Json {
    match event {
        ClientEvent::Welcome(welcome) => json!({
            "type": "welcome",
            "tick": welcome.tick,
            "entityId": welcome.entity_id,
            "playerId": welcome.player_id,
            "playerNumber": welcome.player_number,
            "worldId": welcome.world_id,
            "roomCode": welcome.room_code,
            "tickHz": welcome.tick_hz,
            "snapshotHz": welcome.snapshot_hz,
            "resumeToken": welcome.resume_token,
            "revision": welcome.revision,
        }),
        ClientEvent::Scene => json!({ "type": "scene" }),
        ClientEvent::Definition { index, components } => json!({
            "type": "definition",
            "index": index,
            "components": serde_json::from_str::<Json>(components).unwrap_or(Json::Null),
        }),
        ClientEvent::Details { entity, details } => json!({
            "type": "details",
            "entity": entity,
            "attributes": Value::Map(details.attributes.clone()).to_json(),
            "looks": details.looks,
        }),
        ClientEvent::Players(players) => json!({ "type": "players", "players": players }),
        ClientEvent::ScriptManifest(manifest) => {
            json!({ "type": "scriptManifest", "manifest": manifest })
        }
        ClientEvent::ScriptList => json!({ "type": "scriptList" }),
        ClientEvent::ScriptsReload { changed, removed } => {
            json!({ "type": "scriptsReload", "changed": changed, "removed": removed })
        }
        ClientEvent::ScriptsStarted => json!({ "type": "scriptsStarted" }),
        ClientEvent::ScriptVerified { path, hash } => {
            json!({ "type": "scriptVerified", "path": path, "hash": hash })
        }
        ClientEvent::ScriptRun { path } => json!({ "type": "scriptRun", "path": path }),
        ClientEvent::Remote { name, args } => {
            json!({ "type": "event", "name": name, "args": args })
        }
        ClientEvent::InvokeResult { id, result } => match result {
            Ok(values) => {
                json!({ "type": "invokeResult", "id": id, "ok": true, "values": values })
            }
            Err(error) => json!({ "type": "invokeResult", "id": id, "ok": false, "error": error }),
        },
        ClientEvent::Figures(figures) => json!({ "type": "figures", "figures": figures }),
        ClientEvent::Cast(cast) => json!({ "type": "cast", "cast": cast }),
        ClientEvent::Terrain { min, max, .. } => {
            json!({ "type": "terrain", "min": min, "max": max })
        }
        ClientEvent::Chat {
            from,
            text,
            player_id,
        } => {
            json!({ "type": "chat", "from": from, "text": text, "playerId": player_id })
        }
        ClientEvent::Weapon(weapon) => json!({
            "type": "weapon",
            "index": weapon.index,
            "name": weapon.name,
            "color": weapon.color,
            "look": weapon.look,
            "radius": weapon.flight.radius,
            "sound": weapon.sound,
        }),
        ClientEvent::Armed { player, weapon } => {
            json!({ "type": "armed", "player": player, "weapon": weapon })
        }
        ClientEvent::Vitals(vitals) => json!({
            "type": "vitals",
            "health": vitals.health,
            "maxHealth": vitals.health_max,
            "alive": vitals.alive,
        }),
        ClientEvent::Shot {
            weapon,
            own,
            shooter,
            position,
            velocity,
        } => json!({
            "type": "shot",
            "weapon": weapon,
            "own": own,
            "shooter": shooter,
            "position": position.to_array(),
            "velocity": velocity.to_array(),
        }),
        ClientEvent::Impact {
            weapon,
            own,
            target,
            point,
            normal,
        } => json!({
            "type": "impact",
            "weapon": weapon,
            "own": own,
            "target": target,
            "point": point.to_array(),
            "normal": normal.to_array(),
        }),
        ClientEvent::Npc(npc) => json!({
            "type": "npc", "entity": npc.entity, "before": npc.before, "state": npc.state,
            "target": npc.target, "suspicion": npc.suspicion,
        }),
        ClientEvent::Error { code, message } => {
            json!({ "type": "error", "code": code, "message": message })
        }
        ClientEvent::Kick { reason } => json!({ "type": "kick", "reason": reason }),
    }
}
