//! Each target on some thousand inputs: seeds, seeds with mistakes, noise. The
//! same ones in every run; `cargo xtask fuzz` looks further.

use std::path::Path;

use frolic_fuzzing::{TARGETS, Target};
use frolic_sim::random::Random;

/// Longest input: a fuzzer's own default.
const BYTES_MAX: usize = 4096;

fn smoke(target: &Target) {
    let seeds = (target.seeds)();
    assert!(!seeds.is_empty(), "{} has no seeds", target.name);
    seeds.iter().for_each(|seed| (target.run)(seed));
    (target.run)(&[]);
    let mut random = Random::new(7);
    for _ in 0..target.smoke_runs {
        let input = match random.below(5) {
            0 => noise(&mut random),
            _ => mutated(&seeds, &mut random),
        };
        (target.run)(&input);
    }
}

fn noise(random: &mut Random) -> Vec<u8> {
    let length = random.below(300);
    (0..length).map(|_| random.below(256) as u8).collect()
}

fn one<'a>(seeds: &'a [Vec<u8>], random: &mut Random) -> &'a [u8] {
    &seeds[random.below(seeds.len() as u32) as usize]
}

fn mutated(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = one(seeds, random).to_vec();
    for _ in 0..=random.below(6) {
        let at = random.below(bytes.len().max(1) as u32) as usize;
        match random.below(6) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at.min(bytes.len()), random.below(256) as u8),
            2 if at < bytes.len() => drop(bytes.remove(at)),
            3 => {
                let other = one(seeds, random);
                let from = random.below(other.len().max(1) as u32) as usize;
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from.min(other.len())..]);
            }
            4 if at < bytes.len() => bytes[at] = [0, 0x7f, 0x80, 0xff][random.below(4) as usize],
            _ if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            _ => {}
        }
    }
    bytes.truncate(BYTES_MAX.max(bytes.len() / 2));
    bytes
}

macro_rules! smoke_tests {
    ($($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                let target = TARGETS.iter().find(|target| target.name == stringify!($name));
                smoke(target.expect("it is one of TARGETS"));
            }
        )*

        const TESTED: &[&str] = &[$(stringify!($name)),*];
    };
}

smoke_tests!(
    avatar,
    bits,
    chunk,
    client,
    client_packet,
    details,
    fragment,
    json_command,
    persisted_log,
    manifest,
    mesh,
    package,
    recording,
    replay,
    saved_world,
    scene,
    script_chunk,
    script_list,
    server_packet,
    snapshot,
    stream,
    terrain_edits,
    ticket,
    value,
    websocket,
);

#[test]
fn every_target_is_tested_and_has_its_program() {
    let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    assert_eq!(names, TESTED);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).expect("it is there");
    // Nothing else compiles these: they need a nightly compiler.
    for name in &names {
        let program = folder.join(format!("fuzz_targets/{name}.rs"));
        let program = std::fs::read_to_string(program).unwrap_or_default();
        let runs = format!("frolic_fuzzing::run(\"{name}\", bytes)");
        assert!(program.contains(&runs), "{name}");
        assert_eq!(program.matches("frolic_fuzzing::run").count(), 1, "{name}");
        let entry = format!("name = \"{name}\"\npath = \"fuzz_targets/{name}.rs\"\n");
        assert!(manifest.contains(&entry), "{name}");
    }
    assert_eq!(manifest.matches("[[bin]]").count(), names.len());
    let programs = std::fs::read_dir(folder.join("fuzz_targets")).expect("it is there");
    assert_eq!(programs.count(), names.len(), "programs without a target");
}
