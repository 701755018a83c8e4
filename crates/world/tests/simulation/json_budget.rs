//! JSON clients have a budget as well: the far and unimportant waits, and
//! what a client has never goes back in time.

use std::collections::{BTreeMap, VecDeque};

use frolic_protocol::NumberedInput;
use frolic_sim::random::Random;
use frolic_sim::{CharacterInput, Vec3};
use frolic_world::{InterestPolicy, JsonView, World, WorldOptions, input};
use serde_json::Value as Json;

use crate::harness::{package, walk};

const BUDGET: u32 = 16 * 1024;
const NEAR: usize = 30;
const FAR: usize = 70;
/// Updates until an acknowledgement arrives.
const ACK_AFTER: usize = 3;

type Places = BTreeMap<u64, [f64; 3]>;

/// A client as docs/protocol/websocket.md describes it.
struct Stranger {
    view: JsonView,
    world: Places,
    baselines: BTreeMap<u64, Places>,
    /// The updates after which acknowledgements are on their way, and of what.
    acks: Option<VecDeque<(usize, u64)>>,
    updates: usize,
    bytes: usize,
    snapshots: usize,
    /// How often each entity was replicated.
    replicated: BTreeMap<u64, u32>,
}

impl Stranger {
    fn new(player: u32, acknowledges: bool) -> Self {
        Self {
            view: JsonView::new(player),
            world: Places::new(),
            baselines: BTreeMap::new(),
            acks: acknowledges.then(VecDeque::new),
            updates: 0,
            bytes: 0,
            snapshots: 0,
            replicated: BTreeMap::new(),
        }
    }

    fn update(&mut self, world: &World) {
        self.updates += 1;
        if let Some(acks) = &mut self.acks {
            let due = self.updates.saturating_sub(ACK_AFTER);
            while acks.front().is_some_and(|(sent, _)| *sent <= due)
                && let Some((_, tick)) = acks.pop_front()
            {
                self.view.acknowledge(tick as u32);
            }
        }
        let Some(text) = world.json_snapshot(&mut self.view) else {
            return;
        };
        self.bytes += text.len();
        self.snapshots += 1;
        let snapshot: Json = serde_json::from_str(&text).expect("JSON");
        let before = std::mem::take(&mut self.world);
        if let Some(baseline) = snapshot["baseline"].as_u64() {
            self.world = self.baselines[&baseline].clone();
            self.baselines.retain(|tick, _| *tick >= baseline);
        }
        let movement = &snapshot["features"]["movement"];
        for entity in movement["entities"].as_array().expect("a list") {
            let id = entity["id"].as_u64().expect("an id");
            let axis = |axis: usize| entity["p"][axis].as_f64().expect("a place");
            self.world.insert(id, [axis(0), axis(1), axis(2)]);
            *self.replicated.entry(id).or_default() += 1;
        }
        for id in movement["removed"].as_array().expect("a list") {
            self.world.remove(&id.as_u64().expect("an id"));
        }
        for (id, place) in &self.world {
            // All players walk towards -z.
            let came_from = before.get(id).map_or(place[2], |place| place[2]);
            assert!(place[2] <= came_from + 1e-3, "{id} went back in time");
        }
        let tick = snapshot["tick"].as_u64().expect("a tick");
        self.baselines.insert(tick, self.world.clone());
        if let Some(acks) = &mut self.acks {
            acks.push_back((self.updates, tick));
        }
    }
}

/// The viewer first, then those near, then those far.
fn crowd() -> (World, Vec<u32>) {
    let options = WorldOptions {
        interest: Some(InterestPolicy {
            bytes_per_s: Some(BUDGET),
            ..InterestPolicy::default()
        }),
        ..WorldOptions::default()
    };
    let mut world = World::load(&crate::meadow(), options).expect("the world loads");
    let mut random = Random::new(3);
    let mut numbers = Vec::new();
    for n in 0..=NEAR + FAR {
        let number = world.apply(input::Join::new(format!("p{n}"), format!("P{n}")));
        let out = if n > NEAR { 200.0 } else { 0.0 };
        let (x, z) = (random.range(-20.0, 20.0), random.range(-20.0, 20.0));
        world.apply(input::Teleport::new(
            number,
            Vec3::new(x + out, 0.1, z + 60.0),
        ));
        numbers.push(number);
    }
    (world, numbers)
}

fn run(world: &mut World, all: &[u32], input: CharacterInput, seconds: u32, s: &mut Stranger) {
    let first = world.tick() + 1;
    for at in 0..seconds * world.tick_hz() {
        for number in all {
            let seq = first + at;
            world.apply(input::Controls::new(
                *number,
                [NumberedInput { seq, input }],
            ));
        }
        world.apply(input::Step);
        world.collect_changes();
        if world.update_is_due(all[0]) {
            s.update(world);
        }
    }
}

