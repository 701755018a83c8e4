//! Attributes and looks in JSON: a client that applies them has the same state
//! as a binary client, and receives no more bytes than its budget.

use std::collections::{BTreeMap, VecDeque};

use frolic_client::ClientEvent;
use frolic_package::Package;
use frolic_protocol::details::Details;
use frolic_protocol::{Args, Value};
use frolic_sim::random::Random;
use frolic_world::{InterestPolicy, JsonView, World, input};
use serde_json::{Map, Value as Json, json};

use crate::harness::{Run, package};
use crate::network::Quality;

const SIGNS: usize = 8;
/// The entities of one update.
const FIELDS: [&str; 4] = ["attributes", "color", "opacity", "scale"];

/// Applies the requested change to a sign.
const RULES: &str = r##"
local signs = { World.Find("Old") }
for number = 2, 8 do
    signs[number] = World.Spawn("Sign", Vector3.new(number, 1, 0))
end
Network.Declare("Turn", { "which: integer", "what: string", "value: any" }, { rate = 1000, burst = 1000 })
Network.OnClientEvent("Turn", function(player, which, what, value)
    local sign = signs[which]
    if what == "Color" then sign.Color = value
    elseif what == "Opacity" then sign.Opacity = value
    elseif what == "Scale" then sign.Scale = value
    elseif what == "Position" then sign.Position = value
    else sign:SetAttribute(what, value) end
end)
"##;

fn game() -> Package {
    let scene = r##"{"format":1,"prefabs":{"Sign":{"components":{"Shape":{"type":"box","size":[1,1,1]},"Attributes":{"Text":"new"}}}},"entities":[
        {"id":1,"name":"Ground","components":{"Transform":{"position":[0,-0.5,0]},"Shape":{"type":"box","size":[90,1,90]}}},
        {"id":2,"name":"Spawn","components":{"Transform":{"position":[0,0.1,9]},"SpawnPoint":{}}},
        {"id":3,"name":"Old","prefab":"Sign","components":{"Transform":{"position":[1,1,0]}}}]}"##;
    package(scene, &[("scripts/ServerScriptService/Rules.luau", RULES)])
}

/// The state of an entity at one client.
type Known = BTreeMap<u64, Map<String, Json>>;

/// A client as docs/protocol/websocket.md describes it.
struct Stranger {
    view: JsonView,
    world: Known,
    snapshots: BTreeMap<u64, Known>,
    /// Acknowledgements on their way.
    acks: VecDeque<u64>,
    bytes: usize,
    /// Entities of the last snapshot.
    sent: Vec<Json>,
}

impl Stranger {
    fn new(player: u32) -> Self {
        Self {
            view: JsonView::new(player),
            world: Known::new(),
            snapshots: BTreeMap::new(),
            acks: VecDeque::new(),
            bytes: 0,
            sent: Vec::new(),
        }
    }

    /// `late`: how many acknowledgements are still on their way afterwards.
    fn update(&mut self, world: &World, late: usize) {
        while self.acks.len() > late
            && let Some(tick) = self.acks.pop_front()
        {
            self.view.acknowledge(tick as u32);
        }
        let Some(text) = world.json_snapshot(&mut self.view) else {
            return;
        };
        self.bytes += text.len();
        let snapshot: Json = serde_json::from_str(&text).expect("JSON");
        self.world = Known::new();
        if let Some(baseline) = snapshot["baseline"].as_u64() {
            self.world = self.snapshots[&baseline].clone();
            self.snapshots.retain(|tick, _| *tick >= baseline);
        }
        let movement = &snapshot["features"]["movement"];
        self.sent = movement["entities"].as_array().expect("a list").clone();
        for sent in &self.sent {
            let id = sent["id"].as_u64().expect("an id");
            let sent = sent.as_object().expect("an object");
            let entity = self.world.entry(id).or_default();
            if sent.contains_key("attributes") {
                FIELDS.iter().for_each(|field| drop(entity.remove(*field)));
            }
            entity.extend(sent.clone());
        }
        for id in movement["removed"].as_array().expect("a list") {
            self.world.remove(&id.as_u64().expect("an id"));
        }
        let tick = snapshot["tick"].as_u64().expect("a tick");
        self.snapshots.insert(tick, self.world.clone());
        self.acks.push_back(tick);
    }

