//! The part of the API that is written in Luau, from `builtin/`.
//!
//! Every file is a function of one argument, the table `engine`, to which it
//! adds; the lists below are the order in which they depend on each other.
//! `common/sides.luau` is generated from the definition of the API. `common`
//! runs on both sides, byte for byte the same.

use std::fmt::Write as _;
use std::sync::OnceLock;

use frolic_protocol::script::RunContext;

use crate::api::{PageKind, Side, pages};
use crate::compile::{CompiledScript, compile_builtin};

/// (path, source) pairs of files below `builtin/`.
macro_rules! files {
    ($($path:literal),* $(,)?) => {
        &[$((concat!("@builtin/", $path), include_str!(concat!("../builtin/", $path)))),*]
    };
}

type Files = &'static [(&'static str, &'static str)];

const COMMON: Files = files![
    "common/caps.luau",
    "common/debug.luau",
    "common/scheduler.luau",
    "common/timers.luau",
    "common/limits.luau",
    "common/coroutines.luau",
    "common/signal.luau",
    "common/vector3.luau",
    "common/color.luau",
    "common/random.luau",
    "common/handle.luau",
    "common/members.luau",
    "common/suggest.luau",
    "common/show.luau",
    "common/calendar.luau",
    "common/json.luau",
    "common/remote.luau",
    "common/terrain.luau",
    "common/tree.luau",
    "common/require.luau",
    "common/reload.luau",
    "common/spells.luau",
];

const SERVER: Files = files![
    "server/closing.luau",
    "server/entity.luau",
    "server/structures.luau",
    "server/terrain.luau",
    "server/world.luau",
    "server/players.luau",
    "server/remotes.luau",
    "server/network.luau",
    "server/store.luau",
    "server/datetime.luau",
    "server/npc.luau",
    "server/spells.luau",
    "server/projectile.luau",
    "server/chat.luau",
];

const CLIENT: Files = files![
    "client/modules.luau",
    "client/frame.luau",
    "client/entity.luau",
    "client/terrain.luau",
    "client/npc.luau",
    "client/projectile.luau",
    "client/world.luau",
    "client/players.luau",
    "client/network.luau",
    "client/input.luau",
    "client/camera.luau",
    "client/ui.luau",
    "client/sound.luau",
    "client/effects.luau",
    "client/spells.luau",
];

/// Aliases that creators know from Roblox, for the libraries of either side.
const ALIASES: Files = files![
    "common/advice.luau",
    "common/enums.luau",
    "common/tween.luau",
    "common/roblox.luau",
];

/// Freezes the globals that the other files define for user code.
const GLOBALS: Files = files!["common/globals.luau"];
const SERVER_ENTRY: Files = files!["server/lifecycle.luau"];
const CLIENT_ENTRY: Files = files!["client/lifecycle.luau"];

/// The engine's own scripts for the browser's VM, in the order to run them.
pub fn client_builtin() -> Vec<CompiledScript> {
    static COMPILED: OnceLock<Vec<CompiledScript>> = OnceLock::new();
    COMPILED
        .get_or_init(|| {
            compile_all(
                &[COMMON, CLIENT, ALIASES, GLOBALS, CLIENT_ENTRY],
                RunContext::Client,
            )
        })
        .clone()
}

/// The engine's own scripts for the server's VM, in the order to run them.
pub(crate) fn server_builtin() -> &'static [CompiledScript] {
    static COMPILED: OnceLock<Vec<CompiledScript>> = OnceLock::new();
    COMPILED.get_or_init(|| {
        compile_all(
            &[COMMON, SERVER, ALIASES, GLOBALS, SERVER_ENTRY],
            RunContext::Server,
        )
    })
}

fn compile_all(lists: &[Files], context: RunContext) -> Vec<CompiledScript> {
    let sides = sides();
    let files = lists.iter().flat_map(|files| files.iter().copied());
    std::iter::once(("@builtin/common/sides.luau", sides.as_str()))
        .chain(files)
        .map(|(path, source)| {
            compile_builtin(path, source, context)
                .expect("built-in scripts compile: a test compiles each of them")
        })
        .collect()
}

/// Members that exist on one side only, so that the other side can report it:
/// `engine.side_libraries.UI` and `engine.sides.World.Spawn`.
fn sides() -> String {
    let name_of = |side: Side| match side {
        Side::Server => Some("server"),
        Side::Client => Some("client"),
        Side::Both => None,
    };
    let mut libraries = String::new();
    let mut members = String::new();
    for page in pages() {
        if let Some(side) = name_of(page.side) {
            if page.kind == PageKind::Library {
                for name in std::iter::once(&page.name).chain(&page.aliases) {
                    let _ = writeln!(libraries, "\t[\"{name}\"] = \"{side}\",");
                }
            }
            continue;
        }
        let _ = writeln!(members, "\t[\"{}\"] = {{", page.name);
        for member in &page.members {
            if let Some(side) = name_of(page.side_of(member)) {
                let _ = writeln!(members, "\t\t[\"{}\"] = \"{side}\",", member.name);
            }
        }
        members.push_str("\t},\n");
    }
    format!(
        "local engine = ...\nengine.side_libraries = {{\n{libraries}}}\nengine.sides = {{\n{members}}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_builtin_compiles_and_common_is_the_same_on_both_sides() {
        let client = client_builtin();
        for (ours, theirs) in server_builtin().iter().zip(&client).take(COMMON.len() + 1) {
            assert_eq!(ours.sha256_hex, theirs.sha256_hex, "{}", ours.path);
        }
        assert!(client.iter().all(|s| !s.path.contains("server")));
    }
}
