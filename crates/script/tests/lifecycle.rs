//! The life of scripts: attachment, handlers, events, errors in the log.

use crate::support::Stage;
use frolic_protocol::Value;
use frolic_script::{LogLevel, Recipient, ScriptEvent};

fn client_event(stage: &mut Stage, name: &str, args: Vec<Value>) {
    stage.vm.dispatch(ScriptEvent::ClientEvent {
        player: 7,
        name: name.to_owned(),
        args,
    });
}

#[test]
fn the_example_runs_unchanged() {
    let mut stage = Stage::new();
    let source = r#"
Network.OnClientEvent("FireGun", function(player, dir)
    local bullet = World.Spawn("Bullet")
    bullet.SetVelocity(dir * 100)
    Network.Broadcast("PlaySound", "shoot.wav")
end)
"#;
    stage.start(&[("ServerScriptService/Gun.luau", source)]);
    client_event(&mut stage, "FireGun", vec![Value::Vector([0.0, 0.0, -1.0])]);
    assert_eq!(stage.errors(), Vec::<String>::new());
    let world = stage.world.borrow();
    let bullet = &world.entities[&1_000_001];
    assert_eq!(
        bullet.properties["Velocity"],
        Value::Vector([0.0, 0.0, -100.0])
    );
    let sound = Value::String("shoot.wav".to_owned());
    assert_eq!(
        world.sent,
        [(Recipient::All, "PlaySound".to_owned(), vec![sound], true)]
    );
}

#[test]
fn an_attached_script_sees_its_entity_and_its_handlers_run() {
    let mut stage = Stage::new();
    let source = r#"
print("main", entity.Name)
local ticks = 0
function OnStart() print("start") end
function OnTick(dt) ticks += 1 if ticks == 2 then print("tick", dt > 0) end end
function OnTriggerEnter(other) print("enter", other.Player.Name) other.Player:Respawn() end
function OnTriggerExit(other) print("exit", other.Name) end
function OnInteract(player) print("interact", player.Name) end
function OnDestroy() print("destroy") end
entity.TriggerEntered:Connect(function(other) print("signal", other.Name) end)
"#;
    stage.start_attached(
        &[("Workspace/KillBrick.luau", source)],
        &[(2, "Workspace/KillBrick.luau")],
    );
    stage.ticks(2);
    for event in [
        ScriptEvent::TriggerEnter {
            entity: 2,
            other: 10,
        },
        ScriptEvent::TriggerExit {
            entity: 2,
            other: 10,
        },
        ScriptEvent::Interact {
            entity: 2,
            player: 7,
        },
        ScriptEvent::EntityDestroyed { entity: 2 },
        ScriptEvent::TriggerEnter {
            entity: 2,
            other: 10,
        },
    ] {
        stage.vm.dispatch(event);
    }
    stage.ticks(2);
    assert_eq!(stage.errors(), Vec::<String>::new());
    assert_eq!(
        stage.prints(),
        [
            "main KillBrick",
            "start",
            "tick true",
            "enter Ada",
            "signal Ada",
            "exit Ada",
            "interact Ada",
            "destroy"
        ]
    );
    assert_eq!(stage.world.borrow().players[&7].deeds, ["respawn"]);
}

#[test]
fn each_entity_has_its_own_run_of_a_shared_script() {
    let mut stage = Stage::new();
    let source = "count = 0\nfunction OnTick() count += 1 end\n\
                  function OnInteract() print(entity.Id, count) end";
    stage.start_attached(
        &[("Workspace/A.luau", source)],
        &[(1, "Workspace/A.luau"), (2, "Workspace/A.luau")],
    );
    stage.ticks(3);
    stage
        .vm
        .dispatch(ScriptEvent::EntityDestroyed { entity: 1 });
    stage.ticks(2);
    for entity in [1, 2] {
        stage
            .vm
            .dispatch(ScriptEvent::Interact { entity, player: 7 });
    }
    assert_eq!(stage.prints(), ["2 5"]);
}

#[test]
fn a_spawned_prefab_brings_its_script() {
    let mut stage = Stage::new();
    stage.world.borrow_mut().prefab_scripts = vec!["Workspace/Coin.luau".to_owned()];
    stage.vm.attach_only(["Workspace/Coin.luau".to_owned()]);
    stage.start(&[
        ("Workspace/Coin.luau", "print('coin', entity.Id)"),
        ("ServerScriptService/Main.luau", "World.Spawn('Scripted')"),
    ]);
    stage.ticks(1);
    assert_eq!(stage.errors(), Vec::<String>::new());
    assert_eq!(stage.prints(), ["coin 1000001"]);
}

