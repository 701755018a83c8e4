//! A player beside another one keeps moving smoothly while the rest of a large
//! world arrives.

use std::collections::BTreeMap;

use frolic_protocol::NumberedInput;
use frolic_world::{Delivery, JsonView, World, WorldOptions, input};
use serde_json::Value as Json;

use crate::harness::{Run, package, walk};
use crate::network::Quality;

/// Longest time without an update of a near player.
const GAP_MS: u32 = 250;
/// So much is watched from when a player joins.
const WATCHED_MS: u32 = 10_000;
/// About a tick.
const SAMPLE_MS: u32 = 16;
/// Ticks between an update and its acknowledgement.
const ACK_TICKS: u32 = 6;

/// 20,000 balls over 400 × 400 metres, from half a second on: some 280 KB.
fn ball_park() -> frolic_package::Package {
    // Two scripts: one may have 10,000 entities alive.
    let script = |seed: u32| {
        format!(
            r#"local random = Random.new({seed})
            local function number() return (random.NextNumber() * 2 - 1) * 200 end
            task.wait(0.5)
            for i = 1, 10000 do
                World.Spawn("Ball", Vector3.new(number(), 3, number()))
                if i % 100 == 0 then task.wait() end
            end"#
        )
    };
    let (even, odd) = (script(3), script(4));
    balls(&[
        ("scripts/ServerScriptService/Even.luau", &even),
        ("scripts/ServerScriptService/Odd.luau", &odd),
    ])
}

fn balls(scripts: &[(&str, &str)]) -> frolic_package::Package {
    package(
        r##"{"format":1,"prefabs":{"Ball":{"components":{"Shape":{"type":"sphere","radius":0.1}}}},
            "entities":[
            {"id":1,"name":"Ground","components":{"Transform":{"position":[0,-0.5,0]},"Shape":{"type":"box","size":[800,1,800]}}},
            {"id":2,"name":"Spawn","components":{"Transform":{"position":[0,0.1,0]},"SpawnPoint":{}}}]}"##,
        scripts,
    )
}

/// The longest time without an update of a walker beside a joining player, and
/// how many entities the player knows in the end.
fn longest_gap(game: &frolic_package::Package, delivery: Delivery) -> (u32, usize) {
    let mut run = Run::new(game, 1, Quality::GOOD);
    run.delivery = delivery;
    let ben = run.world_mut().apply(input::Join::new("b", "Ben"));
    let walker = run.world().entity_of(ben).expect("he is here");
    run.for_ms(3_000);
    let ada = run.join("Ada");
    let (mut last, mut received_ms, mut longest) = (None, None, 0);
    for at in (0..WATCHED_MS).step_by(SAMPLE_MS as usize) {
        // In circles, so that he stays beside her.
        let input = walk(at as f32 * 1e-3);
        let seq = at / SAMPLE_MS + 1;
        run.world_mut()
            .apply(input::Controls::new(ben, [NumberedInput { seq, input }]));
        run.for_ms(SAMPLE_MS);
        let state = run
            .client(ada)
            .replica()
            .entities()
            .find(|state| state.id == walker);
        if state.copied() != last {
            last = state.copied();
            received_ms = Some(at);
        }
        longest = longest.max(at - received_ms.unwrap_or(0));
    }
    (longest, run.client(ada).replica().entities().count())
}

#[test]
fn who_walks_beside_a_newcomer_goes_on_while_a_large_world_arrives() {
    let game = ball_park();
    for delivery in [Delivery::Ordered, Delivery::Lossy] {
        let (longest, known) = longest_gap(&game, delivery);
        println!("{delivery:?}: {longest} ms without an update, {known} known in the end");
        assert!(known > 20_000, "{delivery:?}: {known} arrived");
        assert!(
            longest <= GAP_MS,
            "{delivery:?}: {longest} ms without an update"
        );
    }
}

/// One cell may cost the budget of seconds.
#[test]
fn the_cost_of_a_single_cell_delays_no_near_player() {
    let script = r#"local random = Random.new(3)
        local function number() return random.NextNumber() * 30 end
        for i = 1, 10000 do
            World.Spawn("Ball", Vector3.new(65 + number(), 3, 65 + number()))
            if i % 200 == 0 then task.wait() end
        end"#;
    let game = balls(&[("scripts/ServerScriptService/Balls.luau", script)]);
    for delivery in [Delivery::Ordered, Delivery::Lossy] {
        let (longest, known) = longest_gap(&game, delivery);
        println!("{delivery:?}: {longest} ms without an update, {known} known in the end");
        assert!(known > 10_000, "{delivery:?}: {known} arrived");
        assert!(
            longest <= GAP_MS,
            "{delivery:?}: {longest} ms without an update"
        );
    }
}

/// A JSON client receives everything at once when it joins; later entities have
/// to fit its budget.
#[test]
fn near_players_are_not_delayed_for_a_json_client() {
    let mut world = World::load(&ball_park(), WorldOptions::default()).expect("it loads");
    let ada = world.apply(input::Join::new("a", "Ada"));
    let ben = world.apply(input::Join::new("b", "Ben"));
    let walker = u64::from(world.entity_of(ben).expect("he is here"));
    let mut view = JsonView::new(ada);
    let mut acks: Vec<(u32, u32)> = Vec::new();
    let mut known: BTreeMap<u64, Json> = BTreeMap::new();
    let (mut received, mut longest, mut new_sent) = (0, 0, 0);
    for tick in 1..=WATCHED_MS * 60 / 1000 {
        let input = walk(tick as f32 / 60.0);
        world.apply(input::Controls::new(
            ben,
            [NumberedInput { seq: tick, input }],
        ));
        world.apply(input::Step);
        world.collect_changes();
        acks.retain(|(due, acked)| {
            if *due <= tick {
                view.acknowledge(*acked);
            }
            *due > tick
        });
        if !world.update_is_due(ada) {
            continue;
        }
        let Some(text) = world.json_snapshot(&mut view) else {
            continue;
        };
        let snapshot: Json = serde_json::from_str(&text).expect("JSON");
        let sent = snapshot["tick"].as_u64().expect("a tick") as u32;
        acks.push((tick + ACK_TICKS, sent));
        let entities = snapshot["features"]["movement"]["entities"].as_array();
        for entity in entities.expect("a list") {
            let id = entity["id"].as_u64().expect("an id");
            let before = known.insert(id, entity["p"].clone());
            new_sent += u32::from(before.is_none());
            if id == walker && before.as_ref() != Some(&entity["p"]) {
                longest = longest.max(tick - received);
                received = tick;
            }
        }
    }
    let longest_ms = longest.max(WATCHED_MS * 60 / 1000 - received) * 1000 / 60;
    println!("{longest_ms} ms without an update, {new_sent} known in the end");
    assert!(longest_ms <= GAP_MS, "{longest_ms} ms without an update");
    assert!(new_sent > 400, "what is new arrives as well: {new_sent}");
}
