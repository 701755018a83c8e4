//! Snapshots for JSON clients.

use serde::Serialize;
use serde_json::{Value as Json, json};

use super::projectile::JsonProjectile;
use crate::avatar::AvatarLooks;
use crate::details::{Details, Looks};
use crate::entity::{Difference, EntityKind, EntityState, differences, flags};
use crate::message::{PROTOCOL_VERSION, PlayerInfo};
use crate::terrain::ChunkVersion;
use crate::value::Value;

/// One entity of `movement.entities`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
pub struct JsonEntity {
    /// Its network id.
    pub id: u32,
    /// `character`, `npc` or `entity`.
    pub kind: &'static str,
    /// The prefab it was made from.
    pub prefab: Option<String>,
    /// Position in metres; of a character, its feet.
    pub p: [f32; 3],
    /// Rotation as a quaternion x, y, z, w.
    pub q: [f32; 4],
    /// Velocity in metres per second.
    pub v: [f32; 3],
    /// Whether a character stands on something.
    pub grounded: bool,
    /// All attributes of the entity. Present when they or one of the three below
    /// changed, which then are as given here.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional, type = "Record<string, unknown>"))]
    pub attributes: Option<Json>,
    /// `#rrggbb`, where a script changed it from its definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub color: Option<String>,
    /// 0 (invisible) to 1, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub opacity: Option<f32>,
    /// Factors along its own axes, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub scale: Option<[f32; 3]>,
}

/// One entity of `build.structures`: a persistent structure.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
#[serde(rename_all = "camelCase")]
pub struct JsonStructure {
    /// Its network id, as in `movement.entities`.
    pub id: u32,
    /// Its persistent number within the world.
    pub number: u64,
    /// The prefab it was made from.
    pub prefab: String,
    /// Persistent id of the player it belongs to.
    pub owner: Option<String>,
}

/// The header of a JSON snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonHeader {
    /// The tick whose end it shows.
    pub tick: u32,
    /// Version of the scripts that made this state.
    pub scripts: u32,
    /// The acknowledged tick it is relative to; none when it is a full snapshot.
    pub baseline: Option<u32>,
    /// The last input of this client that the simulation used.
    pub ack_seq: u32,
}

/// The source of a snapshot for one JSON client.
pub struct SnapshotView<'a> {
    /// Tick, baseline and acknowledged input.
    pub header: JsonHeader,
    /// The state that the client has; empty without a baseline.
    pub baseline: &'a [EntityState],
    /// The state that it should have.
    pub current: &'a [EntityState],
    /// Ids to skip now, in order: they stay as in the baseline.
    pub left_out: &'a [u32],
    /// Players to send: all of them in a full snapshot, else those that changed.
    pub players: &'a [PlayerInfo],
    /// Shots in flight near the client.
    pub projectiles: &'a [JsonProjectile],
    /// Details of an entity that differ from its definition.
    pub details_of: &'a dyn Fn(u32) -> Option<Details>,
    /// Names the prefab of an entity.
    pub prefab_of: &'a dyn Fn(&EntityState) -> Option<String>,
    /// Which structure an entity is, if it is one.
    pub structure_of: &'a dyn Fn(u32) -> Option<JsonStructure>,
    /// Ticks per second, for the speed of what follows a path.
    pub tick_hz: u32,
    /// Chunks of the terrain to send: all changed ones in a full snapshot, else
    /// those that changed since.
    pub voxel: &'a [ChunkVersion],
}

