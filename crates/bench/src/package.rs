//! `frolic bench package`: from the bytes of a `.game` to a validated package,
//! beside inflating and hashing the same bytes, which every reader must do. The
//! difference is the cost of validation.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::io::{Read, Write};
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use frolic_package::{Limits, Package, pack};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::tools;

/// A scene at which the sample games do not hide what an entity costs.
const ENTITIES: usize = 5_000;
/// Files that `frolic pack` does not compress.
const COMPRESSED: [&str; 7] = ["glb", "jpeg", "jpg", "mp3", "ogg", "png", "webp"];
/// Both take turns, so that a busy moment of the machine hits both.
const ROUNDS: usize = 41;

/// Measure reading and checking packages
#[derive(Args, Debug)]
pub struct PackageArgs {
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Row {
    scene: String,
    files: usize,
    packed_bytes: usize,
    unpacked_bytes: usize,
    /// Medians.
    read_ms: f64,
    floor_ms: f64,
    ratio: f64,
}

/// Reads every sample game and one of many entities, and prints a table, or JSON.
pub fn run(args: PackageArgs) -> Result<()> {
    let mut games = frolic_assets::sample_games();
    games.push((format!("{ENTITIES} entities"), many_entities()?));
    let rows = games
        .iter()
        .map(|(name, files)| measure(name, files, ROUNDS));
    let rows = rows.collect::<Result<Vec<_>>>()?;
    if args.json {
        println!("{}", serde_json::to_string(&rows)?);
        return Ok(());
    }
    println!("package              files     packed   unpacked      read   inflate + hash");
    for row in rows {
        println!(
            "{:<18} {:>7} {:>8} B {:>8} B {:>6.2} ms {:>8.2} ms   x {:.2}",
            row.scene,
            row.files,
            row.packed_bytes,
            row.unpacked_bytes,
            row.read_ms,
            row.floor_ms,
            row.ratio
        );
    }
    Ok(())
}

fn many_entities() -> Result<BTreeMap<String, Vec<u8>>> {
    let solids = (1..ENTITIES).map(|id| {
        let position = [(id % 100) as f32, 0.0, (id / 100) as f32];
        tools::solid(id, &format!("Block{id}"), position, [1.0, 1.0, 1.0])
    });
    let mut entities: Vec<Value> = solids.collect();
    entities.push(tools::spawn_point(ENTITIES, [0.0, 2.0, 0.0]));
    tools::files("entities", &tools::scene(entities), &[])
}

fn measure(name: &str, files: &BTreeMap<String, Vec<u8>>, rounds: usize) -> Result<Row> {
    let archive = pack(files)?;
    let limits = Limits::default();
    let floor = Floor::of(files)?;
    let (mut reads, mut floors) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let began = Instant::now();
        let package = Package::read(&archive, &limits).map_err(|report| anyhow!("{report}"))?;
        reads.push(began.elapsed().as_secs_f64() * 1e3);
        black_box(package);
        let began = Instant::now();
        let unpacked = floor.inflate_and_hash(&archive)?;
        floors.push(began.elapsed().as_secs_f64() * 1e3);
        black_box(unpacked);
    }
    let (read_ms, floor_ms) = (median(reads), median(floors));
    Ok(Row {
        scene: name.to_owned(),
        files: files.len(),
        packed_bytes: archive.len(),
        unpacked_bytes: files.values().map(Vec::len).sum(),
        read_ms,
        floor_ms,
        ratio: read_ms / floor_ms.max(f64::MIN_POSITIVE),
    })
}

/// The contents of a package without a format around them.
struct Floor {
    /// Compressed bytes and inflated length; none where they are stored
    /// uncompressed.
    contents: Vec<(Vec<u8>, Option<usize>)>,
}

impl Floor {
    fn of(files: &BTreeMap<String, Vec<u8>>) -> Result<Self> {
        let mut contents = Vec::new();
        for (path, bytes) in files {
            let extension = path.rsplit('.').next().unwrap_or_default();
            if COMPRESSED.contains(&extension) {
                contents.push((bytes.clone(), None));
                continue;
            }
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(6));
            encoder.write_all(bytes)?;
            let deflated = encoder.finish()?;
            contents.push(if deflated.len() < bytes.len() {
                (deflated, Some(bytes.len()))
            } else {
                (bytes.clone(), None)
            });
        }
        Ok(Self { contents })
    }

    /// All contents, and the hash of the archive, as a package has them.
    fn inflate_and_hash(&self, archive: &[u8]) -> Result<(Vec<Vec<u8>>, [u8; 32])> {
        let mut unpacked = Vec::with_capacity(self.contents.len());
        for (bytes, size) in &self.contents {
            let Some(size) = size else {
                unpacked.push(bytes.clone());
                continue;
            };
            let mut inflated = Vec::with_capacity(*size);
            DeflateDecoder::new(bytes.as_slice())
                .read_to_end(&mut inflated)
                .context("what was deflated inflates")?;
            unpacked.push(inflated);
        }
        Ok((unpacked, Sha256::digest(archive).into()))
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_gives_the_contents_of_every_package() {
        let mut games = frolic_assets::sample_games();
        assert!(games.len() >= 4);
        games.push(("entities".to_owned(), many_entities().unwrap()));
        for (name, files) in games {
            let archive = pack(&files).unwrap();
            let package = Package::read(&archive, &Limits::default());
            let package = package.unwrap_or_else(|report| panic!("{name}: {report}"));
            let floor = Floor::of(&files).unwrap();
            let (unpacked, hash) = floor.inflate_and_hash(&archive).unwrap();
            assert_eq!(unpacked, package.files.into_values().collect::<Vec<_>>());
            let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hash, package.revision, "{name}");
        }
    }

    #[test]
    fn a_package_is_measured() {
        let row = measure("entities", &many_entities().unwrap(), 3).unwrap();
        assert_eq!(row.files, 2);
        assert!(row.unpacked_bytes > row.packed_bytes);
        assert!(row.read_ms > 0.0 && row.floor_ms > 0.0);
    }
}