    /// The details of those that differ from their definitions.
    fn details(&self) -> Known {
        let details = |entity: &Map<String, Json>| {
            let fields = FIELDS
                .iter()
                .filter_map(|field| entity.get_key_value(*field));
            let fields = fields.map(|(field, value)| (field.clone(), value.clone()));
            fields.collect::<Map<_, _>>()
        };
        let all = self.world.iter().map(|(id, entity)| (*id, details(entity)));
        all.filter(|(_, details)| !details.is_empty()).collect()
    }
}

/// The same that our own client receives.
fn in_json(details: &Details) -> Map<String, Json> {
    let mut sent = Map::new();
    let attributes = Value::Map(details.attributes.clone()).to_json();
    sent.insert("attributes".into(), attributes);
    let looks = &details.looks;
    if let Some([red, green, blue]) = looks.color {
        sent.insert(
            "color".into(),
            json!(format!("#{red:02x}{green:02x}{blue:02x}")),
        );
    }
    sent.extend(
        looks
            .opacity
            .map(|opacity| ("opacity".into(), json!(opacity))),
    );
    sent.extend(looks.scale.map(|scale| ("scale".into(), json!(scale))));
    sent
}

fn turn(run: &mut Run, peer: usize, which: usize, what: &str, value: Value) {
    let which = Value::Number(which as f64);
    let args = Args(vec![which, Value::String(what.into()), value]);
    let number = run.number(peer);
    assert!(
        run.world_mut()
            .apply(input::Event::new(number, "Turn", args))
    );
}

#[test]
fn who_applies_deltas_has_the_details_of_a_binary_client() {
    for (seed, bytes_per_s) in [(1, None), (2, Some(6 * 1024)), (3, Some(64 * 1024))] {
        let policy = InterestPolicy {
            bytes_per_s,
            ..InterestPolicy::default()
        };
        let mut run = Run::with_interest(&game(), seed, Quality::GOOD, Some(policy));
        let ada = run.join("Ada");
        let mut stranger = Stranger::new(run.number(ada));
        let mut random = Random::new(seed);
        let mut binary: BTreeMap<u64, Details> = BTreeMap::new();
        for step in 0..400 {
            let which = 1 + random.below(SIGNS as u32) as usize;
            let number = f64::from(random.below(5));
            let (what, value) = match random.below(8) {
                0 => ("Color", Value::String(format!("#0{number}ff5d"))),
                1 => ("Opacity", Value::Number(number / 4.0)),
                2 => ("Scale", Value::Vector([1.0 + number as f32, 1.0, 2.0])),
                3 => ("Position", Value::Vector([number as f32, 1.0, 3.0])),
                4 => ("Text", Value::Nil),
                5 => ("Text", Value::String("long ".repeat(number as usize * 40))),
                6 => ("Lit", Value::Bool(number > 2.0)),
                _ => ("Lit", Value::Nil),
            };
            // Some time to itself at the end: everything arrives.
            if step < 300 {
                turn(&mut run, ada, which, what, value);
            }
            run.for_ms(50);
            stranger.update(run.world(), random.below(6) as usize);
            for event in run.take_events(ada) {
                if let ClientEvent::Details { entity, details } = event {
                    binary.insert(entity.into(), details);
                }
            }
        }
        let expected: Known = binary
            .iter()
            .map(|(id, sent)| (*id, in_json(sent)))
            .collect();
        assert_eq!(expected.len(), SIGNS, "each was changed");
        assert_eq!(stranger.details(), expected, "seed {seed}");
    }
}

