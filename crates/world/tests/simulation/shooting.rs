//! Weapons in whole worlds: the rate of fire is limited, nothing flies through
//! a wall, and shooters hit what they saw.

use std::collections::BTreeSet;

use frolic_client::ClientEvent;
use frolic_package::Package;
use frolic_protocol::{Args, NumberedInput, ServerMessage, Value};
use frolic_sim::{Buttons, CharacterInput, Vec3};
use frolic_world::replay::{Ending, RecordOptions, replay};
use frolic_world::{World, WorldOptions, input};

use crate::harness::{Run, package};
use crate::network::Quality;

const RULES: &str = r##"
Projectile.Define("Blaster", { Speed = 60, Damage = 20, FireRate = 5, Radius = 0.05, LifeSeconds = 2 })
Projectile.Define("Rail", { Speed = 500, Damage = 1, FireRate = 10, Radius = 0 })
Projectile.Define("Bouncy", { Speed = 30, FireRate = 2, Gravity = 10, Ricochets = 3, Radius = 0.1, Look = "Ball" })
local hits, deaths = 0, 0
Projectile.Hit:Connect(function(hit)
    hits += 1
    Network.Broadcast("Hit", hit.Entity and hit.Entity.Name, hit.Player and hit.Player.Name, hit.Damage, hit.Killed)
end)
local function welcome(player)
    player.Weapon = "Blaster"
    player.Died:Connect(function(killer, weapon)
        deaths += 1
        Network.Broadcast("Died", player.Name, killer and killer.Name, weapon)
    end)
end
Players.PlayerJoined:Connect(welcome)
Network.OnClientEvent("Take", function(player, weapon) player.Weapon = weapon end)
Network.OnClientEvent("Dead", function(player, seconds) Players.RespawnSeconds = seconds end)
Network.OnClientEvent("Die", function(player) player.Kill() end)
Network.OnClientEvent("Team", function(player)
    for _, each in Players.All() do each.Team = "red" end
end)
Network.OnClientEvent("Volley", function(player, count)
    for at = 1, count do
        Projectile.Fire({ Weapon = "Bouncy", From = Vector3.new(at % 40, 3, at // 40), Direction = Vector3.new(0, 1, -1) })
    end
    Network.Broadcast("Flying", Projectile.InFlight)
end)
"##;

/// Level ground; with a wall of a centimetre 10 m ahead of the spawn point.
fn range(wall: bool) -> Package {
    let wall = if wall {
        r#",{"id":3,"name":"Wall","components":{"Transform":{"position":[0,2,-10]},"Shape":{"type":"box","size":[40,8,0.01]}}}"#
    } else {
        ""
    };
    let scene = format!(
        r#"{{"format":1,"prefabs":{{}},"entities":[
        {{"id":1,"name":"Ground","components":{{"Transform":{{"position":[0,-0.5,0]}},"Shape":{{"type":"box","size":[400,1,400]}}}}}},
        {{"id":2,"name":"Spawn","components":{{"Transform":{{"position":[0,0.1,0]}},"SpawnPoint":{{}}}}}}{wall}]}}"#
    );
    package(&scene, &[("scripts/ServerScriptService/Rules.luau", RULES)])
}

fn fire(yaw: f32, pitch: f32) -> CharacterInput {
    CharacterInput::new(0.0, 0.0, yaw, pitch, Buttons::FIRE)
}

fn world(wall: bool) -> World {
    World::load(&range(wall), WorldOptions::default()).expect("the world loads")
}

fn join(world: &mut World, name: &str, at: Vec3) -> u32 {
    let number = world.apply(input::Join::new(format!("id_{name}"), name));
    world.apply(input::Step);
    world.apply(input::Teleport::new(number, at));
    number
}

fn say(world: &mut World, player: u32, event: &str, args: Vec<Value>) {
    assert!(world.apply(input::Event::new(player, event, Args(args))));
}

