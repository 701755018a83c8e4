//! Runs every `tests/<library>/<function>.luau` for servers as a server script;
//! `web/src/player/luau/api.test.ts` runs those for clients in the browser's
//! VM. The first line says for whom it is: `--@test server|client|both`. A file
//! passes when it reaches its end within five seconds of world time and no
//! script raised an error. What it broadcasts as `Test.…` happens to the world.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::Stage;
use frolic_protocol::{Args, Value};
use frolic_script::{HitReport, LogLevel, NpcHappening, NpcState, ScriptEvent};

const FINISHED: &str = "@finished";

/// Modules that script tests load, besides the files of `tests/modules`.
const MODULES: [(&str, &str); 6] = [
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
    ("spells/agree/spell.luau", include_str!("spells/agree.luau")),
];

#[test]
fn a_spell_goes_the_same_way_on_both_sides() {
    let mut stage = Stage::new();
    stage.start(&MODULES);
    stage.vm.dispatch(cast());
    stage.ticks(30);
    let said = stage.prints().join("\n");
    // The browser's VM is compared with the same text.
    assert_eq!(said, include_str!("spells/expected.txt").trim_end());
    let world = stage.world.borrow();
    let (draws, answers) = &world.casts_done[0];
    let result = format!(
        "{draws} {}",
        serde_json::to_string(&Args(answers.clone())).expect("plain")
    );
    assert_eq!(result, include_str!("spells/answers.txt").trim_end());
    assert!(world.logs.iter().all(|line| line.level == LogLevel::Info));
}

fn cast() -> ScriptEvent {
    ScriptEvent::Cast {
        cast: 1,
        path: "spells/agree/spell.luau".to_owned(),
        spell: "agree".to_owned(),
        seed: 8_123_456_789,
        player: 7,
        target: [1.0, 2.0, 3.0],
        params: Value::Map([("power".to_owned(), Value::Number(3.0))].into()),
    }
}

#[test]
fn every_script_test_passes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut files = Vec::new();
    find_scripts(&root, &mut files);
    files.sort();
    assert!(files.len() > 10, "the script tests were not found");
    let modules = modules(&root);
    let run = |file: &PathBuf| run(&root, file, &modules);
    let failures: Vec<String> = files.iter().filter_map(run).collect();
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

fn find_scripts(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("the entry can be read").path();
        // `tests/hostile` is for hostile.rs, `tests/spells` holds spells, `tests/modules` what
        // tests require.
        if path.is_dir() {
            if ["hostile", "spells", "modules"]
                .iter()
                .any(|name| path.ends_with(name))
            {
                continue;
            }
            find_scripts(&path, files);
        } else if path.extension().is_some_and(|e| e == "luau" || e == "lua") {
            files.push(path);
        }
    }
}

/// Path below `scripts/` and text of what is in `tests/modules`.
fn modules(root: &Path) -> Vec<(String, String)> {
    let root = root.join("modules");
    let mut files = Vec::new();
    find_scripts(&root, &mut files);
    assert!(files.len() > 10, "the modules were not found");
    let read = |file: &PathBuf| {
        let path = file.strip_prefix(&root).expect("below the root");
        let path = path.to_str().expect("a plain name").to_owned();
        (
            path,
            fs::read_to_string(file).expect("the file can be read"),
        )
    };
    files.iter().map(read).collect()
}

fn run(root: &Path, file: &Path, modules: &[(String, String)]) -> Option<String> {
    let name = file.strip_prefix(root).expect("below the root").display();
    let source = fs::read_to_string(file).expect("the file can be read");
    let side = source
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("--@test "));
    match side {
        Some("server" | "both") => {}
        Some("client") => return None,
        other => return Some(format!("{name}: begins with --@test {other:?}")),
    }
    // One that is attached to the kill brick says itself when it has finished.
    let attached = source.contains("\n--@attach 2\n");
    let (folder, end) = if attached {
        ("Workspace", String::new())
    } else {
        ("ServerScriptService", format!("\nprint(\"{FINISHED}\")"))
    };
    let source = source + &end;
    let path = format!("{folder}/{name}");
    let mut stage = Stage::new();
    let mut sources = vec![(path.as_str(), source.as_str())];
    sources.extend(MODULES);
    let texts = modules.iter();
    sources.extend(texts.map(|(path, text)| (path.as_str(), text.as_str())));
    let attachments = [(2, path.as_str())];
    stage.start_attached(&sources, if attached { &attachments } else { &[] });
    for _ in 0..300 {
        stage.ticks(1);
        answer(&mut stage);
        stage.answer_store();
        stage.persist_ops();
    }
    let errors: Vec<String> = stage
        .world
        .borrow()
        .logs
        .iter()
        .filter(|line| line.level == LogLevel::Error)
        .map(|line| format!("{}:{:?}: {}", line.script, line.line, line.message))
        .collect();
    if !errors.is_empty() {
        return Some(format!("{name}: {}", errors.join(" | ")));
    }
    let finished = stage.prints().iter().any(|line| line == FINISHED);
    (!finished).then(|| format!("{name}: did not reach its end"))
}

