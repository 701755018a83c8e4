//! Terrain: one player's edits reach all clients, and players are limited in
//! what they may change.

use frolic_client::ClientEvent;
use frolic_fleet_api::ops::WorldOp;
use frolic_fleet_api::persist::SavedWorld;
use frolic_package::Package;
use frolic_protocol::ServerMessage;
use frolic_protocol::terrain::{TerrainAction, TerrainOp, TerrainShape};
use frolic_sim::Vec3;
use frolic_sim::random::Random;
use frolic_terrain::{Material, Terrain};
use frolic_world::replay::RecordOptions;
use frolic_world::{World, WorldOptions, input, marks_of};

use crate::harness::{Run, package, walk};
use crate::network::Quality;

/// Level ground at y = 8, protected west of x = -10.
const SCENE: &str = r#"{
  "format": 1,
  "entities": [{"id": 1, "name": "Spawn", "components": {"Transform": {"position": [0.5, 8, 0.5]}, "SpawnPoint": {}}}],
  "terrain": {
    "size": [128, 64, 128],
    "generator": {"type": "flat", "height": 8},
    "materials": ["stone", "sand", "planks"],
    "protected": [{"min": [-64, 0, -64], "max": [-10, 64, 64]}],
    "reach": 8,
    "brush": 3,
    "rate": 10
  }
}"#;

fn game(scripts: &[(&str, &str)]) -> Package {
    package(SCENE, scripts)
}

fn op(action: TerrainAction, center: [f32; 3], radius: f32, material: Option<&str>) -> TerrainOp {
    TerrainOp {
        action,
        center,
        shape: TerrainShape::Sphere { radius },
        material: material.map(str::to_owned),
    }
}

fn add(center: [f32; 3], radius: f32) -> TerrainOp {
    op(TerrainAction::Add, center, radius, Some("stone"))
}

fn dig(center: [f32; 3], radius: f32) -> TerrainOp {
    op(TerrainAction::Subtract, center, radius, None)
}

fn block(world: &World, at: [i32; 3]) -> Material {
    world
        .with_terrain(|terrain| terrain.block(at))
        .expect("it has terrain")
}

fn same_ground(run: &Run, peer: usize) -> bool {
    let client = run
        .client(peer)
        .replica()
        .terrain()
        .expect("the scene has one");
    run.world()
        .with_terrain(|terrain| terrain == client)
        .expect("it has terrain")
}

#[test]
fn an_edit_is_seen_by_the_other_player_within_100_ms() {
    let mut run = Run::new(&game(&[]), 1, Quality::GOOD);
    let (ada, bob) = (run.join("Ada"), run.join("Bob"));
    run.for_ms(1500);
    run.take_events(bob);
    for round in 0..10 {
        let at = [3.5, 8.5 + round as f32 * 0.01, 3.5];
        let wanted = if round % 2 == 0 {
            add(at, 0.5)
        } else {
            dig(at, 0.5)
        };
        run.client_mut(ada).terraform(wanted);
        let mut waited = 0;
        while !run
            .take_events(bob)
            .iter()
            .any(|e| matches!(e, ClientEvent::Terrain { .. }))
        {
            run.for_ms(1);
            waited += 1;
            assert!(waited < 100, "not seen after {waited} ms");
        }
        assert!(same_ground(&run, bob));
        run.for_ms(150);
    }
}

/// Random edits over a bad connection, a player who joins late, and a world
/// rebuilt from the list of operations.
#[test]
fn all_have_the_same_ground() {
    for seed in 1..4 {
        let mut run = Run::new(&game(&[]), seed, Quality::AWFUL);
        let mut random = Random::new(seed);
        let (ada, bob) = (run.join("Ada"), run.join("Bob"));
        run.for_ms(1500);
        let mut late = None;
        for round in 0..60 {
            for peer in [ada, bob] {
                let feet = run.server_character(peer).feet;
                let aside = Vec3::new(
                    random.range(-5.0, 5.0),
                    random.range(-2.0, 3.0),
                    random.range(-5.0, 5.0),
                );
                let center = (feet + aside).to_array();
                let wanted = match random.below(3) {
                    0 => add(center, random.range(0.3, 2.0)),
                    1 => dig(center, random.range(0.3, 2.5)),
                    _ => op(
                        TerrainAction::Paint,
                        center,
                        random.range(0.3, 2.5),
                        Some("sand"),
                    ),
                };
                run.client_mut(peer).terraform(wanted);
                run.steer(peer, walk(random.range(-3.0, 3.0)));
            }
            run.for_ms(150);
            if round == 30 {
                late = Some(run.join("Cleo"));
            }
        }
        run.heal();
        for peer in [ada, bob] {
            run.steer(peer, Default::default());
        }
        run.for_ms(4000);
        let edited = run.world().with_terrain(|t| t.edited().count()).unwrap();
        assert!(edited >= 4, "{edited} chunks changed");
        for peer in [ada, bob, late.unwrap()] {
            assert!(same_ground(&run, peer), "seed {seed}, peer {peer}");
            let here = run.client(peer).own_state().unwrap().feet;
            let there = run.server_character(peer).feet;
            assert!((here - there).length() < 0.01, "{here} {there}");
        }
    }
}

