//! The world as a player saw it: things that set off, were put
//! elsewhere or came since, and what scripts find there.

use frolic_package::Package;
use frolic_protocol::{Args, NumberedInput, ServerMessage, Value};
use frolic_scene::SceneEntity;
use frolic_sim::random::Random;
use frolic_sim::{Buttons, CharacterInput, Vec3, capsule};
use frolic_world::{PlayerNumber, World, WorldOptions, input};

use crate::harness::package;

/// Ticks by which players see the others late here.
const LATE: u32 = 10;

const LIFT: u32 = 3;
const CRATE: u32 = 4;
const FLAG: u32 = 5;
const POST: u32 = 6;
const LAMP: u32 = 7;

const RULES: &str = r##"
Network.OnClientEvent("MoveTo", function(player, entity, place, seconds) entity.MoveTo(place, seconds) end)
Network.OnClientEvent("Kick", function(player, entity, impulse) entity.ApplyImpulse(impulse) end)
Network.OnClientEvent("Put", function(player, entity, place) entity.Position = place end)
Network.OnClientEvent("Drift", function(player, entity, velocity) entity.SetVelocity(velocity) end)
Network.OnClientEvent("Teleport", function(player, place) player.Teleport(place) end)
Network.OnClientEvent("Spawn", function(player, place)
    World.Spawn({ Shape = { type = "box", size = { 1, 1, 1 } } }, place)
end)
Network.OnClientEvent("Destroy", function(player, place)
    for _, entity in World.InRadius(place, 30) do
        if #entity.Tags == 0 and entity.Owner == nil then entity.Destroy() end
    end
end)
Network.OnClientEvent("Dead", function(player, seconds)
    Players.RespawnSeconds = seconds
    player.Kill()
end)
Network.OnClientEvent("Near", function(player, center, radius)
    Network.FireClient(player, "Near", World.InRadius(center, radius, { SeenBy = player }))
end)
"##;

/// Things that do not fall through the ground, a crate with a flag on it, and
/// a post with a lamp.
fn yard() -> Package {
    let thing = |id: u32, name: &str, place: &str, more: &str| {
        format!(
            r#",{{"id":{id},"name":"{name}"{more},"Tag":["Kept"],"Transform":{{"position":[{place}]}},"Shape":{{"type":"box","size":[1,1,1]}}}}}}"#
        )
    };
    let components = r#","components":{"Body":{"type":"kinematic"}"#;
    let lift = thing(LIFT, "Lift", "0,0.5,-9", components);
    let falls = r#","components":{"Body":{"type":"dynamic","mass":20}"#;
    let crate_ = thing(CRATE, "Crate", "6,0.5,0", falls);
    let flag = format!(
        r#",{{"id":{FLAG},"name":"Flag","parent":{CRATE},"components":{{"Tag":["Kept"],"Transform":{{"position":[0,2,0]}}}}}}"#
    );
    let post = thing(POST, "Post", "-9,0.5,0", components);
    let lamp = format!(
        r#",{{"id":{LAMP},"name":"Lamp","parent":{POST},"components":{{"Tag":["Kept"],"Transform":{{"position":[0,3,0]}}}}}}"#
    );
    let scene = format!(
        r#"{{"format":1,"prefabs":{{}},"entities":[
        {{"id":1,"name":"Ground","components":{{"Tag":["Kept"],"Transform":{{"position":[0,-0.5,0]}},"Shape":{{"type":"box","size":[400,1,400]}}}}}},
        {{"id":2,"name":"Spawn","components":{{"Tag":["Kept"],"Transform":{{"position":[0,0.1,0]}},"SpawnPoint":{{}}}}}}{lift}{crate_}{flag}{post}{lamp}]}}"#
    );
    package(&scene, &[("scripts/ServerScriptService/Rules.luau", RULES)])
}

/// A world with players, and the positions it replicated to them.
struct Yard {
    world: World,
    seq: u32,
    near: Option<Vec<u32>>,
}

impl Yard {
    fn new() -> Self {
        Self {
            world: World::load(&yard(), WorldOptions::default()).expect("the world loads"),
            seq: 1,
            near: None,
        }
    }

    /// Joins, and waits until everything lies still.
    fn join(&mut self, at: [f32; 3]) -> PlayerNumber {
        let count = self.world.player_count();
        let number = self
            .world
            .apply(input::Join::new(format!("id_{count}"), format!("P{count}")));
        self.world.apply(input::Step);
        self.world.apply(input::Teleport::new(number, at));
        self.steps(240);
        number
    }

    fn say(&mut self, player: PlayerNumber, event: &str, args: Vec<Value>) {
        let name = event.to_owned();
        assert!(
            self.world
                .apply(input::Event::new(player, name, Args(args)))
        );
    }

