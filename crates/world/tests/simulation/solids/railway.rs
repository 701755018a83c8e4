//! Scene parts that have moved away from their place in the file, where players
//! receive only what is near: a part that moved elsewhere stops no player.

use core::f32::consts::FRAC_PI_2;

use frolic_package::Package;
use frolic_protocol::EntityState;
use frolic_protocol::entity::flags;
use frolic_sim::random::Random;
use frolic_sim::{Buttons, CharacterInput, Vec3};
use frolic_world::{Delivery, InterestPolicy, input};

use super::check;
use crate::harness::{Run, package};
use crate::network::Quality;

pub(super) const CART: u32 = 3;
const RADIUS: f32 = 30.0;
/// Where the scene file has the cart.
const STATION: Vec3 = Vec3::new(5.0, 1.0, 5.0);
/// Walking through nothing at all, client and server agree to this.
const OFF_MAX_M: f32 = 0.05;

/// A cart of the scene, and what becomes of it.
pub(super) fn railway(script: &str) -> Package {
    tagged_railway("Cart", script)
}

/// The same with a tag that the scene file gives it.
fn tagged_railway(tag: &str, script: &str) -> Package {
    let scene = r##"{"format":1,"prefabs":{},"entities":[
            {"id":1,"name":"Ground","components":{"Transform":{"position":[0,-0.5,0]},"Shape":{"type":"box","size":[800,1,800]}}},
            {"id":2,"name":"Spawn","components":{"Transform":{"position":[0,0.1,0]},"SpawnPoint":{}}},
            {"id":3,"name":"Cart","components":{"Transform":{"position":[5,1,5]},"Tag":["$TAG"],"Shape":{"type":"box","size":[2,2,2]}}}]}"##;
    let scene = scene.replace("$TAG", tag);
    package(&scene, &[("scripts/ServerScriptService/Cart.luau", script)])
}

/// It drives off for good.
pub(super) const OFF: &str = r#"task.wait(1)
    World.Find("Cart").SetVelocity(Vector3.new(15, 0, 0))"#;

/// It drives off, far out of view, and comes back to where it was.
pub(super) const THERE_AND_BACK: &str = r#"local cart = World.Find("Cart")
    task.wait(1)
    cart.SetVelocity(Vector3.new(15, 0, 0))
    task.wait(8)
    cart.SetVelocity(Vector3.new(-15, 0, 0))
    task.wait(8)
    cart.SetVelocity(Vector3.new(0, 0, 0))
    cart.Position = Vector3.new(5, 1, 5)"#;

fn start(script: &str, seed: u64, quality: Quality, delivery: Delivery) -> Run {
    let policy = Some(InterestPolicy::within(RADIUS));
    let mut run = Run::with_interest(&railway(script), seed, quality, policy);
    run.delivery = delivery;
    run
}

/// Every kind of connection, each with a seed of its own.
fn networks() -> impl Iterator<Item = (u64, Quality, Delivery)> {
    let qualities = [Quality::GOOD, Quality::BAD, Quality::AWFUL];
    let kinds = qualities
        .map(|quality| [Delivery::Lossy, Delivery::Ordered].map(|delivery| (quality, delivery)));
    let kinds = kinds.into_iter().flatten();
    (51u64..)
        .zip(kinds)
        .map(|(seed, (quality, delivery))| (seed, quality, delivery))
}

fn place(run: &mut Run, player: usize, x: f32, z: f32) {
    let number = run.number(player);
    run.world_mut()
        .apply(input::Teleport::new(number, Vec3::new(x, 0.1, z)));
}

/// Runs along the rails, eastwards.
fn follow(run: &mut Run, player: usize) {
    let east = CharacterInput::new(0.0, 1.0, -FRAC_PI_2, 0.0, Buttons::RUN);
    run.steer(player, east);
}

fn stop(run: &mut Run, player: usize) {
    run.steer(player, CharacterInput::default());
}

fn knows_cart(run: &Run, player: usize) -> bool {
    run.client(player)
        .replica()
        .entities()
        .any(|state| state.id == CART)
}

/// Where a client has the cart, along the rails.
fn cart_of(run: &Run, player: usize) -> Option<f32> {
    let bounds = run.client(player).replica().bounds_of(CART);
    bounds.map(|(low, high)| (low.x + high.x) * 0.5)
}

