//! The same things are solid on client and server: characters are predicted
//! against the one and moved against the other.

mod railway;
mod strangers;

use std::collections::BTreeMap;

use frolic_protocol::EntityState;
use frolic_scene::SceneEntity;
use frolic_sim::Vec3;
use frolic_world::{Delivery, InterestPolicy};

use crate::harness::{Run, package};
use crate::network::Quality;
use railway::{OFF, railway};

/// Ids of a scene that are looked at.
const SCENE_IDS: u32 = 20;
/// Ids of spawned things that are looked at.
const SPAWNED_IDS: u32 = 200;
/// A client that leaves a cell by less than this may still count as inside.
const BORDER_M: f32 = 5.0;

/// Compares what a client has, as far as it rests, with what the server has.
/// Everything must have arrived.
pub fn check(run: &Run, player: usize, seed: u64) {
    let client = run.client(player);
    let by_id = |state: &EntityState| (state.id, *state);
    let known: BTreeMap<u32, EntityState> = client.replica().entities().map(by_id).collect();
    let all: BTreeMap<u32, EntityState> = run.everything().iter().map(by_id).collect();
    let first_spawned = SceneEntity::ID_MAX + 1;
    let spawned = first_spawned..first_spawned + SPAWNED_IDS;
    for id in (1..=SCENE_IDS).chain(spawned) {
        let of_scene = id < first_spawned;
        let state = known.get(&id);
        // Posed for the tick that is predicted, not for this one.
        let moves = |state: &EntityState| state.velocity != [0; 3] || state.motion.is_some();
        if state.is_some_and(moves) {
            continue;
        }
        // A part of the scene that is out of view is as it was last seen where
        // the file has it; what is in view is known.
        if of_scene && state.is_none() && all.contains_key(&id) {
            if let Some((low, high)) = client.replica().bounds_of(id) {
                let off = (low + high) * 0.5 - run.server_character(player).feet;
                let far = Vec3::new(off.x, 0.0, off.z).length();
                let in_view = run.radius().is_none_or(|radius| far < radius - BORDER_M);
                assert!(
                    !in_view,
                    "seed {seed}, player {player}: a ghost of {id}, {far} m away"
                );
            }
            continue;
        }
        let truth = run.world().bounds_of(id);
        let truth = truth.filter(|_| of_scene || state.is_some());
        let has = client.replica().bounds_of(id);
        let off = match (truth, has) {
            (Some(truth), Some(has)) => {
                let [low, high] = [has.0 - truth.0, has.1 - truth.1];
                low.abs().max(high.abs()).max_element()
            }
            (None, None) => 0.0,
            _ => f32::INFINITY,
        };
        assert!(
            off == 0.0,
            "seed {seed}, player {player}: {id} is {truth:?} and {has:?} to the client"
        );
    }
}

/// Everything rests, and nothing of it is as the scene file says.
fn ruins() -> frolic_package::Package {
    package(
        r##"{"format":1,"prefabs":{"Wall":{"components":{"Shape":{"type":"box","size":[4,2,1]}}}},
            "entities":[
            {"id":1,"name":"Ground","components":{"Transform":{"position":[0,-0.5,0]},"Shape":{"type":"box","size":[400,1,400]}}},
            {"id":2,"name":"Spawn","components":{"Transform":{"position":[0,0.1,0]},"SpawnPoint":{}}},
            {"id":3,"name":"Gate","components":{"Transform":{"position":[6,1,0]},"Shape":{"type":"box","size":[2,2,2]}}},
            {"id":4,"name":"Crate","components":{"Transform":{"position":[9,1,0]},"Shape":{"type":"box","size":[2,2,2]}}},
            {"id":5,"name":"Post","components":{"Transform":{"position":[12,1,0]},"Shape":{"type":"box","size":[1,2,1]}}}]}"##,
        &[(
            "scripts/ServerScriptService/Ruins.luau",
            r#"World.Find("Gate").Position = Vector3.new(6, 1, 7)
               World.Find("Crate").Destroy()
               World.Find("Post").Scale = Vector3.new(3, 1, 3)
               local wall = World.Spawn("Wall", Vector3.new(-6, 1, 0))
               wall.Rotation = Vector3.new(0, 30, 0)
               World.Spawn("Wall", Vector3.new(-9, 1, 5)).Scale = Vector3.new(2, 2, 2)
               World.Spawn({ Shape = { type = "sphere", radius = 1 } }, Vector3.new(0, 1, -6))"#,
        )],
    )
}