    fn step(&mut self) {
        self.world.apply(input::Step);
        for outgoing in self.world.take_outbox() {
            let ServerMessage::Event { name, args } = outgoing.message else {
                continue;
            };
            let found = match args.0.as_slice() {
                [Value::List(found)] => found.as_slice(),
                // An empty table is as much a list as it is a map.
                [Value::Map(found)] if found.is_empty() => &[],
                other => panic!("{name} {other:?}"),
            };
            let ids = found.iter().map(|value| match value {
                Value::Entity(id) => *id,
                other => panic!("{other:?}"),
            });
            self.near = Some(ids.collect());
        }
        let errors = self.world.take_logs();
        assert!(errors.is_empty(), "{errors:?}");
    }

    fn steps(&mut self, count: u32) {
        (0..count).for_each(|_| self.step());
    }

    /// Steps with the same input of a player in each tick.
    fn walk(&mut self, player: PlayerNumber, count: u32, input: CharacterInput) {
        for _ in 0..count {
            let seq = self.seq;
            self.seq += 1;
            let input = NumberedInput { seq, input };
            self.world.apply(input::Controls::new(player, [input]));
            self.step();
        }
    }

    /// Where a player who sees the world so late saw an entity.
    fn seen(&mut self, player: PlayerNumber, entity: u32, late: u32) -> Option<Vec3> {
        let tick = self.world.tick() - late;
        self.show(player, tick, 0);
        let seen = self.world.as_seen_by(player).expect("is here");
        seen.position(entity)
    }

    /// Makes a client's word count, whatever it said before.
    fn show(&mut self, player: PlayerNumber, tick: u32, fraction: u8) {
        self.world.apply(input::Shown {
            player,
            tick: u32::MAX,
            fraction: 0,
        });
        self.world.apply(input::Shown {
            player,
            tick,
            fraction,
        });
    }

    /// The result of a script's query for them in the next tick.
    fn near(&mut self, player: PlayerNumber, center: Vec3, radius: f32) -> Vec<u32> {
        let args = vec![vector(center), Value::Number(f64::from(radius))];
        self.say(player, "Near", args);
        self.step();
        self.near.take().expect("the script answers")
    }
}

fn vector(v: Vec3) -> Value {
    Value::Vector(v.to_array())
}

/// Does something to things at rest, and looks at them from before, from the
/// tick in which it happened, and from after.
fn changed(event: &str, args: Vec<Value>, things: &[u32]) {
    let mut yard = Yard::new();
    let ada = yard.join([0.0, 0.1, 12.0]);
    let at_rest: Vec<Vec3> = things
        .iter()
        .map(|id| yard.seen(ada, *id, 0).expect("it is there"))
        .collect();
    yard.say(ada, event, args);
    let mut ways: Vec<Vec<Vec3>> = at_rest.iter().map(|place| vec![*place]).collect();
    for ticks in 1..=LATE + 5 {
        yard.step();
        for ((id, rest), way) in things.iter().zip(&at_rest).zip(&mut ways) {
            way.push(yard.seen(ada, *id, 0).expect("it is there"));
            let seen = yard.seen(ada, *id, LATE).expect("it was there");
            let then = way[ticks.saturating_sub(LATE) as usize];
            assert!(
                (seen - then).length() < 2e-3,
                "{event}: {id} was at {then} {LATE} ticks ago, not at {seen}"
            );
            assert!(ticks > LATE || (seen - *rest).length() < 2e-3);
        }
    }
    for (way, id) in ways.iter().zip(things) {
        let far = (way[way.len() - 1] - way[0]).length();
        assert!(far > 0.5, "{event}: {id} went {far} m only");
    }
}

#[test]
fn a_thing_at_rest_that_sets_off_is_seen_at_rest() {
    let to = vector(Vec3::new(8.0, 0.5, -9.0));
    let two_s = Value::Number(2.0);
    changed("MoveTo", vec![Value::Entity(LIFT), to, two_s], &[LIFT]);
    let speed = vector(Vec3::X * 6.0);
    changed("Drift", vec![Value::Entity(POST), speed], &[POST, LAMP]);
}

#[test]
fn a_body_that_is_kicked_awake_is_seen_asleep_with_what_hangs_on_it() {
    let impulse = vector(Vec3::new(0.0, 60.0, -120.0));
    changed("Kick", vec![Value::Entity(CRATE), impulse], &[CRATE, FLAG]);
}

#[test]
fn a_thing_that_a_script_put_elsewhere_is_seen_where_it_was() {
    let place = vector(Vec3::new(-9.0, 0.5, -12.0));
    changed("Put", vec![Value::Entity(POST), place], &[POST, LAMP]);
    let place = vector(Vec3::new(20.0, 0.5, 5.0));
    changed("Put", vec![Value::Entity(CRATE), place], &[CRATE]);
}

