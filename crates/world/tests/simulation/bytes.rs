//! How often clients receive updates of what, and in how many bytes.

use frolic_protocol::{NumberedInput, PacketAck};
use frolic_sim::Vec3;
use frolic_sim::random::Random;
use frolic_world::{ClientView, Delivery, InterestPolicy, World, WorldOptions, input};

use crate::harness::{Run, package, walk};
use crate::network::Quality;

/// A crowd on a meadow, without a network between.
fn crowd(players: u32, area: f32, interest: Option<InterestPolicy>) -> (World, Vec<ClientView>) {
    let options = WorldOptions {
        interest,
        ..WorldOptions::default()
    };
    crowd_of(players, area, options)
}

fn crowd_of(players: u32, area: f32, options: WorldOptions) -> (World, Vec<ClientView>) {
    let mut world = World::load(&crate::meadow(), options).expect("the world loads");
    let mut random = Random::new(5);
    let mut views = Vec::new();
    for n in 0..players {
        let number = world.apply(input::Join::new(format!("p{n}"), format!("P{n}")));
        let place = Vec3::new(random.range(-area, area), 0.1, random.range(-area, area)) * 0.5;
        world.apply(input::Teleport::new(number, place));
        views.push(ClientView::new(number, Delivery::Ordered));
    }
    (world, views)
}

/// Bytes that each client receives in each second of a period.
fn bytes_per_s(
    world: &mut World,
    views: &mut [ClientView],
    seconds: u32,
    pressure: u8,
) -> Vec<f64> {
    let mut random = Random::new(9);
    let mut bytes = vec![0usize; views.len()];
    for tick in 0..seconds * world.tick_hz() {
        for (n, view) in views.iter().enumerate() {
            if (tick as usize + n).is_multiple_of(40) {
                let input = walk(random.range(-3.0, 3.0));
                let seq = tick + 1;
                let inputs: Vec<_> = (0..40)
                    .map(|at| NumberedInput {
                        seq: seq + at,
                        input,
                    })
                    .collect();
                world.apply(input::Controls::new(view.player(), inputs.iter().copied()));
            }
        }
        world.apply(input::Step);
        world.collect_changes();
        for (view, bytes) in views.iter_mut().zip(&mut bytes) {
            if world.update_is_due(view.player()) {
                world.snapshot(view, pressure, &mut |packet| *bytes += packet.len());
            }
        }
    }
    bytes
        .iter()
        .map(|b| *b as f64 / f64::from(seconds))
        .collect()
}

#[test]
fn a_crowd_in_one_place_stays_within_the_budget() {
    let options = WorldOptions {
        client_bytes_per_s: Some(8 * 1024),
        ..WorldOptions::default()
    };
    let (mut world, mut views) = crowd_of(300, 60.0, options);
    bytes_per_s(&mut world, &mut views, 3, 0);
    let after = bytes_per_s(&mut world, &mut views, 5, 0);
    let most = after.iter().copied().fold(0.0, f64::max);
    // The budget is for cells; a header of 40 bytes goes with each update.
    assert!(
        most < 8.0 * 1024.0 * 1.1 + 20.0 * 50.0,
        "{most} bytes a second"
    );
    assert!(most > 6.0 * 1024.0, "and uses it: {most} bytes a second");
}

#[test]
fn distance_and_pressure_lower_the_rate() {
    let spread = |policy, pressure| {
        let (mut world, mut views) = crowd(200, 400.0, Some(policy));
        bytes_per_s(&mut world, &mut views, 2, pressure);
        let bytes = bytes_per_s(&mut world, &mut views, 3, pressure);
        bytes.iter().sum::<f64>() / bytes.len() as f64
    };
    let all = spread(InterestPolicy::EVERYTHING, 0);
    let by_distance = spread(InterestPolicy::default(), 0);
    let pressed = spread(InterestPolicy::default(), 2);
    println!("bytes/s: all {all:.0}, by distance {by_distance:.0}, under pressure {pressed:.0}");
    assert!(by_distance < all * 0.7, "{by_distance} of {all}");
    assert!(pressed < by_distance * 0.8, "{pressed} of {by_distance}");
}

const BALLS: &str = r##"{"format":1,"prefabs":{"Ball":{"components":{"Shape":{"type":"sphere","radius":0.2}}}},
    "entities":[
    {"id":1,"name":"Ground","components":{"Transform":{"position":[0,-0.5,0]},"Shape":{"type":"box","size":[800,1,800]}}},
    {"id":2,"name":"Spawn","components":{"Transform":{"position":[0,0.1,0]},"SpawnPoint":{}}}]}"##;

