//! People without a character, and spells that a world learns while it runs:
//! what they may, that clients see it, and that a replay
//! does the same.

use std::collections::BTreeMap;

use frolic_client::ClientEvent;
use frolic_fleet_api::ops::WorldOp;
use frolic_fleet_api::remote_commands::{LEARNED_MAX, LearnSpell};
use frolic_package::Package;
use frolic_protocol::terrain::{TerrainAction, TerrainOp, TerrainShape};
use frolic_protocol::{Args, Value};
use frolic_scene::Limits;
use frolic_terrain::Material;
use frolic_world::replay::{Ending, RecordOptions, replay};
use frolic_world::{World, WorldOptions, input};

use crate::harness::{Run, cast, reload};
use crate::network::Quality;

const SCENE: &str = r#"{
  "format": 1,
  "entities": [{"id": 1, "name": "Spawn", "components": {"Transform": {"position": [0.5, 8, 0.5]}, "SpawnPoint": {}}}],
  "terrain": {"size": [64, 64, 64], "generator": {"type": "flat", "height": 8}, "brush": 3, "rate": 5,
    "protected": [{"min": [-64, 0, -64], "max": [-10, 64, 64]}]}
}"#;

const DIG: &str = "function on_cast(ctx)\n\
    ctx.world.terraform({ op = 'subtract', center = ctx.target, radius = 1 })\n\
    assert(ctx.caster == nil)\nend";

fn game(spells_allowed: bool) -> Package {
    let manifest = format!(
        "[game]\nid = \"test\"\nname = \"Test\"\nversion = \"1.0.0\"\n[world]\nspells = {spells_allowed}\n"
    );
    let files = BTreeMap::from([
        ("game.toml".to_owned(), manifest.into_bytes()),
        ("scene.json".to_owned(), SCENE.as_bytes().to_vec()),
        (
            "spells/own/spell.luau".to_owned(),
            b"function on_cast(ctx) end".to_vec(),
        ),
    ]);
    Package::from_files(files, &Limits::default()).unwrap_or_else(|report| panic!("{report}"))
}

fn lesson(name: &str, revision: &str, code: &str) -> LearnSpell {
    LearnSpell {
        name: name.to_owned(),
        revision_id: revision.to_owned(),
        display_name: name.to_owned(),
        cooldown_s: 1.0,
        cost: 40.0,
        range_m: 50.0,
        code: code.to_owned(),
    }
}

fn at(target: [f32; 3]) -> Args {
    let params = [("target".to_owned(), Value::Vector(target))];
    Args(vec![Value::Map(params.into())])
}

fn op(action: TerrainAction, center: [f32; 3], radius: f32) -> TerrainOp {
    let material = (action != TerrainAction::Subtract).then(|| "stone".to_owned());
    TerrainOp {
        action,
        center,
        shape: TerrainShape::Sphere { radius },
        material,
    }
}

fn block(world: &World, at: [i32; 3]) -> Material {
    let block = world.with_terrain(|terrain| terrain.block(at));
    block.expect("it has terrain")
}

fn steps(world: &mut World, count: u32) {
    for _ in 0..count {
        world.apply(input::Step);
        let newest = world.newest_op();
        world.apply(input::OpsPersisted { up_to: newest });
    }
}