#[test]
fn handlers_work_while_the_script_body_still_waits() {
    let mut stage = Stage::new();
    let source = "function OnInteract() print('hello') end\nwhile true do task.wait() end";
    stage.start_attached(&[("Workspace/A.luau", source)], &[(2, "Workspace/A.luau")]);
    stage.ticks(3);
    stage.vm.dispatch(ScriptEvent::Interact {
        entity: 2,
        player: 7,
    });
    assert_eq!(stage.prints(), ["hello"]);
}

#[test]
fn players_join_and_leave() {
    let mut stage = Stage::new();
    let source = r#"
Players.PlayerAdded:Connect(function(player)
    print("joined", player.Name)
    player.CharacterAdded:Connect(function(character) print("born", character.Id) end)
    Network.FireClient(player, "Welcome", player.Name)
end)
Players.PlayerLeft.Connect(function(player) print("left", player.Name) end)
"#;
    stage.start(&[("ServerScriptService/Main.luau", source)]);
    stage.world.borrow_mut().add_player(9, "Bob", 10);
    stage.vm.dispatch(ScriptEvent::PlayerJoined { player: 9 });
    stage
        .vm
        .dispatch(ScriptEvent::CharacterSpawned { player: 9 });
    stage.vm.dispatch(ScriptEvent::PlayerLeft { player: 9 });
    assert_eq!(stage.errors(), Vec::<String>::new());
    assert_eq!(stage.prints(), ["joined Bob", "born 10", "left Bob"]);
    let world = stage.world.borrow();
    assert_eq!(world.sent[0].0, Recipient::One(9));
}

/// Mistyped commands concern only their author.
#[test]
fn unknown_commands_are_answered_to_their_writer_only() {
    let mut stage = Stage::new();
    let source = r#"
Chat.Command("score", function() end)
Chat.Command("home", function() end)
Chat.OnMessage(function(_, text) if text == "/own" then return false end end)
"#;
    stage.start(&[("ServerScriptService/Main.luau", source)]);
    for text in ["/help", "/scor 3", "/own", "hello /help"] {
        stage.vm.dispatch(ScriptEvent::Chat {
            player: 7,
            text: text.to_owned(),
        });
    }
    stage.ticks(2);
    assert_eq!(stage.errors(), Vec::<String>::new());
    let world = stage.world.borrow();
    let said: Vec<_> = world
        .chat
        .iter()
        .map(|(to, from, text)| (*to, *from, text.as_str()))
        .collect();
    assert_eq!(
        said,
        [
            (Recipient::One(7), None, "Commands: /home, /score"),
            (
                Recipient::One(7),
                None,
                "There is no command /scor. Commands: /home, /score"
            ),
            (Recipient::All, Some(7), "hello /help"),
        ]
    );
}

#[test]
fn calls_are_answered() {
    let mut stage = Stage::new();
    let source = r#"
Network.OnClientInvoke("Add", function(player, a, b) return a + b end)
Network.OnClientInvoke("Slow", function(player) task.wait(0.1) return "done" end)
Network.OnClientInvoke("Fail", function() error("no coins", 0) end)
"#;
    stage.start(&[("ServerScriptService/Main.luau", source)]);
    for (id, name, args) in [
        (1, "Add", vec![Value::Number(2.0), Value::Number(3.0)]),
        (2, "Slow", vec![]),
        (3, "Fail", vec![]),
        (4, "Nothing", vec![]),
    ] {
        stage.vm.dispatch(ScriptEvent::ClientInvoke {
            player: 7,
            id,
            name: name.to_owned(),
            args,
        });
    }
    let text = |s: &str| Value::String(s.to_owned());
    stage.ticks(20);
    let world = stage.world.borrow();
    let mut replies = world.replies.clone();
    replies.sort_by_key(|reply| reply.1);
    assert_eq!(replies[0], (7, 1, Ok(vec![Value::Number(5.0)])));
    assert_eq!(replies[1], (7, 2, Ok(vec![text("done")])));
    assert_eq!(replies[2], (7, 3, Err("no coins".to_owned())));
    assert_eq!(replies[3].2, Err("nothing answers \"Nothing\"".to_owned()));
    assert!(world.sent.is_empty(), "an answer is no event");
    assert_eq!(stage.errors(), ["no coins"]);
}

