//! Scripts that change while the world runs.

use std::collections::BTreeMap;

use frolic_protocol::{ServerMessage, Value};
use frolic_script::{LogLevel, ScriptLog};
use frolic_world::replay::{RecordOptions, replay};
use frolic_world::{World, WorldOptions, input};

use crate::harness::{package, reload};

const MAIN: &str = "ServerScriptService/Main.luau";
const UTIL: &str = "ReplicatedStorage/Util.luau";
const SCENE: &str = r#"{"format":1,"prefabs":{},"entities":[
    {"id":1,"name":"Lamp","components":{"Transform":{"position":[0,0,0]},
     "Script":{"path":"Workspace/Lamp.luau"}}}]}"#;

fn counting(step: u32) -> String {
    format!(
        "local n = 0 function OnTick() n += {step} Network.Broadcast('Count', n) end\n\
         function OnSave() return n end function OnReload(old) n = old end"
    )
}

fn sources(main: &str) -> BTreeMap<String, String> {
    [
        (MAIN, main),
        (UTIL, "return 1"),
        ("Workspace/Lamp.luau", "entity.Name = 'Lit'"),
    ]
    .into_iter()
    .map(|(path, text)| (path.to_owned(), text.to_owned()))
    .collect()
}

fn world(main: &str) -> (World, frolic_package::Package) {
    let sources = sources(main);
    let scripts: Vec<(String, &str)> = sources
        .iter()
        .map(|(path, text)| (format!("scripts/{path}"), text.as_str()))
        .collect();
    let scripts: Vec<(&str, &str)> = scripts.iter().map(|(p, t)| (p.as_str(), *t)).collect();
    let package = package(SCENE, &scripts);
    let options = WorldOptions {
        record: Some(RecordOptions {
            hash_every_ticks: Some(1),
            ..RecordOptions::default()
        }),
        ..WorldOptions::default()
    };
    let world = World::load(&package, options).expect("the world loads");
    (world, package)
}

fn steps(world: &mut World, count: u32) {
    for _ in 0..count {
        world.apply(input::Step);
    }
}

/// The values of `Broadcast('Count', n)` since the last call.
fn counts(world: &mut World) -> Vec<f64> {
    let numbers = world.take_outbox().into_iter();
    let numbers = numbers.filter_map(|outgoing| match outgoing.message {
        ServerMessage::Event { args, .. } => match args.0.first() {
            Some(Value::Number(n)) => Some(*n),
            _ => None,
        },
        _ => None,
    });
    numbers.collect()
}

fn of_level(world: &mut World, level: LogLevel) -> Vec<ScriptLog> {
    let logs = world.take_logs().into_iter();
    logs.filter(|line| line.level == level).collect()
}

#[test]
fn a_changed_file_is_live_in_the_next_tick_with_its_state_and_replays() {
    let (mut world, package) = world(&counting(1));
    steps(&mut world, 3);
    let done = reload(&mut world, "second", &sources(&counting(10))).unwrap();
    let done = done.expect("something changed");
    assert_eq!((done.version, done.changed), (2, vec![MAIN.to_owned()]));
    assert_eq!(world.revision(), "second");
    steps(&mut world, 2);
    assert_eq!(counts(&mut world), [1.0, 2.0, 3.0, 13.0, 23.0]);
    assert_eq!(
        reload(&mut world, "third", &sources(&counting(10))),
        Ok(None)
    );
    world.end_recording(frolic_world::replay::Ending::Complete);
    let report = replay(&package, &world.take_recording()).expect("it replays");
    assert_eq!(report.difference, None);
    assert_eq!(report.ticks, 5);
}

#[test]
fn a_file_that_does_not_compile_changes_nothing_not_even_the_others() {
    let (mut world, _) = world(&counting(1));
    steps(&mut world, 1);
    let mut broken = sources(&counting(10));
    broken.insert(UTIL.into(), "return 1\nlocal = 5".into());
    let errors = reload(&mut world, "broken", &broken).unwrap_err();
    assert_eq!(errors.len(), 1);
    assert_eq!((errors[0].path.as_str(), errors[0].line), (UTIL, 2));
    steps(&mut world, 2);
    assert_eq!(counts(&mut world), [1.0, 2.0, 3.0]);
    assert_eq!(world.script_version(), 1);
    let sent = of_level(&mut world, LogLevel::Error);
    assert_eq!(sent[0].source_line.as_deref(), Some("local = 5"));
}