/// Steps, with this input for a player in every tick.
fn steps(world: &mut World, player: u32, first: u32, count: u32, input: CharacterInput) -> Sent {
    let mut sent = Sent::default();
    for seq in first..first + count {
        world.apply(input::Controls::new(player, [NumberedInput { seq, input }]));
        world.apply(input::Step);
        sent.take(world);
    }
    sent
}

/// The messages that a world sent.
#[derive(Default)]
struct Sent {
    /// Different shots announced to the first player.
    launches: usize,
    known: BTreeSet<u32>,
    hits: usize,
    events: Vec<(String, Vec<Value>)>,
}

impl Sent {
    fn take(&mut self, world: &mut World) {
        for outgoing in world.take_outbox() {
            match outgoing.message {
                // Each player receives them; count those of the first one.
                ServerMessage::ProjectileLaunch(all) if outgoing.to == Some(1) => {
                    self.known.extend(all.iter().map(|launch| launch.id));
                    self.launches = self.known.len();
                }
                ServerMessage::ProjectileHit(all) if outgoing.to == Some(1) => {
                    self.hits += all.len();
                }
                ServerMessage::Event { name, args } => self.events.push((name, args.0)),
                _ => {}
            }
        }
    }

    fn count(&self, event: &str, first: &str) -> usize {
        let wanted = Value::String(first.to_owned());
        let events = self.events.iter();
        events
            .filter(|(name, args)| name == event && args.first() == Some(&wanted))
            .count()
    }

    fn hurt(&self, who: &str) -> usize {
        let wanted = Value::String(who.to_owned());
        let hits = self.events.iter().filter(|(name, _)| name == "Hit");
        hits.filter(|(_, args)| args.get(1) == Some(&wanted))
            .count()
    }
}

#[test]
fn the_rate_of_fire_is_the_weapons_however_many_inputs_come() {
    // Five a second, for four seconds.
    let honest = {
        let mut world = world(false);
        let ada = join(&mut world, "Ada", Vec3::new(0.0, 0.1, 0.0));
        steps(&mut world, ada, 1, 240, fire(0.0, 0.0)).launches
    };
    assert_eq!(honest, 20, "240 ticks at 60 Hz");

    let mut flooded = world(false);
    let eve = join(&mut flooded, "Eve", Vec3::new(0.0, 0.1, 0.0));
    let mut sent = Sent::default();
    let mut seq = 1;
    for _ in 0..240 {
        // A hundred new inputs a tick, and the last ones again and again.
        let batch: Vec<NumberedInput> = (0..100)
            .map(|n| NumberedInput {
                seq: seq + n,
                input: fire(0.0, 0.0),
            })
            .collect();
        seq += 100;
        for _ in 0..3 {
            flooded.apply(input::Controls::new(eve, batch.iter().copied()));
        }
        flooded.apply(input::Step);
        sent.take(&mut flooded);
    }
    assert_eq!(sent.launches, honest, "a flood of inputs fires no faster");
}

#[test]
fn neither_reconnecting_nor_changing_weapons_makes_it_faster() {
    let mut world = world(false);
    let eve = join(&mut world, "Eve", Vec3::new(0.0, 0.1, 0.0));
    let mut sent = Sent::default();
    for round in 0..120 {
        if round % 2 == 0 {
            world.apply(input::Reconnect { player: eve });
        }
        if round % 20 == 0 {
            say(&mut world, eve, "Take", vec![Value::Nil]);
            let blaster = Value::String("Blaster".into());
            say(&mut world, eve, "Take", vec![blaster]);
        }
        let once = steps(&mut world, eve, 1 + round, 1, fire(0.0, 0.0));
        sent.known.extend(once.known);
    }
    let shots = sent.known.len();
    assert!((9..=11).contains(&shots), "{shots} in two seconds");
}

