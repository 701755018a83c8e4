//! New code in a running VM: what ends, what starts, and what is handed over.

use std::collections::BTreeMap;

use crate::support::Stage;
use frolic_script::{Attachment, ScriptEvent, Swap, VmLimits, compile};

fn swap(stage: &mut Stage, files: &[(&str, Option<&str>)], attached: &[(u32, &str)]) {
    reload(stage, files, attached, false);
}

fn reload(stage: &mut Stage, files: &[(&str, Option<&str>)], attached: &[(u32, &str)], back: bool) {
    let scripts: BTreeMap<_, _> = files
        .iter()
        .map(|(path, source)| {
            let script = source.map(|source| compile(path, source).expect("it compiles"));
            ((*path).to_owned(), script)
        })
        .collect();
    let attachments = attached
        .iter()
        .map(|(entity, script)| Attachment {
            entity: *entity,
            script: (*script).to_owned(),
        })
        .collect();
    stage.vm.reload(Swap {
        scripts,
        attachments,
        back,
    });
}

const MAIN: &str = "ServerScriptService/Main.luau";

#[test]
fn the_state_that_on_save_gives_reaches_on_reload() {
    let mut stage = Stage::new();
    let old = "local count = 40\nfunction OnTick() count += 1 end\n\
               function OnSave() return { count = count } end";
    stage.start(&[(MAIN, old)]);
    stage.ticks(2);
    let new = "local count = 0\nprint('main') function OnStart() print('start') end\n\
               function OnReload(old) count = old.count print('reload', count) end\n\
               function OnTick() count += 1 print('tick', count) end";
    swap(&mut stage, &[(MAIN, Some(new))], &[]);
    stage.ticks(1);
    assert_eq!(stage.errors(), Vec::<String>::new());
    assert_eq!(stage.prints(), ["main", "start", "reload 42", "tick 43"]);
}

#[test]
fn without_on_save_the_globals_are_handed_over() {
    let mut stage = Stage::new();
    stage.start(&[(MAIN, "score = 7 names = { 'Ada' } function helper() end")]);
    let new = "function OnReload(old) print(old.score, old.names[1], old.helper, old.script) end";
    swap(&mut stage, &[(MAIN, Some(new))], &[]);
    assert_eq!(stage.prints(), ["7 Ada nil nil"]);
}

#[test]
fn tasks_handlers_and_connections_of_the_old_code_are_over() {
    let mut stage = Stage::new();
    let code = |word: &str| {
        format!(
            "Network.OnClientEvent('Say', function() print('{word} event') end)\n\
             task.spawn(function() while true do task.wait() print('{word} task') end end)\n\
             Network.OnClientInvoke('Ask', function() return '{word}' end)"
        )
    };
    stage.start(&[(MAIN, &code("old"))]);
    swap(&mut stage, &[(MAIN, Some(&code("new")))], &[]);
    stage.ticks(1);
    stage.vm.dispatch(ScriptEvent::ClientEvent {
        player: 7,
        name: "Say".to_owned(),
        args: vec![],
    });
    assert_eq!(stage.prints(), ["new task", "new event"]);
}

#[test]
fn each_entity_keeps_its_own_state() {
    let mut stage = Stage::new();
    let path = "Workspace/Lamp.luau";
    let attached = [(1, path), (2, path)];
    let old = "count = entity.Id * 10";
    stage.start_attached(&[(path, old)], &attached);
    let new = "function OnReload(old) print(entity.Id, old.count) end\n\
               function OnInteract() print('touched', entity.Id) end";
    swap(&mut stage, &[(path, Some(new))], &attached);
    for entity in [2, 1] {
        stage
            .vm
            .dispatch(ScriptEvent::Interact { entity, player: 7 });
    }
    assert_eq!(stage.prints(), ["1 10", "2 20", "touched 2", "touched 1"]);
}

#[test]
fn a_script_that_required_a_changed_module_restarts_also_through_another_module() {
    let mut stage = Stage::new();
    stage.start(&[
        ("ReplicatedStorage/Deep.luau", "return 1"),
        (
            "ReplicatedStorage/Util.luau",
            "return { deep = require('Deep') }",
        ),
        (MAIN, "print('main', require('Util').deep)"),
        ("ServerScriptService/Other.luau", "print('other')"),
    ]);
    swap(
        &mut stage,
        &[("ReplicatedStorage/Deep.luau", Some("return 2"))],
        &[],
    );
    assert_eq!(stage.errors(), Vec::<String>::new());
    assert_eq!(stage.prints(), ["main 1", "other", "main 2"]);
}

