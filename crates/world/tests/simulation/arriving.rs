//! What players bring along: looks that are sent to all clients, and a friend
//! to appear beside.

use frolic_protocol::ServerMessage;
use frolic_protocol::avatar::{AvatarLooks, Hat};
use frolic_sim::Vec3;
use frolic_world::replay::{Ending, RecordOptions, replay};
use frolic_world::{PlayerNumber, World, WorldOptions, input};

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
    world.apply(input::Join::new(format!("user_{name}"), name))
}

fn feet(world: &World, player: PlayerNumber) -> Vec3 {
    world.character(player).expect("is here").feet
}

/// Puts Ada somewhere and has Bob appear beside her.
fn beside(at: Vec3) -> (Vec3, Vec3) {
    let mut world = world();
    let (ada, bob) = (join(&mut world, "Ada"), join(&mut world, "Bob"));
    world.apply(input::Teleport::new(ada, at));
    for _ in 0..60 {
        world.apply(input::Step);
    }
    assert!(world.apply(input::Beside {
        player: bob,
        friend: ada
    }));
    let placed = feet(&world, bob);
    for _ in 0..30 {
        world.apply(input::Step);
    }
    let stands = feet(&world, bob);
    assert!((stands - placed).length() < 0.5, "{placed} became {stands}");
    (feet(&world, ada), stands)
}

#[test]
fn a_friend_appears_beside_on_firm_ground() {
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

/// The closest two players are, seen from above.
fn closest(world: &World, players: &[PlayerNumber]) -> f32 {
    let places: Vec<Vec3> = players.iter().map(|one| feet(world, *one)).collect();
    let mut closest = f32::INFINITY;
    for (at, a) in places.iter().enumerate() {
        for b in &places[at + 1..] {
            closest = closest.min(Vec3::new(a.x - b.x, 0.0, a.z - b.z).length());
        }
    }
    closest
}

/// A pad over nothing beside a wall, with one spawn point.
const PAD: &str = r#"{"format": 1, "prefabs": {}, "entities": [
    {"id": 1, "name": "Pad", "components": {"Transform": {"position": [0, 10, 0]},
        "Shape": {"type": "box", "size": [5, 1, 5]}}},
    {"id": 2, "name": "Wall", "components": {"Transform": {"position": [1.8, 12, 0]},
        "Shape": {"type": "box", "size": [0.3, 4, 5]}}},
    {"id": 3, "name": "Spawn", "components": {"Transform": {"position": [0, 10.5, 0]}, "SpawnPoint": {}}}]}"#;

#[test]
fn players_do_not_spawn_inside_each_other() {
    // As wide as two characters.
    let apart = 2.0 * world().character_params().radius;
    let mut world = world();
    let mut players: Vec<PlayerNumber> = (0..40)
        .map(|at| join(&mut world, &format!("Player{at}")))
        .collect();
    assert!(closest(&world, &players) >= apart, "joined");
    // Those who are away stand there like the others.
    for player in &players[..20] {
        world.apply(input::Connected {
            player: *player,
            connected: false,
        });
    }
    for _ in 0..60 {
        world.apply(input::Step);
    }
    players.push(join(&mut world, "Late"));
    assert!(closest(&world, &players) >= apart, "joined later");

    // Born again, alone and all at once.
    for player in [players[3], players[17], players[29]] {
        world.apply(input::Teleport::new(player, Vec3::new(0.0, -500.0, 0.0)));
    }
    for _ in 0..5 {
        world.apply(input::Step);
    }
    assert!(closest(&world, &players) >= apart, "respawned");
    assert!(feet(&world, players[17]).y > 0.0);

    // Friends of one player do not share the place beside her.
    world.apply(input::Teleport::new(
        players[0],
        Vec3::new(-20.0, 0.6, -20.0),
    ));
    for _ in 0..30 {
        world.apply(input::Step);
    }
    for guest in &players[1..6] {
        assert!(world.apply(input::Beside {
            player: *guest,
            friend: players[0]
        }));
    }
    assert!(closest(&world, &players[..6]) >= apart, "invited");
}

/// As many newcomers as there are places in the first ring, each in turn.
#[test]
fn players_do_not_spawn_inside_a_player_who_is_away() {
    let mut world = world();
    let apart = 2.0 * world.character_params().radius;
    let away = join(&mut world, "Away");
    world.apply(input::Connected {
        player: away,
        connected: false,
    });
    for at in 0..10 {
        world.apply(input::Step);
        let newcomer = join(&mut world, &format!("Player{at}"));
        let distance = closest(&world, &[away, newcomer]);
        assert!(distance >= apart, "newcomer {at} is {distance} m away");
        world.apply(input::Leave { player: newcomer });
    }
}

