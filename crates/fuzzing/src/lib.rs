//! Every decoder of bytes that others make, as a target for a fuzzer.
//!
//! A target takes any bytes. It must not panic, whatever they are, and where
//! they decode it also checks what must hold then: what is written again
//! reads the same. `fuzz/` runs these with libFuzzer (`cargo xtask fuzz`), and
//! the test of this crate runs each on a few thousand made-up inputs, so that
//! a decoder that breaks is noticed by `cargo test` already.
//!
//! Seeds are made from real sessions by code ([`Target::seeds`]), so that a
//! change of a format changes them too.
#![forbid(unsafe_code)]

mod pieces;
mod protocol;
mod saved;
mod scripts;
mod seeds;
mod session;
mod store;
mod terrain;

/// One decoder under test.
#[derive(Clone, Copy)]
pub struct Target {
    /// Also the name of its file in `fuzz/fuzz_targets`.
    pub name: &'static str,
    /// Panics when something is wrong.
    pub run: fn(&[u8]),
    /// Inputs that decode, to start from.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// How many inputs the test tries: fewer where each takes long.
    pub smoke_runs: u32,
}

/// All of them.
pub const TARGETS: [Target; 25] = [
    target("avatar", pieces::avatar, pieces::avatar_seeds, 5_000),
    target("bits", protocol::bits, seeds::noise, 5_000),
    target("chunk", terrain::chunk, terrain::seeds, 2_000),
    target("client", session::client, seeds::client_inputs, 1_500),
    target(
        "client_packet",
        protocol::client_packet,
        seeds::client_packets,
        5_000,
    ),
    target("details", pieces::details, pieces::detail_seeds, 5_000),
    target("fragment", pieces::parts, pieces::part_seeds, 3_000),
    target(
        "json_command",
        protocol::json_command,
        seeds::json_commands,
        5_000,
    ),
    target(
        "persisted_log",
        protocol::persisted_log,
        seeds::persisted_logs,
        5_000,
    ),
    target("manifest", store::manifest, seeds::manifests, 3_000),
    target("mesh", store::mesh, seeds::meshes, 3_000),
    target("package", store::package, seeds::packages, 2_000),
    target("recording", session::recording, seeds::recordings, 3_000),
    target("replay", session::replay, seeds::records, 150),
    target("saved_world", saved::saved_world, saved::saved_seeds, 150),
    target("scene", store::scene, seeds::scenes, 3_000),
    target("script_chunk", scripts::chunks, scripts::chunk_seeds, 1_500),
    target("script_list", scripts::list, scripts::list_seeds, 1_500),
    target(
        "server_packet",
        protocol::server_packet,
        seeds::server_packets,
        5_000,
    ),
    target("snapshot", protocol::snapshot, seeds::snapshots, 5_000),
    target("stream", protocol::stream, seeds::client_packets, 5_000),
    target("terrain_edits", terrain::edits, terrain::edit_seeds, 2_000),
    target("ticket", protocol::ticket, seeds::tickets, 5_000),
    target("value", protocol::value, seeds::values, 5_000),
    target("websocket", protocol::websocket, seeds::frames, 5_000),
];

const fn target(
    name: &'static str,
    run: fn(&[u8]),
    seeds: fn() -> Vec<Vec<u8>>,
    smoke_runs: u32,
) -> Target {
    Target {
        name,
        run,
        seeds,
        smoke_runs,
    }
}

/// Runs the target of that name; for the programs in `fuzz/`.
///
/// # Panics
/// When there is none, or when the target finds something.
pub fn run(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.expect("the name is one of TARGETS").run)(bytes);
}