#[test]
fn a_module_that_was_missing_or_broken_mends_who_wanted_it() {
    let mut stage = Stage::new();
    stage.start(&[(MAIN, "print(require('Late'))")]);
    assert_eq!(stage.errors().len(), 1);
    swap(
        &mut stage,
        &[("ReplicatedStorage/Late.luau", Some("return 'here'"))],
        &[],
    );
    assert_eq!(stage.prints(), ["here"]);
}

#[test]
fn new_files_start_and_removed_ones_end() {
    let mut stage = Stage::new();
    stage.start(&[(MAIN, "function OnTick() print('old') end")]);
    stage.ticks(1);
    swap(
        &mut stage,
        &[
            (MAIN, None),
            ("ServerScriptService/New.luau", Some("print('new')")),
            ("StarterGui/Hud.luau", Some("error('never here')")),
        ],
        &[],
    );
    stage.ticks(2);
    assert_eq!(stage.errors(), Vec::<String>::new());
    assert_eq!(stage.prints(), ["old", "new"]);
}

#[test]
fn a_script_that_was_disabled_gets_another_chance() {
    let mut stage = Stage::with_limits(VmLimits {
        offences_max: 1,
        slice: std::time::Duration::from_millis(20),
        ..VmLimits::default()
    });
    stage.start(&[(MAIN, "while true do end")]);
    stage.ticks(2);
    assert_eq!(stage.vm.usage().disabled_scripts, 1);
    swap(&mut stage, &[(MAIN, Some("print('again')"))], &[]);
    assert_eq!(stage.prints(), ["again"]);
}

#[test]
fn an_on_save_that_fails_or_hangs_delays_no_player() {
    for save in ["error('no')", "while true do end", "task.wait(1)"] {
        let mut stage = Stage::with_limits(VmLimits {
            slice: std::time::Duration::from_millis(20),
            ..VmLimits::default()
        });
        let old = format!("score = 5 function OnSave() {save} end");
        stage.start(&[(MAIN, &old)]);
        let new = "function OnReload(old) print('got', old.score) end";
        swap(&mut stage, &[(MAIN, Some(new))], &[]);
        stage.ticks(2);
        assert_eq!(stage.prints(), ["got 5"], "{save}");
    }
}

#[test]
fn a_swap_back_goes_on_with_the_state_of_before() {
    let mut stage = Stage::new();
    let good = "count = 0 function OnReload(old) count = old.count end\n\
                function OnTick() count += 1 print(count) end";
    stage.start(&[(MAIN, good)]);
    stage.ticks(3);
    swap(
        &mut stage,
        &[(MAIN, Some("count = -100 error('bad')"))],
        &[],
    );
    stage.ticks(2);
    reload(&mut stage, &[(MAIN, Some(good))], &[], true);
    stage.ticks(1);
    assert_eq!(stage.prints(), ["1", "2", "3", "4"]);
}

#[test]
fn the_sample_in_the_documentation_preserves_its_score() {
    let page = include_str!("../../../docs/create/hot-reload.md");
    let code = page.split("```lua\n").nth(1).expect("a sample");
    let code = code.split("```").next().expect("its end");
    let fire = |stage: &mut Stage, name: &str| {
        stage.vm.dispatch(ScriptEvent::ClientEvent {
            player: 7,
            name: name.to_owned(),
            args: vec![],
        });
    };
    let mut stage = Stage::new();
    stage.start(&[(MAIN, code)]);
    fire(&mut stage, "Point");
    let more = "Network.OnClientEvent('Show', function() print(score.Ada) end)";
    swap(&mut stage, &[(MAIN, Some(&format!("{code}\n{more}")))], &[]);
    fire(&mut stage, "Point");
    fire(&mut stage, "Show");
    assert_eq!(stage.errors(), Vec::<String>::new());
    assert_eq!(stage.prints(), ["2"]);
}
