//! Which entities are replicated to whom, and that clients converge to the
//! server's state.

use std::collections::BTreeMap;

use frolic_client::ClientEvent;
use frolic_protocol::details::Details;
use frolic_protocol::{Args, EntityState, Value};
use frolic_sim::random::Random;
use frolic_sim::{Buttons, CharacterInput, Vec3};
use frolic_world::{Delivery, InterestPolicy, input};

use crate::harness::{Run, package, walk};
use crate::network::Quality;

/// Distance between the far and the near corner of a cell, borders included, as
/// a share of the radius.
const CELL: f32 = 0.4 * 1.2 * 1.42;

/// The second prefab of the playground: always replicated, and nothing else
/// looks like it.
const BEACON: u16 = 2;
const BALL: u16 = 1;

/// Balls that roam, come and go, and change colour and attributes, and entities
/// that a script moves before any client joins, and that then rest.
fn playground() -> frolic_package::Package {
    package(
        r##"{"format":1,"prefabs":{
            "Ball":{"components":{"Shape":{"type":"sphere","radius":0.5},"Material":{"color":"#ff0000"}}},
            "Beacon":{"components":{"Shape":{"type":"sphere","radius":0.5},"Material":{"color":"#ff0000"}}}},
            "entities":[
            {"id":1,"name":"Ground","components":{"Transform":{"position":[0,-0.5,0]},"Shape":{"type":"box","size":[800,1,800]}}},
            {"id":2,"name":"Spawn","components":{"Transform":{"position":[0,0.1,0]},"SpawnPoint":{}}},
            {"id":3,"name":"Door","components":{"Transform":{"position":[20,1,0]},"Shape":{"type":"box","size":[2,2,2]}}},
            {"id":4,"name":"Gate","components":{"Transform":{"position":[12,1,8]},"Shape":{"type":"box","size":[2,2,2]}}},
            {"id":5,"name":"Crate","components":{"Transform":{"position":[10,1,14]},"Shape":{"type":"box","size":[2,2,2]}}},
            {"id":6,"name":"Post","components":{"Transform":{"position":[-10,1,14]},"Shape":{"type":"box","size":[1,2,1]}}}]}"##,
        &[(
            "scripts/ServerScriptService/Balls.luau",
            r##"World.Spawn({ Shape = { type = "box", size = { 3, 2, 1 } } }, Vector3.new(8, 1, 18))
               World.Spawn("Ball", Vector3.new(-8, 0.5, 18))
               World.Find("Gate").Position = Vector3.new(-12, 1, 8)
               World.Find("Crate").Destroy()
               World.Find("Post").Scale = Vector3.new(2, 3, 2)
               local random = Random.new(7)
               local function number(from, to) return from + random.NextNumber() * (to - from) end
               task.spawn(function()
                   for round = 1, 40 do
                       local kind = if round % 5 == 0 then "Beacon" else "Ball"
                       local ball = World.Spawn(kind, Vector3.new(number(-120, 120), 1, number(-120, 120)))
                       ball.SetVelocity(Vector3.new(number(-9, 9), 0, number(-9, 9)))
                       ball.SetAttribute("Round", round)
                       if round % 3 == 0 then ball.Color = "#00ff88" end
                       if kind == "Beacon" then ball.AddTag("AlwaysRelevant") end
                       task.delay(number(2, 9), function()
                           if round % 4 == 0 then ball.Destroy() else
                               ball.SetVelocity(Vector3.new(0, 0, 0))
                               -- Its old cell is updated just before its new
                               -- one, and that update may arrive later.
                               for hop = 1, 9 do
                                   ball.Position += Vector3.new(if hop % 2 == 0 then -30 else 30, 0, 0)
                                   ball.SetAttribute("Hops", hop)
                                   task.wait(0.05)
                               end
                               ball.SetAttribute("Round", -round)
                           end
                       end)
                       task.wait(0.15)
                   end
                   World.Find("Door").Destroy()
               end)"##,
        )],
    )
}

fn known(run: &Run, peer: usize) -> Vec<EntityState> {
    run.client(peer).replica().entities().copied().collect()
}

/// Once everything has arrived, clients know what they see, and nothing else.
fn check_worlds(run: &Run, players: &[usize], policy: Option<InterestPolicy>, seed: u64) {
    for &player in players {
        let (known, all) = (known(run, player), run.everything());
        // Entities leave the view at a slightly greater distance than they
        // enter it.
        let seen = run.visible_from(player);
        let missing = seen.iter().find(|state| !known.contains(state));
        assert_eq!(missing, None, "seed {seed}, player {player}: missing");
        let wrong = known.iter().find(|state| !all.contains(state));
        assert_eq!(wrong, None, "seed {seed}, player {player}: wrong");
        let eye = run.server_character(player).feet;
        let reach = policy.and_then(|policy| policy.radius);
        let extra = known.iter().filter(|state| !seen.contains(state));
        for state in extra {
            let distance = (state.place() - eye).length();
            assert!(
                distance < reach.unwrap_or(0.0) * (1.15 + CELL),
                "{distance} m: {state:?}"
            );
        }
        assert!(known.len() > 4, "there was something to see");
        crate::solids::check(run, player, seed);
    }
}