#[test]
fn an_error_names_file_line_stack_and_source() {
    let mut stage = Stage::new();
    let source = "local function inner()\n    local t = nil\n    return t.x\nend\n\
                  function OnTick()\n    inner()\nend\nprint('fine')";
    stage.start(&[("ServerScriptService/Bad.luau", source)]);
    stage.ticks(1);
    let world = stage.world.borrow();
    let line = world
        .logs
        .iter()
        .find(|line| line.level == LogLevel::Error)
        .expect("the error was logged");
    assert_eq!(line.script, "ServerScriptService/Bad.luau");
    assert_eq!(line.line, Some(3));
    assert_eq!(line.source_line.as_deref(), Some("return t.x"));
    assert!(line.message.contains("nil"), "{}", line.message);
    let frames: Vec<&str> = line.traceback.lines().collect();
    assert!(frames[0].contains("Bad.luau:3") && frames[0].contains("inner"));
    assert!(frames[1].contains("Bad.luau:6"), "{frames:?}");
    assert_eq!(frames.len(), 2, "the engine's own frames are left out");
}

#[test]
fn an_error_of_the_api_points_at_the_creators_line() {
    let mut stage = Stage::new();
    let source = "\nWorld.Spawn('Nope')\n";
    stage.start(&[("ServerScriptService/Main.luau", source)]);
    let world = stage.world.borrow();
    let line = &world.logs[0];
    assert_eq!(line.line, Some(2), "{line:?}");
    assert_eq!(line.source_line.as_deref(), Some("World.Spawn('Nope')"));
}

#[test]
fn scripts_do_not_see_each_others_globals() {
    let mut stage = Stage::new();
    stage.start(&[
        (
            "ServerScriptService/A.luau",
            "secret = 1\nprint = nil\nassert = error",
        ),
        (
            "ServerScriptService/B.luau",
            "assert(secret == nil) print('ok')",
        ),
    ]);
    assert_eq!(stage.errors(), Vec::<String>::new());
    assert_eq!(stage.prints(), ["ok"]);
}

#[test]
fn client_scripts_and_modules_do_not_run_by_themselves() {
    let mut stage = Stage::new();
    stage.start(&[
        ("StarterGui/Hud.luau", "print('client')"),
        ("ReplicatedStorage/M.luau", "print('module') return 1"),
        ("Workspace/C.luau", "--@context client\nprint('client')"),
        ("Workspace/S.luau", "print('server')"),
    ]);
    assert_eq!(stage.prints(), ["server"]);
}

#[test]
fn a_flood_of_lines_is_cut_and_counted() {
    let mut stage = Stage::new();
    let source = "for i = 1, 5000 do print(i) end";
    stage.start(&[("ServerScriptService/Main.luau", source)]);
    assert_eq!(stage.prints().len(), 100);
    // Also when the script never writes again.
    stage.ticks(70);
    let warnings = stage.world.borrow().messages(LogLevel::Warn);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("4900 more lines"), "{warnings:?}");
}

#[test]
fn a_player_who_left_stays_readable_after_a_wait() {
    let mut stage = Stage::new();
    let source = r#"
Players.PlayerRemoving:Connect(function(player)
    task.wait(0.1)
    print(player.Name, player.DisplayName, player.UserId, player.Team, player.leaderstats.Coins, player.Character)
    print(tostring(player), player.leaderstats.Nothing, pcall(function() player.leaderstats.Coins = 1 end))
    Store.ForPlayer(player).Set("coins", player.leaderstats.Coins)
    print("saved", player.Name)
end)
"#;
    stage.start(&[("ServerScriptService/Main.luau", source)]);
    {
        let mut world = stage.world.borrow_mut();
        world.add_player(9, "Bob", 10);
        let bob = world.players.get_mut(&9).expect("just added");
        bob.stats.insert("Coins".into(), Value::Number(7.0));
        let team = Value::String("Red".into());
        bob.properties.insert("Team".into(), team);
    }
    stage.vm.dispatch(ScriptEvent::PlayerLeft { player: 9 });
    stage.world.borrow_mut().players.remove(&9);
    for _ in 0..20 {
        stage.ticks(1);
        stage.answer_store();
    }
    assert_eq!(stage.errors(), Vec::<String>::new());
    let prints = stage.prints();
    assert_eq!(prints[0], "Bob Bob user-9 Red 7 nil");
    assert!(prints[1].starts_with("Bob nil false"), "{prints:?}");
    assert_eq!(prints[2..], ["saved Bob"]);
}

