//! A player who loses the connection at any moment and resumes ends with the
//! current world, and has received every message exactly once.

use std::collections::BTreeMap;

use frolic_client::ClientEvent;
use frolic_package::Package;
use frolic_protocol::details::Details;
use frolic_protocol::{Args, EntityState, Value};
use frolic_sim::random::Random;
use frolic_sim::{Buttons, CharacterInput, Vec3};
use frolic_world::{Delivery, InterestPolicy, JsonView};
use serde_json::Value as Json;

use crate::harness::{Run, package};
use crate::network::Quality;

/// How often something is said in either direction.
const TURNS: u32 = 60;
const TURN_MS: u32 = 300;
const SAID_PER_TURN: u32 = 2;
const CARTS: u32 = 9;

/// Carts of the scene and balls that are spawned: they roam, change their looks
/// and attributes, and are destroyed. Everything said is repeated.
const FAIR: &str = r##"
local function number(from, to) return from + random.NextNumber() * (to - from) end
local function roam(thing, home)
    for round = 1, 30 do
        local dice = number(0, 1)
        if dice < 0.4 then
            thing.SetVelocity(Vector3.new(number(-9, 9), 0, number(-9, 9)))
        elseif dice < 0.5 then
            thing.SetVelocity(Vector3.new(0, 0, 0))
            thing.Position = home
        elseif dice < 0.6 then
            thing.Scale = Vector3.new(number(1, 2), 1, number(1, 2))
        elseif dice < 0.7 then
            thing.Color = if number(0, 1) < 0.5 then "#00ff88" else "#102030"
        elseif dice < 0.97 then
            thing.SetAttribute("Round", round)
        elseif round > 15 then
            thing.Destroy()
            return
        end
        task.wait(number(0.1, 0.8))
    end
    thing.SetVelocity(Vector3.new(0, 0, 0))
end
for _, cart in World.FindAll("Cart") do
    task.delay(number(0, 2), roam, cart, cart.Position)
end
for _ = 1, 12 do
    local place = Vector3.new(number(-50, 50), 1, number(-50, 50))
    task.delay(number(0, 2), roam, World.Spawn("Ball", place), place)
end
Network.Declare("Say", { "number: integer" }, { rate = 1000, burst = 1000 })
Network.OnClientEvent("Say", function(player, said) Network.Broadcast("Said", said) end)
task.spawn(function()
    for count = 1, 150 do
        task.wait(0.1)
        Network.Broadcast("Count", count)
    end
end)
"##;

fn fair(seed: u64) -> Package {
    let carts = (0..CARTS).map(|cart| {
        let (id, x, z) = (cart + 3, (cart % 3) as i32 * 30 - 30, (cart / 3) as i32 * 30 - 30);
        format!(
            r#"{{"id":{id},"name":"Cart","components":{{"Transform":{{"position":[{x},1,{z}]}},"Shape":{{"type":"box","size":[2,2,2]}}}}}}"#
        )
    });
    let carts: Vec<String> = carts.collect();
    let scene = format!(
        r##"{{"format":1,"prefabs":{{"Ball":{{"components":{{"Shape":{{"type":"sphere","radius":0.5}},"Material":{{"color":"#ff0000"}}}}}}}},
        "entities":[
        {{"id":1,"name":"Ground","components":{{"Transform":{{"position":[0,-0.5,0]}},"Shape":{{"type":"box","size":[800,1,800]}}}}}},
        {{"id":2,"name":"Spawn","components":{{"Transform":{{"position":[0,0.1,8]}},"SpawnPoint":{{}}}}}},
        {}]}}"##,
        carts.join(",")
    );
    let script = format!("local random = Random.new({seed})\n{FAIR}");
    package(
        &scene,
        &[("scripts/ServerScriptService/Fair.luau", &script)],
    )
}

/// The state that a page would have by now.
#[derive(Clone, Debug, Default, PartialEq)]
struct Received {
    /// Of this connection, because entities are resent on each.
    details: BTreeMap<u32, Details>,
    said: Vec<f64>,
    counts: Vec<f64>,
    lost: Vec<String>,
}

impl Received {
    fn listen(&mut self, run: &mut Run, player: usize) {
        for event in run.take_events(player) {
            match event {
                ClientEvent::Welcome(_) => self.details.clear(),
                ClientEvent::Details { entity, details } => {
                    self.details.insert(entity, details);
                }
                ClientEvent::Remote { name, args } => {
                    let Some(Value::Number(number)) = args.0.first() else {
                        continue;
                    };
                    match name.as_str() {
                        "Said" => self.said.push(*number),
                        _ => self.counts.push(*number),
                    }
                }
                ClientEvent::Error { code, message } if code == "messages_lost" => {
                    self.lost.push(message);
                }
                _ => {}
            }
        }
    }
}

