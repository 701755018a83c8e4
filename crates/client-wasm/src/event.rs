//! Events as JSON for the page. The page's types are generated from these (`cargo
//! xtask codegen`), so that the two cannot diverge.

pub(crate) mod parts;

use frolic_client::ClientEvent;
use frolic_protocol::message::TickFigures;
use frolic_protocol::npc::NpcState;
use frolic_protocol::script::ScriptManifest;
use frolic_protocol::{Args, PlayerInfo, Welcome};
use serde::Serialize;

use parts::{Cast, ShotLook};

/// Something that happened, as the core reports it to the page; `type` names its kind.
// Types of other crates are named in TypeScript as those crates export them.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
#[serde(
    tag = "type",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub(crate) enum CoreEvent {
    /// The player was admitted.
    Welcome {
        tick: u32,
        entity_id: u32,
        player_id: String,
        player_number: u32,
        world_id: String,
        room_code: String,
        tick_hz: u32,
        snapshot_hz: u32,
        resume_token: String,
        revision: String,
    },
    /// The scene arrived: its parts and its terrain can be taken.
    Scene,
    /// Players joined, changed or left: the new state of each of them, and the numbers
    /// of those who joined and left.
    Players {
        #[cfg_attr(test, ts(type = "Array<import('./PlayerInfo').PlayerInfo>"))]
        changed: Vec<PlayerInfo>,
        joined: Vec<u32>,
        left: Vec<u32>,
    },
    /// The current script manifest.
    ScriptManifest {
        #[cfg_attr(test, ts(type = "import('./ScriptManifest').ScriptManifest"))]
        manifest: ScriptManifest,
    },
    /// The list that the manifest names arrived and is verified.
    ScriptList,
    /// A script arrived and matches its hash.
    ScriptVerified { path: String, hash: String },
    /// Run this script now.
    ScriptRun { path: String },
    /// Scripts changed while the world runs.
    ScriptsReload {
        changed: Vec<String>,
        removed: Vec<String>,
    },
    /// Everything that runs at the start was started.
    ScriptsStarted,
    /// The server's scripts fired an event at this client.
    Event {
        name: String,
        #[cfg_attr(test, ts(as = "Vec<parts::WireValue>"))]
        args: Args,
    },
    /// The answer to an invoke.
    InvokeResult {
        id: u32,
        #[cfg_attr(test, ts(as = "Vec<parts::WireValue>"))]
        values: Args,
    },
    /// An invoke that failed.
    InvokeFailed { id: u32, error: String },
    /// Which script log lines to send: errors always, and with `prints` everything.
    LogsWanted { prints: bool },
    /// The server's tick timings.
    Figures {
        #[cfg_attr(test, ts(type = "import('./TickFigures').TickFigures"))]
        figures: TickFigures,
    },
    /// Whether persistence is unusually slow.
    Saving { delayed: bool },
    /// A player cast a spell: its code runs here with the same seed.
    Cast { cast: Cast },
    /// The terrain changed within a box.
    Terrain { min: [f32; 3], max: [f32; 3] },
    /// `playerId` is empty for the game itself.
    Chat {
        from: String,
        text: String,
        player_id: String,
    },
    /// How a weapon looks and sounds; also when it changed.
    Weapon {
        index: u16,
        name: String,
        color: [u8; 3],
        look: ShotLook,
        radius: f32,
        sound: String,
    },
    /// The weapon of a player changed.
    Armed { player: u32, weapon: Option<u16> },
    /// The vitals of the own character.
    Vitals {
        health: f32,
        max_health: f32,
        alive: bool,
    },
    /// The player was placed and faces this way, in radians.
    Facing { yaw: f32 },
    /// A shot begins to be shown.
    Shot {
        weapon: u16,
        own: bool,
        shooter: u32,
        position: [f32; 3],
        velocity: [f32; 3],
    },
    /// A shot hit something; target 0: the server has not sent what.
    Impact {
        weapon: u16,
        own: bool,
        target: u32,
        point: [f32; 3],
        normal: [f32; 3],
    },
    /// An NPC nearby has changed its behaviour; `target` is the character it pays
    /// attention to.
    Npc {
        entity: u32,
        #[cfg_attr(test, ts(type = "import('./NpcState').NpcState"))]
        before: NpcState,
        #[cfg_attr(test, ts(type = "import('./NpcState').NpcState"))]
        state: NpcState,
        target: Option<u32>,
        suspicion: f32,
    },
    /// The server refused something, or sent something unusable.
    Error { code: String, message: String },
    /// The server closes the connection.
    Kick { reason: String },
}