#[test]
fn every_log_line_names_its_revision_and_script() {
    let (mut world, package) = world("print('one')");
    let first = of_level(&mut world, LogLevel::Info)
        .remove(0)
        .origin
        .unwrap();
    assert_eq!(first.revision, package.revision);
    reload(&mut world, "second", &sources("error('two')")).unwrap();
    let second = of_level(&mut world, LogLevel::Error)
        .remove(0)
        .origin
        .unwrap();
    assert_eq!(second.revision, "second");
    let hash = world
        .scripts()
        .find(|s| s.path == MAIN)
        .map(|s| s.sha256_hex.clone());
    assert_eq!(second.hash, hash);
    assert_ne!(second.hash, first.hash);
}

fn run_watched(world: &mut World, ticks: u32, script_us: u64) -> Option<(u32, String)> {
    for tick in 1..=ticks {
        world.apply(input::Step);
        if let Some(reason) = world.judge_reload(script_us) {
            world
                .apply(input::SwapBack {
                    reason: reason.clone(),
                })
                .expect("there is something to go back to");
            return Some((tick, reason));
        }
    }
    None
}

#[test]
fn scripts_that_raise_errors_go_again_with_the_state_of_before() {
    let (mut world, package) = world(&counting(1));
    assert_eq!(run_watched(&mut world, 120, 300), None);
    counts(&mut world);
    let bad = "function OnTick() error('bad') end";
    reload(&mut world, "bad", &sources(bad)).unwrap();
    let (tick, reason) = run_watched(&mut world, 300, 300).expect("noticed");
    assert!(tick < 30, "soon: tick {tick}");
    assert!(reason.contains("errors rose"), "{reason}");
    assert_eq!(world.revision(), package.revision);
    assert_eq!(world.script_version(), 3);
    let sent = of_level(&mut world, LogLevel::Warn);
    assert!(
        sent.iter()
            .any(|line| line.message.contains("swapped back from revision bad"))
    );
    world.apply(input::Step);
    assert_eq!(counts(&mut world), [121.0]);
    assert_eq!(run_watched(&mut world, 300, 300), None, "and that is that");
    assert_eq!(
        world.apply(input::SwapBack {
            reason: "twice".into()
        }),
        None
    );
    world.end_recording(frolic_world::replay::Ending::Complete);
    let report = replay(&package, &world.take_recording()).expect("it replays");
    assert_eq!(report.difference, None);
}

#[test]
fn scripts_that_fail_at_once_or_are_slow_go_again() {
    let (mut world, _) = world(&counting(1));
    run_watched(&mut world, 120, 300);
    reload(&mut world, "bad", &sources("error('at once')")).unwrap();
    let (_, reason) = run_watched(&mut world, 10, 300).expect("noticed");
    assert!(
        reason.contains("Main.luau failed when it started"),
        "{reason}"
    );
    run_watched(&mut world, 120, 300);
    reload(&mut world, "slow", &sources(&counting(2))).unwrap();
    let (_, reason) = run_watched(&mut world, 300, 8_000).expect("noticed");
    assert!(reason.contains("script time rose"), "{reason}");
}

#[test]
fn new_and_removed_files_and_scripts_of_entities() {
    let (mut world, _) = world("");
    assert!(world.position_of("Lit").is_some());
    let mut next = sources("");
    next.remove(MAIN);
    next.insert("ServerScriptService/New.luau".into(), "print('new')".into());
    next.insert(
        "Workspace/Lamp.luau".into(),
        "entity.Name = 'Bright'".into(),
    );
    let done = reload(&mut world, "next", &next).unwrap().expect("changes");
    assert_eq!(
        done.changed,
        ["ServerScriptService/New.luau", "Workspace/Lamp.luau"]
    );
    assert_eq!(done.removed, [MAIN]);
    assert!(world.position_of("Bright").is_some());
    assert_eq!(of_level(&mut world, LogLevel::Error), []);
}