/// On a lossy connection the client knows entities at rest as well as moving
/// ones: they were acknowledged, only long ago.
#[test]
fn an_entity_that_moves_after_a_long_rest_is_updated_alone() {
    let script = r#"for i = 1, 120 do World.Spawn("Ball", Vector3.new(2 + i % 10, 1, 2 + i // 10)) end
        task.wait(9)
        local ball = World.Find("Ball")
        for i = 1, 20 do
            ball.Position = Vector3.new(5, 1 + i * 0.1, 5)
            task.wait(0.1)
        end"#;
    let scripts = [("scripts/ServerScriptService/Balls.luau", script)];
    let game = package(BALLS, &scripts);
    let mut world = World::load(&game, WorldOptions::default()).expect("the world loads");
    let player = world.apply(input::Join::new("p", "P"));
    let mut view = ClientView::new(player, Delivery::Lossy);
    // Acknowledgements take a fifth of a second.
    let mut on_the_way = std::collections::VecDeque::from([None; 12]);
    let mut newest = None;
    let (mut whole, mut rest, mut moves) = (0, 0, Vec::new());
    for tick in 0..12 * 60 {
        on_the_way.push_back(newest);
        if let Some(Some(newest)) = on_the_way.pop_front() {
            let earlier = u32::MAX;
            view.acknowledge(PacketAck { newest, earlier });
        }
        world.apply(input::Step);
        world.collect_changes();
        if !world.update_is_due(player) {
            continue;
        }
        let mut bytes = 0;
        world.snapshot(&mut view, 0, &mut |packet| {
            let header = frolic_protocol::snapshot::header(packet).expect("a snapshot");
            newest = header.number;
            bytes += packet.len();
        });
        match tick / 60 {
            0..2 => whole = whole.max(bytes),
            2..8 => rest = rest.max(bytes),
            _ => moves.push(bytes),
        }
    }
    assert!(whole > 1_000, "{whole} bytes for everything");
    assert!(rest < 60, "{rest} bytes at rest");
    assert!(moves.iter().any(|bytes| *bytes > rest), "something moved");
    let most = moves.iter().max();
    assert!(most < Some(&120), "{most:?} bytes when one of them moves");
}

/// A far cell is then updated after 192 ticks, unless versions are discarded
/// earlier.
#[test]
fn a_far_moving_entity_is_updated_alone_under_any_pressure() {
    let script = r#"for i = 1, 120 do World.Spawn("Ball", Vector3.new(300 + i % 10, 1, 2 + i // 10)) end
        local ball = World.Find("Ball")
        while true do
            ball.SetVelocity(Vector3.new(0, 0, 1))
            task.wait(1)
            ball.SetVelocity(Vector3.new(0, 0, -1))
            task.wait(1)
        end"#;
    let scripts = [("scripts/ServerScriptService/Balls.luau", script)];
    let game = package(BALLS, &scripts);
    for pressure in 0..4 {
        let options = WorldOptions {
            snapshot_hz: Some(10),
            ..WorldOptions::default()
        };
        let mut world = World::load(&game, options).expect("the world loads");
        let player = world.apply(input::Join::new("p", "P"));
        let mut view = ClientView::new(player, Delivery::Ordered);
        let (mut whole, mut moves) = (0, 0);
        for tick in 0..20 * 60 {
            world.apply(input::Step);
            world.collect_changes();
            if world.update_is_due(player) {
                let most = if tick < 300 { &mut whole } else { &mut moves };
                let keep = &mut |packet: &[u8]| *most = packet.len().max(*most);
                world.snapshot(&mut view, pressure, keep);
            }
        }
        assert!(whole > 1_000, "{whole} bytes for everything");
        assert!(moves < 120, "{moves} bytes at pressure {pressure}");
    }
}

#[test]
fn new_far_entities_are_replicated_within_any_budget() {
    let script = r#"local random = Random.new(3)
        local function number(to) return (random.NextNumber() * 2 - 1) * to end
        local balls = {}
        for i = 1, 150 do balls[i] = World.Spawn("Ball", Vector3.new(number(60), 1, number(60))) end
        task.delay(3, function() World.Spawn("Ball", Vector3.new(3000, 1, 0)) end)
        while true do
            for _, ball in balls do ball.SetVelocity(Vector3.new(number(2), 0, number(2))) end
            task.wait(0.1)
        end"#;
    let scripts = [("scripts/ServerScriptService/Balls.luau", script)];
    let policy = InterestPolicy {
        bytes_per_s: Some(4 * 1024),
        ..InterestPolicy::default()
    };
    let game = package(BALLS, &scripts);
    let mut run = Run::with_interest(&game, 1, Quality::GOOD, Some(policy));
    run.delivery = Delivery::Ordered;
    let player = run.join("Ada");
    run.for_ms(10_000);
    let far = run
        .everything()
        .into_iter()
        .find(|state| state.place().x > 2_000.0);
    let far = far.expect("there is something far away");
    assert!(
        run.client(player)
            .replica()
            .entities()
            .any(|state| state.id == far.id)
    );
}

/// How many updates each tick of two seconds has; every client has its 40.
fn updates_per_tick(players: u32) -> Vec<usize> {
    let (mut world, views) = crowd(players, 50.0, None);
    let mut per_tick = Vec::new();
    let mut per_player = vec![0; views.len()];
    for _ in 0..120 {
        world.apply(input::Step);
        let due = views.iter().enumerate();
        let due: Vec<usize> = due
            .filter(|(_, view)| world.update_is_due(view.player()))
            .map(|(n, _)| n)
            .collect();
        due.iter().for_each(|n| per_player[*n] += 1);
        per_tick.push(due.len());
    }
    assert!(per_player.iter().all(|n| *n == 40), "20 a second each");
    per_tick
}

#[test]
fn updates_of_a_crowd_are_spread_over_ticks_at_an_unchanged_rate() {
    let per_tick = updates_per_tick(600);
    let (least, most) = (per_tick.iter().min(), per_tick.iter().max());
    assert!(
        least >= Some(&180) && most <= Some(&220),
        "{least:?} {most:?}"
    );
}

#[test]
fn updates_of_some_hundred_come_together_at_an_unchanged_rate() {
    let per_tick = updates_per_tick(300);
    let busy = per_tick.iter().filter(|count| **count == 300).count();
    let quiet = per_tick.iter().filter(|count| **count == 0).count();
    assert_eq!((busy, quiet), (40, 80), "{per_tick:?}");
}