/// Runs over a part of the rails, on a connection that is good by now; client
/// and server agree about every step.
fn walk_through(run: &mut Run, player: usize, from: f32, to: f32, seed: u64) {
    place(run, player, from, STATION.z);
    run.for_ms(1_500);
    run.measure(true);
    follow(run, player);
    let mut waited_ms = 0;
    while run.server_character(player).feet.x < to {
        run.for_ms(100);
        waited_ms += 100;
        assert!(waited_ms < 20_000, "seed {seed}: something is in the way");
    }
    stop(run, player);
    run.measure(false);
    run.for_ms(1_000);
    let errors = run.prediction_errors(player).iter();
    let worst = errors.copied().fold(0.0, f32::max);
    assert!(worst < OFF_MAX_M, "seed {seed}: {worst} m off");
    let (client, server) = (run.client(player).own_state(), run.server_character(player));
    assert_eq!(client, Some(&server), "seed {seed}");
}

#[test]
fn a_train_that_left_the_view_stops_no_player() {
    for (seed, quality, delivery) in networks() {
        let mut run = start(OFF, seed, quality, delivery);
        let player = run.join("Ada");
        run.for_ms(1_500);
        let mut vanished = STATION.x;
        for _ in 0..80 {
            run.for_ms(100);
            if knows_cart(&run, player) {
                vanished = cart_of(&run, player).unwrap_or(vanished);
            }
        }
        run.heal();
        run.for_ms(1_000);
        assert!(!knows_cart(&run, player), "seed {seed}: it is out of view");
        assert!(
            vanished > 10.0,
            "seed {seed}: it was seen driving: {vanished}"
        );
        assert_eq!(cart_of(&run, player), None, "seed {seed}");
        // Where it was at first, and on to where it was seen last.
        walk_through(&mut run, player, -5.0, vanished + 8.0, seed);
        assert_eq!(cart_of(&run, player), None, "seed {seed}");
        check(&run, player, seed);
    }
}

#[test]
fn who_comes_later_sees_no_train_where_the_scene_file_has_it() {
    for (seed, quality, delivery) in networks() {
        for scene_late_ms in [0.0, 1_000.0] {
            let mut run = start(OFF, seed, quality, delivery);
            run.scene_late_ms = scene_late_ms;
            run.for_ms(8_000);
            let player = run.join("Ada");
            run.for_ms(4_000);
            run.heal();
            run.for_ms(2_000);
            assert_eq!(cart_of(&run, player), None, "seed {seed}");
            assert!(run.client_mut(player).take_removed().contains(&CART));
            walk_through(&mut run, player, -5.0, 15.0, seed);
            check(&run, player, seed);
        }
    }
}

/// A player far away when it leaves and returns still has the right state.
#[test]
fn a_train_that_comes_back_is_there_again() {
    for (seed, quality, delivery) in networks() {
        for away in [0.0, -100.0, 80.0] {
            let mut run = start(THERE_AND_BACK, seed, quality, delivery);
            let player = run.join("Ada");
            run.for_ms(500);
            place(&mut run, player, away, 0.0);
            run.for_ms(8_500);
            // And comes there in between.
            place(&mut run, player, 0.0, 0.0);
            run.for_ms(2_000);
            if quality.loss == 0.0 {
                assert_eq!(cart_of(&run, player), None, "seed {seed}");
            }
            place(&mut run, player, away, 0.0);
            run.for_ms(8_000);
            place(&mut run, player, 0.0, 0.0);
            run.heal();
            run.for_ms(3_000);
            assert!(knows_cart(&run, player), "seed {seed}, {away}");
            assert!(!run.client_mut(player).take_removed().contains(&CART));
            check(&run, player, seed);
            let at = cart_of(&run, player).expect("it is solid");
            assert!((at - STATION.x).abs() < 0.01, "seed {seed}, {away}: {at}");
        }
    }
}

/// The neighbouring cell is further away and updated less often: another train
/// is in it.
#[test]
fn a_train_does_not_blink_when_it_leaves_its_initial_cell() {
    let other = r#"local other = World.Spawn({ Shape = { type = "sphere", radius = 1 } }, Vector3.new(50, 1, 20))
        other.SetVelocity(Vector3.new(0.5, 0, 0))"#;
    for (seed, quality, delivery) in networks() {
        // That cell's update is due at once, or later.
        let game = railway(&format!(
            "{other}\ntask.wait({})\n{OFF}",
            (seed % 6) as f32 * 0.05
        ));
        let policy = Some(InterestPolicy::within(100.0));
        let mut run = Run::with_interest(&game, seed, quality, policy);
        run.delivery = delivery;
        run.strained = true;
        let player = run.join("Ada");
        run.for_ms(200);
        place(&mut run, player, -30.0, 0.0);
        run.for_ms(800);
        let mut went = false;
        for _ in 0..300 {
            run.for_ms(16);
            let mut known = run.client(player).replica().entities();
            let cart = known.find(|state| state.id == CART);
            went |= cart.is_some_and(|state| state.has(flags::AWAY));
            assert!(cart_of(&run, player).is_some(), "seed {seed}: it is there");
        }
        assert!(went, "seed {seed}: it crossed a border");
    }
}

