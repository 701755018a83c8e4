//! Scripts that cause more work than a tick holds, beside one that does not: it
//! must go on at its normal rate, and the flood within its own bounds.

use frolic_protocol::Value;
use frolic_script::{ScriptEvent, VmLimits};

use crate::support::Stage;

const TICKS: u32 = 30;

/// Counts every kind of work that a tick brings.
const HONEST: &str = r#"
local bus = require("Bus")
local counts = { tick = 0, woken = 0, deferred = 0, beat = 0, event = 0, signal = 0, delayed = 0, sent = 0 }
local function count(name)
    counts[name] += 1
end
local mine = Signal.new()
mine:Connect(function() count("signal") end)
bus.shared:Connect(function() end)
function OnTick()
    count("tick")
    Network.Broadcast("Here", string.rep("x", 1000))
    count("sent")
    task.defer(count, "deferred")
    task.delay(0, count, "delayed")
    mine:Fire()
end
game:GetService("RunService").Heartbeat:Connect(function() count("beat") end)
task.spawn(function()
    while true do
        task.wait()
        count("woken")
    end
end)
Network.OnClientEvent("Ping", function() count("event") end)
Network.OnClientEvent("Report", function()
    for _, name in { "tick", "woken", "deferred", "beat", "event", "signal", "delayed", "sent" } do
        print(name, counts[name])
    end
end)
"#;
const BUS: &str = "return { shared = Signal.new() }";

/// Work without end, of every kind that scripts can cause.
const FLOODS: [(&str, &str); 13] = [
    (
        "defer",
        "local function f() task.defer(f) task.defer(f) end f()",
    ),
    (
        "defer in OnTick",
        "function OnTick() for i = 1, 3000 do pcall(task.defer, function() end) end end",
    ),
    (
        "delay",
        "local function f() task.delay(0, f) task.delay(0, f) end f()",
    ),
    (
        "threads that wake each tick",
        "for i = 1, 9000 do task.spawn(function() while true do task.wait() end end) end",
    ),
    (
        "threads that never wake",
        "function OnTick() for i = 1, 3000 do pcall(task.spawn, function() task.wait(1e6) end) end end",
    ),
    (
        "a signal that fires itself",
        "local s = Signal.new() s:Connect(function() s:Fire() s:Fire() end) s:Fire()",
    ),
    (
        "a signal of many handlers",
        "local s = Signal.new() for i = 1, 200 do s:Connect(function() s:Fire() end) end s:Fire()",
    ),
    (
        "another script's signal",
        "local bus = require('Bus') function OnTick() for i = 1, 5000 do pcall(bus.shared.Fire) end end",
    ),
    (
        "one thread that is woken again and again",
        "local co = coroutine.create(function() while true do coroutine.yield() end end)\n\
         function OnTick() for i = 1, 3000 do pcall(task.defer, co) end end",
    ),
    (
        "spawn inside spawn",
        "local function f(n) if n > 0 then task.spawn(f, n - 1) task.spawn(f, n - 1) end task.wait() f(2) end\n\
         for i = 1, 500 do task.spawn(f, 2) end",
    ),
    (
        "large events",
        "local x = string.rep('x', 15000)\n\
         function OnTick() for i = 1, 50 do pcall(Network.Broadcast, 'F', x) end end",
    ),
    (
        "an event that is too large",
        "local x = string.rep('x', 15000) local all = table.create(32, x)\n\
         function OnTick() pcall(Network.Broadcast, 'F', all) end",
    ),
    (
        "events that cause more",
        "Network.OnClientEvent('Ping', function() for i = 1, 3000 do pcall(task.defer, function() end) end end)",
    ),
];

fn client_event(stage: &mut Stage, name: &str) {
    stage.vm.dispatch(ScriptEvent::ClientEvent {
        player: 7,
        name: name.to_owned(),
        args: vec![Value::Bool(true)],
    });
}

/// The honest script's count after some ticks beside a flood.
fn counted_beside(flood: &str) -> Vec<String> {
    // Counts alone must be enough: nothing here is decided by a clock.
    let mut stage = Stage::with_limits(VmLimits::untimed());
    stage.start(&[
        ("ReplicatedStorage/Bus.luau", BUS),
        ("ServerScriptService/Flood.luau", flood),
        ("ServerScriptService/Honest.luau", HONEST),
    ]);
    for _ in 0..TICKS {
        client_event(&mut stage, "Ping");
        stage.ticks(1);
    }
    client_event(&mut stage, "Report");
    stage.prints()
}

#[test]
fn a_flood_of_one_script_takes_nothing_from_another() {
    let normal = counted_beside("");
    assert_eq!(normal[0], format!("tick {TICKS}"), "{normal:?}");
    for (name, flood) in FLOODS {
        assert_eq!(counted_beside(flood), normal, "beside: {name}");
    }
}

#[test]
fn a_flood_reaches_its_own_limits_and_its_line_is_named() {
    let mut stage = Stage::with_limits(VmLimits::untimed());
    let flood = "\nfunction OnTick()\n    for i = 1, 20000 do\n        task.defer(function() end)\n    end\nend";
    stage.start(&[("ServerScriptService/Flood.luau", flood)]);
    stage.ticks(1);
    let world = stage.world.borrow();
    let line = &world.logs[0];
    assert_eq!(
        (line.script.as_str(), line.line),
        ("ServerScriptService/Flood.luau", Some(4))
    );
    assert!(line.message.contains("are due at once"), "{}", line.message);
}

#[test]
fn events_without_arguments_are_limited_too() {
    let mut stage = Stage::with_limits(VmLimits::untimed());
    let flood =
        "\nfunction OnTick()\n    for i = 1, 3000 do\n        Network.Broadcast('F')\n    end\nend";
    stage.start(&[("ServerScriptService/Flood.luau", flood)]);
    stage.ticks(1);
    let world = stage.world.borrow();
    let line = &world.logs[0];
    assert_eq!(line.line, Some(4), "{line:?}");
    assert!(line.message.contains("events per tick"), "{line:?}");
}

/// A script with much work gets it done in order, and within one tick where
/// there is room.
#[test]
fn much_work_of_an_honest_script_is_all_done_in_its_order() {
    let mut stage = Stage::with_limits(VmLimits::untimed());
    let source = r#"
local done = {}
for i = 1, 2000 do
    task.spawn(function() task.wait() table.insert(done, i) end)
end
function OnTick()
    task.defer(function() print(#done, done[1], done[2000]) end)
end
"#;
    stage.start(&[("ServerScriptService/Main.luau", source)]);
    stage.ticks(2);
    assert_eq!(stage.errors(), Vec::<String>::new());
    assert_eq!(
        stage.prints().last().map(String::as_str),
        Some("2000 1 2000")
    );
}