#[test]
fn places_around_a_spawn_point_are_on_its_ground_and_not_behind_a_wall() {
    let game = package(PAD, &[]);
    let mut world = World::load(&game, WorldOptions::default()).expect("it loads");
    let players: Vec<PlayerNumber> = (0..8)
        .map(|at| join(&mut world, &format!("Player{at}")))
        .collect();
    for _ in 0..120 {
        world.apply(input::Step);
    }
    for player in &players {
        let stands = feet(&world, *player);
        assert!(stands.y > 10.0 && stands.x < 1.8, "{stands}");
    }
    let apart = 2.0 * world.character_params().radius;
    assert!(closest(&world, &players) >= apart * 0.9);
}

#[test]
fn a_crowd_without_room_still_appears_at_the_spawn_point() {
    let scene = PAD.replace("[5, 1, 5]", "[1, 1, 1]");
    let mut world = World::load(&package(&scene, &[]), WorldOptions::default()).expect("it loads");
    for at in 0..30 {
        let player = join(&mut world, &format!("Player{at}"));
        let place = feet(&world, player);
        assert!(
            (place - Vec3::new(0.0, 10.5, 0.0)).length() < 2.0,
            "{place}"
        );
    }
}

/// A resumed player never left, so no join event fires; scripts receive one
/// resume event.
#[test]
fn scripts_receive_an_event_when_a_player_resumes() {
    let received = r#"
        local function note(mark)
            return function(player) Network.Broadcast("Heard", mark .. player.Name) end
        end
        Players.PlayerJoined:Connect(note("joined "))
        Players.PlayerResumed:Connect(note("resumed "))"#;
    let game = package(
        SCENE,
        &[("scripts/ServerScriptService/Main.luau", received)],
    );
    let mut world = World::load(&game, WorldOptions::default()).expect("it loads");
    let ada = join(&mut world, "Ada");
    let mut sent = Vec::new();
    for tick in 0..10 {
        if tick == 5 {
            // Two attempts within a tick are one return.
            world.apply(input::Reconnect { player: ada });
            world.apply(input::Reconnect { player: ada });
            world.apply(input::Reconnect { player: 77 });
        }
        world.apply(input::Step);
        for outgoing in world.take_outbox() {
            if let ServerMessage::Event { args, .. } = outgoing.message {
                sent.push(format!("{:?}", args.0));
            }
        }
    }
    let [first, second] = &sent[..] else {
        panic!("{sent:?}");
    };
    assert!(first.contains("joined Ada") && second.contains("resumed Ada"));
}

#[test]
fn a_player_cannot_spawn_beside_an_absent_player() {
    let mut world = world();
    let (ada, bob) = (join(&mut world, "Ada"), join(&mut world, "Bob"));
    let before = feet(&world, bob);
    assert!(!world.apply(input::Beside {
        player: bob,
        friend: bob
    }));
    assert!(!world.apply(input::Beside {
        player: bob,
        friend: 99
    }));
    world.apply(input::Leave { player: ada });
    assert!(!world.apply(input::Beside {
        player: bob,
        friend: ada
    }));
    assert_eq!(feet(&world, bob), before);
    // In mid-air there is no free place, nor beside a player who stands in
    // mid-air.
    let carl = join(&mut world, "Carl");
    world.apply(input::Teleport::new(carl, Vec3::new(0.0, 60.0, 0.0)));
    assert!(!world.apply(input::Beside {
        player: bob,
        friend: carl
    }));
}

#[test]
fn looks_are_sent_to_all_clients_and_a_recording_repeats_it() {
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
    world.apply(input::Dress { player: ada, looks });
    world.apply(input::Dress { player: ada, looks });
    world.apply(input::Dress { player: 77, looks });
    let sent: Vec<_> = world.take_outbox();
    let [only] = &sent[..] else {
        panic!("received {} times", sent.len());
    };
    let ServerMessage::Presence(players) = &only.message else {
        panic!("{:?}", only.message);
    };
    assert_eq!(
        (players[0].name.as_str(), players[0].looks.hat),
        ("Ada", Hat::Crown)
    );
    assert_eq!(world.players()[0].looks, looks);
    world.apply(input::Beside {
        player: bob,
        friend: ada,
    });
    for _ in 0..120 {
        world.apply(input::Step);
    }
    world.end_recording(Ending::Complete);
    let bytes = world.take_recording();
    let report = replay(&game, &bytes).expect("it can be played again");
    assert_eq!(report.difference, None);
}
