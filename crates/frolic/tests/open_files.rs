//! Worlds of a thousand players under the usual limit of 1,024 open files:
//! processes that hold sockets raise the limit as far as the system allows.
// Covers: crates/gameserver, crates/platform

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// A command of the binary that began with few open files, ended with the test.
struct Started(Child);

impl Started {
    /// Returns once it has said `word`, by when it has done what it does first.
    fn with_few_files(folder: &Path, args: &[String], word: &str) -> Self {
        let mut command = Command::new("sh");
        crate::support::without_settings(&mut command)
            .args(["-c", "ulimit -Sn 256 && exec \"$0\" \"$@\""])
            .arg(env!("CARGO_BIN_EXE_frolic"))
            .args(args)
            .current_dir(folder)
            .stdout(Stdio::piped());
        let mut process = command.spawn().expect("a shell");
        let output = BufReader::new(process.stdout.take().expect("piped"));
        let started = Self(process);
        let mut lines = output.lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains(word)), "never said {word}");
        // A process that prints into a closed pipe fails.
        std::thread::spawn(move || lines.for_each(drop));
        started
    }

    /// Soft and hard limit, as the system has them.
    fn limits(&self) -> (u64, u64) {
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", self.0.id()));
        let limits = limits.expect("it runs");
        let line = limits.lines().find(|line| line.contains("open files"));
        let mut numbers = line
            .expect("a line")
            .split_whitespace()
            .filter_map(|word| word.parse().ok());
        let mut next = || numbers.next().expect("a number");
        (next(), next())
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let _ = self.0.wait();
    }
}

/// The folder of a small game, and an empty one beside it.
fn scratch(name: &str) -> (PathBuf, PathBuf) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    let (game, empty) = (folder.join("game"), folder.join("empty"));
    std::fs::create_dir_all(&empty).expect("the scratch folder is ours");
    for (path, bytes) in crate::support::game("small", 4, "") {
        let path = game.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("ours");
        std::fs::write(path, bytes).expect("ours");
    }
    (game, empty)
}

#[track_caller]
fn check(name: &str, args: &[&str], word: &str) {
    let (game, empty) = scratch(&format!("open-files-{name}"));
    let game = game.to_string_lossy();
    let given = |arg: &&str| {
        if *arg == "GAME" {
            game.to_string()
        } else {
            (*arg).to_owned()
        }
    };
    let args: Vec<String> = args.iter().map(given).collect();
    let started = Started::with_few_files(&empty, &args, word);
    let (soft, hard) = started.limits();
    assert!(hard > 256, "this machine allows only {hard}");
    assert_eq!(soft, hard, "of frolic {name}");
}

#[test]
fn serve_takes_all_the_open_files_it_may_have() {
    let args = [
        "serve",
        "--host",
        "127.0.0.1",
        "--port",
        "0",
        "--data-dir",
        "data",
    ];
    check("serve", &args, "Play at");
}

#[test]
fn dev_takes_all_the_open_files_it_may_have() {
    check(
        "dev",
        &["dev", "GAME", "--port", "0", "--no-open"],
        "Play at",
    );
}

#[test]
fn a_game_server_takes_all_the_open_files_it_may_have() {
    let args = ["gameserver", "--port", "0", "--package", "GAME"];
    check("gameserver", &args, "is ready");
}
