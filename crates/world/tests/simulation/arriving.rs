//! What players bring along: looks that everybody is told of, and a friend to
//! appear beside (PLAT-18, PLAT-19).

use frolic_protocol::ServerMessage;
use frolic_protocol::avatar::{AvatarLooks, Hat};
use frolic_sim::Vec3;
use frolic_world::replay::{Ending, RecordOptions, replay};
use frolic_world::{PlayerNumber, World, WorldOptions};

use crate::harness::package;

/// A meadow, a narrow pillar far up, and a small room.
const SCENE: &str = r#"{"format": 1, "prefabs": {}, "entities": [
    {"id": 1, "name": "Ground", "components": {"Shape": {"type": "box", "size": [100, 1, 100]}}},
    {"id": 2, "name": "Spawn", "components": {"Transform": {"position": [0, 1, 0]}, "SpawnPoint": {}}},
    {"id": 3, "name": "Pillar", "components": {"Transform": {"position": [20, 10, 0]},
        "Shape": {"type": "box", "size": [1, 20, 1]}}},
    {"id": 4, "name": "Wall", "components": {"Transform": {"position": [31, 2, 0]},
        "Shape": {"type": "box", "size": [0.4, 4, 20]}}},
    {"id": 5, "name": "Stairs", "components": {"Transform": {"position": [0, 0.9, 31.2]},
        "Shape": {"type": "box", "size": [20, 1, 1]}}}]}"#;

fn world() -> World {
    World::load(&package(SCENE, &[]), WorldOptions::default()).expect("it loads")
}

fn join(world: &mut World, name: &str) -> PlayerNumber {
    world.join(format!("user_{name}"), name.to_owned())
}

fn feet(world: &World, player: PlayerNumber) -> Vec3 {
    world.character(player).expect("is here").feet
}

/// Puts Ada somewhere and has Bob appear beside her.
fn beside(at: Vec3) -> (Vec3, Vec3) {
    let mut world = world();
    let (ada, bob) = (join(&mut world, "Ada"), join(&mut world, "Bob"));
    world.teleport(ada, at);
    for _ in 0..60 {
        world.step();
    }
    assert!(world.put_beside(bob, ada));
    let placed = feet(&world, bob);
    for _ in 0..30 {
        world.step();
    }
    let stands = feet(&world, bob);
    assert!((stands - placed).length() < 0.5, "{placed} became {stands}");
    (feet(&world, ada), stands)
}

#[test]
fn plat_18_a_friend_appears_beside_on_firm_ground() {
    for at in [Vec3::new(8.0, 0.6, -5.0), Vec3::new(0.0, 0.6, 29.6)] {
        let (ada, bob) = beside(at);
        let apart = (ada - bob).length();
        assert!((1.0..3.0).contains(&apart), "{ada} and {bob}");
    }
    // Never on the other side of a wall.
    let (ada, bob) = beside(Vec3::new(30.0, 0.6, 0.0));
    assert!(bob.x < 31.0, "{ada} and {bob}");
    // Where there is room for one only, both stand there.
    let (ada, bob) = beside(Vec3::new(20.0, 20.1, 0.0));
    assert!((ada - bob).length() < 0.6, "{ada} and {bob}");
    assert!(bob.y > 19.0, "{bob}");
}

#[test]
fn plat_18_nobody_appears_beside_who_is_not_there() {
    let mut world = world();
    let (ada, bob) = (join(&mut world, "Ada"), join(&mut world, "Bob"));
    let before = feet(&world, bob);
    assert!(!world.put_beside(bob, bob));
    assert!(!world.put_beside(bob, 99));
    world.leave(ada);
    assert!(!world.put_beside(bob, ada));
    assert_eq!(feet(&world, bob), before);
    // In mid-air over nothing there is no place, nor beside whoever has one there.
    let carl = join(&mut world, "Carl");
    world.teleport(carl, Vec3::new(0.0, 60.0, 0.0));
    assert!(!world.put_beside(bob, carl));
}

#[test]
fn plat_19_everybody_is_told_how_somebody_looks_and_a_recording_repeats_it() {
    let game = package(SCENE, &[]);
    let options = || WorldOptions {
        record: Some(RecordOptions::default()),
        ..WorldOptions::default()
    };
    let mut world = World::load(&game, options()).expect("it loads");
    let (ada, bob) = (join(&mut world, "Ada"), join(&mut world, "Bob"));
    world.take_outbox();
    let looks = AvatarLooks {
        hat: Hat::Crown,
        ..AvatarLooks::default()
    };
    world.dress(ada, looks);
    world.dress(ada, looks);
    world.dress(77, looks);
    let told: Vec<_> = world.take_outbox();
    let [only] = &told[..] else {
        panic!("told {} times", told.len());
    };
    let ServerMessage::Presence(players) = &only.message else {
        panic!("{:?}", only.message);
    };
    assert_eq!(
        (players[0].name.as_str(), players[0].looks.hat),
        ("Ada", Hat::Crown)
    );
    assert_eq!(world.players()[0].looks, looks);
    world.put_beside(bob, ada);
    for _ in 0..120 {
        world.step();
    }
    world.end_recording(Ending::Complete);
    let bytes = world.take_recording();
    let report = replay(&game, &bytes).expect("it can be played again");
    assert_eq!(report.difference, None);
}