#[test]
fn a_world_learns_and_casts_spells_and_reports_casts() {
    let mut world = World::load(&game(true), WorldOptions::default()).expect("it loads");
    steps(&mut world, 5);
    let place = [3.0, 7.0, 3.0];
    let unknown = world.apply(cast("user_1", "dig", None, at(place)));
    assert_eq!(unknown.expect_err("not yet").code(), "no_such_spell");
    let learned = world
        .apply(input::Learn(lesson("dig", "rev_1", DIG)))
        .expect("it may");
    assert_eq!(
        learned.expect("it is new").changed,
        ["spells/dig/spell.luau"]
    );
    assert_eq!(block(&world, [3, 6, 3]), block(&world, [5, 6, 5]));
    world
        .apply(cast("user_1", "dig", Some("rev_1"), at(place)))
        .expect("they may");
    steps(&mut world, 2);
    assert_eq!(block(&world, [3, 6, 3]), Material::AIR);
    let casts = world.take_casts();
    let [news] = casts.as_slice() else {
        panic!("one cast: {casts:?}");
    };
    assert_eq!(
        (news.by.as_str(), news.revision_id.as_str()),
        ("user_1", "rev_1")
    );
    assert_eq!(news.cast["caster"], 0);
    // The cooldown, the mana, the revision.
    let refused = |world: &mut World, revision| {
        let refusal = world.apply(cast("user_1", "dig", revision, at([3.0, 7.0, 3.0])));
        refusal.expect_err("refused").code()
    };
    assert_eq!(refused(&mut world, None), "spell_cooldown");
    assert_eq!(refused(&mut world, Some("rev_2")), "no_such_spell");
    steps(&mut world, 65);
    assert!(world.apply(cast("user_1", "dig", None, at(place))).is_ok());
    steps(&mut world, 65);
    // 100 - 40 - 40, and about 22 came back.
    assert!(world.apply(cast("user_1", "dig", None, at(place))).is_ok());
    steps(&mut world, 65);
    assert_eq!(refused(&mut world, None), "spell_cost");
    // Another player has their own.
    assert!(world.apply(cast("user_2", "dig", None, at(place))).is_ok());
    // A new revision takes the place of the old one.
    let next = lesson("dig", "rev_2", "function on_cast(ctx) end");
    assert!(
        world
            .apply(input::Learn(next.clone()))
            .expect("it may")
            .is_some()
    );
    steps(&mut world, 65);
    assert_eq!(refused(&mut world, Some("rev_1")), "no_such_spell");
    // A reload of the game's scripts leaves what was learned.
    let own = (
        "spells/own/spell.luau".to_owned(),
        "function on_cast() end".to_owned(),
    );
    reload(&mut world, "other", &BTreeMap::from([own])).expect("it compiles");
    assert!(
        world
            .apply(cast("user_3", "dig", Some("rev_2"), at(place)))
            .is_ok()
    );
}

#[test]
fn what_a_world_does_not_learn() {
    let mut world = World::load(&game(true), WorldOptions::default()).expect("it loads");
    let refused = |world: &mut World, spell: LearnSpell| {
        world
            .apply(input::Learn(spell.clone()))
            .expect_err("refused")
            .code()
    };
    assert_eq!(
        refused(&mut world, lesson("own", "rev_1", DIG)),
        "spell_of_the_game"
    );
    assert_eq!(
        refused(&mut world, lesson("x", "rev_1", "function on_cast(")),
        "spell_broken"
    );
    let odd = LearnSpell {
        cost: f32::NAN,
        ..lesson("x", "rev_1", DIG)
    };
    assert_eq!(refused(&mut world, odd), "spell_broken");
    let mut strict = World::load(&game(false), WorldOptions::default()).expect("it loads");
    assert_eq!(
        refused(&mut strict, lesson("x", "rev_1", DIG)),
        "spells_not_allowed"
    );
    let change = op(TerrainAction::Subtract, [3.0, 7.0, 3.0], 1.0);
    let outside = strict.apply(input::Terraform {
        by: "user_1".into(),
        op: change.clone(),
    });
    assert_eq!(outside.expect_err("refused").code(), "spells_not_allowed");
    // The one that was used longest ago goes for the next.
    for number in 0..LEARNED_MAX + 3 {
        let name = format!("spell-{number}");
        world
            .apply(input::Learn(lesson(&name, "rev_1", DIG)))
            .expect("it may");
        world.apply(input::Step);
    }
    let known = |world: &mut World, name: &str| {
        world
            .apply(cast("user_1", name, None, at([3.0, 7.0, 3.0])))
            .is_ok()
    };
    assert!(!known(&mut world, "spell-0") && known(&mut world, "spell-3"));
    // One that was taken down goes at once, and comes again when it is taught.
    assert!(
        world
            .apply(input::Forget {
                name: "spell-4".into()
            })
            .is_some()
    );
    assert!(!known(&mut world, "spell-4"));
    assert!(
        world
            .apply(input::Forget {
                name: "spell-4".into()
            })
            .is_none()
            && world
                .apply(input::Forget {
                    name: "never-learned".into()
                })
                .is_none()
    );
    let again = lesson("spell-4", "rev_1", DIG);
    world.apply(input::Learn(again.clone())).expect("it may");
    assert!(known(&mut world, "spell-4"));
}

