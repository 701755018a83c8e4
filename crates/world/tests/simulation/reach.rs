//! Terrain where the game sets a radius: changes outside it are sent when a
//! player comes near, and chunks under the feet in time.

use frolic_protocol::ServerMessage;
use frolic_protocol::terrain::{
    ChunkData, TerraformApplied, TerrainAction, TerrainOp, TerrainShape,
};
use frolic_sim::Vec3;
use frolic_world::{
    InterestPolicy, JsonView, PlayerNumber, TerrainView, World, WorldOptions, input,
};
use serde_json::Value as Json;

use crate::harness::package;
use crate::sight::{RADIUS_M, feet, join, snapshot};

/// Level ground of blocks at y = 8, wide enough to be out of reach of.
const BLOCKS: &str = r#"{
  "format": 1,
  "entities": [{"id": 1, "name": "Spawn", "components": {"Transform": {"position": [0.5, 8, 0.5]}, "SpawnPoint": {}}}],
  "terrain": {
    "size": [512, 64, 512],
    "generator": {"type": "flat", "height": 8},
    "materials": ["stone"],
    "reach": 8,
    "brush": 3,
    "rate": 10
  }
}"#;

fn ground(radius: Option<f32>) -> World {
    let options = WorldOptions {
        interest: radius.map(InterestPolicy::within),
        ..WorldOptions::default()
    };
    World::load(&package(BLOCKS, &[]), options).expect("the world loads")
}

/// Digs below a player's feet and persists it. Returns the messages about it.
fn dig(world: &mut World, player: PlayerNumber) -> TerraformApplied {
    let [x, _, z] = feet(world, player).to_array();
    let op = TerrainOp {
        action: TerrainAction::Subtract,
        center: [x + 2.0, 7.5, z],
        shape: TerrainShape::Sphere { radius: 0.5 },
        material: None,
    };
    world.apply(input::Step);
    world.take_outbox();
    world
        .apply(input::Terraform {
            by: player.into(),
            op: op.clone(),
        })
        .expect("it may be dug there");
    world.apply(input::Step);
    let seq = world.take_ops().last().expect("an operation").seq;
    world.apply(input::OpsPersisted { up_to: seq });
    let outbox = world.take_outbox();
    outbox
        .into_iter()
        .find_map(|outgoing| match outgoing.message {
            ServerMessage::TerraformApplied(applied) => Some(applied),
            _ => None,
        })
        .expect("it is sent")
}

/// All chunks that a client gets in a while.
fn chunks(world: &mut World, view: &mut TerrainView) -> Vec<[i32; 3]> {
    let mut got: Vec<ChunkData> = Vec::new();
    for _ in 0..60 {
        world.apply(input::Step);
        view.next(world, &mut |chunk| got.push(chunk));
    }
    got.into_iter().map(|chunk| chunk.at.chunk).collect()
}

#[test]
fn terrain_changes_outside_the_radius_are_sent_when_a_player_comes_near() {
    for (radius, far) in [(Some(RADIUS_M), false), (None, true)] {
        let mut world = ground(radius);
        let ada = join(&mut world, "Ada", [0.5, 8.0, 0.5]);
        let ben = join(&mut world, "Ben", [150.5, 8.0, 0.5]);
        let applied = dig(&mut world, ben);
        let chunk = applied.chunks[0].chunk;
        let mut view = TerrainView::new(ada);
        assert_eq!(view.receives(&world, &applied.chunks), far);
        assert_eq!(view.may_ask(&world, chunk), far);
        // A player who comes near later receives chunks instead of operations.
        let mut late = TerrainView::new(ada);
        assert_eq!(chunks(&mut world, &mut late).contains(&chunk), far);
        assert!(TerrainView::new(ben).receives(&world, &applied.chunks));
        assert!(view.may_ask(&world, [0, 0, 0]), "the ground below");
        if !far {
            world.apply(input::Teleport::new(ada, Vec3::new(115.5, 8.0, 0.5)));
            assert!(chunks(&mut world, &mut view).contains(&chunk));
            assert!(view.may_ask(&world, chunk));
        }
    }
}

/// A falling player reaches the bottom before the next terrain search.
#[test]
fn the_ground_far_below_is_known_in_spite_of_a_radius() {
    let mut world = ground(Some(10.0));
    let ada = join(&mut world, "Ada", [0.5, 60.0, 0.5]);
    let ben = join(&mut world, "Ben", [0.5, 8.0, 3.5]);
    let applied = dig(&mut world, ben);
    world.apply(input::Teleport::new(ada, Vec3::new(0.5, 60.0, 0.5)));
    assert!(TerrainView::new(ada).receives(&world, &applied.chunks));
}

#[test]
fn a_json_snapshot_has_versions_of_chunks_in_reach() {
    let versions = |snapshot: &Json| -> Vec<i64> {
        let all = snapshot["features"]["voxel"]["versions"].as_array();
        let x = |version: &Json| version["x"].as_i64().expect("a place");
        all.map_or(Vec::new(), |all| all.iter().map(x).collect())
    };
    let mut world = ground(Some(RADIUS_M));
    let ada = join(&mut world, "Ada", [0.5, 8.0, 0.5]);
    let ben = join(&mut world, "Ben", [150.5, 8.0, 0.5]);
    let near = dig(&mut world, ada).chunks[0].chunk[0];
    let far = dig(&mut world, ben).chunks[0].chunk[0];
    let (near, far) = (i64::from(near), i64::from(far));
    let mut view = JsonView::new(ada);
    let mut next = |world: &mut World, acknowledge: bool| {
        world.apply(input::Step);
        world.collect_changes();
        let snapshot = snapshot(world, &mut view);
        if acknowledge {
            view.acknowledge(snapshot["tick"].as_u64().expect("a tick") as u32);
        }
        versions(&snapshot)
    };
    assert_eq!(next(&mut world, true), [near]);
    assert_eq!(next(&mut world, true), [0; 0], "nothing is new");
    world.apply(input::Teleport::new(ada, Vec3::new(115.5, 8.0, 0.5)));
    assert_eq!(next(&mut world, false), [far], "it came into reach");
    assert_eq!(next(&mut world, true), [far], "that was not acknowledged");
    assert_eq!(next(&mut world, true), [0; 0]);
    world.apply(input::Teleport::new(ada, Vec3::new(0.5, 8.0, 0.5)));
    assert_eq!(next(&mut world, true), [near], "it came back");
}