#[test]
fn a_scene_that_snapshots_overtake_is_as_the_server_has_it() {
    for (seed, delivery) in [(1, Delivery::Lossy), (2, Delivery::Ordered)] {
        let mut run = Run::new(&ruins(), seed, Quality::GOOD);
        run.delivery = delivery;
        run.scene_late_ms = 1_000.0;
        let player = run.join("Ada");
        run.for_ms(900);
        let early = run.client(player).replica().entities().count();
        assert_eq!(early > 0, delivery == Delivery::Lossy, "{early} were sent");
        assert_eq!(
            run.client(player).replica().bounds_of(1),
            None,
            "no scene yet"
        );
        run.for_ms(600);
        assert_eq!(run.client(player).replica().entities().count(), 7);
        check(&run, player, seed);
    }
}

/// A stage that a script does something to, and a spawn point above its edge.
fn stage(script: &str) -> frolic_package::Package {
    let script =
        format!("local stage, lift = World.Find(\"Stage\"), World.Find(\"Lift\")\n{script}");
    package(
        r##"{"format":1,"prefabs":{},"entities":[
            {"id":1,"name":"Stage","components":{"Transform":{"position":[0.1,-0.53,0],"rotation":[0,0.5,0,0.8660254]},"Shape":{"type":"box","size":[40,1,40]}}},
            {"id":2,"name":"Lift","components":{"Transform":{"position":[0,-9.7,0]},"Shape":{"type":"box","size":[1,1,1]},"Body":{"type":"kinematic"}}},
            {"id":3,"name":"Spawn","components":{"Transform":{"position":[9,3.5,-8]},"SpawnPoint":{}}}]}"##,
        &[("scripts/ServerScriptService/Stage.luau", &script)],
    )
}

