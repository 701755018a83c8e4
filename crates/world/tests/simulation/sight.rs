//! Shots where the game sets a radius: shots outside do not reach a player, and
//! shooters and victims receive all of theirs. Terrain is in `reach.rs`.

use std::collections::{BTreeMap, BTreeSet};

use frolic_package::Package;
use frolic_protocol::projectile::{Launch, ProjectileHit};
use frolic_protocol::{Args, ServerMessage, Value};
use frolic_sim::Vec3;
use frolic_sim::random::Random;
use frolic_world::{InterestPolicy, JsonView, PlayerNumber, World, WorldOptions, input};
use serde_json::Value as Json;

use crate::harness::package;

pub const RADIUS_M: f32 = 30.0;
const SPEED: f32 = 300.0;

const RULES: &str = r##"
Projectile.Define("Fast", { Speed = 300, Damage = 1, Gravity = 0, Radius = 0.05, LifeSeconds = 2 })
Projectile.Define("Ball", { Speed = 25, Damage = 1, Gravity = 15, Radius = 0.1, Ricochets = 8, Bounce = 0.8, LifeSeconds = 4 })
Network.OnClientEvent("Fire", function(player, weapon, from, direction)
    Projectile.Fire({ Weapon = weapon, From = from, Direction = direction, Shooter = player })
end)
Network.OnClientEvent("Remove", function(player, id) Projectile.Remove(id) end)
local after
Network.OnClientEvent("After", function(player, from, direction)
    after = { Weapon = "Ball", From = from, Direction = direction }
end)
Projectile.Hit:Connect(function(hit)
    if after then
        Projectile.Fire(after)
        after = nil
    end
end)
"##;

/// Level ground that goes far.
fn range() -> Package {
    let scene = r#"{"format":1,"prefabs":{},"entities":[
        {"id":1,"name":"Ground","components":{"Transform":{"position":[0,-0.5,0]},"Shape":{"type":"box","size":[900,1,900]}}},
        {"id":2,"name":"Spawn","components":{"Transform":{"position":[0,0.1,0]},"SpawnPoint":{}}}]}"#;
    package(scene, &[("scripts/ServerScriptService/Rules.luau", RULES)])
}

fn world(radius: Option<f32>, tick_hz: u32) -> World {
    let options = WorldOptions {
        interest: radius.map(InterestPolicy::within),
        tick_hz: Some(tick_hz),
        ..WorldOptions::default()
    };
    World::load(&range(), options).expect("the world loads")
}

pub fn join(world: &mut World, name: &str, at: [f32; 3]) -> PlayerNumber {
    let number = world.apply(input::Join::new(format!("id_{name}"), name));
    world.apply(input::Step);
    world.apply(input::Teleport::new(number, at));
    number
}

/// Has a script fire for a player.
fn fire(world: &mut World, player: PlayerNumber, weapon: &str, from: Vec3, towards: Vec3) {
    let args = vec![
        Value::String(weapon.to_owned()),
        Value::Vector(from.to_array()),
        Value::Vector((towards - from).normalize().to_array()),
    ];
    assert!(world.apply(input::Event::new(player, "Fire", Args(args))));
}

/// The shots announced to one player, and the player's position at that time.
#[derive(Default)]
struct Received {
    launches: Vec<(Launch, Vec3)>,
    hits: Vec<(ProjectileHit, Vec3)>,
}

type AllReceived = BTreeMap<PlayerNumber, Received>;

pub fn feet(world: &World, player: PlayerNumber) -> Vec3 {
    world.character(player).expect("is here").feet
}

fn step(world: &mut World, received: &mut AllReceived) {
    world.apply(input::Step);
    for outgoing in world.take_outbox() {
        let Some(player) = outgoing.to else {
            continue;
        };
        let own = received.entry(player).or_default();
        match outgoing.message {
            ServerMessage::ProjectileLaunch(all) => {
                let at = feet(world, player);
                own.launches.extend(all.into_iter().map(|one| (one, at)));
            }
            ServerMessage::ProjectileHit(all) => {
                let at = feet(world, player);
                own.hits.extend(all.into_iter().map(|one| (one, at)));
            }
            _ => {}
        }
    }
}