/// The text of a snapshot.
pub fn snapshot(view: &SnapshotView) -> String {
    let mut entities = Vec::new();
    let mut removed = Vec::new();
    let mut structures = Vec::new();
    // A path gives all future positions, so its state does not change on the way; a
    // JSON client gets the positions instead.
    let on_the_way = |state: &EntityState| {
        state.is_on_the_way(view.header.tick) && view.left_out.binary_search(&state.id).is_err()
    };
    for difference in differences(view.baseline, view.current) {
        match difference {
            Difference::Removed(id) => removed.push(id),
            Difference::Created(state) | Difference::Changed(_, state)
                if state.has(flags::DESTROYED) =>
            {
                removed.push(state.id);
            }
            Difference::Created(state) => {
                structures.extend((view.structure_of)(state.id));
                entities.push(entity(None, state, view));
            }
            Difference::Changed(before, state) => {
                structures.extend((view.structure_of)(state.id));
                entities.push(entity(Some(before), state, view));
            }
        }
    }
    // These are in order of ids.
    let changed = entities.len();
    for state in view.current.iter().filter(|state| on_the_way(state)) {
        let found =
            entities[..changed].binary_search_by_key(&state.id, |entity: &JsonEntity| entity.id);
        if found.is_err() {
            entities.push(entity(Some(state), state, view));
        }
    }
    let npcs: Vec<Json> = entities
        .iter()
        .filter_map(|entity| npc(entity.id, view))
        .collect();
    let mut features = serde_json::Map::new();
    if !view.players.is_empty() || view.header.baseline.is_none() {
        let players: Vec<Json> = view
            .players
            .iter()
            .map(|player| {
                let mut entry = json!({
                    "id": player.id, "number": player.number, "entityId": player.entity_id,
                    "name": player.name, "online": player.online, "team": player.team, "stats": player.stats,
                });
                if player.left {
                    entry["left"] = json!(true);
                }
                // Most players have the default, and full snapshots repeat it.
                if player.looks != AvatarLooks::default() {
                    entry["looks"] = json!(player.looks);
                }
                entry
            })
            .collect();
        features.insert("presence".into(), json!({ "players": players }));
    }
    features.insert(
        "movement".into(),
        json!({ "entities": entities, "removed": removed }),
    );
    // Removed ones are in `movement.removed`.
    if !structures.is_empty() {
        features.insert("build".into(), json!({ "structures": structures }));
    } else if view.header.baseline.is_none() {
        features.insert("build".into(), json!({}));
    }
    if !view.projectiles.is_empty() {
        let flying = json!({ "flying": view.projectiles });
        features.insert("projectile".into(), flying);
    }
    if !npcs.is_empty() || view.header.baseline.is_none() {
        features.insert("npc".into(), json!({ "npcs": npcs }));
    }
    let mode = if view.header.baseline.is_some() {
        "delta"
    } else {
        // A client may look for shots in a full snapshot: it finds that there are
        // none.
        features.entry("projectile").or_insert(json!({}));
        "full"
    };
    if !view.voxel.is_empty() || view.header.baseline.is_none() {
        let versions: Vec<Json> = view.voxel.iter().map(super::event::chunk_version).collect();
        features.insert("voxel".into(), json!({ "versions": versions }));
    }
    json!({
        "v": PROTOCOL_VERSION,
        "kind": "snapshot",
        "tick": view.header.tick,
        "mode": mode,
        "baseline": view.header.baseline,
        "ackSeq": view.header.ack_seq,
        "scripts": view.header.scripts,
        "features": features,
    })
    .to_string()
}

/// The mood of a replicated NPC, where it changed.
fn npc(id: u32, view: &SnapshotView) -> Option<Json> {
    let find = |states: &[EntityState]| {
        let at = states.binary_search_by_key(&id, |state| state.id).ok()?;
        states.get(at).map(|state| state.mood)
    };
    let mood = find(view.current)?;
    let state = mood.state()?;
    let is_new = view.header.baseline.is_none() || find(view.baseline) != Some(mood);
    is_new.then(|| json!({ "id": id, "state": state, "suspicion": mood.suspicion() }))
}

/// Whether a snapshot includes the details of an entity, of which the client has
/// `before`: where they differ from those, or from the definition.
pub fn sends_details(before: Option<&EntityState>, state: &EntityState) -> bool {
    // A client that was notified of the removal has discarded the rest.
    let known = before.filter(|before| !before.has(flags::DESTROYED));
    known.map_or(0, |before| before.details) != state.details
}

fn entity(before: Option<&EntityState>, state: &EntityState, view: &SnapshotView) -> JsonEntity {
    let yaw = frolic_motion::Angle(state.look[0]).radians() * 0.5;
    let q = match state.kind {
        EntityKind::Character => [0.0, yaw.sin(), 0.0, yaw.cos()],
        EntityKind::Thing => state.turn().to_array(),
    };
    let tick = view.header.tick;
    let (place, speed) = match &state.motion {
        Some(motion) => (
            motion.position_at(tick),
            motion.velocity_at(tick, view.tick_hz),
        ),
        None => (state.place(), state.speed()),
    };
    let has_details = sends_details(before, state);
    let details = has_details.then(|| (view.details_of)(state.id)).flatten();
    let looks = details
        .as_ref()
        .map_or_else(Looks::default, |details| details.looks);
    let hex = |[red, green, blue]: [u8; 3]| format!("#{red:02x}{green:02x}{blue:02x}");
    JsonEntity {
        id: state.id,
        kind: match state.kind {
            EntityKind::Character if state.mood.state().is_some() => "npc",
            EntityKind::Character => "character",
            EntityKind::Thing => "entity",
        },
        prefab: (view.prefab_of)(state),
        p: place.to_array(),
        q,
        v: speed.to_array(),
        grounded: state.has(flags::GROUNDED),
        attributes: details.map(|details| Value::Map(details.attributes).to_json()),
        color: looks.color.map(hex),
        opacity: looks.opacity,
        scale: looks.scale,
    }
}
