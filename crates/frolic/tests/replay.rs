//! A real game server with bots in it, recorded, and done again.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::support::frolic;
use serde_json::Value;

fn sample_game() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../games/obby")
}

fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the scratch folder is ours");
    folder
}

/// A game server that ends with the test.
struct Server {
    process: Child,
    url: String,
}

impl Server {
    fn start(record: &Path) -> Self {
        let mut process = frolic()
            .args([
                "gameserver",
                "--port",
                "0",
                "--no-webtransport",
                "--package",
            ])
            .arg(sample_game())
            .arg("--record")
            .arg(record)
            .stdout(Stdio::piped())
            .spawn()
            .expect("cargo built it");
        let output = process.stdout.take().expect("it is piped");
        let mut line = String::new();
        let mut output = BufReader::new(output);
        output.read_line(&mut line).expect("it says where it is");
        let url = line
            .split_whitespace()
            .last()
            .unwrap_or_default()
            .to_owned();
        assert!(url.starts_with("ws://"), "{line}");
        Self { process, url }
    }

    fn play(&self, players: &str) {
        let bots = frolic()
            .args(["bots", "--seconds", "3", "--players", players])
            .args(["--url", &self.url])
            .output()
            .expect("cargo built it");
        assert!(bots.status.success(), "{bots:?}");
    }

    fn end(mut self, signal: &str) {
        let id = self.process.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status();
        assert!(sent.is_ok_and(|status| status.success()));
        self.process.wait().expect("it ends");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn only_file(folder: &Path) -> PathBuf {
    let mut files = fs::read_dir(folder).expect("it was made");
    let file = files.next().expect("one file").expect("readable").path();
    assert!(files.next().is_none(), "and no other");
    file
}

fn replay(file: &Path, rest: &[&str]) -> Output {
    let mut command = frolic();
    command.arg("replay").arg(file).args(rest);
    command.output().expect("cargo built it")
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn a_real_session_comes_out_the_same() {
    let folder = scratch("replay-whole");
    let server = Server::start(&folder);
    server.play("6");
    server.end("-TERM");
    let file = only_file(&folder);
    let game = sample_game().to_string_lossy().into_owned();

    let output = replay(&file, &["--package", &game, "--json"]);
    let found = report(&output);
    assert!(output.status.success(), "{found}");
    assert_eq!(found["difference"], Value::Null);
    assert_eq!(found["ending"], "complete");
    assert!(found["ticks"].as_u64() > Some(120), "{found}");

    // Found by its hash in the package folder of `frolic serve`.
    let data = scratch("replay-data");
    let revision = found["revision"].as_str().expect("a hash").to_owned();
    let data_dir = data.to_string_lossy().into_owned();
    let missing = replay(&file, &["--data-dir", &data_dir]);
    assert!(!missing.status.success() && said(&missing).contains("--package"));
    fs::create_dir_all(data.join("blobs")).unwrap();
    let packed = data.join("blobs").join(&revision);
    let pack = frolic()
        .arg("pack")
        .arg(&game)
        .arg("-o")
        .arg(&packed)
        .output();
    assert!(pack.is_ok_and(|pack| pack.status.success()));
    let by_hash = replay(&file, &["--data-dir", &data_dir]);
    assert!(by_hash.status.success(), "{}", said(&by_hash));
    assert!(
        said(&by_hash).contains("same state hash at"),
        "{}",
        said(&by_hash)
    );

    // Another version of the game is refused by name.
    let other = scratch("replay-other");
    copy(&sample_game(), &other);
    let scene = fs::read_to_string(other.join("scene.json")).unwrap();
    fs::write(other.join("scene.json"), scene + "\n").unwrap();
    let refused = replay(&file, &["--package", &other.to_string_lossy()]);
    assert!(!refused.status.success());
    assert!(
        said(&refused).contains("another version of the game"),
        "{}",
        said(&refused)
    );
}

#[test]
fn what_was_killed_replays_up_to_the_end_of_its_file() {
    let folder = scratch("replay-killed");
    let server = Server::start(&folder);
    server.play("3");
    server.end("-KILL");
    let file = only_file(&folder);
    let game = sample_game().to_string_lossy().into_owned();
    let output = replay(&file, &["--package", &game, "--json"]);
    let found = report(&output);
    assert!(output.status.success(), "{found}");
    assert_eq!(
        (&found["difference"], &found["ending"]),
        (&Value::Null, &Value::from("cut off"))
    );
    assert!(found["sameHashes"].as_u64() >= Some(2), "{found}");
}

#[test]
fn what_is_no_recording_is_refused() {
    let file = scratch("replay-noise").join("noise.replay");
    for noise in [
        &b"hello"[..],
        b"",
        b"\x28\xb5\x2f\xfd and then nothing",
        b"frolrec\x63",
    ] {
        fs::write(&file, noise).unwrap();
        let output = replay(&file, &[]);
        assert!(!output.status.success(), "{noise:?}");
        assert!(!said(&output).contains("panicked"), "{}", said(&output));
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("the folders are ours");
    for entry in fs::read_dir(from).expect("the folders are ours") {
        let entry = entry.expect("the folders are ours");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("the folders are ours");
        }
    }
}