/// A part out of view at its place in the file stays drawn as it was.
#[test]
fn what_is_at_home_stays_in_sight_from_afar() {
    let script = r#"World.Find("Cart").Position = Vector3.new(5, 1, 9)"#;
    let mut run = start(script, 7, Quality::GOOD, Delivery::Lossy);
    let player = run.join("Ada");
    run.for_ms(1_500);
    place(&mut run, player, 0.0, 120.0);
    run.for_ms(2_000);
    assert!(!knows_cart(&run, player), "it is out of view");
    let (low, high) = run
        .client(player)
        .replica()
        .bounds_of(CART)
        .expect("it stays");
    let z = (low.z + high.z) * 0.5;
    assert!((z - 9.0).abs() < 0.01, "{z}");
    assert!(!run.client_mut(player).take_removed().contains(&CART));
}

/// Its removal is sent to all clients; one that joins later has it in the scene
/// file.
#[test]
fn a_destroyed_part_disappears_for_all_clients() {
    let destroy = r#"task.wait(2)
        World.Find("Cart").Destroy()"#;
    let tag = r#"World.Find("Cart").AddTag("AlwaysRelevant")"#;
    let by_script = tagged_railway("Cart", &format!("{tag}\n{destroy}"));
    let by_file = tagged_railway("AlwaysRelevant", destroy);
    for (seed, game) in [(8, by_script), (9, by_file)] {
        let policy = Some(InterestPolicy::within(RADIUS));
        let mut run = Run::with_interest(&game, seed, Quality::GOOD, policy);
        let early = run.join("Ada");
        run.for_ms(200);
        place(&mut run, early, 200.0, 0.0);
        run.for_ms(800);
        assert!(cart_of(&run, early).is_some(), "from afar");
        run.for_ms(2_000);
        let late = run.join("Ben");
        place(&mut run, late, 200.0, 0.0);
        run.for_ms(1_000);
        for player in [early, late] {
            assert_eq!(cart_of(&run, player), None, "seed {seed}, player {player}");
            assert!(run.client_mut(player).take_removed().contains(&CART));
        }
    }
}

/// The position of a hidden wall is not sent to clients.
#[test]
fn the_new_position_is_not_sent() {
    let policy = Some(InterestPolicy::within(RADIUS));
    let script = r#"local cart = World.Find("Cart")
        cart.SetAttribute("Secret", "buried at the lighthouse")
        cart.Position = Vector3.new(312.5, 1, 287.5)"#;
    let mut world = frolic_world::World::load(
        &railway(script),
        frolic_world::WorldOptions {
            interest: policy,
            ..Default::default()
        },
    )
    .expect("the world loads");
    let player = world.apply(input::Join::new("p", "P"));
    let mut view = frolic_world::ClientView::new(player, Delivery::Ordered);
    let mut sent: Vec<EntityState> = Vec::new();
    for _ in 0..60 {
        world.apply(input::Step);
        world.collect_changes();
        if world.update_is_due(player) {
            world.snapshot(&mut view, 0, &mut |packet| {
                let packet = packet.to_vec();
                assert!(!String::from_utf8_lossy(&packet).contains("lighthouse"));
                sent.extend(states_in(&packet));
            });
        }
    }
    let cart: Vec<_> = sent.iter().filter(|state| state.id == CART).collect();
    assert_eq!(cart.len(), 1, "once: {cart:?}");
    assert_eq!(*cart[0], EntityState::elsewhere(CART));
}

/// The contents of a whole snapshot without a baseline.
fn states_in(packet: &[u8]) -> Vec<EntityState> {
    struct Nothing;
    impl frolic_protocol::snapshot::KnownCells for Nothing {
        fn entities(
            &self,
            _: frolic_protocol::snapshot::CellKey,
            _: u32,
        ) -> Option<&[EntityState]> {
            None
        }
    }
    let snapshot = frolic_protocol::snapshot::decode(packet, 60, &Nothing);
    let cells = snapshot.into_iter().flat_map(|snapshot| snapshot.cells);
    let contents = cells.filter_map(|record| record.content);
    contents.flat_map(|content| content.entities).collect()
}