/// Plays a client and a world: what is broadcast as `Echo` comes back from
/// player 7, and what as `Test.…` happens.
fn answer(stage: &mut Stage) {
    let sent = std::mem::take(&mut stage.world.borrow_mut().sent);
    for (_, name, args, _) in sent {
        for event in npc_events(&name, &args) {
            stage.vm.dispatch(event);
        }
        if let Some(event) = event(&name, args) {
            stage.vm.dispatch(event);
        }
    }
}

/// All that can happen to an NPC, with one other.
fn npc_events(name: &str, args: &[Value]) -> Vec<ScriptEvent> {
    let (Some(Value::Number(entity)), Some(Value::Number(other))) = (args.first(), args.get(1))
    else {
        return Vec::new();
    };
    let (entity, other) = (*entity as u32, *other as u32);
    if name != "Test.Npc" {
        return Vec::new();
    }
    let what = [
        NpcHappening::StateChanged {
            state: NpcState::Alert,
            before: NpcState::Idle,
        },
        NpcHappening::Saw { other },
        NpcHappening::Lost { other },
        NpcHappening::Caught { other },
        NpcHappening::Arrived { reached: true },
    ];
    what.map(|what| ScriptEvent::Npc { entity, what }).into()
}

fn event(name: &str, args: Vec<Value>) -> Option<ScriptEvent> {
    let id = |at: usize| match args.get(at) {
        Some(Value::Number(n)) => *n as u32,
        _ => 0,
    };
    let (entity, other, player) = (id(0), id(1), id(0));
    Some(match name {
        "Echo" => ScriptEvent::ClientEvent {
            player: 7,
            name: "Echo".to_owned(),
            args,
        },
        "Test.Invoke" => {
            let mut args = args.into_iter();
            let Some(Value::String(name)) = args.next() else {
                return None;
            };
            let (player, id, args) = (7, 1, args.collect());
            ScriptEvent::ClientInvoke {
                player,
                id,
                name,
                args,
            }
        }
        "Test.Joined" => ScriptEvent::PlayerJoined { player },
        "Test.Close" => ScriptEvent::Closing,
        "Test.Left" => ScriptEvent::PlayerLeft { player },
        "Test.Resumed" => ScriptEvent::PlayerResumed { player },
        "Test.Spawned" => ScriptEvent::CharacterSpawned { player },
        "Test.Trigger" if args.get(2) == Some(&Value::Bool(true)) => {
            ScriptEvent::TriggerEnter { entity, other }
        }
        "Test.Trigger" => ScriptEvent::TriggerExit { entity, other },
        "Test.Terrain" => ScriptEvent::TerrainChanged {
            min: [1.0, 2.0, 3.0],
            max: [4.0, 5.0, 6.0],
            player: (player > 0).then_some(player),
        },
        "Test.Touched" => ScriptEvent::Touched { entity, other },
        "Test.Interact" => ScriptEvent::Interact {
            entity,
            player: other,
        },
        "Test.Cast" => cast(),
        "Test.Hit" => ScriptEvent::ProjectileHit(HitReport {
            id: id(0),
            weapon: "Blaster".to_owned(),
            shooter: Some(7),
            entity: Some(10),
            player: Some(7),
            position: [1.0, 2.0, 3.0],
            normal: [0.0, 1.0, 0.0],
            damage: 20.0,
            killed: true,
        }),
        "Test.Died" => ScriptEvent::PlayerDied {
            player,
            killer: Some(other),
            weapon: Some("Bow".to_owned()),
        },
        "Test.Chat" => ScriptEvent::Chat {
            player: 7,
            text: match args.first() {
                Some(Value::String(text)) => text.clone(),
                _ => return None,
            },
        },
        "Test.Destroyed" => ScriptEvent::EntityDestroyed { entity },
        _ => return None,
    })
}