fn counts(received: &AllReceived, player: PlayerNumber) -> (usize, usize) {
    let received = received.get(&player);
    received.map_or((0, 0), |received| {
        (received.launches.len(), received.hits.len())
    })
}

#[test]
fn a_shot_is_sent_only_to_the_players_it_comes_near() {
    let mut world = world(Some(RADIUS_M), 60);
    let shooter = join(&mut world, "Ada", [0.0, 0.1, 0.0]);
    let beside = join(&mut world, "Ben", [10.0, 0.1, 0.0]);
    let behind = join(&mut world, "Cleo", [0.0, 0.1, 40.0]);
    let aside = join(&mut world, "Dora", [60.0, 0.1, -40.0]);
    let victim = join(&mut world, "Eve", [0.0, 0.1, -100.0]);
    let near_victim = join(&mut world, "Fay", [-15.0, 0.1, -100.0]);
    let mut received = AllReceived::new();
    let muzzle = Vec3::new(0.0, 1.0, -1.0);
    fire(
        &mut world,
        shooter,
        "Fast",
        muzzle,
        Vec3::new(0.0, 1.0, -100.0),
    );
    for _ in 0..60 {
        step(&mut world, &mut received);
    }
    assert_eq!(counts(&received, shooter), (1, 1));
    assert_eq!(
        counts(&received, beside),
        (1, 0),
        "sees it leave, not arrive"
    );
    assert_eq!(counts(&received, behind), (0, 0), "it flies away");
    assert_eq!(counts(&received, aside), (0, 0), "it passes far away");
    assert_eq!(counts(&received, victim), (1, 1));
    assert_eq!(counts(&received, near_victim), (1, 1));
    for player in [victim, near_victim] {
        let (launch, at) = received[&player].launches[0];
        let away = (Vec3::from(launch.position) - at).length();
        assert!(away <= RADIUS_M + SPEED / 60.0, "announced at {away} m");
        let (hit, _) = received[&player].hits[0];
        assert!(launch.tick < hit.tick);
    }
}

/// There a look is 0.4 s, in which such a shot flies 120 m.
#[test]
fn at_30_hz_a_victim_receives_a_shot_before_it_hits() {
    for distance in [40.0, 106.0, 130.0, 160.0, 199.0] {
        let mut world = world(Some(RADIUS_M), 30);
        let shooter = join(&mut world, "Ada", [0.0, 0.1, 0.0]);
        let victim = join(&mut world, "Eve", [0.0, 0.1, -distance]);
        let mut received = AllReceived::new();
        let muzzle = Vec3::new(0.0, 1.0, -1.0);
        fire(
            &mut world,
            shooter,
            "Fast",
            muzzle,
            Vec3::new(0.0, 1.0, -distance),
        );
        for _ in 0..40 {
            step(&mut world, &mut received);
        }
        assert_eq!(counts(&received, victim), (1, 1), "from {distance} m");
        let (launch, _) = received[&victim].launches[0];
        let (hit, _) = received[&victim].hits[0];
        assert!(launch.tick < hit.tick, "from {distance} m");
        assert_eq!(hit.target, world.entity_of(victim).expect("is here"));
    }
}

