//! Game feel on a bad connection: 200 ms round trip, 5 % loss, 30 ms jitter.
//! The figures are printed; limits are asserted.

use frolic_sim::CharacterInput;

use crate::harness::{Run, package, walk};
use crate::network::Quality;

/// How much a drawn step may differ from an even pace before it is seen.
const VISIBLE_M: f32 = 0.05;

#[test]
fn steady_movement_is_predicted_to_the_centimetre_and_drawn_evenly() {
    for seed in [7, 8, 9] {
        let mut run = Run::new(&crate::meadow(), seed, Quality::BAD);
        let (walker, watcher) = (run.join("Ada"), run.join("Ben"));
        run.for_ms(3_000);
        run.steer(walker, walk(0.3));
        run.for_ms(1_500);
        run.measure(true);
        run.for_ms(20_000);
        let errors = run.prediction_errors(walker);
        let error = quantile(errors, 0.99);
        assert!(errors.len() > 200, "{} snapshots", errors.len());
        let entity = run.entity(walker);
        let own = run.unevenness(walker, entity, 5.0);
        let others = run.unevenness(watcher, entity, 5.0);
        println!(
            "seed {seed}: own error p99 {:.2} cm; furthest from an even pace: own {:.1} cm, others {:.1} cm",
            error * 100.0,
            own * 100.0,
            others * 100.0
        );
        assert!(error < 0.01, "p99 of the own position error is {error} m");
        assert!(own < VISIBLE_M, "own path has a step of {own} m");
        assert!(others < VISIBLE_M, "drawn path has a step of {others} m");
    }
}

/// Because a script changes the platform, it is replicated to clients, whose
/// copy must equal the server's at its far end as well.
#[test]
fn who_walks_on_coloured_ground_is_predicted_to_the_centimetre() {
    let game = package(
        r#"{"format":1,"prefabs":{},"entities":[
            {"id":1,"name":"Ground","components":{"Transform":{"position":[0,-0.5,0]},"Shape":{"type":"box","size":[800,1,800]}}},
            {"id":2,"name":"Spawn","components":{"Transform":{"position":[100,0.1,-100]},"SpawnPoint":{}}}]}"#,
        &[(
            "scripts/ServerScriptService/Paint.luau",
            r##"World.Find("Ground").Color = "#00ff88""##,
        )],
    );
    let mut run = Run::new(&game, 7, Quality::BAD);
    let walker = run.join("Ada");
    run.for_ms(3_000);
    run.steer(walker, walk(0.3));
    run.for_ms(1_500);
    run.measure(true);
    run.for_ms(8_000);
    let errors = run.prediction_errors(walker);
    let error = quantile(errors, 0.99);
    assert!(errors.len() > 100, "{} snapshots", errors.len());
    assert!(error < 0.01, "p99 of the own position error is {error} m");
}

#[test]
fn riding_a_platform_is_corrected_only_when_it_sets_off() {
    for (spawn, ways) in [
        ([0.0, 0.6, 0.0], WAYS),
        ([5.0, 0.6, -5.0], WAYS),
        ([5.0, 0.6, -5.0], ODD_WAYS),
    ] {
        ride(&ferry(spawn, ways));
    }
}

fn ride(ferry: &frolic_package::Package) {
    for (quality, seed) in [(Quality::GOOD, 3), (Quality::BAD, 4)] {
        let mut run = Run::new(ferry, seed, quality);
        let rider = run.join("Ada");
        run.for_ms(4_000);
        let before = run.client(rider).stats(0.0).corrections;
        let start = run.server_character(rider).feet;
        run.for_ms(8_000);
        let state = run.server_character(rider);
        assert!(
            state.grounded() && state.ground == Some(2),
            "stays on it: {state:?}"
        );
        let way = (state.feet - start).length();
        assert!(way > 1.0, "was carried: {start} {}", state.feet);
        let corrections = run.client(rider).stats(0.0).corrections - before;
        // A new destination is sent; positions along the way are not. There are
        // at most four departures in eight seconds.
        assert!(
            corrections <= 4,
            "{corrections} corrections in eight seconds"
        );
    }
}

