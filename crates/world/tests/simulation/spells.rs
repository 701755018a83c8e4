//! Casts in a whole world: permissions, effects, and that a replay casts the
//! same.

use std::collections::BTreeMap;

use frolic_client::ClientEvent;
use frolic_package::Package;
use frolic_protocol::spell::CastEvent;
use frolic_protocol::{Args, Value};
use frolic_scene::Limits;
use frolic_script::LogLevel;
use frolic_sim::Vec3;
use frolic_world::replay::{Ending, RecordOptions, replay};
use frolic_world::{CastRefusal, InterestPolicy, World, WorldOptions, input};

use crate::harness::{Run, cast};
use crate::network::Quality;

const SCENE: &str = r#"{"format": 1, "prefabs": {"Flame": {"components": {
    "Shape": {"type": "sphere", "radius": 0.2}}}}, "entities": [
    {"id": 1, "name": "Ground", "components": {"Shape": {"type": "box", "size": [100, 1, 100]}}},
    {"id": 2, "name": "Spawn", "components": {"Transform": {"position": [0, 2, 0]}, "SpawnPoint": {}}},
    {"id": 3, "name": "Barrel", "components": {"Transform": {"position": [0, 1, -5]},
        "Shape": {"type": "box", "size": [1, 1, 1]}, "Attributes": {"Health": 30}}}]}"#;

const FIRE: &str = r#"
    function on_cast(ctx)
        for _, entity in ctx.world.in_radius(ctx.target, 3) do
            ctx.world.damage(entity, ctx.random.NextInteger(5, 10))
        end
        for _ = 1, 3 do
            ctx.world.spawn("Flame", ctx.target + ctx.random.NextUnitVector(), 0.5)
        end
        ctx.world.particles(ctx.target)
    end
"#;

fn game(spells_allowed: bool) -> Package {
    let manifest = format!(
        "[game]\nid = \"test\"\nname = \"Test\"\nversion = \"1.0.0\"\n[world]\nspells = {spells_allowed}\n"
    );
    let files = BTreeMap::from([
        ("game.toml".to_owned(), manifest.into_bytes()),
        ("scene.json".to_owned(), SCENE.as_bytes().to_vec()),
        (
            "spells/fire/spell.luau".to_owned(),
            FIRE.as_bytes().to_vec(),
        ),
        (
            "spells/fire/spell.toml".to_owned(),
            b"cooldown_s = 2\ncost = 30\nrange_m = 20".to_vec(),
        ),
        (
            "spells/broken/spell.luau".to_owned(),
            b"function on_cast(ctx) error('it fizzles') end".to_vec(),
        ),
    ]);
    Package::from_files(files, &Limits::default()).unwrap_or_else(|report| panic!("{report}"))
}

fn at(target: [f32; 3]) -> Args {
    let params = [("target".to_owned(), Value::Vector(target))];
    Args(vec![Value::Map(params.into())])
}

const BARREL: [f32; 3] = [0.0, 1.0, -5.0];

#[test]
fn a_cast_changes_the_world_and_is_sent_to_all_players() {
    let mut run = Run::new(&game(true), 1, Quality::GOOD);
    let (ada, bob) = (run.join("Ada"), run.join("Bob"));
    run.for_ms(500);
    let number = run.number(ada);
    run.world_mut()
        .apply(cast(number, "fire", None, at(BARREL)))
        .expect("Ada may");
    run.for_ms(200);
    assert!(
        run.world().position_of("Flame").is_some(),
        "there are flames"
    );
    let mut casts = Vec::new();
    for peer in [ada, bob] {
        casts.extend(casts_received(&mut run, peer));
    }
    let [first, second] = casts.as_slice() else {
        panic!("each receives it once: {casts:?}");
    };
    assert_eq!(first, second);
    assert_eq!((first.spell_id.as_str(), first.target), ("fire", BARREL));
    // One look around, which found the barrel, one draw for its damage, and
    // one for each flame.
    assert_eq!(
        first.answers,
        Args(vec![Value::List(vec![Value::Entity(3)])])
    );
    assert_eq!(first.draws, 4);
    run.for_ms(1000);
    assert!(
        run.world().position_of("Flame").is_none(),
        "they are gone by themselves"
    );
}

fn casts_received(run: &mut Run, peer: usize) -> Vec<CastEvent> {
    let events = run.take_events(peer).into_iter();
    events
        .filter_map(|event| match event {
            ClientEvent::Cast(cast) => Some(*cast),
            _ => None,
        })
        .collect()
}

