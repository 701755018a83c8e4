//! What clients receive about entities they see, besides snapshots: looks set
//! by scripts, and held weapons. Where the game sets a radius, a client that
//! does not see the entity receives nothing of it.

use frolic_package::Package;
use frolic_protocol::{Args, ServerMessage, Value};
use frolic_sim::Vec3;
use frolic_world::{
    ClientView, Delivery, InterestPolicy, JsonView, PlayerNumber, World, WorldOptions, input,
};

use crate::harness::package;
use crate::sight::{RADIUS_M, join};

const FAR: [f32; 3] = [200.0, 0.1, 0.0];

/// Spawns the requested prefab at the requested place.
const RULES: &str = r##"
Projectile.Define("Bow", { Speed = 30, Damage = 1 })
Network.OnClientEvent("Arm", function(player, weapon) Projectile.Arm(player, weapon) end)
Network.OnClientEvent("Crate", function(player, at, size)
    World.Spawn({ Shape = { type = "box", size = { size, 1, 1 } } }, at)
end)
Network.OnClientEvent("Roll", function(player, at)
    World.Find("Cart").Position = at
end)
Network.OnClientEvent("Cart", function(player, at)
    World.Spawn({ Shape = { type = "sphere", radius = 0.4 }, Tag = { "Cart" } }, at)
end)
Network.OnClientEvent("Guard", function(player, at)
    World.Spawn({ Npc = { patrol = { { 123, 0, 77 }, { 321, 0, 88 } } } }, at)
end)
"##;

fn game() -> Package {
    let scene = r#"{"format":1,"prefabs":{"Coin":{"components":{"Shape":{"type":"sphere","radius":0.3}}}},"entities":[
        {"id":1,"name":"Ground","components":{"Transform":{"position":[0,-0.5,0]},"Shape":{"type":"box","size":[900,1,900]}}},
        {"id":2,"name":"Spawn","components":{"Transform":{"position":[0,0.1,0]},"SpawnPoint":{}}}]}"#;
    package(scene, &[("scripts/ServerScriptService/Rules.luau", RULES)])
}

fn world(radius: Option<f32>) -> World {
    let options = WorldOptions {
        interest: radius.map(InterestPolicy::within),
        ..WorldOptions::default()
    };
    World::load(&game(), options).expect("the world loads")
}

fn ask(world: &mut World, player: PlayerNumber, event: &str, args: Vec<Value>) {
    assert!(world.apply(input::Event::new(player, event, Args(args))));
}

fn at(place: [f32; 3]) -> Value {
    Value::Vector(place)
}

/// A client of each kind.
struct Clients {
    binary: ClientView,
    json: JsonView,
    received: Vec<ServerMessage>,
    received_as_json: Vec<ServerMessage>,
}

impl Clients {
    fn of(player: PlayerNumber) -> Self {
        Self {
            binary: ClientView::new(player, Delivery::Ordered),
            json: JsonView::new(player),
            received: Vec::new(),
            received_as_json: Vec::new(),
        }
    }

    /// A second of updates; returns the messages received in it.
    fn second(&mut self, world: &mut World) -> Vec<ServerMessage> {
        for _ in 0..60 {
            world.apply(input::Step);
            world.collect_changes();
            if world.update_is_due(self.binary.player()) {
                let received = &mut self.received;
                self.binary
                    .introduce(world, &mut |message| received.push(message.clone()));
                world.snapshot(&mut self.binary, 0, &mut |_| {});
                let received = &mut self.received_as_json;
                self.json
                    .introduce(world, &mut |message| received.push(message.clone()));
                world.json_snapshot(&mut self.json);
            }
        }
        let received = std::mem::take(&mut self.received);
        assert_eq!(received, std::mem::take(&mut self.received_as_json));
        received
    }
}