#[test]
fn the_history_makes_the_same_ground() {
    let game = game(&[(
        "scripts/ServerScriptService/Dig.luau",
        "Terrain.Sphere(Vector3.new(20, 8, 20), 4, nil) World.Terraform({op = 'add', center = Vector3.new(-30, 10, 0), radius = 3, material = 'brick'})",
    )]);
    let mut world = World::load(&game, WorldOptions::default()).unwrap();
    let player = world.apply(input::Join::new("ada", "Ada"));
    let mut ops = world.take_ops();
    let mut random = Random::new(5);
    for _ in 0..200 {
        world.apply(input::Step);
        let center = [
            random.range(-6.0, 6.0),
            random.range(5.0, 10.0),
            random.range(-6.0, 6.0),
        ];
        let _ = world.apply(input::Terraform {
            by: player.into(),
            op: dig(center, 1.5),
        });
        let _ = world.apply(input::Terraform {
            by: player.into(),
            op: add(center.map(|at| at + 1.0), 1.0),
        });
        ops.extend(world.take_ops());
    }
    assert!(ops.len() > 30, "{} operations", ops.len());
    assert_eq!(ops[0].by, None);
    assert_eq!(ops.last().unwrap().by.as_deref(), Some("ada"));
    assert!(ops.windows(2).all(|pair| pair[1].seq == pair[0].seq + 1));
    let mut rebuilt = Terrain::new(game.scene.terrain.as_ref().unwrap());
    for logged in &ops {
        let WorldOp::Terrain(op) = &logged.op else {
            panic!("{logged:?}");
        };
        rebuilt.apply(&op.resolve().unwrap());
    }
    assert!(world.with_terrain(|terrain| *terrain == rebuilt).unwrap());
}

/// From a checkpoint in the middle and the operations behind it, as after a
/// crash; and those who then join get the same ground.
#[test]
fn a_world_that_was_stored_is_made_again() {
    let game = game(&[]);
    let mut world = World::load(&game, WorldOptions::default()).unwrap();
    let player = world.apply(input::Join::new("ada", "Ada"));
    let mut random = Random::new(6);
    let mut saved = SavedWorld::default();
    for tick in 0..400 {
        world.apply(input::Step);
        let center = [
            random.range(-6.0, 6.0),
            random.range(3.0, 11.0),
            random.range(-6.0, 6.0),
        ];
        let _ = world.apply(input::Terraform {
            by: player.into(),
            op: dig(center, 1.5),
        });
        let _ = world.apply(input::Terraform {
            by: player.into(),
            op: add(center.map(|at| at + 1.0), 1.0),
        });
        saved.ops.extend(world.take_ops());
        world.apply(input::OpsPersisted {
            up_to: saved.newest(),
        });
        if tick == 200 {
            saved.checkpoint = world.checkpoint();
            saved.ops.clear();
        }
    }
    assert!(!saved.ops.is_empty() && !saved.checkpoint.sections.is_empty());
    let options = WorldOptions {
        saved: Some(saved.clone()),
        ..WorldOptions::default()
    };
    let again = World::load(&game, options.clone()).unwrap();
    let fingerprint = |world: &World| world.with_terrain(Terrain::fingerprint);
    assert_eq!(fingerprint(&again), fingerprint(&world));
    assert_eq!(again.terrain_versions(), world.terrain_versions());
    assert_eq!(again.checkpoint(), world.checkpoint());

    let mut run = Run::with(&game, options, 8, Quality::GOOD);
    let bob = run.join("Bob");
    run.for_ms(3000);
    assert!(same_ground(&run, bob));

    // Damaged parts are left out, and the world starts all the same.
    for section in saved.checkpoint.sections.values_mut() {
        section.bytes.truncate(9);
    }
    let options = WorldOptions {
        saved: Some(saved),
        ..WorldOptions::default()
    };
    assert!(World::load(&game, options).is_ok());
}

