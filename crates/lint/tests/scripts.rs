//! Warnings about scripts, and above all their absence: the samples, the
//! examples of the reference, and legal Luau of every kind give none.
#![allow(clippy::unwrap_used, reason = "all of this is test code")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use frolic_lint::{Files, compile_errors, warnings};
use frolic_package::Manifest;
use frolic_scene::{Limits, Severity};
use frolic_script::api::{Side, pages};

const SERVER: &str = "ServerScriptService/Main.luau";
const CLIENT: &str = "StarterGui/Hud.luau";
const BOTH: &str = "Workspace/Brick.luau";

fn manifest(capabilities: &str) -> Manifest {
    let text = format!("[game]\nid = \"a\"\nname = \"A\"\n[capabilities]\n{capabilities}\n");
    Manifest::parse(text.as_bytes(), &Limits::default()).unwrap()
}

/// The warnings about one script, as `line: message`.
fn found_with(path: &str, source: &str, capabilities: &str) -> Vec<String> {
    let mut files: Files = BTreeMap::new();
    let module = b"return {}".to_vec();
    files.insert("scripts/ReplicatedStorage/Shop.luau".to_owned(), module);
    files.insert(format!("scripts/{path}"), source.as_bytes().to_vec());
    let limits = Limits::default();
    let errors = compile_errors(&files, &limits);
    assert!(errors.problems.is_empty(), "{errors}");
    let report = warnings(&files, Some(&manifest(capabilities)), &limits);
    let problems = report.problems.into_iter();
    problems
        .map(|problem| {
            assert_eq!(problem.severity, Severity::Warning);
            assert_eq!(problem.file, format!("scripts/{path}"));
            format!("{}: {}", problem.line.unwrap(), problem.message)
        })
        .collect()
}

#[track_caller]
fn check(path: &str, source: &str, expected: &[&str]) {
    let found = found_with(path, source, "store = true\nchat = true");
    assert_eq!(found.len(), expected.len(), "{source}\n{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.contains(expected), "{found}\n{expected}");
    }
}

#[test]
fn names_that_do_not_exist_are_found_with_what_was_meant() {
    check(
        SERVER,
        "prnt(\"x\")",
        &["1: prnt is not defined; did you mean print?"],
    );
    check(
        SERVER,
        "\n\nlocal x = wrold.Find(\"A\")",
        &["3: wrold is not defined; did you mean World?"],
    );
    check(SERVER, "print(Zebra9)\nlocal y = Zebra9 + 1", &[]);
    check(
        SERVER,
        "local y = Zebra9 + 1\nlocal z = Zebra9 + 2",
        &["1: Zebra9 is not defined"],
    );
    check(CLIENT, "score += 1", &["score is not defined"]);
    check(
        SERVER,
        "World.Spwan(\"Coin\")",
        &["Spwan is not a member of World; did you mean Spawn?"],
    );
    check(
        SERVER,
        "Players.PlayerAded:Connect(print)",
        &["PlayerAded is not a member of Players"],
    );
    check(
        SERVER,
        "table.inser({}, 1)",
        &["inser is not a member of table; did you mean insert?"],
    );
    check(
        SERVER,
        "local v = Vector3.nwe(1, 2, 3)",
        &["nwe is not a member of Vector3; did you mean new?"],
    );
}

#[test]
fn assets_that_the_game_does_not_have_are_found() {
    check(
        CLIENT,
        "UI.Image({ Image = \"assets/none.png\" })\nSound.Play \"assets/none.ogg\"\nSound.Play(\"assets/none.ogg\")",
        &[
            "1: there is no file assets/none.png in this game",
            "2: there is no file assets/none.ogg in this game",
        ],
    );
    // Parts of names, patterns, and what the engine has by itself.
    check(
        CLIENT,
        "local n = 5\nSound.Play(\"assets/step\" .. n .. \".ogg\")\nSound.Play(`assets/{n}.ogg`)\n\
         Sound.Play(\"assets/a\" .. n)\nSound.Play(n .. \"assets/b.ogg\")\n\
         Sound.Play(string.format(\"assets/%d.ogg\", n))\nSound.Play(\"coin\")",
        &[],
    );
}