#[test]
fn a_look_is_sent_when_an_entity_with_it_is_seen() {
    let mut world = world(Some(RADIUS_M));
    let ada = join(&mut world, "Ada", [0.0, 0.1, 0.0]);
    let mut clients = Clients::of(ada);
    assert!(clients.second(&mut world).is_empty());
    for size in 2..=4 {
        let args = vec![at(FAR), Value::Number(f64::from(size))];
        ask(&mut world, ada, "Crate", args);
    }
    ask(&mut world, ada, "Cart", vec![at(FAR)]);
    assert!(clients.second(&mut world).is_empty(), "out of sight");
    let outbox = world.take_outbox();
    let is_look = |message: &ServerMessage| matches!(message, ServerMessage::Definition { .. });
    assert!(!outbox.iter().any(|outgoing| is_look(&outgoing.message)));

    // One of them comes to her.
    ask(&mut world, ada, "Roll", vec![at([5.0, 1.0, 0.0])]);
    let received = clients.second(&mut world);
    assert!(
        matches!(&received[..], [ServerMessage::Definition { index: 5, components }] if components.contains("sphere")),
        "{received:?}"
    );
    // She goes to the others.
    world.apply(input::Teleport::new(ada, Vec3::from(FAR)));
    let mut received = clients.second(&mut world);
    received.sort_by_key(|message| match message {
        ServerMessage::Definition { index, .. } => *index,
        _ => 0,
    });
    assert_eq!(received.len(), 3, "{received:?}");
    assert!(received.iter().all(is_look));
    // No client receives it twice.
    world.apply(input::Teleport::new(ada, Vec3::ZERO));
    clients.second(&mut world);
    let args = vec![at([2.0, 1.0, 0.0]), Value::Number(3.0)];
    ask(&mut world, ada, "Crate", args);
    world.apply(input::Teleport::new(ada, Vec3::from(FAR)));
    assert!(clients.second(&mut world).is_empty());
}

#[test]
fn without_a_radius_all_clients_know_every_look_and_none_knows_patrols() {
    let mut world = world(None);
    let ada = join(&mut world, "Ada", [0.0, 0.1, 0.0]);
    let mut clients = Clients::of(ada);
    ask(&mut world, ada, "Cart", vec![at(FAR)]);
    ask(&mut world, ada, "Guard", vec![at([3.0, 0.1, 0.0])]);
    let received = clients.second(&mut world);
    assert_eq!(received.len(), 2, "{received:?}");
    let guard = format!("{:?}", received[1]);
    assert!(guard.contains("Npc"), "{guard}");
    for secret in ["patrol", "123", "321"] {
        assert!(!guard.contains(secret), "{guard}");
    }
    // A player who joins later receives it as well.
    let ben = join(&mut world, "Ben", [0.0, 0.1, 0.0]);
    assert_eq!(Clients::of(ben).second(&mut world), received);
}

#[test]
fn held_weapons_are_sent_to_the_clients_that_see_the_holder() {
    let mut world = world(Some(RADIUS_M));
    let ada = join(&mut world, "Ada", [0.0, 0.1, 0.0]);
    let ben = join(&mut world, "Ben", FAR);
    let mut clients = Clients::of(ada);
    clients.second(&mut world);
    world.take_outbox();
    ask(&mut world, ben, "Arm", vec![Value::String("Bow".into())]);
    assert!(clients.second(&mut world).is_empty());
    let armed = |weapon| ServerMessage::Armed {
        player: ben,
        weapon,
    };
    let mut sent = world.take_outbox().into_iter();
    let sent = sent.find(|outgoing| outgoing.message == armed(Some(0)));
    assert_eq!(sent.map(|outgoing| outgoing.to), Some(Some(ben)));
    assert!(world.weapons(ben).contains(&armed(Some(0))));
    assert!(!world.weapons(ada).contains(&armed(Some(0))));

    world.apply(input::Teleport::new(ben, Vec3::new(4.0, 0.1, 0.0)));
    let mut received = clients.second(&mut world);
    received.extend(clients.second(&mut world));
    assert_eq!(received, [armed(Some(0))]);
    ask(&mut world, ben, "Arm", vec![Value::Nil]);
    let mut received = clients.second(&mut world);
    received.extend(clients.second(&mut world));
    assert_eq!(received, [armed(None)]);
}
