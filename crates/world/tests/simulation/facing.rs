//! Which way players look when they are put somewhere: as their spawn point
//! does, or where a script says.

use std::f32::consts::{FRAC_PI_2, PI};

use frolic_protocol::{Args, ServerMessage};
use frolic_world::{PlayerNumber, World, WorldOptions, input};

use crate::harness::package;

/// The spawn point is turned by a quarter to the left: it looks along −x.
const SCENE: &str = r#"{"format": 1, "prefabs": {}, "entities": [
    {"id": 1, "name": "Ground", "components": {"Shape": {"type": "box", "size": [100, 1, 100]}}},
    {"id": 2, "name": "Spawn", "components": {
        "Transform": {"position": [5, 2, 0], "rotation": [0, 0.70710678, 0, 0.70710678]}, "SpawnPoint": {}}}]}"#;

const RULES: &str = r#"
    Network.OnClientEvent("Respawn", function(player) player.Respawn() end)
    Network.OnClientEvent("Turn", function(player) player.Teleport(Vector3.new(0, 1, 0), Vector3.new(0, 1, 9)) end)
    Network.OnClientEvent("Move", function(player) player.Teleport(Vector3.new(0, 1, 0)) end)
"#;

/// The look direction that a player receives after an event.
fn received_look(world: &mut World, player: PlayerNumber, event: &str) -> Vec<f32> {
    world.take_outbox();
    assert!(world.apply(input::Event::new(player, event, Args(Vec::new()))));
    world.apply(input::Step);
    world.apply(input::Step);
    let outbox = world.take_outbox().into_iter();
    let facings = outbox.filter(|out| out.to == Some(player));
    facings
        .filter_map(|out| match out.message {
            ServerMessage::Facing { yaw } => Some(yaw.radians()),
            _ => None,
        })
        .collect()
}

#[test]
fn players_look_the_way_their_spawn_point_or_script_says() {
    let game = package(SCENE, &[("scripts/ServerScriptService/Rules.luau", RULES)]);
    let mut world = World::load(&game, WorldOptions::default()).expect("it loads");
    let ada = world.apply(input::Join::new("user_1", "Ada"));
    let ben = world.apply(input::Join::new("user_2", "Ben"));
    world.apply(input::Step);
    let near = |received_look: Vec<f32>, wanted: f32| {
        assert_eq!(received_look.len(), 1, "{received_look:?}");
        let off = (received_look[0] - wanted).rem_euclid(2.0 * PI);
        assert!(
            off.min(2.0 * PI - off) < 0.01,
            "{received_look:?} is not {wanted}"
        );
    };
    near(received_look(&mut world, ada, "Respawn"), FRAC_PI_2);
    near(received_look(&mut world, ben, "Turn"), PI);
    assert_eq!(received_look(&mut world, ada, "Move"), [] as [f32; 0]);
}
