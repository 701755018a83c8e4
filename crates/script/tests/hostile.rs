//! Scripts that try to break out, hang or fill the world. After each of them
//! an honest script in the same VM must still get its ticks.

use std::time::Duration;

use crate::support::Stage;
use frolic_script::{ScriptEvent, VmLimits};

const HONEST: &str = "local n = 0\nfunction OnTick() n += 1 end\n\
                      function OnInteract() print('alive', n) end";

fn limits() -> VmLimits {
    VmLimits {
        memory_bytes: 16 << 20,
        slice: Duration::from_millis(30),
        ..VmLimits::default()
    }
}

/// Runs a hostile body beside an honest script; returns the errors logged.
fn check(body: &str) -> Vec<String> {
    check_within(limits(), body)
}

fn check_within(limits: VmLimits, body: &str) -> Vec<String> {
    let mut stage = Stage::with_limits(limits);
    stage.start_attached(
        &[
            ("ServerScriptService/Evil.luau", body),
            ("Workspace/Honest.luau", HONEST),
        ],
        &[(2, "Workspace/Honest.luau")],
    );
    stage.ticks(10);
    stage.vm.dispatch(ScriptEvent::Interact {
        entity: 2,
        player: 7,
    });
    let prints = stage.prints();
    assert!(
        prints.iter().any(|line| line == "alive 10"),
        "the honest script starved beside: {body}\n{prints:?}\n{:#?}",
        stage.world.borrow().logs.iter().take(5).collect::<Vec<_>>()
    );
    assert!(
        !prints.iter().any(|line| line == "escaped"),
        "escaped: {body}"
    );
    assert!(
        stage.vm.usage().memory_bytes < 40 << 20,
        "memory retained: {body}"
    );
    stage.errors()
}

fn stopped(body: &str) {
    let errors = check(body);
    assert!(
        errors.iter().any(|e| e.contains("stopped")),
        "not stopped: {body}\n{errors:?}"
    );
}

/// The first tick must not find a script that has not run yet.
#[test]
fn a_slow_start_of_one_script_delays_no_other() {
    let errors = check_within(
        VmLimits {
            // Less than the slice, so that the stop exhausts the budget; enough that
            // the honest script never does.
            tick_budget: Duration::from_millis(20),
            ..limits()
        },
        "while true do end",
    );
    assert!(errors[0].contains("stopped"), "{errors:?}");
}

/// A script that uses more than its share of one budget starts on every entity
/// before the first tick.
#[test]
fn a_heavy_script_starts_on_all_its_entities() {
    let body = "local n = 0 for i = 1, 600_000 do n += i % 7 end print('started')";
    let path = "Workspace/Heavy.luau";
    let mut stage = Stage::with_limits(VmLimits {
        tick_budget: Duration::from_millis(20),
        ..limits()
    });
    stage.start_attached(
        &[(path, body)],
        &[(1, path), (2, path), (5, path), (10, path)],
    );
    assert_eq!(stage.prints(), ["started"; 4]);
}

/// Every case of `tests/hostile/*.luau`; a line `--- name` begins the next.
#[test]
fn nothing_of_the_corpus_reaches_the_others() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile");
    let mut cases = 0;
    for entry in std::fs::read_dir(folder).expect("the corpus") {
        let path = entry.expect("a file").path();
        let text = std::fs::read_to_string(&path).expect("text");
        for case in text.split("--- ").skip(1) {
            let (name, body) = case.split_once('\n').expect("a name and a body");
            println!("{}: {name}", path.display());
            check(body);
            cases += 1;
        }
    }
    assert!(cases > 50, "{cases} cases");
}

#[test]
fn endless_loops_are_stopped() {
    for body in [
        "while true do end",
        "repeat until false",
        "for i = 1, math.huge do end",
        "local function f() f() return 1 end while true do pcall(f) end",
        "local t = setmetatable({}, {__index = function(t, k) return t[k + 1] end}) while true do pcall(function() return t[1] end) end",
        "table.sort({3, 2, 1}, function() while true do end end)",
        "string.gsub('aaaa', 'a', function() while true do end end)",
        "string.find(string.rep('a', 200000), string.rep('a*', 100) .. 'b')",
        "coroutine.wrap(function() while true do end end)()",
        "task.spawn(function() while true do end end)",
        "task.defer(function() while true do end end)",
        "Signal.new():Connect(print) local s = Signal.new() s:Connect(function() while true do end end) s:Fire()",
        "for _ in setmetatable({}, {__iter = function() while true do end end}) do end",
        "error(setmetatable({}, {__tostring = function() while true do end end})) while true do end",
        "print(setmetatable({}, {__tostring = function() while true do end end}))",
    ] {
        if body.starts_with("error(") {
            check(body);
        } else {
            stopped(body);
        }
    }
}

#[test]
fn a_stop_cannot_be_caught() {
    for body in [
        "while true do pcall(function() while true do end end) end",
        "while true do xpcall(function() while true do end end, function() while true do end end) end",
        "local function f() pcall(f) pcall(f) while true do end end f()",
        "pcall(function() while true do end end) print('escaped')",
        "coroutine.resume(coroutine.create(function() while true do end end)) print('escaped')",
        "task.spawn(function() while true do end end) print('escaped')",
        "xpcall(function() while true do end end, function() print('escaped') end)",
    ] {
        stopped(body);
    }
}