#[test]
fn nothing_gets_through_a_wall_of_a_centimetre() {
    for (weapon, distance) in [("Rail", 30.0), ("Rail", 0.6), ("Blaster", 4.0)] {
        let mut world = world(true);
        let z = -10.0 + distance;
        let ada = join(&mut world, "Ada", Vec3::new(0.0, 0.1, z));
        let ben = join(&mut world, "Ben", Vec3::new(0.0, 0.1, -10.6));
        say(&mut world, ada, "Take", vec![Value::String(weapon.into())]);
        let sent = steps(&mut world, ada, 1, 120, fire(0.0, -0.02));
        assert!(sent.count("Hit", "Wall") > 5, "{weapon} from {distance} m");
        assert_eq!(sent.hurt("Ben"), 0, "{weapon} from {distance} m");
        assert_eq!(world.character(ben).map(|c| c.feet.z < -10.0), Some(true));
    }
}

#[test]
fn a_shot_hits_once_and_enough_of_them_kill() {
    let mut world = world(false);
    let ada = join(&mut world, "Ada", Vec3::new(0.0, 0.1, 0.0));
    join(&mut world, "Ben", Vec3::new(0.0, 0.1, -12.0));
    let sent = steps(&mut world, ada, 1, 75, fire(0.0, -0.05));
    // Six shots were fired and five of them take 20 of 100 each.
    assert_eq!(sent.hurt("Ben"), 5, "{:?}", sent.events);
    let damage: Vec<&Value> = sent
        .events
        .iter()
        .filter(|(name, _)| name == "Hit")
        .filter_map(|(_, args)| args.get(3))
        .collect();
    let killed = |n: usize| damage.iter().filter(|k| **k == &Value::Bool(true)).count() == n;
    assert!(killed(1), "{damage:?}");
    let died: Vec<_> = sent.events.iter().filter(|(n, _)| n == "Died").collect();
    let text = |text: &str| Value::String(text.into());
    assert_eq!(died.len(), 1);
    assert_eq!(died[0].1, [text("Ben"), text("Ada"), text("Blaster")]);
}

#[test]
fn teams_do_not_hurt_their_own() {
    let mut world = world(false);
    let ada = join(&mut world, "Ada", Vec3::new(0.0, 0.1, 0.0));
    join(&mut world, "Ben", Vec3::new(0.0, 0.1, -8.0));
    say(&mut world, ada, "Team", vec![]);
    let sent = steps(&mut world, ada, 1, 60, fire(0.0, -0.05));
    assert!(sent.hurt("Ben") > 2, "the shots are stopped");
    let harmless = sent.events.iter().filter(|(name, _)| name == "Hit");
    let mut harmless = harmless.map(|(_, args)| args.get(2));
    assert!(harmless.all(|damage| damage == Some(&Value::Number(0.0))));
}

#[test]
fn the_dead_neither_fire_nor_walk_nor_are_hit_until_they_are_born_again() {
    let mut world = world(false);
    let ada = join(&mut world, "Ada", Vec3::new(0.0, 0.1, 0.0));
    let ben = join(&mut world, "Ben", Vec3::new(0.0, 0.1, -8.0));
    say(&mut world, ada, "Dead", vec![Value::Number(2.0)]);
    steps(&mut world, ada, 1, 40, CharacterInput::default());
    say(&mut world, ada, "Die", vec![]);
    steps(&mut world, ada, 41, 1, CharacterInput::default());
    let before = world.character(ada).expect("it lies there").feet;
    let wants = CharacterInput::new(0.0, 1.0, 0.0, 0.0, Buttons::FIRE);
    let sent = steps(&mut world, ada, 42, 100, wants);
    assert_eq!(sent.launches, 0, "the dead do not fire");
    let after = world.character(ada).expect("it lies there").feet;
    assert!((after - before).length() < 0.01, "the dead do not walk");
    // Ben shoots at where she lies, and the shots fly on.
    let back = fire(core::f32::consts::PI, -0.05);
    for seq in 1..20 {
        world.apply(input::Controls::new(
            ben,
            [NumberedInput { seq, input: back }],
        ));
        world.apply(input::Step);
    }
    let mut sent = Sent::default();
    sent.take(&mut world);
    assert_eq!(sent.hurt("Ada"), 0);
    // Two seconds are over.
    let sent = steps(&mut world, ada, 200, 60, fire(0.0, 0.0));
    assert!(sent.launches > 2, "alive again");
}