#[test]
fn shots_and_hits_outside_the_radius_are_not_sent() {
    for (seed, tick_hz) in [(1, 60), (2, 30), (3, 60)] {
        let mut world = world(Some(RADIUS_M), tick_hz);
        let mut random = Random::new(seed);
        let place = |random: &mut Random| {
            Vec3::new(random.range(-90.0, 90.0), 0.1, random.range(-90.0, 90.0))
        };
        let players: Vec<PlayerNumber> = (0..24)
            .map(|n| {
                let at = place(&mut random);
                join(&mut world, &format!("P{n}"), at.to_array())
            })
            .collect();
        let entities: BTreeMap<u32, PlayerNumber> = players
            .iter()
            .map(|player| (world.entity_of(*player).expect("is here"), *player))
            .collect();
        let mut received = AllReceived::new();
        for _ in 0..600 {
            for _ in 0..random.below(3) {
                let player = players[random.below(24) as usize];
                let other = players[random.below(24) as usize];
                let up = Vec3::Y * random.range(0.5, 1.5);
                let from = feet(&world, player) + up;
                let towards = feet(&world, other) + up + Vec3::X * random.range(-1.0, 1.0);
                if (towards - from).length() > 2.0 {
                    let weapon = ["Fast", "Ball"][random.below(2) as usize];
                    fire(&mut world, player, weapon, from, towards);
                }
            }
            step(&mut world, &mut received);
        }
        let (mut strangers, mut hits, mut victims) = (0, 0, 0);
        for (player, received) in &received {
            let own = world.entity_of(*player).expect("is here");
            for (launch, at) in &received.launches {
                let away = (Vec3::from(launch.position) - *at).length();
                let speed = Vec3::from(launch.velocity).length();
                let allowed = RADIUS_M + speed / tick_hz as f32 + 0.1;
                let is_own = launch.shooter == own;
                assert!(is_own || away <= allowed, "{away} m away, seed {seed}");
                strangers += u32::from(!is_own);
            }
            let known: BTreeSet<u32> = received.launches.iter().map(|(l, _)| l.id).collect();
            for (hit, at) in &received.hits {
                let away = (Vec3::from(hit.point) - *at).length();
                let concerned = hit.shooter == own || hit.target == own;
                assert!(concerned || away <= RADIUS_M, "{away} m away, seed {seed}");
                // With all who see the place, those whom it hit.
                victims += u32::from(hit.target == own && known.contains(&hit.id));
                hits += u32::from(!concerned);
            }
        }
        // Every shooter and every victim receives every hit.
        let sent = |of: &dyn Fn(&ProjectileHit) -> u32, player: PlayerNumber| {
            let hits = received[&player].hits.iter();
            let own = world.entity_of(player).expect("is here");
            hits.filter(|(hit, _)| of(hit) == own)
                .map(|(hit, _)| hit.id)
                .collect::<BTreeSet<u32>>()
        };
        let all = received.values().flat_map(|received| &received.hits);
        for (hit, _) in all {
            if let Some(shooter) = entities.get(&hit.shooter) {
                assert!(sent(&|hit| hit.shooter, *shooter).contains(&hit.id));
            }
            if let Some(victim) = entities.get(&hit.target) {
                assert!(sent(&|hit| hit.target, *victim).contains(&hit.id));
            }
        }
        assert!(
            strangers > 100 && hits > 100 && victims > 20,
            "{strangers} {hits} {victims}"
        );
    }
}

/// Shots fired by hit handlers begin after the tick's replication of shots.
#[test]
fn a_shot_of_a_handler_is_sent_in_the_next_tick() {
    for radius in [None, Some(RADIUS_M)] {
        let mut world = world(radius, 60);
        let shooter = join(&mut world, "Ada", [0.0, 0.1, 0.0]);
        let beside = join(&mut world, "Ben", [10.0, 0.1, 0.0]);
        let mut received = AllReceived::new();
        let up = [Vec3::new(5.0, 2.0, 5.0), Vec3::Y].map(|v| Value::Vector(v.to_array()));
        assert!(world.apply(input::Event::new(shooter, "After", Args(up.to_vec()))));
        let muzzle = Vec3::new(0.0, 1.0, -2.0);
        fire(&mut world, shooter, "Fast", muzzle, muzzle - Vec3::Y);
        for _ in 0..4 {
            step(&mut world, &mut received);
        }
        // The first ended before its launch could be sent.
        assert_eq!(counts(&received, beside), (1, 1), "radius {radius:?}");
        let (launch, _) = received[&beside].launches[0];
        let (hit, _) = received[&beside].hits[0];
        assert_eq!((launch.id, launch.tick), (hit.id + 1, hit.tick + 1));
    }
}

/// It bounces towards a player it did not fly towards.
#[test]
fn a_bouncing_shot_is_sent_to_the_player_it_then_flies_to() {
    let scene = r#"{"format":1,"prefabs":{},"entities":[
        {"id":1,"name":"Ground","components":{"Transform":{"position":[0,-0.5,0]},"Shape":{"type":"box","size":[900,1,900]}}},
        {"id":3,"name":"Wall","components":{"Transform":{"position":[0,5,-8]},"Shape":{"type":"box","size":[40,10,1]}}},
        {"id":2,"name":"Spawn","components":{"Transform":{"position":[0,0.1,0]},"SpawnPoint":{}}}]}"#;
    let rules = r#"
