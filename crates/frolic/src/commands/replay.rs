//! `frolic replay`: does a recorded session again and says whether it came out the same.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use frolic_package::Package;
use frolic_world::replay::{
    Difference, Ending, RecordReader, RecordingHeader, Replay, ReplayReport, this_build,
};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::gameserver::read_package;
use crate::config::{self, Layer};

/// Luau needs up to 4 MB of stack in debug builds for its deepest recursion.
const STACK_BYTES: usize = 16 * 1024 * 1024;
/// How a compressed recording begins.
const ZSTD_MARK: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Memory that a compressed file may ask for, as a power of two.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// Do a recorded session again and compare every state hash
#[derive(Args, Debug)]
#[command(
    after_help = "Record with `frolic gameserver --record FOLDER` or RECORD_DIR of `frolic serve`.

Examples:
  frolic replay recordings/world_local-1763250000000.replay --package games/obby
  frolic replay session.replay --json      (finds the package in the data folder)"
)]
pub struct ReplayArgs {
    /// The recording
    file: PathBuf,
    /// The game's folder or .game file [default: looked up by its hash in the data folder]
    #[arg(long)]
    package: Option<PathBuf>,
    /// Data folder of `frolic serve`, where packages are stored [env: DATA_DIR]
    /// [default: ./data]
    #[arg(long)]
    data_dir: Option<PathBuf>,
    /// Report as one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs `frolic replay`.
///
/// # Errors
/// When the recording cannot be replayed, or comes out different.
pub fn run(args: ReplayArgs) -> Result<()> {
    let thread = std::thread::Builder::new()
        .name("replay".into())
        .stack_size(STACK_BYTES)
        .spawn(move || replay(&args))
        .context("could not start a thread")?;
    match thread.join() {
        Ok(outcome) => outcome,
        Err(_) => bail!("the replay broke down; this is a bug, please report it with the file"),
    }
}

fn replay(args: &ReplayArgs) -> Result<()> {
    let shown = args.file.display();
    let file = File::open(&args.file).with_context(|| format!("cannot read {shown}"))?;
    let size = file.metadata().map_or(0, |about| about.len());
    let bar = progress(size);
    let mut pieces = Pieces::open(bar.wrap_read(file))?;
    let mut reader = RecordReader::default();
    let header = loop {
        let more = pieces.next(&mut reader)?;
        if let Some(header) = reader.header().with_context(|| format!("{shown}"))? {
            break header;
        }
        if !more {
            bail!("{shown} ends before it says what was recorded");
        }
    };
    let package = find_package(args, &header)?;
    let mut replay = Replay::new(&package, &header)
        .map_err(|error| anyhow!("the session cannot be replayed: {error}"))?;
    'file: loop {
        while let Some(record) = reader.record().with_context(|| format!("{shown}"))? {
            replay
                .apply(record)
                .map_err(|error| anyhow!("{shown}: {error}"))?;
            if replay.is_over() {
                break 'file;
            }
        }
        bar.set_message(format!("tick {}", replay.report().ticks));
        if !pieces.next(&mut reader)? {
            break;
        }
    }
    bar.finish_and_clear();
    print_report(args.json, &header, replay.report())
}

/// The bytes of a recording, decompressed where it is compressed.
struct Pieces<'a> {
    source: Box<dyn Read + 'a>,
    buffer: Vec<u8>,
}

impl<'a> Pieces<'a> {
    fn open(file: impl Read + 'a) -> Result<Self> {
        let mut file = BufReader::new(file);
        let compressed = file
            .fill_buf()
            .context("cannot read it")?
            .starts_with(&ZSTD_MARK);
        let source: Box<dyn Read> = if compressed {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(file)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
            Box::new(decoder)
        } else {
            Box::new(file)
        };
        Ok(Self {
            source,
            buffer: vec![0; 64 * 1024],
        })
    }

    /// Hands on the next piece; false at the end. A compressed file that was
    /// cut off ends where it was cut.
    fn next(&mut self, reader: &mut RecordReader) -> Result<bool> {
        match self.source.read(&mut self.buffer) {
            Ok(count) => {
                reader.push(&self.buffer[..count]);
                Ok(count > 0)
            }
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(true),
            Err(error) => Err(error).context("the recording is damaged"),
        }
    }
}

fn find_package(args: &ReplayArgs, header: &RecordingHeader) -> Result<Package> {
    let revision = &header.revision;
    let path = match &args.package {
        Some(path) => path.clone(),
        None => stored_package(args.data_dir.clone(), revision)?,
    };
    let package = read_package(&path)?;
    if package.revision != *revision {
        bail!(
            "{} is another version of the game: the session ran package {revision}, and this is {}",
            path.display(),
            package.revision
        );
    }
    Ok(package)
}

/// The package in the data folder of `frolic serve`.
fn stored_package(data_dir: Option<PathBuf>, revision: &str) -> Result<PathBuf> {
    let is_hash = revision.len() == 64 && revision.bytes().all(|b| b.is_ascii_hexdigit());
    if !is_hash {
        bail!("the recording does not say which package it is of");
    }
    let flags = Layer {
        data_dir,
        ..Layer::default()
    };
    let folder = config::load(flags, None)?.blob_dir()?;
    let path = folder.join(revision);
    if !Path::new(&path).is_file() {
        bail!(
            "package {revision} is not in {}; say where the game is with --package, or where the data folder is with --data-dir",
            folder.display()
        );
    }
    Ok(path)
}