#[test]
fn memory_bombs_are_stopped() {
    for body in [
        "local t = {} while true do t[#t + 1] = {} end",
        "local s = 'x' while true do s = s .. s end",
        "local t = {} for i = 1, 1e9 do t[i] = buffer.create(1000000) end",
        "local t = {} while true do table.insert(t, string.rep('x', 200000) .. #t) end",
        "local t = {} while true do t[#t + 1] = coroutine.create(print) end",
        "local t = {} while true do t[#t + 1] = function() return t end end",
        "while true do pcall(function() local t = {} while true do t[#t + 1] = table.create(100000, 1) end end) end",
    ] {
        let errors = check(body);
        assert!(!errors.is_empty(), "nothing happened: {body}");
    }
}

#[test]
fn memory_that_stays_allocated_disables_its_owner() {
    // This is about memory: on a slow machine it takes longer than the short slice
    // of the other tests to fill it.
    let errors = check_within(
        VmLimits {
            slice: Duration::from_secs(5),
            ..limits()
        },
        "kept = {} while true do kept[#kept + 1] = table.create(1000, 1) end",
    );
    assert!(
        errors.iter().any(|e| e.contains("disabled")),
        "the memory hog lives: {errors:?}"
    );
}

#[test]
fn a_script_that_runs_when_memory_is_short_is_not_blamed_for_it() {
    // Fills memory to just below the cap in small bites, then leaves it to the
    // others to cross the line. At the end the honest one keeps 9 MiB of 16,
    // for which there is room only if the hoard is gone.
    let mut stage = Stage::with_limits(limits());
    let hoard = "kept = {}\nfunction OnTick() if #kept < 60 then kept[#kept + 1] = table.create(15000, 1) end end";
    let honest = "function OnTick() own = table.create(200000, 1) own = nil last = {} end\n\
                  function OnInteract() own = table.create(600000, 1) print('alive') end";
    stage.start_attached(
        &[
            ("ServerScriptService/Hoard.luau", hoard),
            ("Workspace/Honest.luau", honest),
        ],
        &[(2, "Workspace/Honest.luau")],
    );
    stage.ticks(80);
    stage.vm.dispatch(ScriptEvent::Interact {
        entity: 2,
        player: 7,
    });
    assert_eq!(stage.prints(), ["alive"], "{:?}", stage.errors());
    let world = stage.world.borrow();
    let blamed: Vec<&str> = world
        .logs
        .iter()
        .filter(|line| line.message.contains("MiB"))
        .map(|line| line.script.as_str())
        .collect();
    assert_eq!(blamed, ["ServerScriptService/Hoard.luau"]);
}

#[test]
fn garbage_alone_does_not_stop_an_honest_script() {
    // This is about memory: on a slow machine the collector alone takes longer
    // than the short slice of the other tests.
    let patient = VmLimits {
        slice: Duration::from_secs(5),
        average: Duration::from_secs(5),
        ..limits()
    };
    let errors = check_within(
        patient,
        "for i = 1, 40 do local t = table.create(50000, i) end",
    );
    assert_eq!(errors, Vec::<String>::new());
}

#[test]
fn recursion_ends_as_an_error() {
    for body in [
        "local function f() return 1 + f() end f()",
        "local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k] end local _ = t.x",
        "local function f() coroutine.wrap(f)() end f()",
        "local function f() return pcall(f) end while true do f() end",
        "local function f() task.spawn(f) end f()",
    ] {
        let errors = check(body);
        assert!(!errors.is_empty(), "nothing happened: {body}");
    }
}

#[test]
fn chains_of_work_without_end_do_not_starve_others() {
    for body in [
        "local function again() task.defer(again) end again()",
        "local s = Signal.new() s:Connect(function() s:Fire() s:Fire() end) s:Fire()",
        "local function again() task.delay(0, again) task.delay(0, again) end again()",
        "while true do task.spawn(task.wait) if not pcall(task.wait, 0) then break end end",
        "local co co = coroutine.create(function() while true do coroutine.yield() end end) while true do task.spawn(co) task.wait() end",
    ] {
        check(body);
    }
}

#[test]
fn others_cannot_be_poisoned() {
    for body in [
        "string.rep = nil",
        "getmetatable('').__index = nil",
        "rawset(math, 'floor', nil)",
        "table.clear(table)",
        "setmetatable(string, {})",
        "World.Spawn = nil",
        "rawset(World, 'Tick', 1)",
        "rawset(entity or World.Find('KillBrick'), 'Name', 'Owned')",
        "World.Find('KillBrick').SetVelocity = print",
        "table.insert(Players, 1)",
        "getmetatable(World.Find('KillBrick')).__index = nil",
        "setmetatable(World.Find('KillBrick'), nil)",
        "task.wait = nil",
        "for k in getmetatable(vector.zero) do end",
        "Vector3.new = nil",
        "script.Path = 'x'",
    ] {
        let errors = check(body);
        assert!(!errors.is_empty(), "this went through: {body}");
    }
}