#[test]
fn a_crowd_fits_the_budget_and_the_far_waits() {
    let (mut world, all) = crowd();
    let mut stranger = Stranger::new(all[0], true);
    run(&mut world, &all, walk(0.0), 2, &mut stranger);
    (stranger.bytes, stranger.snapshots) = (0, 0);
    stranger.replicated.clear();
    run(&mut world, &all, walk(0.0), 25, &mut stranger);
    let per_s = stranger.bytes as f64 / 25.0;
    let budget = f64::from(BUDGET);
    println!("{per_s:.0} bytes/s in {} snapshots", stranger.snapshots);
    assert!(per_s < budget * 1.1, "{per_s} bytes a second");
    assert!(per_s > budget * 0.7, "and it is used: {per_s}");
    let replicated = |numbers: &[u32]| {
        let entities = numbers.iter().filter_map(|number| world.entity_of(*number));
        let replicated = entities.map(|id| {
            stranger
                .replicated
                .get(&u64::from(id))
                .copied()
                .unwrap_or(0)
        });
        f64::from(replicated.sum::<u32>()) / numbers.len() as f64
    };
    let (own, near, far) = (
        replicated(&all[..1]),
        replicated(&all[1..=NEAR]),
        replicated(&all[NEAR + 1..]),
    );
    println!("updates: own {own}, near {near:.1}, far {far:.1}");
    assert!(own >= stranger.snapshots as f64, "in every snapshot");
    assert!(near > far * 2.0, "near {near}, far {far}");
    assert!(far > 0.0, "far ones wait, but not for ever");
    // They take turns: a recently updated entity does not delay the others.
    let each: Vec<f64> = all[1..=NEAR].iter().map(|n| replicated(&[*n])).collect();
    let (least, most) = (
        each.iter().copied().reduce(f64::min),
        each.iter().copied().reduce(f64::max),
    );
    println!("near ones were updated {least:?} to {most:?} times");
    assert!(
        least
            .zip(most)
            .is_some_and(|(least, most)| least * 3.0 > most)
    );

    // When all players stand still, everything arrives.
    run(
        &mut world,
        &all,
        CharacterInput::default(),
        10,
        &mut stranger,
    );
    let seen = world.visible_from(all[0]);
    assert_eq!(stranger.world.len(), seen.len());
    for state in seen {
        let (is, place) = (stranger.world[&u64::from(state.id)], state.place());
        let off = (Vec3::new(is[0] as f32, is[1] as f32, is[2] as f32) - place).length();
        assert!(off < 0.01, "{} is {off} m off", state.id);
    }
}

/// A full snapshot is everything in view: anything left out would never be
/// sent.
#[test]
fn who_never_acknowledges_gets_everything_each_time_and_less_often() {
    let (mut world, all) = crowd();
    let mut stranger = Stranger::new(all[0], false);
    let mut snapshots = Vec::new();
    for _ in 0..8 {
        run(&mut world, &all, walk(0.0), 1, &mut stranger);
        assert_eq!(stranger.world.len(), all.len(), "all of them");
        snapshots.push(stranger.snapshots);
    }
    let per_s = stranger.bytes as f64 / 8.0;
    println!("{per_s:.0} bytes/s in {snapshots:?} snapshots");
    // One of them may be in advance, and who is new has some saved up.
    assert!(per_s < f64::from(BUDGET) * 1.4, "{per_s} bytes a second");
    assert!(snapshots[7] >= 4, "{snapshots:?}");
}

/// Everything in a large world at once takes the budget of seconds. A client
/// that acknowledges it receives updates from there at once.
#[test]
fn an_acknowledging_client_is_not_delayed_by_the_cost_of_the_first_snapshot() {
    let (mut world, all) = crowd();
    let mut stranger = Stranger::new(all[0], true);
    run(&mut world, &all, walk(0.0), 1, &mut stranger);
    assert_eq!(stranger.world.len(), all.len());
    assert!(stranger.snapshots >= 12, "{}", stranger.snapshots);
}

/// There is always a nearer entity; that must not delay the far ones forever.
#[test]
fn what_is_new_a_long_way_off_arrives_while_more_and_more_comes_up_nearby() {
    let scene = r##"{"format":1,"prefabs":{"Ball":{"components":{"Shape":{"type":"sphere","radius":0.2}}}},
        "entities":[
        {"id":1,"name":"Ground","components":{"Transform":{"position":[0,-0.5,0]},"Shape":{"type":"box","size":[800,1,800]}}},
        {"id":2,"name":"Spawn","components":{"Transform":{"position":[0,0.1,0]},"SpawnPoint":{}}}]}"##;
    let script = r#"local random = Random.new(3)
        local function number(to) return (random.NextNumber() * 2 - 1) * to end
        task.wait(1)
        for second = 1, 9 do
            for i = 1, 100 do World.Spawn("Ball", Vector3.new(number(20), 3, number(20))) end
            if second == 2 then World.Spawn("Ball", Vector3.new(3000, 1, 0)) end
            task.wait(1)
        end"#;
    let game = package(scene, &[("scripts/ServerScriptService/Balls.luau", script)]);
    let options = WorldOptions {
        interest: Some(InterestPolicy {
            bytes_per_s: Some(BUDGET),
            ..InterestPolicy::default()
        }),
        ..WorldOptions::default()
    };
    let mut world = World::load(&game, options).expect("the world loads");
    let player = world.apply(input::Join::new("a", "Ada"));
    let mut stranger = Stranger::new(player, true);
    run(
        &mut world,
        &[player],
        CharacterInput::default(),
        10,
        &mut stranger,
    );
    let (known, all) = (stranger.world.len(), world.visible_from(player).len());
    assert!(
        known < all * 3 / 4,
        "there is more than fits: {known} of {all}"
    );
    let far = stranger.world.values().find(|place| place[0] > 2_000.0);
    assert!(
        far.is_some(),
        "{known} of {all} are known, and not the far one"
    );
}