/// All players run about, connections break again and again, and in the end all
/// is quiet.
fn play(policy: Option<InterestPolicy>, delivery: Delivery, seed: u64) -> (Run, usize, Received) {
    let mut run = Run::with_interest(&fair(seed), seed, Quality::AWFUL, policy);
    run.delivery = delivery;
    run.scene_late_ms = (seed % 3) as f64 * 700.0;
    let player = run.join("Ada");
    run.join("Ben");
    let mut random = Random::new(seed);
    let mut received = Received::default();
    let mut away_turns = None;
    let (mut said, mut losses) = (0, 0);
    for _ in 0..TURNS {
        let yaw = random.range(-3.0, 3.0);
        run.steer(
            player,
            CharacterInput::new(0.0, 1.0, yaw, 0.1, Buttons::RUN),
        );
        match away_turns {
            // Sometimes the next connection breaks before the scene has
            // arrived.
            None if random.below(6) == 0 => {
                run.disconnect(player);
                losses += 1;
                away_turns = Some(random.below(6));
            }
            Some(0) => {
                run.reconnect(player);
                away_turns = None;
            }
            _ => away_turns = away_turns.map(|turns| turns - 1),
        }
        for _ in 0..SAID_PER_TURN {
            said += 1;
            let args = Args(vec![Value::Number(f64::from(said))]);
            run.client_mut(player).fire_server("Say".to_owned(), args);
        }
        run.for_ms(TURN_MS);
        received.listen(&mut run, player);
    }
    assert!(losses > 2, "seed {seed}: {losses} losses");
    run.heal();
    if away_turns.is_some() {
        run.reconnect(player);
    }
    run.steer(player, CharacterInput::default());
    // Queued messages leave at the server's pace; and visible cells are
    // refreshed every ten seconds even without movement.
    run.for_ms(14_000);
    received.listen(&mut run, player);
    (run, player, received)
}

fn check_world(run: &Run, player: usize, seed: u64) {
    let known: Vec<EntityState> = run.client(player).replica().entities().copied().collect();
    let (seen, all) = (run.visible_from(player), run.everything());
    let missing = seen.iter().find(|state| !known.contains(state));
    assert_eq!(missing, None, "seed {seed}: missing");
    let wrong = known.iter().find(|state| !all.contains(state));
    assert_eq!(wrong, None, "seed {seed}: wrong");
    // A player who leans on an entity is as exact as its quantized state.
    let own = run.client(player).own_state().expect("it is there").feet;
    let off = (own - run.server_character(player).feet).length();
    assert!(off < 0.01, "seed {seed}: {off} m off");
    crate::solids::check(run, player, seed);
}

/// Attributes and looks equal those that a newly joined client receives.
fn check_details(run: &Run, player: usize, received: &Received, seed: u64) {
    let mut view = JsonView::new(run.number(player));
    let text = run.world().json_snapshot(&mut view).expect("a snapshot");
    let snapshot: Json = serde_json::from_str(&text).expect("JSON");
    let entities = snapshot["features"]["movement"]["entities"].as_array();
    let mut compared = 0;
    for truth in entities.expect("a list") {
        let id = truth["id"].as_u64().expect("an id") as u32;
        let details = received.details.get(&id);
        if truth.get("attributes").is_none() {
            assert_eq!(details, None, "seed {seed}: {id} is as it was made");
            continue;
        }
        let details = details.unwrap_or_else(|| panic!("seed {seed}: {id} has details"));
        let attributes = Value::Map(details.attributes.clone()).to_json();
        assert_eq!(attributes, truth["attributes"], "seed {seed}: {id}");
        let color = details.looks.color;
        let color = color.map(|[r, g, b]| format!("#{r:02x}{g:02x}{b:02x}"));
        assert_eq!(
            color.as_deref(),
            truth["color"].as_str(),
            "seed {seed}: {id}"
        );
        let scale = details.looks.scale.map(Vec3::from);
        let wanted = truth["scale"].as_array().map(|parts| {
            let part = |axis: usize| parts[axis].as_f64().expect("a number") as f32;
            Vec3::new(part(0), part(1), part(2))
        });
        assert_eq!(scale, wanted, "seed {seed}: {id}");
        compared += 1;
    }
    assert!(compared > 2, "seed {seed}: {compared} had details");
}

#[test]
fn who_comes_back_in_the_middle_of_things_has_the_right_world() {
    let policies = [None, Some(InterestPolicy::within(40.0))];
    let deliveries = [Delivery::Lossy, Delivery::Ordered];
    let kinds = deliveries.map(|delivery| policies.map(|policy| (delivery, policy)));
    let kinds: Vec<_> = kinds.into_iter().flatten().collect();
    for seed in 115..=124 {
        let (delivery, policy) = kinds[seed as usize % kinds.len()];
        let (run, player, received) = play(policy, delivery, seed);
        check_world(&run, player, seed);
        check_details(&run, player, &received, seed);
        assert_eq!(received.lost, Vec::<String>::new(), "seed {seed}");
        let counted = |most: u32| -> Vec<f64> { (1..=most).map(f64::from).collect() };
        assert_eq!(received.said, counted(TURNS * SAID_PER_TURN), "seed {seed}");
        assert_eq!(received.counts, counted(150), "seed {seed}");
    }
}

#[test]
fn losing_and_resuming_connections_is_decided_by_the_seed() {
    let once = || {
        let policy = Some(InterestPolicy::within(40.0));
        let (run, player, received) = play(policy, Delivery::Lossy, 81);
        let known: Vec<EntityState> = run.client(player).replica().entities().copied().collect();
        (run.world().state_hash(), known, received)
    };
    assert_eq!(once(), once());
}