/// Players run about on a very bad connection, which then heals.
fn run_about(policy: Option<InterestPolicy>, delivery: Delivery, strained: bool, seed: u64) {
    let mut run = Run::with_interest(&playground(), seed, Quality::AWFUL, policy);
    run.delivery = delivery;
    run.strained = strained;
    // Snapshots overtake it where they can.
    run.scene_late_ms = (seed % 3) as f64 * 700.0;
    let players: Vec<usize> = (0..4).map(|n| run.join(&format!("P{n}"))).collect();
    let mut random = Random::new(seed);
    for _ in 0..30 {
        for &player in &players {
            let yaw = random.range(-3.0, 3.0);
            let input = CharacterInput::new(0.0, 1.0, yaw, 0.1, Buttons::RUN);
            run.steer(player, input);
        }
        run.for_ms(400);
    }
    run.heal();
    for &player in &players {
        run.steer(player, CharacterInput::default());
    }
    // A client's visible cells are refreshed every ten seconds even if it
    // does not move; then it sees entities at the edge of its radius.
    run.for_ms(11_000);
    check_worlds(&run, &players, policy, seed);
    for player in players {
        check_details(&mut run, player, seed);
    }
}

/// The last replicated state of each visible entity is its current state.
fn check_details(run: &mut Run, player: usize, seed: u64) {
    let mut received: BTreeMap<u32, Details> = BTreeMap::new();
    for event in run.take_events(player) {
        if let ClientEvent::Details { entity, details } = event {
            let hops = |details: &Details| match details.attributes.get("Hops") {
                Some(Value::Number(hops)) => *hops,
                _ => 0.0,
            };
            let before = received.get(&entity).map_or(0.0, hops);
            assert!(
                hops(&details) >= before,
                "seed {seed}: {details:?} after {before}"
            );
            received.insert(entity, details);
        }
    }
    let mut stopped = 0;
    for state in known(run, player) {
        let details = run.world().details_of(state.id).unwrap_or_default();
        if state.details > 0 {
            let last = received.get(&state.id);
            let what = format!("seed {seed}, player {player}: {}", state.id);
            assert_eq!(last, Some(&details), "{what}");
        }
        let round = details.attributes.get("Round");
        stopped += usize::from(matches!(round, Some(Value::Number(round)) if *round < 0.0));
    }
    assert!(stopped > 3, "attributes that changed late arrived");
}

#[test]
fn a_bad_connection_never_leaves_a_wrong_world_behind() {
    let policies = [
        None,
        Some(InterestPolicy::within(40.0)),
        Some(InterestPolicy::EVERYTHING),
    ];
    let deliveries = [Delivery::Lossy, Delivery::Ordered];
    let kinds = deliveries.map(|delivery| policies.map(|policy| (delivery, policy)));
    for (seed, (delivery, policy)) in (1u64..).zip(kinds.into_iter().flatten()) {
        run_about(policy, delivery, false, seed);
    }
}

#[test]
fn nor_does_a_server_under_pressure() {
    let policies = [None, Some(InterestPolicy::within(40.0))];
    let deliveries = [Delivery::Lossy, Delivery::Ordered];
    let kinds = deliveries.map(|delivery| policies.map(|policy| (delivery, policy)));
    for (seed, (delivery, policy)) in (21u64..).zip(kinds.into_iter().flatten()) {
        run_about(policy, delivery, true, seed);
    }
}

/// Balls that are gone until their cells are forgotten, and come back in
/// another order: into other slots, some before and some after a client's next
/// refresh of its cells.
fn tides() -> frolic_package::Package {
    package(
        r##"{"format":1,"prefabs":{"Ball":{"components":{"Shape":{"type":"sphere","radius":0.5}}}},
            "entities":[
            {"id":1,"name":"Ground","components":{"Transform":{"position":[0,-0.5,0]},"Shape":{"type":"box","size":[800,1,800]}}},
            {"id":2,"name":"Spawn","components":{"Transform":{"position":[0,0.1,0]},"SpawnPoint":{}}}]}"##,
        &[(
            "scripts/ServerScriptService/Tides.luau",
            r##"local random = Random.new(11)
               local function number(from, to) return from + random.NextNumber() * (to - from) end
               local places = {}
               for i = 1, 50 do places[i] = Vector3.new(number(-70, 70), 1, number(-70, 70)) end
               task.spawn(function()
                   local balls = {}
                   for i, place in places do balls[i] = World.Spawn("Ball", place) end
                   task.wait(2)
                   for _, ball in balls do ball.Destroy() end
                   task.wait(62.5)
                   for i, place in places do
                       local ball = World.Spawn("Ball", place)
                       if i % 3 > 0 then
                           task.delay(number(1, 4), function() ball.Position = place + Vector3.new(0, 1, 0) end)
                       end
                       task.wait(number(0, 0.3))
                   end
               end)"##,
        )],
    )
}

