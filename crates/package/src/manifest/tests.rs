//! Manifests read, and every mistake in one reported at its place.

use super::*;
use crate::Rule;

fn parse(text: &str) -> Result<Manifest, Report> {
    Manifest::parse(text.as_bytes(), &Limits::default())
}

fn places(text: &str) -> Vec<String> {
    let report = parse(text).expect_err("the manifest should be refused");
    let problems = report.problems.iter();
    problems
        .map(|p| {
            format!(
                "{}:{} {}",
                p.line.unwrap(),
                p.column.unwrap(),
                p.rule.name()
            )
        })
        .collect()
}

#[test]
fn id_and_name_are_enough() {
    let manifest = parse("[game]\nid = \"sky-race\"\nname = \"Sky Race\"\n").unwrap();
    assert_eq!(manifest.game.max_players, 50);
    assert_eq!(manifest.game.version, "0.1.0");
    assert_eq!(manifest.game.visibility, Visibility::Public);
    assert_eq!(manifest.simulation, SimulationSettings::default());
    assert_eq!(
        (manifest.simulation.tick_hz, manifest.simulation.snapshot_hz),
        (60, 20)
    );
    assert!(!manifest.world.persistent);
}

#[test]
fn everything_can_be_set() {
    let manifest = parse(
        r#"
[game]
id = "arena2"
name = "Arena"
description = """Two lines,
one game."""
version = "1.2.3-beta.1"
max_players = 16
tags = ["shooter", "team-play"]
thumbnail = "assets/t.png"
visibility = "unlisted"
[capabilities]
store = true
http = false
[world]
persistent = true
spells = true
idle_stop_s = 600
[simulation]
tick_hz = 30
snapshot_hz = 10
gravity = 9.81
kill_height = -20
interest_radius = 80
[bundles]
core = ["ReplicatedStorage/A.luau", "StarterGui/B.luau"]
"#,
    )
    .unwrap();
    assert_eq!(manifest.game.tags, ["shooter", "team-play"]);
    assert!(manifest.capabilities.store && !manifest.capabilities.http);
    assert_eq!(manifest.world.idle_stop_s, 600);
    assert_eq!(manifest.simulation.kill_height, -20.0);
    assert_eq!(manifest.simulation.interest_radius, Some(80.0));
    assert_eq!(manifest.simulation.gravity, 9.81);
    assert_eq!(manifest.bundles["core"].len(), 2);
}

#[test]
fn unknown_keys_are_named_with_their_line() {
    let text = "[game]\nid = \"a\"\nname = \"A\"\nnmae = 1\n\n[colour]\n";
    let report = parse(text).unwrap_err();
    assert_eq!(places(text), ["4:1 unknown-key", "6:2 unknown-key"]);
    let message = &report.problems[0].message;
    assert!(
        message.contains("\"nmae\"") && message.contains("line 4"),
        "{message}"
    );
}

#[test]
fn every_problem_is_reported_with_its_place() {
    let text = r#"
[game]
id = "Not A Slug"
version = "1.x"
max_players = 0
tags = ["ok", "NOT OK", 3]
visibility = "secret"
thumbnail = 5
[world]
persistent = "yes"
[simulation]
tick_hz = 61
gravity = nan
kill_height = 1e9
"#;
    let expected = [
        "1:1 missing-key",
        "3:6 invalid-value",
        "4:11 invalid-value",
        "5:15 invalid-value",
        "6:15 invalid-value",
        "6:25 invalid-value",
        "7:14 invalid-value",
        "8:13 invalid-value",
        "10:14 invalid-value",
        "12:11 invalid-value",
        "13:11 non-finite-number",
        "14:15 invalid-value",
    ];
    assert_eq!(places(text), expected);
}

#[test]
fn toml_that_is_not_toml_is_refused_with_its_place() {
    assert_eq!(places("[game]\nid = \n"), ["2:6 syntax"]);
    assert_eq!(
        places("[game]\nid = \"a\"\nid = \"b\"\nname = \"A\""),
        ["3:1 duplicate-key"]
    );
    assert_eq!(places(""), ["1:1 missing-key"]);
    assert_eq!(places("game = 3"), ["1:8 invalid-value"]);
    let deep = format!("a = {}", "[".repeat(60_000));
    assert!(parse(&deep).unwrap_err().has_errors());
    let not_utf8 = Manifest::parse(b"[game]\n\xff", &Limits::default()).unwrap_err();
    assert!(not_utf8.broke(Rule::InvalidText));
    let long = "#".repeat(65_537);
    assert!(parse(&long).unwrap_err().broke(Rule::FileSize));
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_or_refused_without_a_panic(text in "[\\[\\]a-z=\"'#.0-9{}, \n]{0,80}") {
        let _ = parse(&text);
    }
}

#[test]
fn capabilities_that_nothing_uses_are_warned_of() {
    let text = "[game]\nid = \"a\"\nname = \"A\"\n[capabilities]\nstore = true\nhttp = true\nteleport = true\n";
    let (manifest, places) =
        Manifest::parse_with_places(text.as_bytes(), &Limits::default()).unwrap();
    assert!(manifest.capabilities.http);
    let found = places.warnings.problems.iter();
    let found: Vec<_> = found.map(|problem| (problem.rule, problem.line)).collect();
    let expected = [(Rule::NoEffect, Some(6)), (Rule::NoEffect, Some(7))];
    assert_eq!(found, expected);
}