impl CoreEvent {
    /// None for an event that the page does not get.
    pub(crate) fn new(event: ClientEvent) -> Option<Self> {
        Some(match event {
            ClientEvent::Welcome(welcome) => (*welcome).into(),
            ClientEvent::Scene => Self::Scene,
            // The page reads details with queries, and draws those of parts.
            ClientEvent::Details { .. } => return None,
            ClientEvent::Players {
                changed,
                joined,
                left,
            } => Self::Players {
                changed,
                joined,
                left,
            },
            ClientEvent::ScriptManifest(manifest) => Self::ScriptManifest { manifest },
            ClientEvent::ScriptList => Self::ScriptList,
            ClientEvent::ScriptVerified { path, hash } => Self::ScriptVerified { path, hash },
            ClientEvent::ScriptRun { path } => Self::ScriptRun { path },
            ClientEvent::ScriptsReload { changed, removed } => {
                Self::ScriptsReload { changed, removed }
            }
            ClientEvent::ScriptsStarted => Self::ScriptsStarted,
            ClientEvent::Remote { name, args } => Self::Event { name, args },
            ClientEvent::InvokeResult { id, result } => match result {
                Ok(values) => Self::InvokeResult { id, values },
                Err(error) => Self::InvokeFailed { id, error },
            },
            ClientEvent::LogsWanted { prints } => Self::LogsWanted { prints },
            ClientEvent::Figures(figures) => Self::Figures { figures },
            ClientEvent::Saving { delayed } => Self::Saving { delayed },
            ClientEvent::Cast(cast) => Self::Cast {
                cast: (*cast).into(),
            },
            ClientEvent::Terrain { min, max, .. } => Self::Terrain { min, max },
            ClientEvent::Chat {
                from,
                text,
                player_id,
            } => Self::Chat {
                from,
                text,
                player_id,
            },
            ClientEvent::Weapon(weapon) => Self::Weapon {
                index: weapon.index,
                name: weapon.name,
                color: weapon.color,
                look: weapon.look.into(),
                radius: weapon.flight.radius,
                sound: weapon.sound,
            },
            ClientEvent::Armed { player, weapon } => Self::Armed { player, weapon },
            ClientEvent::Vitals(vitals) => Self::Vitals {
                health: vitals.health,
                max_health: vitals.health_max,
                alive: vitals.alive,
            },
            ClientEvent::Facing { yaw } => Self::Facing { yaw },
            ClientEvent::Shot {
                weapon,
                own,
                shooter,
                position,
                velocity,
            } => Self::Shot {
                weapon,
                own,
                shooter,
                position: position.to_array(),
                velocity: velocity.to_array(),
            },
            ClientEvent::Impact {
                weapon,
                own,
                target,
                point,
                normal,
            } => Self::Impact {
                weapon,
                own,
                target,
                point: point.to_array(),
                normal: normal.to_array(),
            },
            ClientEvent::Npc(npc) => Self::Npc {
                entity: npc.entity,
                before: npc.before,
                state: npc.state,
                target: npc.target,
                suspicion: npc.suspicion,
            },
            ClientEvent::Error { code, message } => Self::Error { code, message },
            ClientEvent::Kick { reason } => Self::Kick { reason },
        })
    }
}

impl From<Welcome> for CoreEvent {
    fn from(welcome: Welcome) -> Self {
        Self::Welcome {
            tick: welcome.tick,
            entity_id: welcome.entity_id,
            player_id: welcome.player_id,
            player_number: welcome.player_number,
            world_id: welcome.world_id,
            room_code: welcome.room_code,
            tick_hz: welcome.tick_hz,
            snapshot_hz: welcome.snapshot_hz,
            resume_token: welcome.resume_token,
            revision: welcome.revision,
        }
    }
}

#[cfg(test)]
mod tests {
    use frolic_protocol::Value;
    use serde_json::{Value as Json, json};

    use super::*;

    fn as_json(event: ClientEvent) -> Json {
        let text = crate::to_json(&CoreEvent::new(event).expect("the page gets it"));
        serde_json::from_str(&text).expect("an event is JSON")
    }

    #[test]
    fn an_event_names_its_kind_and_its_fields_as_javascript_does() {
        let chat = ClientEvent::Chat {
            from: "Ada".into(),
            text: "hi".into(),
            player_id: "user_1".into(),
        };
        assert_eq!(
            as_json(chat),
            json!({ "type": "chat", "from": "Ada", "text": "hi", "playerId": "user_1" })
        );
        assert_eq!(
            as_json(ClientEvent::ScriptsStarted),
            json!({ "type": "scriptsStarted" })
        );
    }

    #[test]
    fn values_of_scripts_keep_their_kind() {
        let place = Value::Vector([1.0, 2.0, 3.0]);
        let remote = ClientEvent::Remote {
            name: "Scored".into(),
            args: Args(vec![Value::Entity(7), place]),
        };
        assert_eq!(
            as_json(remote),
            json!({ "type": "event", "name": "Scored", "args": [{ "$e": 7 }, { "$v": [1.0, 2.0, 3.0] }] })
        );
    }

    #[test]
    fn an_invoke_is_answered_or_fails() {
        let answer = |result| as_json(ClientEvent::InvokeResult { id: 3, result });
        assert_eq!(
            answer(Ok(Args(vec![Value::Bool(true)]))),
            json!({ "type": "invokeResult", "id": 3, "values": [true] })
        );
        assert_eq!(
            answer(Err("no coins".into())),
            json!({ "type": "invokeFailed", "id": 3, "error": "no coins" })
        );
    }
}
