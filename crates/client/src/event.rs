//! What the core tells its host.

use frolic_protocol::details::Details;
use frolic_protocol::message::TickFigures;
use frolic_protocol::npc::NpcEvent;
use frolic_protocol::projectile::{Vitals, Weapon};
use frolic_protocol::script::ScriptManifest;
use frolic_protocol::spell::CastEvent;
use frolic_protocol::{Args, PlayerInfo, Welcome};
use frolic_sim::Vec3;

/// Something the host shows, runs or stores.
#[derive(Clone, Debug)]
pub enum ClientEvent {
    /// The player is in.
    Welcome(Box<Welcome>),
    /// The scene arrived and was understood.
    Scene,
    /// How entities of a definition look.
    Definition {
        /// Its number.
        index: u16,
        /// Components as JSON, in the form of scene.json.
        components: String,
    },
    /// Attributes and looks of an entity changed; these are all of them.
    Details {
        /// Which.
        entity: u32,
        /// As they are now.
        details: Details,
    },
    /// Players who came, changed or left.
    Players(Vec<PlayerInfo>),
    /// Which list of scripts is in force, for the first time or since a
    /// reload. Offer the list (`@manifest`) when it is cached by its hash,
    /// else fetch or request it.
    ScriptManifest(ScriptManifest),
    /// The list is here: offer the scripts that are cached by hash, then
    /// fetch or request what `missing_scripts` gives.
    ScriptList,
    /// A script arrived and matches its hash; a host with a cache keeps it.
    ScriptVerified {
        /// Its path.
        path: String,
        /// `sha256:` and its hash.
        hash: String,
    },
    /// Run this script now; its bytecode is there to take.
    ScriptRun {
        /// Its path.
        path: String,
    },
    /// Scripts changed while the world runs: replace these, and end those
    /// that are gone.
    ScriptsReload {
        /// Paths of new and changed scripts, in the order to start them.
        changed: Vec<String>,
        /// Paths of scripts that are gone.
        removed: Vec<String>,
    },
    /// All scripts of the manifest that is in force were told to run.
    ScriptsStarted,
    /// The server's scripts fired an event at this client.
    Remote {
        /// Which event.
        name: String,
        /// Its arguments.
        args: Args,
    },
    /// The answer to an invoke.
    InvokeResult {
        /// From the invoke.
        id: u32,
        /// What came of it.
        result: Result<Args, String>,
    },
    /// Somebody cast a spell: run its code with this seed.
    Cast(Box<CastEvent>),
    /// The ground changed within a box. Whoever keeps a copy of it, to draw
    /// it elsewhere, gives it the same messages.
    Terrain {
        /// Its lowest corner, in metres.
        min: [f32; 3],
        /// Its highest corner.
        max: [f32; 3],
        /// The message that said so, as a packet.
        packet: Vec<u8>,
    },
    /// Somebody said something.
    Chat {
        /// Who; empty for the game itself.
        from: String,
        /// What.
        text: String,
        /// Their lasting id; empty for the game itself.
        player_id: String,
    },
    /// An NPC nearby has changed its mind.
    Npc(NpcEvent),
    /// Which lines of scripts are to be sent with [`crate::Client::send_log`]:
    /// errors always.
    LogsWanted {
        /// Also what scripts `print` and `warn`.
        prints: bool,
    },
    /// Where the server's time goes; see [`crate::Client::ask_figures`].
    Figures(TickFigures),
    /// Whether what happens in the world takes unusually long to be stored.
    Saving {
        /// Until it is false again.
        delayed: bool,
    },
    /// How a weapon's shots look; also when it changed.
    Weapon(Weapon),
    /// What a player holds now.
    Armed {
        /// Their number.
        player: u32,
        /// The weapon's number; none: nothing.
        weapon: Option<u16>,
    },
    /// How the own character is.
    Vitals(Vitals),
    /// The player was put somewhere and looks this way, in radians.
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
    /// A shot met something.
    Impact {
        /// Number of its weapon.
        weapon: u16,
        /// Whether this player fired it.
        own: bool,
        /// What it met, as the server says; 0 when it has not said yet.
        target: u32,
        /// Where.
        point: Vec3,
        /// Which way the surface faces there.
        normal: Vec3,
    },
    /// The server refused something, or sent something unusable.
    Error {
        /// A word for programs.
        code: String,
        /// A sentence for people.
        message: String,
    },
    /// The server ends the connection.
    Kick {
        /// A sentence for people.
        reason: String,
    },
}