/// All edits are undone and redone differently, and the process ends before its
/// next checkpoint. The chunk then has as many changes as the stored one, but
/// differs from it.
#[test]
fn what_was_dug_since_a_clearing_is_stored_by_the_next_process() {
    let game = game(&[]);
    let load = |saved: &SavedWorld| {
        let options = WorldOptions {
            saved: Some(saved.clone()),
            ..WorldOptions::default()
        };
        World::load(&game, options).unwrap()
    };
    let mut world = load(&SavedWorld::default());
    let player = world.apply(input::Join::new("ada", "Ada"));
    world.apply(input::Step);
    let terraform = |world: &mut World, op: TerrainOp| {
        assert!(
            world
                .apply(input::Terraform {
                    by: player.into(),
                    op: op.clone()
                })
                .unwrap()
                .is_some()
        );
        let ops = world.take_ops();
        world.apply(input::OpsPersisted {
            up_to: world.newest_op(),
        });
        ops
    };
    terraform(&mut world, dig([3.5, 7.5, 3.5], 0.5));
    let checkpoint = world.checkpoint();
    world.apply(input::Clear { by: "ada".into() }).unwrap();
    let ops = terraform(&mut world, dig([6.5, 7.5, 3.5], 0.5));
    assert_eq!(ops.len(), 2);

    let after_next = |mut saved: SavedWorld| {
        let mut marks = marks_of(&saved.checkpoint);
        let changes = load(&saved).checkpoint_since(&mut marks);
        saved.ops.clear();
        saved.checkpoint.seq = changes.seq;
        saved.checkpoint.sections.extend(changes.sections);
        load(&saved)
    };
    let mut saved = SavedWorld { checkpoint, ops };
    let again = after_next(saved.clone());
    for world in [&world, &again] {
        assert_eq!(block(world, [3, 7, 3]), Material::GRASS, "undone");
        assert_eq!(block(world, [6, 7, 3]), Material::AIR, "and dug since");
    }

    // The same without a clearing, when the stored chunk cannot be read.
    saved.ops.remove(0);
    let sections = saved.checkpoint.sections.iter_mut();
    for (_, section) in sections.filter(|(name, _)| name.starts_with("terrain/")) {
        section.bytes.pop();
    }
    assert_eq!(block(&after_next(saved), [6, 7, 3]), Material::AIR);
}

#[test]
fn edits_are_not_sent_before_they_are_persisted() {
    let mut world = World::load(&game(&[]), WorldOptions::default()).unwrap();
    let player = world.apply(input::Join::new("ada", "Ada"));
    for _ in 0..60 {
        world.apply(input::Step);
    }
    world.take_outbox();
    world
        .apply(input::Terraform {
            by: player.into(),
            op: dig([3.5, 7.5, 0.5], 0.5),
        })
        .unwrap();
    world.apply(input::Step);
    let applied = |world: &mut World| {
        let outbox = world.take_outbox();
        outbox
            .into_iter()
            .find_map(|outgoing| match outgoing.message {
                ServerMessage::TerraformApplied(applied) => Some(applied),
                _ => None,
            })
    };
    assert_eq!(applied(&mut world), None);
    assert!(world.terrain_versions().is_empty());
    let ops = world.take_ops();
    world.apply(input::OpsPersisted { up_to: ops[0].seq });
    let sent = applied(&mut world).unwrap();
    assert_eq!((sent.seq, sent.chunks[0].version), (1, 1));
    assert_eq!(world.terrain_versions(), sent.chunks);
}