/// A cast says where it went, and what was found there.
#[test]
fn a_cast_is_not_sent_to_players_who_see_neither_caster_nor_target() {
    let policy = Some(InterestPolicy::within(30.0));
    let mut run = Run::with_interest(&game(true), 1, Quality::GOOD, policy);
    let [ada, beside, behind, far] = ["Ada", "Ben", "Cleo", "Dora"].map(|name| run.join(name));
    run.for_ms(200);
    // The barrel is 5 m ahead of Ada.
    for (peer, place) in [
        (beside, [0.0, 0.6, 27.0]),
        (behind, [0.0, 0.6, -33.0]),
        (far, [40.0, 0.6, 20.0]),
    ] {
        let number = run.number(peer);
        run.world_mut()
            .apply(input::Teleport::new(number, Vec3::from(place)));
    }
    run.for_ms(300);
    let number = run.number(ada);
    run.world_mut()
        .apply(cast(number, "fire", None, at(BARREL)))
        .expect("Ada may");
    run.world_mut()
        .apply(cast("user_9", "fire", None, at([45.0, 1.0, 25.0])))
        .expect("so may a visitor");
    run.for_ms(200);
    let targets = [ada, beside, behind, far].map(|peer| {
        let casts = casts_received(&mut run, peer).into_iter();
        casts.map(|cast| cast.target[0]).collect::<Vec<f32>>()
    });
    assert_eq!(targets, [vec![0.0], vec![0.0], vec![0.0], vec![45.0]]);
}

#[test]
fn a_cast_is_refused_with_its_reason() {
    let mut world = World::load(&game(true), WorldOptions::default()).expect("it loads");
    let ada = world.apply(input::Join::new("user_1", "Ada"));
    for _ in 0..30 {
        world.apply(input::Step);
    }
    let refused = |world: &mut World, spell: &str, params: Args| {
        let refusal = world
            .apply(cast(ada, spell, None, params))
            .expect_err("refused");
        assert!(!refusal.to_string().is_empty());
        refusal.code()
    };
    assert_eq!(refused(&mut world, "nothing", at(BARREL)), "no_such_spell");
    assert_eq!(refused(&mut world, "../fire", at(BARREL)), "no_such_spell");
    assert_eq!(
        refused(&mut world, "fire", at([0.0, 1.0, -50.0])),
        "spell_range"
    );
    let nowhere = Args(vec![Value::Map(
        [("target".to_owned(), Value::Bool(true))].into(),
    )]);
    assert_eq!(refused(&mut world, "fire", nowhere), "spell_target");
    let other = world.apply(cast(ada, "fire", Some("another"), at(BARREL)));
    assert!(matches!(other, Err(CastRefusal::NoSuchSpell(_))));
    let stranger = world.apply(cast(99, "fire", None, at(BARREL)));
    assert_eq!(stranger, Err(CastRefusal::NoSuchPlayer));
    // Refused casts cost nothing; this is the first that does.
    world
        .apply(cast(ada, "fire", None, Args(vec![])))
        .expect("where Ada looks");
    assert_eq!(refused(&mut world, "fire", at(BARREL)), "spell_cooldown");
    for _ in 0..3 {
        for _ in 0..125 {
            world.apply(input::Step);
        }
        if world.apply(cast(ada, "fire", None, at(BARREL))).is_err() {
            break;
        }
    }
    assert_eq!(world.apply(cast(ada, "broken", None, at(BARREL))), Ok(()));
    world.apply(input::Step);
    let logs = world.take_logs();
    let fizzled = |line: &&frolic_script::ScriptLog| {
        line.level == LogLevel::Error && line.script == "spells/broken/spell.luau"
    };
    assert!(logs.iter().any(|line| fizzled(&line)), "{logs:?}");

    let mut strict = World::load(&game(false), WorldOptions::default()).expect("it loads");
    let ada = strict.apply(input::Join::new("user_1", "Ada"));
    let refusal = strict.apply(cast(ada, "fire", None, at(BARREL)));
    assert_eq!(refusal, Err(CastRefusal::NotAllowed));
}

#[test]
fn casts_are_part_of_a_replay() {
    let package = game(true);
    let options = WorldOptions {
        record: Some(RecordOptions::default()),
        ..WorldOptions::default()
    };
    let mut world = World::load(&package, options).expect("it loads");
    let ada = world.apply(input::Join::new("user_1", "Ada"));
    let mut recording = Vec::new();
    for tick in 0..400 {
        if tick % 50 == 20 {
            let _ = world.apply(cast(ada, "fire", None, at(BARREL)));
        }
        world.apply(input::Step);
        recording.extend(world.take_recording());
    }
    world.end_recording(Ending::Complete);
    recording.extend(world.take_recording());
    let report = replay(&package, &recording).expect("it can be replayed");
    assert_eq!((report.difference, report.ticks), (None, 400));
}