/// A connection without jitter or loss.
fn network(way_ms: u32) -> Quality {
    Quality {
        delay_ms: f64::from(way_ms),
        jitter_ms: 0.0,
        loss: 0.0,
        duplicated: 0.0,
    }
}

/// Shots of a client that aims at what it draws of a runner, ahead by the time
/// its shots take: how many were fired, and how many hit.
fn aimed(way_ms: u32) -> (usize, usize) {
    let mut run = Run::new(&range(false), 3, network(way_ms));
    let (ada, ben) = (run.join("Ada"), run.join("Ben"));
    run.for_ms(1_000);
    let (shooter, runner) = (run.number(ada), run.number(ben));
    run.world_mut()
        .apply(input::Teleport::new(shooter, Vec3::new(0.0, 0.1, 0.0)));
    run.world_mut()
        .apply(input::Teleport::new(runner, Vec3::new(-3.0, 0.1, -15.0)));
    run.for_ms(1_500);
    let rail = Args(vec![Value::String("Rail".into())]);
    run.client_mut(ada).fire_server("Take".into(), rail);
    run.for_ms(500);
    run.take_events(ada);
    let target = run.entity(ben);
    let (mut right, mut shots, mut hits) = (1.0, 0, 0);
    for _ in 0..300 {
        let drawn = run.drawn(ada);
        let at = drawn.iter().find(|d| d.id == target).expect("in sight");
        if at.position.x.abs() > 4.0 {
            right = -at.position.x.signum();
        }
        let runs = CharacterInput::new(right, 0.0, 0.0, 0.0, Buttons::default());
        run.steer(ben, runs);
        let own = drawn.iter().find(|d| d.own).expect("it is here");
        let eye = own.position + Vec3::Y * 1.55;
        let middle = at.position + Vec3::Y * 0.9;
        // Where it will be drawn when the shot arrives, a tick or two later.
        let ahead = middle + at.velocity * ((middle - eye).length() / 500.0 + 0.017);
        let way = (ahead - eye).normalize();
        let (yaw, pitch) = ((-way.x).atan2(-way.z), way.y.asin());
        run.steer(ada, fire(yaw, pitch));
        run.for_ms(17);
        for event in run.take_events(ada) {
            match event {
                ClientEvent::Shot { own: true, .. } => shots += 1,
                ClientEvent::Impact {
                    own: true,
                    target: hit,
                    ..
                } if hit == target => hits += 1,
                _ => {}
            }
        }
    }
    (shots, hits)
}

#[test]
fn what_the_shooter_saw_is_hit_at_200_ms() {
    for way_ms in [5, 50, 100] {
        let (shots, hits) = aimed(way_ms);
        assert!(shots > 30, "{shots} shots at {way_ms} ms");
        // Turning round costs a few. They cause no deaths: shots at a player
        // seen in another life hit no player.
        assert!(
            hits * 10 > shots * 7,
            "{hits} of {shots} hit with {way_ms} ms each way"
        );
    }
}

#[test]
fn own_shots_are_shown_at_once_and_once() {
    let mut run = Run::new(&range(true), 5, network(100));
    let ada = run.join("Ada");
    run.for_ms(2_000);
    run.take_events(ada);
    run.steer(ada, fire(0.0, 0.0));
    run.for_ms(60);
    let soon = count(&run.take_events(ada), true);
    assert_eq!(soon.0, 1, "before the server can have received it");
    run.for_ms(1_940);
    run.steer(ada, CharacterInput::default());
    run.for_ms(1_000);
    let rest = count(&run.take_events(ada), true);
    let (shots, impacts) = (soon.0 + rest.0, soon.1 + rest.1);
    // Five a second for two seconds.
    assert!((10..=11).contains(&shots), "{shots} shots were shown");
    assert_eq!(impacts, shots, "each meets the wall once");
    assert!(run.client(ada).shots().is_empty());
}