#[test]
fn requests_beyond_the_rules_are_refused() {
    let mut run = Run::new(&game(&[]), 2, Quality::GOOD);
    let ada = run.join("Ada");
    run.for_ms(1500);
    let before = run.world().with_terrain(Terrain::fingerprint);
    let nan = f32::NAN;
    let cases = [
        (add([3.5, 8.5, 0.5], 1e30), "too_large"),
        (add([3.5, 8.5, 0.5], 3.5), "too_large"),
        (add([3.5, 8.5, 0.5], nan), "bad_op"),
        (add([3.5, 8.5, 0.5], -1.0), "bad_op"),
        (add([nan, 8.5, 0.5], 1.0), "bad_op"),
        (add([f32::INFINITY, 8.5, 0.5], 1.0), "bad_op"),
        (add([1e30, 8.5, 0.5], 1.0), "out_of_reach"),
        (add([20.5, 8.5, 0.5], 1.0), "out_of_reach"),
        (dig([0.5, -3.0, 0.5], 1.0), "out_of_reach"),
        (add([0.5, 8.5, 0.5], 0.5), "occupied"),
        (op(TerrainAction::Add, [3.5, 8.5, 0.5], 1.0, None), "bad_op"),
        (
            op(TerrainAction::Add, [3.5, 8.5, 0.5], 1.0, Some("gold")),
            "unknown_material",
        ),
        (
            op(TerrainAction::Add, [3.5, 8.5, 0.5], 1.0, Some("air")),
            "bad_op",
        ),
        (
            op(TerrainAction::Paint, [3.5, 7.5, 0.5], 1.0, Some("brick")),
            "forbidden_material",
        ),
    ];
    for (wanted, code) in cases {
        run.client_mut(ada).terraform(wanted.clone());
        run.for_ms(200);
        assert_eq!(run.take_refusals(ada), [code], "{wanted:?}");
    }
    let mut huge = add([3.5, 8.5, 0.5], 1.0);
    huge.shape = TerrainShape::Box {
        size: [1.0, f32::MAX, 1.0],
    };
    run.client_mut(ada).terraform(huge);
    run.for_ms(200);
    assert_eq!(run.take_refusals(ada), ["too_large"]);
    assert_eq!(
        run.world().with_terrain(Terrain::fingerprint),
        before,
        "nothing changed"
    );

    // Near the protected west.
    let number = run.number(ada);
    run.world_mut()
        .apply(input::Teleport::new(number, Vec3::new(-7.5, 8.0, 0.5)));
    run.for_ms(300);
    run.client_mut(ada).terraform(dig([-10.5, 7.5, 0.5], 0.5));
    run.for_ms(200);
    run.client_mut(ada).terraform(dig([-9.0, 7.5, 0.5], 2.0));
    run.for_ms(200);
    assert_eq!(run.take_refusals(ada), ["protected", "protected"]);
    run.client_mut(ada).terraform(dig([-9.5, 7.5, 0.5], 0.5));
    run.for_ms(200);
    assert_eq!(run.take_refusals(ada), [""; 0]);
    assert_eq!(block(run.world(), [-10, 7, 0]), Material::AIR);
}

#[test]
fn floods_are_cut_to_the_rate_and_the_world_goes_on() {
    let mut run = Run::new(&game(&[]), 3, Quality::GOOD);
    let (ada, bob) = (run.join("Ada"), run.join("Bob"));
    run.for_ms(1500);
    for _ in 0..100 {
        for index in 0..20 {
            let at = [3.5 + (index % 3) as f32, 8.5, 2.5];
            let wanted = if index % 2 == 0 {
                add(at, 0.5)
            } else {
                dig(at, 0.5)
            };
            run.client_mut(ada).terraform(wanted);
        }
        run.for_ms(20);
    }
    run.for_ms(500);
    let refused = run.take_refusals(ada);
    // Two seconds at ten a second, and ten that were saved up.
    let done = 2000 - refused.len();
    assert!((20..40).contains(&done), "{done} of 2000 done");
    assert!(refused.iter().all(|code| *code == "too_fast"));
    run.client_mut(bob).terraform(dig([0.5, 7.5, 4.5], 0.5));
    run.for_ms(300);
    assert_eq!(run.take_refusals(bob), [""; 0], "others are not held up");
    assert!(same_ground(&run, ada) && same_ground(&run, bob));
}

#[test]
fn characters_stand_where_they_dug_and_prediction_agrees() {
    let mut run = Run::new(&game(&[]), 4, Quality::BAD);
    let ada = run.join("Ada");
    run.for_ms(2500);
    assert!((run.server_character(ada).feet.y - 8.0).abs() < 0.01);
    run.client_mut(ada).terraform(dig([0.5, 6.5, 0.5], 2.0));
    run.for_ms(2500);
    let feet = run.server_character(ada).feet;
    assert!(feet.y < 6.1, "fell into the hole: {feet}");
    let own = run.client(ada).own_state().unwrap().feet;
    assert!((own - feet).length() < 1e-3);
    run.measure(true);
    run.steer(ada, walk(0.4));
    run.for_ms(3000);
    let worst = run
        .prediction_errors(ada)
        .iter()
        .copied()
        .fold(0.0, f32::max);
    assert!(worst < 1e-6, "the same bits against blocks: {worst}");
}

