//! Presence: connected, away and left; being away changes only what other
//! players see.

use frolic_package::Package;
use frolic_protocol::{PlayerInfo, ServerMessage};
use frolic_world::replay::{Ending, RecordOptions, replay};
use frolic_world::{JsonView, World, WorldOptions, input};
use serde_json::{Value as Json, json};

use crate::harness::package;
use crate::sight::snapshot;

/// Values that change all the time, so that players are replicated in every
/// update.
const COUNTING: &str = r##"
function OnTick(dt)
    for _, player in Players:GetPlayers() do
        player.leaderstats.Time = World.Time
    end
end
"##;

fn game() -> Package {
    let scene = r#"{"format":1,"entities":[
        {"id":1,"name":"Spawn","components":{"Transform":{"position":[0,0.1,0]},"SpawnPoint":{}}}]}"#;
    package(
        scene,
        &[("scripts/ServerScriptService/Count.luau", COUNTING)],
    )
}

fn load() -> World {
    let options = WorldOptions {
        record: Some(RecordOptions {
            hash_every_ticks: Some(1),
            ..RecordOptions::default()
        }),
        ..WorldOptions::default()
    };
    World::load(&game(), options).expect("the world loads")
}

/// One tick, as in the game server; returns the players replicated in it.
fn step(world: &mut World) -> Vec<PlayerInfo> {
    world.apply(input::Step);
    let mut sent = Vec::new();
    for outgoing in world.take_outbox() {
        if let ServerMessage::Presence(players) = outgoing.message {
            sent.extend(players);
        }
    }
    sent.extend(world.take_reconnected());
    world.collect_changes();
    sent
}

/// A player's entry at a JSON client that holds the last snapshot.
fn shown(world: &World, view: &mut JsonView, name: &str) -> Option<Json> {
    let sent = snapshot(world, view);
    view.acknowledge(sent["tick"].as_u64().expect("a tick") as u32);
    let players = sent["features"]["presence"]["players"].as_array()?;
    players.iter().find(|one| one["name"] == name).cloned()
}

#[test]
fn online_says_who_has_a_connection_and_left_who_is_gone() {
    let mut world = load();
    let ada = world.apply(input::Join::new("user_1", "Ada"));
    let ben = world.apply(input::Join::new("user_2", "Ben"));
    let mut view = JsonView::new(ada);
    step(&mut world);
    let first = shown(&world, &mut view, "Ben").expect("all players are replicated");
    assert_eq!(
        (&first["online"], &first["number"]),
        (&json!(true), &json!(ben))
    );

    world.apply(input::Connected {
        player: ben,
        connected: false,
    });
    let sent = step(&mut world);
    let last = sent.iter().rfind(|info| info.number == ben);
    assert!(
        last.is_some_and(|info| !info.online && !info.left),
        "{sent:?}"
    );
    let away = shown(&world, &mut view, "Ben").expect("an update");
    assert_eq!((&away["online"], away.get("left")), (&json!(false), None));
    let full = shown(&world, &mut JsonView::new(ada), "Ben").expect("in the world");
    assert_eq!(full["online"], json!(false));
    assert_eq!(full["entityId"], first["entityId"], "the character stays");

    world.apply(input::Connected {
        player: ben,
        connected: true,
    });
    world.apply(input::Connected {
        player: ben,
        connected: true,
    });
    let sent = step(&mut world);
    assert!(
        sent.iter()
            .rfind(|info| info.number == ben)
            .is_some_and(|info| info.online)
    );
    let back = shown(&world, &mut view, "Ben").expect("an update");
    assert_eq!((&back["online"], back.get("left")), (&json!(true), None));

    // The player leaves while away, in the same tick: only the last state is
    // sent.
    world.apply(input::Connected {
        player: ben,
        connected: false,
    });
    world.apply(input::Leave { player: ben });
    let sent = step(&mut world);
    let last = sent.iter().rfind(|info| info.number == ben);
    assert!(
        last.is_some_and(|info| !info.online && info.left),
        "{sent:?}"
    );
    let gone = shown(&world, &mut view, "Ben").expect("an update");
    assert_eq!(
        (&gone["online"], &gone["left"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(shown(&world, &mut JsonView::new(ada), "Ben"), None);
}

#[test]
fn being_away_changes_nothing_in_the_world_and_is_in_no_recording() {
    let mut hashes = Vec::new();
    for drops in [false, true] {
        let mut world = load();
        let ada = world.apply(input::Join::new("user_1", "Ada"));
        for tick in 0..90u32 {
            if drops && tick.is_multiple_of(20) {
                world.apply(input::Connected {
                    player: ada,
                    connected: tick.is_multiple_of(40),
                });
            }
            step(&mut world);
        }
        hashes.push(world.state_hash());
        world.end_recording(Ending::Complete);
        let report = replay(&game(), &world.take_recording()).expect("it can be replayed");
        assert_eq!(report.difference, None, "with drops: {drops}");
    }
    assert_eq!(hashes[0], hashes[1]);
}

/// Columns of the leaderboard are in the order in which a game first set them.
#[test]
fn leaderstats_retain_the_order_in_which_they_were_set() {
    let script = r#"Players.PlayerJoined:Connect(function(player)
        player.leaderstats.Wins = 1
        player.leaderstats.Falls = 2
        player.leaderstats.Again = 3
        player.leaderstats.Wins = 4
        player.leaderstats.Falls = nil
        player.leaderstats.Falls = 5
    end)"#;
    let scene = r#"{"format":1,"entities":[]}"#;
    let game = package(scene, &[("scripts/ServerScriptService/Main.luau", script)]);
    let mut world = World::load(&game, WorldOptions::default()).expect("the world loads");
    world.apply(input::Join::new("user_1", "Ada"));
    world.apply(input::Step);
    let stats = &world.players()[0].stats;
    let shown: Vec<_> = stats
        .iter()
        .map(|stat| (stat.name.as_str(), stat.text.as_str()))
        .collect();
    assert_eq!(shown, [("Wins", "4"), ("Again", "3"), ("Falls", "5")]);
}