#[test]
fn forgotten_cells_come_back_for_good() {
    let policies = [
        InterestPolicy::within(40.0),
        InterestPolicy {
            bytes_per_s: Some(1_500),
            ..InterestPolicy::within(40.0)
        },
    ];
    let deliveries = [Delivery::Lossy, Delivery::Ordered];
    let kinds = deliveries.map(|delivery| policies.map(|policy| (delivery, policy)));
    for (seed, (delivery, policy)) in (31u64..).zip(kinds.into_iter().flatten()) {
        let mut run = Run::with_interest(&tides(), seed, Quality::GOOD, Some(policy));
        run.delivery = delivery;
        run.strained = true;
        let players: Vec<usize> = (0..3).map(|n| run.join(&format!("P{n}"))).collect();
        run.for_ms(64_000);
        run.change_quality(Quality::AWFUL);
        let mut random = Random::new(seed);
        for _ in 0..18 {
            // One of them does not move, and does not look around for long.
            for &player in &players[1..] {
                run.steer(player, walk(random.range(-3.0, 3.0)));
            }
            run.for_ms(500);
        }
        run.heal();
        for &player in &players {
            run.steer(player, CharacterInput::default());
        }
        // Visible cells are refreshed every ten seconds even without movement.
        run.for_ms(11_000);
        check_worlds(&run, &players, Some(policy), seed);
        for &player in players.iter().filter(|_| delivery == Delivery::Ordered) {
            let events = run.take_events(player);
            let bad = events
                .iter()
                .find(|event| matches!(event, ClientEvent::Error { .. }));
            assert!(bad.is_none(), "seed {seed}, player {player}: {bad:?}");
        }
    }
}

/// Hundreds of balls that start and stop within one cell: its update does not
/// fit a datagram.
fn ball_pit() -> frolic_package::Package {
    package(
        r##"{"format":1,"prefabs":{"Ball":{"components":{"Shape":{"type":"sphere","radius":0.1}}}},
            "entities":[
            {"id":1,"name":"Ground","components":{"Transform":{"position":[0,-0.5,0]},"Shape":{"type":"box","size":[800,1,800]}}},
            {"id":2,"name":"Spawn","components":{"Transform":{"position":[0,0.1,0]},"SpawnPoint":{}}}]}"##,
        &[(
            "scripts/ServerScriptService/Balls.luau",
            r##"local random = Random.new(3)
               local function number() return random.NextNumber() * 2 - 1 end
               local balls = {}
               for i = 1, 240 do
                   balls[i] = World.Spawn("Ball", Vector3.new(5 + number() * 3, 2 + number(), 5 + number() * 3))
               end
               for round = 1, 30 do
                   for _, ball in balls do
                       local sign = if round % 2 == 0 then 1 else -1
                       ball.SetVelocity(Vector3.new(sign * number(), 0, sign * number()))
                   end
                   task.wait(0.2)
               end
               for _, ball in balls do ball.SetVelocity(Vector3.new(0, 0, 0)) end"##,
        )],
    )
}

#[test]
fn fragments_survive_a_bad_connection() {
    for seed in [11, 12] {
        let mut run = Run::new(&ball_pit(), seed, Quality::AWFUL);
        let player = run.join("Ada");
        run.for_ms(8_000);
        let cut = run.cut_snapshots(player);
        assert!(cut > 20, "{cut} snapshots went in parts");
        run.heal();
        run.for_ms(4_000);
        let (known, all) = (known(&run, player), run.everything());
        assert_eq!(known.len(), all.len(), "seed {seed}");
        let wrong = known.iter().find(|state| !all.contains(state));
        assert_eq!(wrong, None, "seed {seed}");
    }
}