/// A player who joins a world that was changed all over receives the near
/// chunks first, within a byte rate.
#[test]
fn late_comers_get_chunks_nearest_first_within_a_budget() {
    // Noise of blocks does not compress: this is a lot of data.
    let script = "
        local random = Random.new(7)
        local names = {'stone', 'sand', 'planks', 'brick', 'dirt', 'snow', 'coral', 'sky', 'sun'}
        for step = 1, 400 do
            for i = 1, 60 do
                local at = Vector3.new(random:NextNumber(-64, 64), random:NextNumber(8, 64), random:NextNumber(-64, 64))
                Terrain.Sphere(at, random:NextNumber(0.5, 3), names[random:NextInteger(1, #names)])
            end
            task.wait()
        end";
    let game = game(&[("scripts/ServerScriptService/Noise.luau", script)]);
    let mut run = Run::new(&game, 5, Quality::GOOD);
    run.for_ms(8000);
    let ada = run.join("Ada");
    // The scene comes first.
    while run.client(ada).replica().terrain().is_none() {
        run.for_ms(10);
    }
    let mut seconds = 0;
    let mut last = 0;
    while !same_ground(&run, ada) {
        run.for_ms(1000);
        seconds += 1;
        let bytes = run.chunk_bytes(ada);
        assert!(
            bytes - last <= 150 * 1024,
            "{} bytes in a second",
            bytes - last
        );
        last = bytes;
        assert!(seconds < 60, "never complete");
    }
    let near = run
        .take_events(ada)
        .into_iter()
        .find_map(|event| match event {
            ClientEvent::Terrain { min, max, .. } => Some([min, max]),
            _ => None,
        });
    let [min, max] = near.unwrap();
    let feet = run.server_character(ada).feet;
    let middle = Vec3::from(min).midpoint(Vec3::from(max));
    assert!(
        (middle - feet).length() < 40.0,
        "the first chunk is near: {middle}"
    );
}

#[test]
fn a_recorded_session_of_digging_repeats() {
    let game = game(&[(
        "scripts/ServerScriptService/Count.luau",
        "local n = 0 Terrain.Changed:Connect(function(min, max, player) n += 1 if n % 5 == 0 then Terrain.Set(max + Vector3.new(0, 2, 0), 'sand') end end)",
    )]);
    let options = WorldOptions {
        record: Some(RecordOptions {
            hash_every_ticks: Some(10),
            ..RecordOptions::default()
        }),
        ..WorldOptions::default()
    };
    let mut world = World::load(&game, options).unwrap();
    let player = world.apply(input::Join::new("ada", "Ada"));
    let mut random = Random::new(9);
    for tick in 0..300 {
        if tick % 4 == 0 {
            let center = [
                random.range(-6.0, 6.0),
                random.range(5.0, 10.0),
                random.range(-6.0, 6.0),
            ];
            let _ = world.apply(input::Terraform {
                by: player.into(),
                op: dig(center, 1.5),
            });
        }
        world.apply(input::Step);
        if let Some(newest) = world.take_ops().last() {
            world.apply(input::OpsPersisted { up_to: newest.seq });
        }
        world.take_outbox();
    }
    world.end_recording(frolic_world::replay::Ending::Complete);
    let recording = world.take_recording();
    let report = frolic_world::replay::replay(&game, &recording).unwrap();
    assert!(report.difference.is_none(), "{report:?}");
    assert!(report.same_hashes >= 30, "{report:?}");
}

#[test]
fn worlds_without_terrain_say_so() {
    let scene =
        r#"{"format": 1, "entities": [{"id": 1, "name": "S", "components": {"SpawnPoint": {}}}]}"#;
    let mut world = World::load(&package(scene, &[]), WorldOptions::default()).unwrap();
    let player = world.apply(input::Join::new("ada", "Ada"));
    let error = world
        .apply(input::Terraform {
            by: player.into(),
            op: dig([0.0; 3], 1.0),
        })
        .unwrap_err();
    assert_eq!(error.code(), "no_terrain");
    assert!(world.with_terrain(|_| ()).is_none());
}