/// A passenger stays in place relative to the platform, in their own picture
/// and in that of a player on the shore: both are drawn by the same movement as
/// the platform.
#[test]
fn a_rider_and_the_platform_are_drawn_as_one() {
    for seed in [4, 5, 6] {
        let mut run = Run::new(&ferry_and_shore(), seed, Quality::BAD);
        let (watcher, rider) = (run.join("Ben"), run.join("Ada"));
        run.for_ms(4_000);
        let start = run.server_character(rider).feet;
        run.measure(true);
        run.for_ms(12_000);
        let ground = [rider, watcher].map(|peer| run.server_character(peer).ground);
        assert_eq!(ground, [Some(2), Some(4)], "one rides, one watches");
        let way = (run.server_character(rider).feet - start).length();
        let entity = run.entity(rider);
        let carried: f32 = run
            .drawn_steps(watcher, entity)
            .iter()
            .map(|s| s.length())
            .sum();
        assert!(
            carried > 30.0,
            "was carried {carried} m, and is {way} m away"
        );
        let own = run.wobble(rider, entity, 2);
        let others = run.wobble(watcher, entity, 2);
        println!(
            "seed {seed}: riding: furthest from the platform's own step: own {:.1} cm, others {:.1} cm",
            own * 100.0,
            others * 100.0
        );
        // The passenger's client learns of the departure late and has a metre
        // to catch up: with a quick glide, not a jump.
        let longest = run.longest_step(rider, 2);
        println!("seed {seed}: riding: longest drawn step of the platform {longest:.2} m");
        assert!(longest < 0.5, "a jump of {longest} m");
        assert!(own < VISIBLE_M, "own picture has a step of {own} m");
        assert!(others < VISIBLE_M, "a watcher sees a step of {others} m");
    }
}

#[test]
fn a_player_pushed_by_a_wall_does_not_jitter() {
    let mut run = Run::new(&pusher(), 5, Quality::BAD);
    let (pushed, watcher) = (run.join("Ada"), run.join("Ben"));
    run.for_ms(3_000);
    let start = run.server_character(pushed).feet;
    run.client_mut(pushed)
        .fire_server("Push".into(), frolic_protocol::Args(Vec::new()));
    // Both clients learn of the wall's departure late; from then on they know
    // its path.
    run.for_ms(2_500);
    run.measure(true);
    run.for_ms(4_000);
    run.measure(false);
    let way = run.server_character(pushed).feet - start;
    assert!(way.x > 8.0, "was pushed: {way}");
    let entity = run.entity(pushed);
    let own = run.unevenness(pushed, entity, 2.0);
    let others = run.unevenness(watcher, entity, 2.0);
    println!(
        "pushed: furthest from an even pace: own {:.1} cm, others {:.1} cm",
        own * 100.0,
        others * 100.0
    );
    assert!(own < VISIBLE_M, "own path has a step of {own} m");
    assert!(others < VISIBLE_M, "drawn path has a step of {others} m");
}

#[test]
fn a_blow_from_a_script_is_taken_up_smoothly() {
    let mut run = Run::new(&blower(), 6, Quality::BAD);
    let player = run.join("Ada");
    run.for_ms(3_000);
    run.steer(player, walk(0.0));
    run.for_ms(500);
    run.measure(true);
    run.client_mut(player)
        .fire_server("Blow".into(), frolic_protocol::Args(Vec::new()));
    run.for_ms(3_000);
    let entity = run.entity(player);
    let longest = run.longest_step(player, entity);
    // 9 m/s sideways comes 100 ms late: a metre to catch up with. It must
    // show as a quick glide, not as a jump.
    println!("blown away: longest drawn step {longest:.2} m");
    assert!(longest < 0.35, "a jump of {longest} m");
    run.steer(player, CharacterInput::default());
    run.for_ms(2_000);
    let known = run.client(player).own_state().copied();
    assert_eq!(known, Some(run.server_character(player)));
    assert!(run.server_character(player).feet.x > 2.0, "it was a blow");
}

fn quantile(values: &[f32], share: f64) -> f32 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f32::total_cmp);
    let at = (sorted.len().saturating_sub(1) as f64 * share).round() as usize;
    sorted.get(at).copied().unwrap_or(f32::INFINITY)
}