/// Everything that happens at the end of a world, on one timeline.
const CLOSING: &str = r#"
Players.PlayerRemoving:Connect(function(player)
    print("removing", player.Name, player.Character ~= nil)
    Store.ForPlayer(player).Set("coins", player.leaderstats.Coins)
    print("saved", player.Name, Store.ForPlayer(player).Get("coins"))
end)
World.OnClose(function()
    print("closing", #Players:GetPlayers())
    task.wait(0.2)
    print("closed")
end)
game:BindToClose(function() print("bound") task.spawn(function() Store.Set("last", 1) print("last") end) end)
function OnTick() ticks = (ticks or 0) + 1 end
World.OnClose(function() task.wait(0.1) print("ticked", ticks > 3) end)
"#;

#[test]
fn a_world_that_closes_waits_for_its_handlers_and_the_store() {
    let mut stage = Stage::new();
    stage.start(&[("ServerScriptService/Main.luau", CLOSING)]);
    let ada = stage.world.borrow_mut().players.remove(&7).expect("Ada");
    let mut ada = ada;
    ada.stats.insert("Coins".into(), Value::Number(7.0));
    stage.world.borrow_mut().players.insert(7, ada);
    assert_eq!(stage.vm.closing_left(), 0);
    stage.vm.dispatch(ScriptEvent::Closing);
    stage.vm.dispatch(ScriptEvent::Closing);
    assert_eq!(
        stage.prints(),
        ["removing Ada true", "closing 1", "bound"],
        "in this order, and once"
    );
    // PlayerRemoving, two of World.OnClose, and two that wait for the store.
    assert_eq!(stage.vm.closing_left(), 5);
    let mut ticks = 0;
    while stage.vm.closing_left() > 0 {
        stage.ticks(1);
        stage.answer_store();
        ticks += 1;
        assert!(ticks < 600, "it never ends: {:?}", stage.prints());
    }
    assert_eq!(stage.errors(), Vec::<String>::new());
    let prints = stage.prints();
    for line in ["saved Ada 7", "last", "ticked true", "closed"] {
        assert!(prints.iter().any(|said| said == line), "{line}: {prints:?}");
    }
}

#[test]
fn a_handler_that_never_ends_is_stopped_and_its_position_reported() {
    let mut stage = Stage::new();
    let source = "World.OnClose(function()\n    while true do\n        task.wait()\n    end\nend)\n\
                  World.OnClose(function() coroutine.yield() end)\n\
                  World.OnClose(function() error('no luck') end)";
    stage.start(&[("ServerScriptService/Main.luau", source)]);
    stage.vm.dispatch(ScriptEvent::Closing);
    stage.ticks(30);
    assert_eq!(stage.vm.closing_left(), 2);
    stage.vm.end_close(10);
    assert_eq!(stage.vm.closing_left(), 0);
    let world = stage.world.borrow();
    let logged: Vec<_> = world
        .logs
        .iter()
        .map(|l| (l.line, l.message.as_str()))
        .collect();
    let stopped = "a World.OnClose handler was stopped: a world closes within 10 seconds";
    assert_eq!(
        logged,
        [(Some(7), "no luck"), (Some(3), stopped), (Some(6), stopped)]
    );
}

#[test]
fn gravity_is_read_as_it_is_under_every_name() {
    let mut stage = Stage::new();
    let source = "workspace.Gravity = 100\n\
                  print(workspace.Gravity, Workspace.Gravity, game.Workspace.Gravity, World.Gravity)\n\
                  World.Gravity = 5\nlocal function read() return workspace.Gravity end\nprint(read())";
    stage.start(&[("ServerScriptService/Main.luau", source)]);
    assert_eq!(stage.errors(), Vec::<String>::new());
    assert_eq!(stage.prints(), ["100 100 100 100", "5"]);
}

#[test]
fn print_shows_what_is_in_a_table_within_bounds() {
    let mut stage = Stage::new();
    let source = "print({1, 2, {a = 'x', [true] = 5}}, 'and', {})\n\
                  local c = {n = 1} c.me = c print(c)\n\
                  print({{{{{{}}}}}}) print(table.create(70, 1))\n\
                  print({World.Find('Ground'), Vector3.one, print, newproxy()})";
    stage.start(&[("ServerScriptService/Main.luau", source)]);
    let ones = "1, ".repeat(64);
    assert_eq!(
        stage.prints(),
        [
            "{1, 2, {a = \"x\", [true] = 5}} and {}",
            "{me = {cycle}, n = 1}",
            "{{{{{…}}}}}",
            &format!("{{{ones}… 6 more}}"),
            "{Entity 1 (Ground), 1, 1, 1, function, userdata}",
        ]
    );
}

#[test]
fn an_event_without_a_handler_is_logged_once() {
    let mut stage = Stage::new();
    let source = "Network.OnClientEvent('FireGun', print)";
    stage.start(&[("ServerScriptService/Main.luau", source)]);
    for _ in 0..3 {
        stage.vm.dispatch(ScriptEvent::ClientEvent {
            player: 7,
            name: "FireGnu".to_owned(),
            args: vec![],
        });
    }
    let world = stage.world.borrow();
    let logged: Vec<&str> = world.logs.iter().map(|l| l.message.as_str()).collect();
    assert_eq!(
        logged,
        ["\"FireGnu\" came from Ada, and nothing listens to it: \
          Network.OnClientEvent(\"FireGnu\", …); did you mean \"FireGun\"?"]
    );
}