/// The fate of the carts there.
const YARD: &str = r#"local function number(from, to) return from + random.NextNumber() * (to - from) end
    local function roam(cart, home)
        for round = 1, 24 do
            local dice = number(0, 1)
            if dice < 0.45 then
                cart.SetVelocity(Vector3.new(number(-15, 15), 0, number(-15, 15)))
            elseif dice < 0.6 then
                cart.SetVelocity(Vector3.new(0, 0, 0))
                cart.Position = Vector3.new(number(-90, 90), 1, number(-90, 90))
            elseif dice < 0.8 then
                cart.SetVelocity(Vector3.new(0, 0, 0))
                cart.Position = home
            elseif dice < 0.86 then
                cart.AddTag("AlwaysRelevant")
            elseif dice < 0.92 then
                cart.RemoveTag("AlwaysRelevant")
            elseif dice < 0.97 then
                cart.Scale = Vector3.new(number(1, 2), 1, number(1, 2))
            elseif round > 12 then
                cart.Destroy()
                return
            end
            task.wait(number(0.2, 1))
        end
        cart.SetVelocity(Vector3.new(0, 0, 0))
    end
    for index, cart in World.FindAll("Cart") do
        local home = cart.Position
        if index % 4 > 0 then task.delay(number(0, 2), roam, cart, home) end
    end"#;

/// Many carts that roam, jump, are replicated everywhere for a while, and are
/// destroyed wherever they are.
fn shunting_yard(seed: u64) -> Package {
    let carts: Vec<String> = (3..15)
        .map(|id| {
            let (x, z) = ((id % 4) * 30 - 45, (id / 4) * 30 - 60);
            format!(
                r#"{{"id":{id},"name":"Cart","components":{{"Transform":{{"position":[{x},1,{z}]}},"Shape":{{"type":"box","size":[2,2,2]}}}}}}"#
            )
        })
        .collect();
    let scene = format!(
        r#"{{"format":1,"prefabs":{{}},"entities":[
        {{"id":1,"name":"Ground","components":{{"Transform":{{"position":[0,-0.5,0]}},"Shape":{{"type":"box","size":[800,1,800]}}}}}},
        {{"id":2,"name":"Spawn","components":{{"Transform":{{"position":[0,0.1,0]}},"SpawnPoint":{{}}}}}},
        {}]}}"#,
        carts.join(",")
    );
    let script = format!("local random = Random.new({seed})\n{YARD}");
    package(
        &scene,
        &[("scripts/ServerScriptService/Yard.luau", &script)],
    )
}

#[test]
fn a_bad_connection_leaves_no_ghosts_behind() {
    for (seed, quality, delivery) in networks() {
        for strained in [false, true] {
            let seed = seed + if strained { 100 } else { 0 };
            let policy = Some(InterestPolicy::within(RADIUS));
            let mut run = Run::with_interest(&shunting_yard(seed), seed, quality, policy);
            run.delivery = delivery;
            run.strained = strained;
            run.scene_late_ms = (seed % 3) as f64 * 700.0;
            let mut players: Vec<usize> = (0..2).map(|n| run.join(&format!("P{n}"))).collect();
            let mut random = Random::new(seed);
            for turn in 0..60 {
                for &player in &players {
                    let yaw = random.range(-3.0, 3.0);
                    let input = CharacterInput::new(0.0, 1.0, yaw, 0.1, Buttons::RUN);
                    run.steer(player, input);
                    if random.below(4) == 0 {
                        let (x, z) = (random.range(-80.0, 80.0), random.range(-80.0, 80.0));
                        place(&mut run, player, x, z);
                    }
                }
                run.for_ms(400);
                if turn == 40 {
                    players.push(run.join("Late"));
                }
            }
            run.heal();
            for &player in &players {
                stop(&mut run, player);
            }
            run.for_ms(11_000);
            for &player in &players {
                check(&run, player, seed);
                agrees(&run, player, seed);
            }
        }
    }
}

/// A client knows what it sees, and nothing that is not so.
fn agrees(run: &Run, player: usize, seed: u64) {
    let known: Vec<EntityState> = run.client(player).replica().entities().copied().collect();
    let (seen, all) = (run.visible_from(player), run.everything());
    let missing = seen.iter().find(|state| !known.contains(state));
    assert_eq!(missing, None, "seed {seed}, player {player}: missing");
    let wrong = known.iter().find(|state| !all.contains(state));
    assert_eq!(wrong, None, "seed {seed}, player {player}: wrong");
}