Projectile.Define("Fast", { Speed = 300, Damage = 1, Gravity = 0, Radius = 0.05, Ricochets = 1, Bounce = 1, LifeSeconds = 2 })
Network.OnClientEvent("Fire", function(player, weapon, from, direction)
    Projectile.Fire({ Weapon = weapon, From = from, Direction = direction, Shooter = player })
end)
"#;
    let game = package(scene, &[("scripts/ServerScriptService/Rules.luau", rules)]);
    let options = WorldOptions {
        interest: Some(InterestPolicy::within(RADIUS_M)),
        ..WorldOptions::default()
    };
    let mut world = World::load(&game, options).expect("the world loads");
    let shooter = join(&mut world, "Ada", [2.0, 0.1, 0.0]);
    let victim = join(&mut world, "Eve", [0.0, 0.1, 50.0]);
    let mut received = AllReceived::new();
    let muzzle = Vec3::new(0.0, 1.0, 0.0);
    fire(
        &mut world,
        shooter,
        "Fast",
        muzzle,
        Vec3::new(0.0, 1.0, -5.0),
    );
    for _ in 0..30 {
        step(&mut world, &mut received);
    }
    assert_eq!(counts(&received, victim), (1, 1));
    let (launch, _) = received[&victim].launches[0];
    assert!(launch.tick < received[&victim].hits[0].0.tick);
    assert!(launch.velocity[2] > 0.0, "it was announced on the way back");
}

#[test]
fn a_removed_shot_is_sent_to_the_clients_that_knew_it() {
    let mut world = world(Some(RADIUS_M), 60);
    let shooter = join(&mut world, "Ada", [0.0, 0.1, 0.0]);
    let beside = join(&mut world, "Ben", [10.0, 0.1, 0.0]);
    let elsewhere = join(&mut world, "Cleo", [0.0, 0.1, 80.0]);
    let mut received = AllReceived::new();
    let muzzle = Vec3::new(0.0, 1.0, -1.0);
    fire(
        &mut world,
        shooter,
        "Ball",
        muzzle,
        Vec3::new(0.0, 9.0, -1.0),
    );
    step(&mut world, &mut received);
    let id = received[&shooter].launches[0].0.id;
    let remove = Args(vec![Value::Number(f64::from(id))]);
    assert!(world.apply(input::Event::new(shooter, "Remove", remove)));
    step(&mut world, &mut received);
    step(&mut world, &mut received);
    assert_eq!(counts(&received, shooter), (1, 1));
    assert_eq!(counts(&received, beside), (1, 1));
    assert_eq!(counts(&received, elsewhere), (0, 0));
    assert!(!received[&beside].hits[0].0.met);
}

pub fn snapshot(world: &World, view: &mut JsonView) -> Json {
    let text = world.json_snapshot(view).expect("a snapshot");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn a_json_snapshot_has_own_shots_and_those_in_sight() {
    for (radius, wanted) in [(Some(RADIUS_M), [1, 0]), (None, [1, 1])] {
        let mut world = world(radius, 60);
        let shooter = join(&mut world, "Ada", [0.0, 0.1, 0.0]);
        let beside = join(&mut world, "Ben", [10.0, 0.1, 0.0]);
        let muzzle = Vec3::new(0.0, 1.0, -1.0);
        fire(
            &mut world,
            shooter,
            "Fast",
            muzzle,
            Vec3::new(0.0, 1.0, -100.0),
        );
        world.apply(input::Step);
        let shots = |world: &World| {
            [shooter, beside].map(|player| {
                let all = snapshot(world, &mut JsonView::new(player));
                let flying = all["features"]["projectile"]["flying"].as_array().cloned();
                flying.map_or(0, |flying| flying.len())
            })
        };
        assert_eq!(shots(&world), [1, 1], "radius {radius:?}");
        for _ in 0..12 {
            world.apply(input::Step);
        }
        assert_eq!(shots(&world), wanted, "60 m away, radius {radius:?}");
    }
}