/// A removed attribute is removed at a client too, also the last one; unchanged
/// ones are not sent.
#[test]
fn attributes_are_sent_whole_and_only_when_they_change() {
    let mut run = Run::new(&game(), 1, Quality::GOOD);
    let ada = run.join("Ada");
    let mut stranger = Stranger::new(run.number(ada));
    run.for_ms(200);
    stranger.update(run.world(), 0);
    assert_eq!(stranger.details(), Known::new(), "all is as defined");
    let sent = |run: &mut Run, stranger: &mut Stranger| {
        run.for_ms(50);
        stranger.update(run.world(), 0);
        stranger.details().remove(&3)
    };
    turn(&mut run, ada, 1, "Lit", Value::Bool(true));
    let both = json!({"attributes": {"Text": "new", "Lit": true}});
    let known = sent(&mut run, &mut stranger);
    assert_eq!(known.as_ref(), both.as_object());

    turn(&mut run, ada, 1, "Color", Value::String("#0a0bff".into()));
    turn(&mut run, ada, 1, "Text", Value::Nil);
    turn(&mut run, ada, 1, "Lit", Value::Nil);
    let empty = json!({"attributes": {}, "color": "#0a0bff"});
    assert_eq!(sent(&mut run, &mut stranger).as_ref(), empty.as_object());
    let mut whole = Stranger::new(run.number(ada));
    whole.update(run.world(), 0);
    assert_eq!(
        whole.details(),
        stranger.details(),
        "the same in a full one"
    );

    // It moves, and nothing else is sent.
    turn(&mut run, ada, 1, "Position", Value::Vector([1.0, 2.0, 3.0]));
    assert_eq!(sent(&mut run, &mut stranger).as_ref(), empty.as_object());
    let moved = stranger.sent.iter().find(|entity| entity["id"] == 3);
    let moved = moved.and_then(Json::as_object).expect("an update of it");
    assert_eq!(moved["p"], json!([1.0, 2.0, 3.0]));
    assert!(
        FIELDS.iter().all(|field| !moved.contains_key(*field)),
        "{moved:?}"
    );
}

#[test]
fn long_attributes_of_many_wait_for_their_turn() {
    const BUDGET: u32 = 8 * 1024;
    let policy = InterestPolicy {
        bytes_per_s: Some(BUDGET),
        ..InterestPolicy::default()
    };
    let mut run = Run::with_interest(&game(), 1, Quality::GOOD, Some(policy));
    let ada = run.join("Ada");
    let mut stranger = Stranger::new(run.number(ada));
    // Twice: without an acknowledgement it would get everything each time.
    for _ in 0..2 {
        run.for_ms(500);
        stranger.update(run.world(), 0);
    }
    for which in 1..=SIGNS {
        // Twice as long in JSON, and more than the budget may accumulate: it is
        // sent when it is first in the queue.
        let text = "\n".repeat(7_000);
        turn(&mut run, ada, which, "Text", Value::String(text));
    }
    stranger.bytes = 0;
    let mut arrived = Vec::new();
    for _ in 0..20 * 40 {
        run.for_ms(50);
        let before = stranger.bytes;
        stranger.update(run.world(), 1);
        assert!(stranger.bytes - before < 3 * 16_000, "not all at once");
        arrived.push(stranger.details().len());
    }
    assert_eq!(arrived.last(), Some(&SIGNS), "{arrived:?}");
    let first = arrived.iter().position(|known| *known == SIGNS);
    let seconds = first.expect("all of them") as f64 / 20.0;
    // Each is sent twice: the acknowledgement arrives an update later.
    let least = (SIGNS * 14_000) as f64 / f64::from(BUDGET);
    assert!(seconds > least * 0.8, "all of it within {seconds} s");
    let per_s = stranger.bytes as f64 / 40.0;
    assert!(per_s < f64::from(BUDGET) * 1.2, "{per_s} bytes a second");
}