/// Where a platform goes, again and again.
const WAYS: [[f32; 3]; 2] = [[6.0, 0.0, 0.0], [-6.0, 1.0, 3.0]];
/// Where no place is one that travels as it is.
const ODD_WAYS: [[f32; 3]; 2] = [[6.1, 0.05, 0.3], [-6.3, 1.03, 3.7]];

fn ferry_script([there, back]: [[f32; 3]; 2]) -> String {
    format!(
        r#"local ferry = World.Find("Ferry")
           local there = Vector3.new({}, {}, {})
           local back = Vector3.new({}, {}, {})
           while true do
               ferry.MoveTo(there, 2)
               task.wait(2.5)
               ferry.MoveTo(back, 2)
               task.wait(2.5)
           end"#,
        there[0], there[1], there[2], back[0], back[1], back[2],
    )
}

const FERRY_PATH: &str = "scripts/ServerScriptService/Ferry.luau";

/// A platform that goes there and back with the spawn point above it.
fn ferry([x, y, z]: [f32; 3], ways: [[f32; 3]; 2]) -> frolic_package::Package {
    let scene = format!(
        r#"{{"format":1,"prefabs":{{}},"entities":[
            {{"id":2,"name":"Ferry","components":{{"Transform":{{"position":[0,0,0]}},"Shape":{{"type":"box","size":[12,1,12]}},"Body":{{"type":"kinematic"}}}}}},
            {{"id":3,"name":"Spawn","components":{{"Transform":{{"position":[{x},{y},{z}]}},"SpawnPoint":{{}}}}}}]}}"#,
    );
    package(&scene, &[(FERRY_PATH, &ferry_script(ways))])
}

/// The same with a second spawn point on solid ground: players take turns.
fn ferry_and_shore() -> frolic_package::Package {
    package(
        r#"{"format":1,"prefabs":{},"entities":[
            {"id":2,"name":"Ferry","components":{"Transform":{"position":[0,0,0]},"Shape":{"type":"box","size":[12,1,12]},"Body":{"type":"kinematic"}}},
            {"id":3,"name":"Spawn","components":{"Transform":{"position":[0,0.6,0]},"SpawnPoint":{}}},
            {"id":4,"name":"Shore","components":{"Transform":{"position":[0,0,30]},"Shape":{"type":"box","size":[12,1,12]}}},
            {"id":5,"name":"Spawn","components":{"Transform":{"position":[0,0.6,30]},"SpawnPoint":{}}}]}"#,
        &[(FERRY_PATH, &ferry_script(WAYS))],
    )
}

/// A wall beside the spawn point that moves over it when asked to.
fn pusher() -> frolic_package::Package {
    package(
        r#"{"format":1,"prefabs":{},"entities":[
            {"id":1,"name":"Ground","components":{"Transform":{"position":[0,-0.5,0]},"Shape":{"type":"box","size":[200,1,200]}}},
            {"id":2,"name":"Wall","components":{"Transform":{"position":[-4,2,0]},"Shape":{"type":"box","size":[1,4,30]},"Body":{"type":"kinematic"}}},
            {"id":3,"name":"Spawn","components":{"Transform":{"position":[0,0.1,0]},"SpawnPoint":{}}}]}"#,
        &[(
            "scripts/ServerScriptService/Push.luau",
            r#"Network.OnClientEvent("Push", function()
                   World.Find("Wall").MoveTo(Vector3.new(26, 2, 0), 15)
               end)"#,
        )],
    )
}

/// A script that blows players sideways.
fn blower() -> frolic_package::Package {
    package(
        r#"{"format":1,"prefabs":{},"entities":[
            {"id":1,"name":"Ground","components":{"Transform":{"position":[0,-0.5,0]},"Shape":{"type":"box","size":[200,1,200]}}},
            {"id":3,"name":"Spawn","components":{"Transform":{"position":[0,0.1,0]},"SpawnPoint":{}}}]}"#,
        &[(
            "scripts/ServerScriptService/Blow.luau",
            r#"Network.OnClientEvent("Blow", function(player)
                   player.Character.SetVelocity(Vector3.new(9, 6, 0))
               end)"#,
        )],
    )
}
