//! Events from the client core to its host.

use frolic_protocol::details::Details;
use frolic_protocol::message::TickFigures;
use frolic_protocol::npc::NpcEvent;
use frolic_protocol::projectile::{Vitals, Weapon};
use frolic_protocol::script::ScriptManifest;
use frolic_protocol::spell::CastEvent;
use frolic_protocol::{Args, PlayerInfo, Welcome};
use frolic_sim::Vec3;

/// An event that the host shows, runs or stores.
#[derive(Clone, Debug)]
pub enum ClientEvent {
    /// The player was admitted.
    Welcome(Box<Welcome>),
    /// The scene arrived and was loaded.
    Scene,
    /// Attributes and looks of an entity changed; these are all of them. Those of a
    /// part are in the part as well.
    Details {
        /// The entity.
        entity: u32,
        /// The current details.
        details: Details,
    },
    /// Players joined, changed or left; [`crate::Client::players`] returns all.
    Players {
        /// The state of each of them.
        changed: Vec<PlayerInfo>,
        /// Numbers of those who joined.
        joined: Vec<u32>,
        /// Numbers of those who left the world for good.
        left: Vec<u32>,
    },
    /// The current script manifest, for the first time or after a reload. Offer the
    /// list (`@manifest`) when it is cached by its hash, else fetch or request it.
    ScriptManifest(ScriptManifest),
    /// The list has arrived: offer the scripts that are cached by hash, then fetch
    /// or request what `missing_scripts` returns.
    ScriptList,
    /// A script arrived and matches its hash; a host with a cache stores it.
    ScriptVerified {
        /// Its path.
        path: String,
        /// `sha256:` and its hash.
        hash: String,
    },
    /// Run this script now; its bytecode is available.
    ScriptRun {
        /// Its path.
        path: String,
    },
    /// Scripts changed while the world runs: replace these, and stop the removed
    /// ones.
    ScriptsReload {
        /// Paths of new and changed scripts, in the order to start them.
        changed: Vec<String>,
        /// Paths of removed scripts.
        removed: Vec<String>,
    },
    /// All scripts of the current manifest were started.
    ScriptsStarted,
    /// The server's scripts fired an event at this client.
    Remote {
        /// The event's name.
        name: String,
        /// Its arguments.
        args: Args,
    },
    /// The answer to an invoke.
    InvokeResult {
        /// From the invoke.
        id: u32,
        /// The result.
        result: Result<Args, String>,
    },
    /// A player cast a spell: run its code with this seed.
    Cast(Box<CastEvent>),
    /// Terrain changed within a box. A host with its own copy, to draw it
    /// elsewhere, applies the same messages to it.
    Terrain {
        /// Its lowest corner, in metres.
        min: [f32; 3],
        /// Its highest corner.
        max: [f32; 3],
        /// The message that changed it, as a packet.
        packet: Vec<u8>,
    },
    /// A chat message.
    Chat {
        /// The sender's name; empty for the game itself.
        from: String,
        /// The text.
        text: String,
        /// The sender's persistent id; empty for the game itself.
        player_id: String,
    },
    /// An NPC nearby has changed its behaviour.
    Npc(NpcEvent),
    /// Which script log lines to send with [`crate::Client::send_log`]: errors
    /// always.
    LogsWanted {
        /// Also the output of `print` and `warn`.
        prints: bool,
    },
    /// The server's tick timings; see [`crate::Client::ask_figures`].
    Figures(TickFigures),
    /// Whether persistence is unusually slow.
    Saving {
        /// Until it is false again.
        delayed: bool,
    },
    /// The appearance of a weapon's shots; also when it changed.
    Weapon(Weapon),
    /// The weapon of a player changed.
    Armed {
        /// Their number.
        player: u32,
        /// The weapon's number; none: nothing.
        weapon: Option<u16>,
    },
    /// The vitals of the own character.
    Vitals(Vitals),
    /// The player was placed and faces this way, in radians.
    Facing {
        /// As in an input.
        yaw: f32,
    },
    /// A shot begins to be shown.
    Shot {
        /// Number of its weapon.
        weapon: u16,
        /// Whether this player fired it.
        own: bool,
        /// The shooter's character, or 0.
        shooter: u32,
        /// Where.
        position: Vec3,
        /// Metres per second.
        velocity: Vec3,
    },
    /// A shot hit something.
    Impact {
        /// Number of its weapon.
        weapon: u16,
        /// Whether this player fired it.
        own: bool,
        /// The hit entity according to the server; 0 while it is unknown.
        target: u32,
        /// Where.
        point: Vec3,
        /// The surface normal there.
        normal: Vec3,
    },
    /// The server refused something, or sent something unusable.
    Error {
        /// A machine-readable code.
        code: String,
        /// A human-readable message.
        message: String,
    },
    /// The server closes the connection.
    Kick {
        /// A human-readable reason.
        reason: String,
    },
}