#[test]
fn a_thing_that_came_since_was_not_there() {
    let mut yard = Yard::new();
    let ada = yard.join([0.0, 0.1, 12.0]);
    let place = Vec3::new(-20.0, 0.5, -20.0);
    yard.say(ada, "Spawn", vec![vector(place)]);
    let id = SceneEntity::ID_MAX + 2;
    for ticks in 1..=LATE + 3 {
        yard.step();
        let seen = yard.seen(ada, id, LATE);
        let wanted = (ticks > LATE).then_some(place);
        assert_eq!(seen, wanted, "{ticks} ticks later");
        assert_eq!(yard.seen(ada, id, 0), Some(place));
    }
}

#[test]
fn scripts_find_what_was_there_and_not_what_came_since() {
    let mut yard = Yard::new();
    let ada = yard.join([0.0, 0.1, 12.0]);
    let (before, after) = (Vec3::new(-9.0, 0.5, 0.0), Vec3::new(-9.0, 0.5, 60.0));
    yard.say(ada, "Put", vec![Value::Entity(POST), vector(after)]);
    yard.say(ada, "Spawn", vec![vector(after)]);
    yard.steps(3);
    let tick = yard.world.tick() - LATE;
    yard.show(ada, tick, 0);
    assert_eq!(yard.near(ada, before, 1.0), [POST]);
    assert!(yard.near(ada, after, 1.0).is_empty());
    yard.steps(2 * LATE);
    let tick = yard.world.tick() - LATE;
    yard.show(ada, tick, 0);
    assert!(yard.near(ada, before, 1.0).is_empty());
    assert_eq!(yard.near(ada, after, 1.0), [POST, SceneEntity::ID_MAX + 2]);
}

/// However things move, a script's sphere query as seen finds exactly the seen
/// ones inside, and a ray meets the first seen character on it.
#[test]
fn what_scripts_find_is_what_was_seen() {
    for seed in 1..=4 {
        let mut yard = Yard::new();
        let mut random = Random::new(seed);
        let players: Vec<PlayerNumber> = (0..6)
            .map(|n| yard.join([n as f32 * 3.0, 0.1, 12.0]))
            .collect();
        let (mut found, mut hits) = (0, 0);
        for tick in 0..240 {
            let place = Vec3::new(random.range(-40.0, 40.0), 0.5, random.range(-40.0, 40.0));
            let player = players[random.below(6) as usize];
            let viewer = players[random.below(6) as usize];
            let shown = yard.world.tick() - random.below(16);
            yard.show(viewer, shown, random.below(256) as u8);
            let center = match random.below(3) {
                0 => place,
                _ => yard.world.character(player).expect("is here").feet,
            };
            let radius = random.range(0.2, 12.0);
            let wanted = {
                let seen = yard.world.as_seen_by(viewer).expect("is here");
                let way = place + Vec3::Y * 0.5 - center;
                let origin = center - way + Vec3::Y;
                hits += u32::from(check_ray(&yard.world, viewer, origin, way));
                let ids = (1..=LAMP).chain(SceneEntity::ID_MAX + 1..SceneEntity::ID_MAX + 400);
                let near = |id: &u32| {
                    let at = seen.position(*id);
                    at.is_some_and(|at| (at - center).length_squared() <= radius * radius)
                };
                ids.filter(near).collect::<Vec<u32>>()
            };
            // Events of the same tick follow the query.
            let args = vec![vector(center), Value::Number(f64::from(radius))];
            yard.say(viewer, "Near", args);
            let thing = Value::Entity([LIFT, CRATE, POST][random.below(3) as usize]);
            let (event, args) = match random.below(12) {
                0 if thing != Value::Entity(CRATE) => {
                    ("MoveTo", vec![thing, vector(place), Value::Number(0.3)])
                }
                1 if thing != Value::Entity(CRATE) => {
                    ("Drift", vec![thing, vector((place - center) * 0.2)])
                }
                2 => ("Put", vec![thing, vector(place)]),
                3 => ("Kick", vec![Value::Entity(CRATE), vector(place * 5.0)]),
                4 => ("Teleport", vec![vector(place)]),
                5 | 6 => ("Spawn", vec![vector(place)]),
                7 => ("Destroy", vec![vector(place)]),
                _ => ("Teleport", vec![vector(center + Vec3::Y)]),
            };
            yard.say(player, event, args);
            let runs = CharacterInput::new(1.0, 0.3, tick as f32, 0.0, Buttons::RUN);
            let input = NumberedInput {
                seq: tick + 1,
                input: runs,
            };
            for player in &players {
                yard.world.apply(input::Controls::new(*player, [input]));
            }
            yard.step();
            found += wanted.len();
            assert_eq!(yard.near.take(), Some(wanted), "seed {seed}, tick {tick}");
        }
        assert!(found > 100 && hits > 10, "{found} found, {hits} hit");
    }
}