#[test]
fn others_see_a_shot_fly_and_hit_with_nothing_sent_in_between() {
    let mut run = Run::new(&range(true), 5, Quality::GOOD);
    let (ada, ben) = (run.join("Ada"), run.join("Ben"));
    run.for_ms(1_500);
    run.take_events(ben);
    run.steer(ada, fire(0.0, 0.05));
    run.for_ms(50);
    run.steer(ada, CharacterInput::default());
    let mut seen = Vec::new();
    for _ in 0..60 {
        run.for_ms(16);
        run.drawn(ben);
        seen.extend(run.client(ben).shots().iter().map(|shot| shot.position.z));
    }
    assert!(seen.len() > 4, "it was seen flying: {seen:?}");
    assert!(seen.windows(2).all(|pair| pair[1] <= pair[0]), "{seen:?}");
    assert!(seen.iter().all(|z| *z > -10.1), "never behind the wall");
    assert_eq!(count(&run.take_events(ben), false), (1, 1));
}

/// Shots that began and ended, own or others'.
fn count(events: &[ClientEvent], wanted: bool) -> (usize, usize) {
    let shots = events
        .iter()
        .filter(|event| matches!(event, ClientEvent::Shot { own, .. } if *own == wanted));
    let impacts = events
        .iter()
        .filter(|event| matches!(event, ClientEvent::Impact { own, .. } if *own == wanted));
    (shots.count(), impacts.count())
}

#[test]
fn who_comes_later_sees_what_is_in_the_air_and_too_much_is_refused() {
    let mut world = world(false);
    let ada = join(&mut world, "Ada", Vec3::new(0.0, 0.1, 0.0));
    say(&mut world, ada, "Volley", vec![Value::Number(1_000.0)]);
    let sent = steps(&mut world, ada, 1, 5, CharacterInput::default());
    assert_eq!((world.projectiles(), sent.launches), (1_000, 1_000));
    let ben = world.apply(input::Join::new("id_Ben", "Ben"));
    let mut received = 0;
    for _ in 0..15 {
        world.apply(input::Step);
        for outgoing in world.take_outbox() {
            if let ServerMessage::ProjectileLaunch(all) = outgoing.message
                && outgoing.to == Some(ben)
            {
                received += all.len();
            }
        }
    }
    assert_eq!(received, world.projectiles(), "all of them, once");
    say(&mut world, ada, "Volley", vec![Value::Number(9_999.0)]);
    steps(&mut world, ada, 6, 2, CharacterInput::default());
    assert!(world.projectiles() <= 4_096);
    let complaints = world.take_logs();
    let refused = complaints
        .iter()
        .any(|l| l.message.contains("shots in flight"));
    assert!(refused, "{complaints:?}");
    for _ in 0..300 {
        world.apply(input::Step);
    }
    assert_eq!(world.projectiles(), 0, "all of them end");
}

#[test]
fn a_session_with_shots_is_replayed_to_the_same_hashes() {
    let game = range(true);
    let options = WorldOptions {
        record: Some(RecordOptions {
            hash_every_ticks: Some(10),
            ..RecordOptions::default()
        }),
        ..WorldOptions::default()
    };
    let mut run = Run::with(&game, options, 7, Quality::BAD);
    let (ada, ben) = (run.join("Ada"), run.join("Ben"));
    let volley = Args(vec![Value::Number(50.0)]);
    run.for_ms(500);
    run.client_mut(ada).fire_server("Volley".into(), volley);
    for turn in 0..20 {
        run.steer(ada, fire(turn as f32 * 0.3, 0.05));
        run.steer(ben, fire(turn as f32 * -0.4, -0.1));
        let said = run.number(ada);
        // A log line now and then; too many are refused, and not recorded.
        let _ = run.world_mut().apply(input::Chat {
            player: said,
            text: "hello".into(),
        });
        run.for_ms(200);
    }
    run.world_mut().end_recording(Ending::Complete);
    let bytes = run.world_mut().take_recording();
    let report = replay(&game, &bytes).expect("it can be replayed");
    assert_eq!(report.difference, None);
    assert!(report.same_hashes > 20, "{report:?}");
}