#[test]
fn the_ground_changes_from_outside_by_the_rules_and_is_cleared() {
    let mut run = Run::new(&game(true), 1, Quality::GOOD);
    let ada = run.join("Ada");
    run.for_ms(1500);
    let world = run.world_mut();
    let dug = op(TerrainAction::Subtract, [20.0, 7.0, 20.0], 1.0);
    world
        .apply(input::Terraform {
            by: "user_9".into(),
            op: dug.clone(),
        })
        .expect("far away, and fine");
    for (change, code) in [
        (op(TerrainAction::Add, [-20.0, 9.0, 0.0], 1.0), "protected"),
        (op(TerrainAction::Add, [20.0, 9.0, 0.0], 30.0), "too_large"),
        (op(TerrainAction::Add, [f32::NAN, 9.0, 0.0], 1.0), "bad_op"),
        (op(TerrainAction::Add, [0.5, 9.0, 0.5], 1.0), "occupied"),
        (
            op(TerrainAction::Subtract, [20.0, 7.0, 20.0], 1.0),
            "too_fast",
        ),
    ] {
        let refusal = world.apply(input::Terraform {
            by: "user_9".into(),
            op: change.clone(),
        });
        assert_eq!(refusal.expect_err("refused").code(), code);
    }
    run.for_ms(500);
    let same = |run: &Run| {
        let client = run
            .client(ada)
            .replica()
            .terrain()
            .expect("the scene has one");
        run.world().with_terrain(|terrain| terrain == client)
    };
    assert_eq!(same(&run), Some(true));
    assert_eq!(block(run.world(), [20, 6, 20]), Material::AIR);
    run.take_events(ada);
    run.world_mut()
        .apply(input::Clear {
            by: "user_9".into(),
        })
        .expect("there is room");
    run.for_ms(1000);
    assert_ne!(block(run.world(), [20, 6, 20]), Material::AIR);
    let client = run
        .client(ada)
        .replica()
        .terrain()
        .expect("the scene has one");
    assert_ne!(
        client.block([20, 6, 20]),
        Material::AIR,
        "the client has it, too"
    );
    let received = run.take_events(ada);
    assert!(
        received
            .iter()
            .any(|event| matches!(event, ClientEvent::Terrain { .. }))
    );
}

#[test]
fn what_happens_from_outside_is_logged_and_replayed() {
    let package = game(true);
    let options = WorldOptions {
        record: Some(RecordOptions::default()),
        ..WorldOptions::default()
    };
    let mut world = World::load(&package, options).expect("it loads");
    let mut recording = Vec::new();
    let mut log = Vec::new();
    for tick in 0..200 {
        match tick {
            10 => drop(world.apply(input::Learn(lesson("dig", "rev_1", DIG)))),
            20 => drop(world.apply(cast("user_1", "dig", None, at([3.0, 7.0, 3.0])))),
            30 => {
                let change = op(TerrainAction::Add, [9.0, 12.0, 9.0], 1.0);
                world
                    .apply(input::Terraform {
                        by: "user_2".into(),
                        op: change,
                    })
                    .expect("they may");
            }
            40 => {
                let by = "user_3".into();
                world.apply(input::Clear { by }).expect("there is room");
            }
            45 => drop(world.apply(input::Forget { name: "dig".into() })),
            // Refused, and so it is when it is replayed.
            46 => drop(world.apply(cast("user_1", "dig", None, at([3.0, 7.0, 3.0])))),
            50 => {
                let change = op(TerrainAction::Add, [9.0, 14.0, 9.0], 1.0);
                world
                    .apply(input::Terraform {
                        by: "user_2".into(),
                        op: change,
                    })
                    .expect("they may");
            }
            _ => {}
        }
        world.apply(input::Step);
        log.extend(world.take_ops());
        let newest = world.newest_op();
        world.apply(input::OpsPersisted { up_to: newest });
        recording.extend(world.take_recording());
    }
    let by: Vec<Option<&str>> = log.iter().map(|op| op.by.as_deref()).collect();
    assert_eq!(by, [None, Some("user_2"), Some("user_3"), Some("user_2")]);
    assert!(matches!(log[2].op, WorldOp::Clear));
    assert_eq!(block(&world, [9, 12, 9]), Material::AIR);
    assert_ne!(block(&world, [9, 14, 9]), Material::AIR);
    // A process that is made from the log has the same ground.
    let saved = frolic_fleet_api::persist::SavedWorld {
        ops: log,
        ..Default::default()
    };
    let options = WorldOptions {
        saved: Some(saved),
        ..WorldOptions::default()
    };
    let again = World::load(&package, options).expect("it loads");
    for at in [[3, 6, 3], [9, 12, 9], [9, 14, 9]] {
        assert_eq!(block(&world, at), block(&again, at));
    }
    world.end_recording(Ending::Complete);
    recording.extend(world.take_recording());
    let report = replay(&package, &recording).expect("it can be replayed");
    assert_eq!((report.difference, report.ticks), (None, 200));
}