/// Whatever scripts did to an entity: at rest its place is equal on both sides
/// to the last bit, or a character standing on it would be corrected with every
/// snapshot.
#[test]
fn a_character_on_an_entity_placed_by_a_script_is_not_corrected() {
    for (what, script) in [
        ("nothing", ""),
        ("coloured", r##"stage.Color = "#123456""##),
        ("placed", "stage.Position = Vector3.new(0.3, 1.3, 0.1)"),
        ("turned", "stage.Rotation = Vector3.new(2, 31, 3)"),
        (
            "put back",
            r#"stage.Position = Vector3.new(0, 2, 0)
               task.wait(0.1)
               stage.Position = Vector3.new(0.1, -0.53, 0)"#,
        ),
        ("moved", "stage.MoveTo(Vector3.new(0.1, 0.77, 0.3), 0.5)"),
        (
            "moved and turned",
            r#"stage.Rotation = Vector3.new(2, 31, 3)
               stage.MoveTo(Vector3.new(0.1, 0.77, 0.3), 0.5)"#,
        ),
        (
            "stopped",
            r#"stage.SetVelocity(Vector3.new(0.37, 0.11, 0))
               task.wait(0.5)
               stage.SetVelocity(Vector3.new(0, 0, 0))"#,
        ),
        (
            "scaled",
            r#"stage.Position = Vector3.new(0, 1.3, 0)
               stage.Scale = Vector3.new(2, 1.1, 2)"#,
        ),
        (
            "carried",
            r#"stage.Parent = lift
               lift.Rotation = Vector3.new(2, 7, 1)
               lift.Position = Vector3.new(0.1, -8.3, 0.1)"#,
        ),
        (
            "carried along",
            r#"stage.Parent = lift
               lift.MoveTo(Vector3.new(0.1, -8.3, 0.1), 0.5)"#,
        ),
        (
            "spawned",
            r#"stage.Destroy()
               World.Spawn({ Shape = { type = "box", size = { 40, 1, 40 } } }, Vector3.new(0.1, 1.3, 0.1))"#,
        ),
        (
            "spawned, turned and scaled",
            r#"stage.Destroy()
               local other = World.Spawn({
                   Transform = { position = { 0.1, 1.3, 0.1 }, rotation = { 0.02, 0.5, 0.01, 0.8660254 } },
                   Shape = { type = "box", size = { 20, 1, 20 } },
               })
               task.wait(0.2)
               other.Scale = Vector3.new(2, 1.1, 2)"#,
        ),
    ] {
        for (seed, quality) in [(1, Quality::GOOD), (2, Quality::BAD)] {
            let mut run = Run::new(&stage(script), seed, quality);
            let player = run.join("Ada");
            run.for_ms(3_500);
            let before = run.client(player).stats(0.0).corrections;
            run.for_ms(3_000);
            let corrections = run.client(player).stats(0.0).corrections - before;
            let character = run.server_character(player);
            assert!(character.ground.is_some(), "{what}: {character:?}");
            assert_eq!(corrections, 0, "{what}: corrections in three seconds");
            assert_eq!(run.client(player).own_state(), Some(&character), "{what}");
            check(&run, player, seed);
        }
    }
}

/// It would push a player far along its path, unseen by others.
#[test]
fn what_drove_out_of_view_does_not_drive_on() {
    let policy = Some(InterestPolicy::within(30.0));
    let mut run = Run::with_interest(&railway(OFF), 3, Quality::GOOD, policy);
    let player = run.join("Ada");
    run.for_ms(1_500);
    let cart = |run: &Run| {
        run.client(player)
            .replica()
            .entities()
            .any(|state| state.id == 3)
    };
    assert!(cart(&run), "it is seen driving off");
    run.for_ms(8_000);
    assert!(!cart(&run), "it is out of view");
    let is = run.world().bounds_of(3).map(|(low, _)| low.x);
    assert!(is > Some(100.0), "it went on: {is:?}");
    assert_eq!(
        run.client(player).replica().bounds_of(3),
        None,
        "it is nowhere"
    );
}

#[test]
fn things_made_up_alike_have_one_definition_that_says_no_place() {
    let game = package(
        r##"{"format":1,"prefabs":{},"entities":[
            {"id":1,"name":"Ground","components":{"Transform":{"position":[0,-0.5,0]},"Shape":{"type":"box","size":[800,1,800]}}},
            {"id":2,"name":"Spawn","components":{"Transform":{"position":[0,0.1,0]},"SpawnPoint":{}}}]}"##,
        &[(
            "scripts/ServerScriptService/Crates.luau",
            r#"for i = 1, 5 do
                   World.Spawn({
                       Transform = { position = { 4321, 1, i * 4 }, scale = { 2, 1, 1 } },
                       Shape = { type = "box", size = { 1, 1, 1 } },
                   })
               end
               World.Spawn({ Shape = { type = "box", size = { 1, 1, 1 } } }, Vector3.new(-4321, 1, 0))
               World.Spawn({ Transform = { position = { 7, 1, 7 } }, Shape = { type = "box", size = { 1, 1, 1 } } })"#,
        )],
    );
    let mut run = Run::new(&game, 4, Quality::GOOD);
    let player = run.join("Ada");
    run.for_ms(1_000);
    let definitions = run.looks(player);
    assert_eq!(definitions.len(), 2, "{definitions:?}");
    let sent = format!("{definitions:?}");
    assert!(!sent.contains("4321") && !sent.contains('7'), "{sent}");
    // And everything is where and as large as it was wanted.
    let mut places: Vec<[i32; 3]> = run
        .client(player)
        .replica()
        .entities()
        .filter(|state| state.definition != 0)
        .map(|state| state.place().to_array().map(|part| part.round() as i32))
        .collect();
    places.sort_unstable();
    let row = (1..=5).map(|i| [4321, 1, i * 4]);
    let wanted: Vec<[i32; 3]> = [[-4321, 1, 0], [7, 1, 7]].into_iter().chain(row).collect();
    assert_eq!(places, wanted);
    check(&run, player, 4);
}
