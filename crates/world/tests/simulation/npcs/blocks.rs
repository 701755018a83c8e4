//! NPCs on block terrain: they walk on it, climb it, and find other paths when
//! players build or dig.

use frolic_world::{World, WorldOptions};

use super::Stage;
use crate::harness::package;

/// Level terrain at y = 8, and an NPC whose destination is on the other side.
fn meadow(script: &str) -> Stage {
    let scene = r#"{"format": 1, "entities": [
        {"id": 1, "name": "Spawn", "components": {"Transform": {"position": [0.5, 8, 20.5]}, "SpawnPoint": {}}},
        {"id": 10, "name": "Guard", "components": {"Transform": {"position": [0.5, 8, 0.5]},
            "Npc": {"patrol": [[0.5, 8, -11.5]], "hostile": "nobody"}}}],
        "terrain": {"size": [64, 32, 64], "generator": {"type": "flat", "height": 8}}}"#;
    let game = package(scene, &[("scripts/ServerScriptService/Test.luau", script)]);
    let world = World::load(&game, WorldOptions::default()).expect("it loads");
    Stage { world }
}

#[test]
fn walks_on_blocks_and_climbs_a_step_of_one() {
    let mut stage = meadow("");
    stage.until(9.0, "there", |g| g.position.z < -10.5);
    assert!((stage.guard().position.y - 8.0).abs() < 0.1);

    // A bank of one block right across: it jumps up and down again.
    let script = r#"Terrain.Box(Vector3.new(-32, 8, -8), Vector3.new(31, 9, -4), "stone")"#;
    let mut stage = meadow(script);
    stage.until(10.0, "on top", |g| g.position.y > 8.9);
    stage.until(15.0, "there", |g| {
        g.position.z < -10.5 && g.position.y < 8.2
    });
    stage.no_errors();
}

#[test]
fn goes_another_way_when_the_ground_changes() {
    // A wall with a gap far to the side; then the gap is closed, then another opens.
    let script = r#"
        Terrain.Box(Vector3.new(-32, 8, -5), Vector3.new(31, 12, -4), "stone")
        task.wait(12)
        Terrain.Box(Vector3.new(-1, 8, -6), Vector3.new(2, 11, -3))"#;
    let mut stage = meadow(script);
    stage.seconds(11.0);
    assert!(
        stage.guard().position.z > -4.0,
        "a wall: {:?}",
        stage.guard()
    );
    stage.until(40.0, "through the hole", |g| g.position.z < -10.5);
    stage.no_errors();
}