#[test]
fn components_that_do_nothing_are_found_where_a_script_spawns_them() {
    check(
        SERVER,
        "World.Spawn({\n\tModel = nil,\n\tShape = { type = \"box\" },\n}, Vector3.zero)\nWorld:Spawn { Sound = {} }",
        &["2: Model is not drawn yet", "5: Sound is not played yet"],
    );
    check(
        SERVER,
        "local World = { Spawn = print }\nWorld.Spawn({ Model = 1 })",
        &[],
    );
}

#[test]
fn a_side_that_does_not_have_it_is_named() {
    check(
        SERVER,
        "UI.Label({ Text = \"x\" })",
        &["UI exists on clients only"],
    );
    check(
        CLIENT,
        "World.Spawn(\"Coin\")",
        &["World.Spawn exists on the server only"],
    );
    check(
        CLIENT,
        "local s = Store.Get(\"x\")",
        &["Store exists on the server only"],
    );
    let first_line = "--@context server\nUI.Label({})";
    check(BOTH, first_line, &["2: UI exists on clients only"]);
}

#[test]
fn a_script_of_both_sides_that_fails_on_one_gets_a_hint_how_to_choose() {
    check(
        BOTH,
        "World.Spawn(\"Coin\")",
        &["begin it with the line --@context server"],
    );
    check(
        BOTH,
        "UI.Label({ Text = \"x\" })",
        &["begin it with the line --@context client"],
    );
    // Code that runs later, or on one side only, may be right.
    check(
        BOTH,
        "function OnTriggerEnter(other) World.Spawn(\"Coin\") end",
        &[],
    );
    check(
        BOTH,
        "local function give() World.Spawn(\"Coin\") end\nfunction OnInteract() give() end",
        &[],
    );
    check(
        BOTH,
        "if game:GetService(\"RunService\"):IsServer() then World.Spawn(\"Coin\") end",
        &[],
    );
    check(BOTH, "if UI then UI.Label({}) end", &[]);
}

#[test]
fn capabilities_and_modules_that_are_missing_are_found() {
    let found = found_with(
        SERVER,
        "local x = Store.Get(\"x\")\nStore.Set(\"x\", 1)",
        "",
    );
    assert_eq!(
        found,
        ["1: Store needs a capability: write store = true under [capabilities] in game.toml"]
    );
    assert_eq!(
        found_with(SERVER, "Chat.Broadcast(\"hi\")", "store = true").len(),
        1
    );
    check(
        SERVER,
        "local Shop = require(\"Shpo\")",
        &["there is no module \"Shpo\" in this game; did you mean Shop?"],
    );
    check(
        SERVER,
        "local Shop = require(ReplicatedStorage.Nope)",
        &[
            "ReplicatedStorage is not defined",
            "there is no module \"Nope\"",
        ],
    );
    for path in [
        "Shop",
        "./Shop",
        "../ReplicatedStorage/Shop.luau",
        "@game/Shop",
        "@self",
    ] {
        check(SERVER, &format!("local Shop = require(\"{path}\")"), &[]);
    }
    check(
        SERVER,
        "local R = game:GetService(\"ReplicatedStorage\")\nlocal Shop = require(R.Shop)",
        &[],
    );
    check(
        SERVER,
        "local name = \"Nope\"\nlocal m = require(name)",
        &[],
    );
}

