//! Runs every `tests/<library>/<function>.luau` as a server script. A file
//! passes when it reaches its end within five seconds of world time and no
//! script raised an error.

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use frolic_protocol::Value;
use frolic_script::ScriptEvent;
use support::Stage;

const FINISHED: &str = "@finished";

/// Modules that the files of `tests/require` load.
const MODULES: [(&str, &str); 5] = [
    (
        "ReplicatedStorage/Counter.luau",
        "local n = 0\nreturn { next = function() n += 1 return n end }",
    ),
    ("ReplicatedStorage/A.luau", "return require('B')"),
    (
        "ReplicatedStorage/B.luau",
        "return require('ReplicatedStorage/A')",
    ),
    ("ReplicatedStorage/Waits.luau", "task.wait(1) return 1"),
    ("ReplicatedStorage/Broken.luau", "error('no luck')"),
];

#[test]
fn every_script_test_passes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut files = Vec::new();
    find_scripts(&root, &mut files);
    files.sort();
    assert!(files.len() > 10, "the script tests were not found");
    let failures: Vec<String> = files.iter().filter_map(|file| run(&root, file)).collect();
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

fn find_scripts(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("the entry can be read").path();
        if path.is_dir() {
            find_scripts(&path, files);
        } else if path.extension().is_some_and(|e| e == "luau") {
            files.push(path);
        }
    }
}

fn run(root: &Path, file: &Path) -> Option<String> {
    let name = file.strip_prefix(root).expect("below the root").display();
    let source = fs::read_to_string(file).expect("the file can be read");
    let source = format!("{source}\nprint(\"{FINISHED}\")");
    let path = format!("ServerScriptService/{name}");
    let mut stage = Stage::new();
    let mut sources = vec![(path.as_str(), source.as_str())];
    sources.extend(MODULES);
    stage.start(&sources);
    for _ in 0..300 {
        stage.ticks(1);
        answer_echo(&mut stage);
        stage.answer_store();
    }
    let errors: Vec<String> = stage
        .world
        .borrow()
        .logs
        .iter()
        .filter(|line| line.level == frolic_script::LogLevel::Error)
        .map(|line| format!("{}:{:?}: {}", line.script, line.line, line.message))
        .collect();
    if !errors.is_empty() {
        return Some(format!("{name}: {}", errors.join(" | ")));
    }
    let finished = stage.prints().iter().any(|line| line == FINISHED);
    (!finished).then(|| format!("{name}: did not reach its end"))
}

/// Plays a client: what is broadcast as `Echo` comes back from player 7.
fn answer_echo(stage: &mut Stage) {
    let sent: Vec<Vec<Value>> = {
        let mut world = stage.world.borrow_mut();
        let mut echoes = Vec::new();
        world.sent.retain(|(_, name, args, _)| {
            if name == "Echo" {
                echoes.push(args.clone());
            }
            name != "Echo"
        });
        echoes
    };
    for args in sent {
        stage.vm.dispatch(ScriptEvent::ClientEvent {
            player: 7,
            name: "Echo".to_owned(),
            args,
        });
    }
}