#[test]
fn engine_threads_do_not_leak_into_other_scripts() {
    // Stores its handler's thread and resumes, closes or cancels it later, when
    // the engine may have reused it for another handler.
    for abuse in [
        "coroutine.close(kept)",
        "coroutine.resume(kept, print, 'escaped')",
        "task.cancel(kept)",
        "task.spawn(kept)",
    ] {
        let body = format!(
            "local kept\nfunction OnTick()\nif kept then pcall(function() {abuse} end) end\n\
             kept = coroutine.running()\nend"
        );
        check(&body);
    }
}

#[test]
fn a_repeat_offender_is_disabled_and_named() {
    let mut stage = Stage::with_limits(VmLimits {
        offences_max: 3,
        ..limits()
    });
    let source = "function OnTick()\n    while true do end\nend";
    stage.start(&[("ServerScriptService/Evil.luau", source)]);
    stage.ticks(5);
    let world = stage.world.borrow();
    let stops: Vec<_> = world
        .logs
        .iter()
        .filter(|line| line.message.contains("stopped after"))
        .collect();
    assert_eq!(stops.len(), 3);
    assert_eq!(stops[0].script, "ServerScriptService/Evil.luau");
    assert_eq!(stops[0].line, Some(2), "{:?}", stops[0]);
    assert_eq!(stage.vm.usage().disabled_scripts, 1);
}

#[test]
fn a_script_that_slightly_exceeds_every_tick_is_throttled() {
    // Never reaches its slice, so nothing stops it; together it takes ten
    // times what the world has.
    let mut stage = Stage::with_limits(VmLimits {
        slice: Duration::from_secs(5),
        average: Duration::from_micros(200),
        savings: Duration::from_millis(5),
        pauses_max: 3,
        ..limits()
    });
    let hog = "local n = 0\nfunction OnTick() for i = 1, 300000 do n += i % 7 end ran = (ran or 0) + 1 end\n\
               Network.OnClientEvent('Ask', function() print('hog ran', ran) end)";
    stage.start_attached(
        &[
            ("ServerScriptService/Hog.luau", hog),
            ("Workspace/Honest.luau", HONEST),
        ],
        &[(2, "Workspace/Honest.luau")],
    );
    stage.ticks(2000);
    stage.vm.dispatch(ScriptEvent::Interact {
        entity: 2,
        player: 7,
    });
    assert_eq!(stage.prints(), ["alive 2000"]);
    let errors = stage.errors();
    assert!(errors[0].contains("it waits a moment"), "{errors:?}");
    assert!(
        errors.last().is_some_and(|e| e.contains("disabled")),
        "{errors:?}"
    );
    assert_eq!(errors.len(), 3, "{errors:?}");
    assert_eq!(stage.vm.usage().disabled_scripts, 1);
    let costs = stage.vm.costs();
    let cost = |path: &str| costs.iter().find(|cost| cost.path == path).expect("known");
    let (hog, honest) = (
        cost("ServerScriptService/Hog.luau"),
        cost("Workspace/Honest.luau"),
    );
    assert!(hog.cpu_us > honest.cpu_us, "{costs:?}");
    assert_eq!((hog.instances, hog.disabled, honest.instances), (0, 1, 1));
    assert_eq!(honest.hash.len(), 64);
}

#[test]
fn what_came_in_while_a_script_waited_is_not_lost() {
    let mut stage = Stage::with_limits(VmLimits {
        slice: Duration::from_secs(5),
        average: Duration::from_millis(1),
        savings: Duration::from_millis(5),
        ..limits()
    });
    let source = "local n = 0\nNetwork.OnClientEvent('Work', function() for i = 1, 3000000 do n += i % 7 end end)\n\
                  Network.OnClientEvent('Ask', function(_, k) print('got', k) end)";
    stage.start(&[("ServerScriptService/Heavy.luau", source)]);
    let event = |name: &str, k: f64| ScriptEvent::ClientEvent {
        player: 7,
        name: name.to_owned(),
        args: vec![frolic_protocol::Value::Number(k)],
    };
    stage.vm.dispatch(event("Work", 0.0));
    stage.ticks(2);
    stage.vm.dispatch(event("Ask", 1.0));
    stage.vm.dispatch(event("Ask", 2.0));
    assert_eq!(stage.prints(), Vec::<String>::new(), "it waits");
    stage.ticks(1000);
    assert_eq!(stage.prints(), ["got 1", "got 2"]);
}

#[test]
fn directives_cannot_turn_on_the_optimiser() {
    // With `--!optimize 2` nested loops unroll and compile for seconds.
    let mut source = String::from("--!optimize 2\n--!native\n");
    for _ in 0..200 {
        source.push_str(
            "for a = 1, 8 do for b = 1, 8 do for c = 1, 8 do local x = a * b * c end end end\n",
        );
    }
    let script = frolic_script::compile("Workspace/A.luau", &source).unwrap();
    assert!(script.bytecode().len() < 4 * source.len());
}