/// Legal Luau that must not be complained about.
#[test]
fn what_is_right_is_left_alone() {
    let right = [
        "score = 0\nfunction add(n) score += n end\nadd(1)",
        "local function f() return g() end\nfunction g() return 1 end\nf()",
        "local World = {}\nfunction World.Nope() end\nWorld.Nope()",
        "local t = setmetatable({}, { __index = function(_, k) return k end })\nprint(t.anything)",
        "local unpack = table.unpack or unpack\nlocal f = loadstring or nil\nif not getfenv then return end",
        "for i, v in ipairs({ 1 }) do print(i, v) end\nfor k, v in { a = 1 } do print(k, v) end",
        "repeat local done = true until done",
        "local x: number = 1\ntype Point = { x: number }\nexport type Maybe<T> = T?\nlocal p: Point = { x = x }\nprint(p :: any)",
        "local s = `a {1 + 1} {if true then \"b\" else \"c\"}`\nprint(s)",
        "local function v(...) return select(\"#\", ...) end\nprint(v(1, 2))",
        "local obj = {}\nobj.__index = obj\nfunction obj:method() return self.value end\nfunction obj.new() return setmetatable({ value = 1 }, obj) end",
        "task.spawn(function() while true do task.wait(1) end end)",
        "if typeof(Undefined) == \"table\" then Undefined.x() end",
        "if Undefined ~= nil then Undefined.x() end",
        "print(script.Name, entity and entity.Name)",
        "local t = {}\nt[#t + 1] = function() return t end",
        "for i = 1, 3 do if i == 2 then continue end end",
        "local n = 0b101 + 0xFF + 1_000",
        "@native\nlocal function fast() return 1 end\nreturn fast",
    ];
    for source in right {
        check(SERVER, source, &[]);
    }
    check(
        "ReplicatedStorage/Util.luau",
        "local M = {}\nfunction M.here() return UI ~= nil end\nfunction M.both() return World.Spawn, UI.Label end\nreturn M",
        &[],
    );
}

#[test]
fn deep_nesting_does_not_end_the_program() {
    let depth = 900;
    let deep = format!("local x = {}1{}", "(".repeat(depth), ")".repeat(depth));
    check(SERVER, &deep, &[]);
    let sum = format!("local x = 1{}", " + 1".repeat(depth));
    check(SERVER, &sum, &[]);
    let blocks = format!("{}{}", "do ".repeat(150), "end ".repeat(150));
    check(SERVER, &blocks, &[]);
}

#[test]
fn the_samples_have_nothing_to_complain_about() {
    let games = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../games");
    let mut count = 0;
    for game in fs::read_dir(games).unwrap() {
        let folder = game.unwrap().path();
        if !folder.join("game.toml").is_file() {
            continue;
        }
        let mut files = Files::new();
        read_into(&mut files, &folder, "");
        let limits = Limits::default();
        let manifest = Manifest::parse(&files["game.toml"], &limits).unwrap();
        let report = warnings(&files, Some(&manifest), &limits);
        assert!(report.problems.is_empty(), "{}: {report}", folder.display());
        count += 1;
    }
    assert!(count >= 4);
}

fn read_into(files: &mut Files, folder: &Path, prefix: &str) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            read_into(files, &entry.path(), &format!("{name}/"));
        } else {
            files.insert(name, fs::read(entry.path()).unwrap());
        }
    }
}

#[test]
fn the_examples_of_the_reference_have_nothing_to_complain_about() {
    let mut count = 0;
    for page in pages() {
        for member in &page.members {
            let Some(example) = &member.example else {
                continue;
            };
            let path = match page.side_of(member) {
                Side::Server => SERVER,
                Side::Client => CLIENT,
                Side::Both => "ReplicatedStorage/Example.luau",
            };
            let found = found_with(path, example, "store = true\nchat = true");
            // An example leaves out what it is not about.
            let left_out = ["is not defined", "no module", "no file"];
            let found: Vec<_> = found
                .into_iter()
                .filter(|line| !left_out.iter().any(|text| line.contains(text)))
                .collect();
            assert!(
                found.is_empty(),
                "{}.{}: {found:?}\n{example}",
                page.name,
                member.name
            );
            count += 1;
        }
    }
    assert!(count > 20, "{count}");
}

#[test]
fn a_compile_error_has_its_line() {
    let mut files = Files::new();
    let broken = b"local a = 1\nlocal = 2\n".to_vec();
    files.insert("scripts/Workspace/Broken.luau".to_owned(), broken.clone());
    files.insert("spells/fire/spell.luau".to_owned(), broken);
    files.insert(
        "scripts/Workspace/Plain.soul".to_owned(),
        b"make it jump".to_vec(),
    );
    let report = compile_errors(&files, &Limits::default());
    let places: Vec<_> = report
        .problems
        .iter()
        .map(|p| (p.file.as_str(), p.line))
        .collect();
    let expected = [
        ("scripts/Workspace/Broken.luau", Some(2)),
        ("spells/fire/spell.luau", Some(2)),
    ];
    assert_eq!(places, expected);
    assert!(report.has_errors());
    assert!(
        warnings(&files, None, &Limits::default())
            .problems
            .is_empty()
    );
}