/// A ray meets the first of those whom the viewer saw; whether there was one.
fn check_ray(world: &World, viewer: PlayerNumber, origin: Vec3, way: Vec3) -> bool {
    let seen = world.as_seen_by(viewer).expect("is here");
    let solids = [1, LIFT, CRATE, POST];
    let spawned = SceneEntity::ID_MAX + 1..SceneEntity::ID_MAX + 400;
    let players: Vec<u32> = seen.characters().map(|one| one.entity).collect();
    let things = spawned.filter(|id| !players.contains(id));
    let except: Vec<u32> = solids.into_iter().chain(things).collect();
    let (params, direction) = (world.character_params(), way.normalize());
    let first = seen
        .characters()
        .filter_map(|one| {
            let hit = capsule::cast(origin, direction, one.feet, params.radius, params.height);
            hit.map(|(distance, _)| distance)
        })
        .filter(|distance| *distance < 60.0)
        .min_by(f32::total_cmp);
    let hit = seen.raycast(origin, direction, 60.0, &except);
    let hit = hit.map(|hit| hit.distance);
    let off = hit.unwrap_or(-1.0) - first.unwrap_or(-1.0);
    assert!(off.abs() < 1e-3, "{hit:?} is not {first:?}");
    first.is_some()
}

#[test]
fn a_ray_passes_over_the_dead_and_hits_no_player_in_another_life() {
    let mut yard = Yard::new();
    let ada = yard.join([0.0, 0.1, 30.0]);
    let ben = yard.join([0.0, 0.1, 20.0]);
    let target = yard.world.entity_of(ben).expect("is here");
    let hit = |yard: &mut Yard| {
        let tick = yard.world.tick() - LATE;
        yard.show(ada, tick, 0);
        let seen = yard.world.as_seen_by(ada).expect("is here");
        let hit = seen.raycast(Vec3::new(0.0, 1.0, 28.0), Vec3::NEG_Z, 15.0, &[]);
        hit.map(|hit| hit.entity)
    };
    assert_eq!(hit(&mut yard), Some(target));
    yard.say(ben, "Dead", vec![Value::Number(1.0)]);
    for tick in 0..60 {
        yard.step();
        assert_eq!(hit(&mut yard), None, "dead for {tick} ticks");
    }
    for tick in 0..2 * LATE {
        yard.step();
        assert_eq!(hit(&mut yard), None, "born again {tick} ticks ago");
    }
    // They lie where they lie all the same.
    yard.world
        .apply(input::Teleport::new(ben, Vec3::new(0.0, 0.1, 20.0)));
    yard.steps(2 * LATE);
    assert_eq!(hit(&mut yard), Some(target));
}

/// Clients draw what they ride, and what they push, in their own time.
#[test]
fn what_a_player_rides_or_pushes_is_seen_where_it_is() {
    let mut yard = Yard::new();
    let rider = yard.join([0.0, 1.2, -9.0]);
    let other = yard.join([0.0, 0.1, 12.0]);
    let to = vector(Vec3::new(16.0, 0.5, -9.0));
    yard.say(
        rider,
        "MoveTo",
        vec![Value::Entity(LIFT), to, Value::Number(4.0)],
    );
    yard.steps(60);
    let now = yard.world.position_of("Lift").expect("it is there");
    let seen = yard.seen(rider, LIFT, LATE).expect("it is there");
    assert!((seen - now).length() < 1e-4, "the rider: {seen}, not {now}");
    let seen = yard.seen(other, LIFT, LATE).expect("it is there");
    assert!((now - seen).x > 0.5, "who looks on: {seen}, now {now}");
    // One who says nothing draws all of it late.
    yard.world.apply(input::Reconnect { player: rider });
    let seen = yard.world.as_seen_by(rider).expect("is here");
    let seen = seen.position(LIFT).expect("it is there");
    assert!((now - seen).x > 0.3, "who says nothing: {seen}, now {now}");

    let mut yard = Yard::new();
    let pusher = yard.join([6.0, 0.1, 2.0]);
    let other = yard.join([0.0, 0.1, 12.0]);
    let ahead = CharacterInput::new(0.0, 1.0, 0.0, 0.0, Buttons::default());
    yard.walk(pusher, 90, ahead);
    let now = yard.world.position_of("Crate").expect("it is there");
    let seen = yard.seen(pusher, CRATE, LATE).expect("it is there");
    assert!(
        (seen - now).length() < 1e-4,
        "the pusher: {seen}, not {now}"
    );
    let seen = yard.seen(other, CRATE, LATE).expect("it is there");
    assert!((seen - now).z > 0.3, "who looks on: {seen}, now {now}");
}