fn progress(bytes: u64) -> ProgressBar {
    let bar = ProgressBar::new(bytes);
    let style = "replaying {wide_bar} {bytes}/{total_bytes} {msg} {eta}";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    bar
}

fn print_report(as_json: bool, header: &RecordingHeader, report: &ReplayReport) -> Result<()> {
    if as_json {
        println!("{}", to_json(header, report));
    } else {
        print_notes(report);
    }
    if let Some(difference) = report.difference {
        bail!("{}", explain(&difference, header, report));
    }
    if report.same_hashes == 0 {
        bail!(
            "nothing was compared: the recording ends after {} ticks, before its first state hash",
            report.ticks
        );
    }
    if !as_json {
        let seconds = f64::from(report.ticks) / f64::from(header.tick_hz.max(1));
        println!(
            "same state hash at {} of {} ticks ({seconds:.1} s)",
            report.same_hashes, report.ticks
        );
    }
    Ok(())
}

/// Says where the replay went another way, and what may be the reason.
fn explain(difference: &Difference, header: &RecordingHeader, report: &ReplayReport) -> String {
    let mut text = format!("different at tick {}", difference.tick);
    text += &match difference.same_until {
        Some(tick) => format!(", the same until tick {tick}"),
        None => ", never the same".to_owned(),
    };
    let cut_at = report.cut_at.filter(|tick| *tick <= difference.tick);
    if let Some(tick) = cut_at {
        text += &format!(
            "; a limit cut scripts at tick {tick} of the session, which depends on the machine"
        );
    }
    let here = this_build();
    if header.made_by != here {
        let there = &header.made_by;
        text += &format!(
            "; it was recorded by frolic {there} and this is {here}: replay it with the one that made it"
        );
    }
    text
}

fn print_notes(report: &ReplayReport) {
    if let Some(tick) = report.cut_at {
        println!(
            "a limit cut scripts at tick {tick} of the session; from there on a replay may differ"
        );
    }
    if let Some(tick) = report.replay_cut_at {
        println!("a limit cut scripts at tick {tick} of this replay");
    }
    match &report.ending {
        _ if report.difference.is_some() => {}
        Some(Ending::Complete) => {}
        Some(Ending::Incomplete(why)) => println!("the recording is not complete: {why}"),
        None => println!("the recording was cut off: its game server was killed, or still runs"),
    }
}

fn to_json(header: &RecordingHeader, report: &ReplayReport) -> serde_json::Value {
    let difference = report.difference.map(|difference| {
        json!({
            "tick": difference.tick,
            "sameUntil": difference.same_until,
            "recorded": format!("{:016x}", difference.recorded),
            "replayed": format!("{:016x}", difference.replayed),
        })
    });
    let ending = match &report.ending {
        _ if report.difference.is_some() => "not reached",
        Some(Ending::Complete) => "complete",
        Some(Ending::Incomplete(_)) => "incomplete",
        None => "cut off",
    };
    json!({
        "revision": header.revision,
        "seed": header.seed.to_string(),
        "tickHz": header.tick_hz,
        "madeBy": header.made_by,
        "thisBuild": this_build(),
        "ticks": report.ticks,
        "sameHashes": report.same_hashes,
        "difference": difference,
        "cutAt": report.cut_at,
        "replayCutAt": report.replay_cut_at,
        "ending": ending,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use frolic_package::Limits;
    use frolic_world::replay::RecordOptions;
    use frolic_world::{World, WorldOptions};

    use super::*;

    fn header() -> RecordingHeader {
        let manifest = "[game]\nid = \"empty\"\nname = \"Empty\"\nmax_players = 1\n";
        let scene = r#"{"format":1,"prefabs":{},"entities":[]}"#;
        let files = [("game.toml", manifest), ("scene.json", scene)];
        let files = files.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()));
        let game = Package::from_files(BTreeMap::from(files), &Limits::default())
            .unwrap_or_else(|report| panic!("{report}"));
        let options = WorldOptions {
            record: Some(RecordOptions::default()),
            ..WorldOptions::default()
        };
        let mut world = World::load(&game, options).expect("it loads");
        let mut reader = RecordReader::default();
        reader.push(&world.take_recording());
        reader.header().expect("readable").expect("whole")
    }

    fn verdict(header: &RecordingHeader, report: &ReplayReport) -> String {
        let printed = print_report(true, header, report);
        printed.map_or_else(|error| error.to_string(), |()| "the same".to_owned())
    }

    #[test]
    fn a_recording_in_which_nothing_can_be_compared_proves_nothing() {
        let mut report = ReplayReport {
            ticks: 40,
            ..ReplayReport::default()
        };
        let said = verdict(&header(), &report);
        assert!(said.contains("nothing was compared"), "{said}");
        report.same_hashes = 1;
        assert_eq!(verdict(&header(), &report), "the same");
    }

    #[test]
    fn a_difference_names_the_build_that_recorded_if_it_is_another() {
        let report = ReplayReport {
            ticks: 40,
            same_hashes: 3,
            difference: Some(Difference {
                tick: 40,
                recorded: 1,
                replayed: 2,
                same_until: Some(30),
            }),
            ..ReplayReport::default()
        };
        let mut header = header();
        let said = verdict(&header, &report);
        assert_eq!(said, "different at tick 40, the same until tick 30");
        header.made_by = "0.0.9 riscv64-linux".to_owned();
        let said = verdict(&header, &report);
        assert!(
            said.contains("recorded by frolic 0.0.9 riscv64-linux"),
            "{said}"
        );
    }
}