/// Builds a wall far away on request.
fn far_walls() -> frolic_package::Package {
    package(
        r##"{"format":1,"prefabs":{"Wall":{"components":{"Shape":{"type":"box","size":[2,2,1]}}}},
            "entities":[
            {"id":1,"name":"Ground","components":{"Transform":{"position":[0,-0.5,0]},"Shape":{"type":"box","size":[800,1,800]}}},
            {"id":2,"name":"Spawn","components":{"Transform":{"position":[0,0.1,0]},"SpawnPoint":{}}}]}"##,
        &[(
            "scripts/ServerScriptService/Walls.luau",
            r#"Network.OnClientEvent("Build", function(player, x)
                   World.Build("Wall", Vector3.new(x, 1, 5), nil, player)
               end)
               Network.OnClientEvent("Shift", function(player)
                   for _, wall in World.Structures(player) do wall.Position += Vector3.new(0, 1, 0) end
               end)
               Network.OnClientEvent("Raze", function(player)
                   for _, wall in World.Structures(player) do wall.Destroy() end
               end)"#,
        )],
    )
}

#[test]
fn a_far_structure_is_replicated_to_its_builder_only() {
    for delivery in [Delivery::Ordered, Delivery::Lossy] {
        let policy = Some(InterestPolicy::within(30.0));
        let mut run = Run::with_interest(&far_walls(), 5, Quality::BAD, policy);
        run.delivery = delivery;
        let (ada, ben) = (run.join("Ada"), run.join("Ben"));
        run.for_ms(1_000);
        let walls = |run: &Run, peer: usize| {
            let known = known(run, peer).into_iter();
            known.filter(|state| state.definition == 1).count()
        };
        let ask = |run: &mut Run, peer: usize, name: &str, x: f64| {
            let args = Args(vec![Value::Number(x)]);
            run.client_mut(peer).fire_server(name.to_owned(), args);
            run.for_ms(1_500);
        };
        ask(&mut run, ada, "Build", 300.0);
        ask(&mut run, ada, "Build", 8.0);
        assert_eq!((walls(&run, ada), walls(&run, ben)), (2, 1));
        // Out of sight of the near one, whose cell was updated last.
        let number = run.number(ada);
        run.world_mut()
            .apply(input::Teleport::new(number, Vec3::new(-200.0, 0.1, 0.0)));
        run.for_ms(2_000);
        assert_eq!((walls(&run, ada), walls(&run, ben)), (2, 1));
        ask(&mut run, ada, "Shift", 0.0);
        let (all, mine) = (run.everything(), known(&run, ada));
        let right = mine.iter().filter(|state| state.definition == 1);
        assert_eq!(right.filter(|state| all.contains(state)).count(), 2);
        let owned_by = |run: &Run, owner: u32| {
            let all = run.everything().into_iter();
            all.filter(|state| state.definition == 1 && state.owner == owner)
                .count()
        };
        assert_eq!(owned_by(&run, number), 2);
        // A player who rejoins has another number, and the same structures.
        run.leave(ada);
        run.for_ms(1_000);
        assert_eq!(owned_by(&run, 0), 2);
        let ada = run.join("Ada");
        run.for_ms(2_000);
        assert_eq!((walls(&run, ada), walls(&run, ben)), (2, 1));
        ask(&mut run, ada, "Raze", 0.0);
        assert_eq!((walls(&run, ada), walls(&run, ben)), (0, 0));
    }
}

#[test]
fn nothing_outside_the_radius_reaches_a_client() {
    let policy = Some(InterestPolicy::within(30.0));
    let mut run = Run::with_interest(&playground(), 3, Quality::GOOD, policy);
    let (near, walker) = (run.join("Ada"), run.join("Ben"));
    run.steer(walker, walk(0.0));
    let mut seen_far = 0;
    let (mut left, mut returned) = (false, false);
    for turn in 0..220 {
        if turn == 110 {
            run.steer(walker, walk(core::f32::consts::PI));
        }
        run.for_ms(100);
        let eye = run.server_character(near).feet;
        for state in known(&run, near) {
            let far = (state.place() - eye).length();
            // The near side of an entity's cell may be 30 m away from the
            // entity.
            let allowed = 30.0 * (1.15 + CELL) + 2.0;
            let everywhere = far > allowed && state.definition == BEACON;
            seen_far += u32::from(everywhere);
            assert!(
                far <= allowed || everywhere,
                "{far} m away: {state:?} in turn {turn}"
            );
        }
        let entity = run.entity(walker);
        let sees = known(&run, near).iter().any(|state| state.id == entity);
        let distance = (run.server_character(walker).feet - eye).length();
        left |= distance > 50.0 && !sees;
        returned |= left && distance < 25.0 && sees;
        assert!(sees || distance > 20.0, "{distance} m away and not seen");
    }
    assert!(left, "the walker went out of view");
    assert!(returned, "and came back into it");
    assert!(seen_far > 0, "balls that are always relevant were seen");
    let far_balls = run.everything().into_iter().filter(|state| {
        let far = (state.place() - run.server_character(near).feet).length();
        state.definition == BALL && far > 60.0
    });
    assert!(far_balls.count() > 5, "and there are others that were not");
}
