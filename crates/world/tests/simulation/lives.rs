//! Lag-compensated shots never hit a player in another life than the shooter
//! saw, a player teleported since, or a state older than the shooter saw.

use frolic_package::Package;
use frolic_protocol::{Args, NumberedInput, ServerMessage, Value};
use frolic_sim::{Buttons, CharacterInput, Vec3};
use frolic_world::{PlayerNumber, World, WorldOptions, input};

use crate::harness::package;

/// Ticks by which the shooter of these tests sees the others late.
const LATE: u32 = 12;

const RULES: &str = r##"
Projectile.Define("Cannon", { Speed = 500, Damage = 100, FireRate = 60, Radius = 0 })
Projectile.Define("Needle", { Speed = 500, Damage = 1, FireRate = 60, Radius = 0 })
Projectile.Hit:Connect(function(hit)
    Network.Broadcast("Hit", hit.Player and hit.Player.Name, hit.Damage, hit.Killed, hit.Entity ~= nil)
end)
Players.PlayerJoined:Connect(function(player)
    player.Died:Connect(function() Network.Broadcast("Died", player.Name) end)
end)
Network.OnClientEvent("Take", function(player, weapon) player.Weapon = weapon end)
Network.OnClientEvent("Dead", function(player, seconds) Players.RespawnSeconds = seconds end)
Network.OnClientEvent("Die", function(player) player.Kill() end)
-- Two shots that arrive in the same tick, at a player who may just have
-- spawned.
Network.OnClientEvent("Both", function(player, bornNow)
    if bornNow then player.Respawn() end
    local at = player.Character.Position + Vector3.new(0, 1, 0)
    for _ = 1, 2 do
        Projectile.Fire({ Weapon = "Cannon", From = at + Vector3.new(0, 0, 3), Direction = Vector3.new(0, 0, -1) })
    end
end)
-- The same shot by a script and as a ray.
Network.OnClientEvent("Shoot", function(player, from, direction)
    Projectile.Fire({ Weapon = "Needle", From = from, Direction = direction, Shooter = player })
    local hit = World.Raycast(from, direction, { MaxDistance = 8, SeenBy = player })
    Network.Broadcast("Ray", hit ~= nil)
end)
"##;

fn range() -> Package {
    let scene = r#"{"format":1,"prefabs":{},"entities":[
        {"id":1,"name":"Ground","components":{"Transform":{"position":[0,-0.5,0]},"Shape":{"type":"box","size":[400,1,400]}}},
        {"id":2,"name":"Spawn","components":{"Transform":{"position":[0,0.1,0]},"SpawnPoint":{}}}]}"#;
    package(scene, &[("scripts/ServerScriptService/Rules.luau", RULES)])
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

/// A world, and what it said.
struct Range {
    world: World,
    /// Number of the shooter's next input.
    seq: u32,
    events: Vec<(String, Vec<Value>)>,
}

impl Range {
    fn new() -> Self {
        Self {
            world: World::load(&range(), WorldOptions::default()).expect("the world loads"),
            seq: 1,
            events: Vec::new(),
        }
    }

    fn join(&mut self, name: &str, at: [f32; 3]) -> PlayerNumber {
        let number = self
            .world
            .apply(input::Join::new(format!("id_{name}"), name));
        self.step();
        self.world.apply(input::Teleport::new(number, at));
        self.steps(2 * LATE);
        number
    }

    fn say(&mut self, player: PlayerNumber, event: &str, args: Vec<Value>) {
        assert!(
            self.world
                .apply(input::Event::new(player, event, Args(args)))
        );
    }

    fn step(&mut self) {
        self.world.apply(input::Step);
        for outgoing in self.world.take_outbox() {
            if let ServerMessage::Event { name, args } = outgoing.message {
                self.events.push((name, args.0));
            }
        }
    }

    fn steps(&mut self, count: u32) {
        (0..count).for_each(|_| self.step());
    }

    /// Ticks in which a player does this, and says that they see the others
    /// as they were a while ago.
    fn late_steps(&mut self, player: PlayerNumber, count: u32, input: CharacterInput) {
        for _ in 0..count {
            let seq = self.seq;
            self.seq += 1;
            let tick = self.world.tick().saturating_sub(LATE - 1);
            self.world.apply(input::Shown {
                player,
                tick,
                fraction: 0,
            });
            self.world
                .apply(input::Controls::new(player, [NumberedInput { seq, input }]));
            self.step();
        }
    }

    fn count(&self, event: &str, first: &Value) -> usize {
        let events = self.events.iter();
        events
            .filter(|(name, args)| name == event && args.first() == Some(first))
            .count()
    }
}

/// Fires along -z, a little down.
fn fire() -> CharacterInput {
    CharacterInput::new(0.0, 0.0, 0.0, -0.05, Buttons::FIRE)
}

/// A shooter and who is shot at, away from where they are born.
fn duel(weapon: &str) -> (Range, PlayerNumber, PlayerNumber) {
    let mut range = Range::new();
    let ada = range.join("Ada", [8.0, 0.1, 6.0]);
    let ben = range.join("Ben", [8.0, 0.1, -4.0]);
    range.say(ada, "Take", vec![text(weapon)]);
    (range, ada, ben)
}

#[test]
fn a_shot_at_a_corpse_does_not_hurt_who_is_born_again() {
    let (mut range, ada, ben) = duel("Needle");
    range.say(ada, "Dead", vec![Value::Number(1.0)]);
    range.step();
    range.say(ben, "Die", vec![]);
    range.late_steps(ada, 30, CharacterInput::default());
    range.late_steps(ada, 90, fire());
    assert_eq!(range.count("Hit", &text("Ben")), 0, "{:?}", range.events);
    let born_at = range.world.character(ben).expect("is here").feet;
    assert!(born_at.x < 4.0, "born again at the spawn point");
    // Where they are in this life they are hit.
    range
        .world
        .apply(input::Teleport::new(ben, Vec3::new(8.0, 0.1, -4.0)));
    range.late_steps(ada, 2 * LATE, fire());
    assert!(range.count("Hit", &text("Ben")) > 5);
}

#[test]
fn further_shots_at_who_was_killed_do_not_kill_again() {
    let (mut range, ada, _) = duel("Cannon");
    range.late_steps(ada, 3 * LATE, fire());
    assert_eq!(range.count("Died", &text("Ben")), 1, "{:?}", range.events);
    assert_eq!(range.count("Hit", &text("Ben")), 1);
}

#[test]
fn of_two_shots_in_one_tick_the_second_misses_a_player_who_spawned_meanwhile() {
    for born_now in [false, true] {
        for dead_s in [0.0, 1.0] {
            let (mut range, ada, ben) = duel("Needle");
            range.say(ada, "Dead", vec![Value::Number(dead_s)]);
            range.step();
            range.say(ben, "Both", vec![Value::Bool(born_now)]);
            range.steps(3);
            let events = &range.events;
            assert_eq!(range.count("Died", &text("Ben")), 1, "{events:?}");
            assert_eq!(range.count("Hit", &text("Ben")), 1, "{events:?}");
            // The other one hit no player.
            let miss = (
                "Hit".to_owned(),
                vec![
                    Value::Nil,
                    Value::Number(0.0),
                    Value::Bool(false),
                    Value::Bool(false),
                ],
            );
            assert!(events.contains(&miss), "{events:?}");
        }
    }
}

#[test]
fn who_was_put_further_than_20_m_away_is_not_hit_where_they_were() {
    let here = Vec3::new(8.0, 0.1, -4.0);
    let hits = |away: Vec3| {
        let (mut range, ada, ben) = duel("Needle");
        range.late_steps(ada, 3, CharacterInput::default());
        range.world.apply(input::Teleport::new(ben, here + away));
        range.late_steps(ada, LATE - 4, fire());
        range.count("Hit", &text("Ben"))
    };
    for away in [Vec3::X, Vec3::NEG_X, Vec3::Y, Vec3::Z] {
        assert_eq!(hits(away * 60.0), 0, "60 m along {away}");
        assert!(hits(away * 12.0) > 2, "12 m along {away}");
    }
}

/// An event did not wait among the inputs, so what it fires is no older.
#[test]
fn a_shot_of_a_script_hits_what_a_ray_in_the_same_handler_hits() {
    const WAITING: u32 = 5;
    for since_jump in 1..2 * LATE {
        let (mut range, ada, ben) = duel("Needle");
        let ahead = |range: &mut Range| {
            let newest = range.seq + WAITING;
            let input = CharacterInput::default();
            let inputs = (range.seq..=newest).map(|seq| NumberedInput { seq, input });
            range
                .world
                .apply(input::Controls::new(ada, inputs.collect::<Vec<_>>()));
        };
        ahead(&mut range);
        range.late_steps(ada, LATE, CharacterInput::default());
        ahead(&mut range);
        range
            .world
            .apply(input::Teleport::new(ben, Vec3::new(8.0, 0.1, 8.0)));
        range.late_steps(ada, since_jump, CharacterInput::default());
        ahead(&mut range);
        let from = Value::Vector([8.0, 1.0, 0.0]);
        let direction = Value::Vector([0.0, 0.0, -1.0]);
        range.say(ada, "Shoot", vec![from, direction]);
        range.late_steps(ada, 2, CharacterInput::default());
        let shot = range.count("Hit", &text("Ben")) > 0;
        let ray = range.count("Ray", &Value::Bool(true)) > 0;
        assert_eq!(shot, ray, "{since_jump} ticks after they were there");
    }
}

/// A client that speaks JSON is sent what is far away as often as what is near.
#[test]
fn who_does_not_say_what_they_see_sees_the_far_as_late_as_the_near() {
    for distance in [20.0, 70.0, 130.0] {
        let mut range = Range::new();
        let ada = range.join("Ada", [0.0, 0.1, distance]);
        let ben = range.join("Ben", [-40.0, 0.1, 0.0]);
        range.world.apply(input::RoundTrip {
            player: ada,
            ms: 50,
        });
        let runs = CharacterInput::new(1.0, 0.0, 0.0, 0.0, Buttons::RUN);
        let mut places = Vec::new();
        for seq in 1..120 {
            let input = NumberedInput { seq, input: runs };
            range.world.apply(input::Controls::new(ben, [input]));
            range.step();
            places.push(range.world.character(ben).expect("is here").feet);
        }
        // A tenth of a second and the round trip.
        let ago = 9;
        let then = places[places.len() - 1 - ago];
        let target = range.world.entity_of(ben).expect("is here");
        let seen = {
            let seen = range.world.as_seen_by(ada).expect("is here");
            seen.position(target).expect("is there")
        };
        assert!((seen - then).length() < 0.01, "{seen} is not {then}");
        // A shot of the next tick hits players as they were a tick later.
        let from = places[places.len() - ago] + Vec3::new(0.0, 1.0, 3.0);
        let direction = Value::Vector([0.0, 0.0, -1.0]);
        range.say(
            ada,
            "Shoot",
            vec![Value::Vector(from.to_array()), direction],
        );
        range.world.apply(input::Controls::new(
            ben,
            [NumberedInput {
                seq: 120,
                input: runs,
            }],
        ));
        range.step();
        assert_eq!(range.count("Hit", &text("Ben")), 1, "from {distance} m");
    }
}

#[test]
fn a_player_who_is_stuck_resets_their_character_but_not_all_the_time() {
    let mut range = Range::new();
    let ada = range.join("Ada", [8.0, 0.1, 6.0]);
    range.steps(120);
    assert!(range.world.apply(input::Reset { player: ada }));
    range.steps(2);
    assert_eq!(range.count("Died", &text("Ada")), 1);
    let feet = range.world.character(ada).expect("is here").feet;
    assert!(feet.x.abs() < 3.0, "at the spawn point, not {feet}");
    assert!(!range.world.apply(input::Reset { player: ada }), "too soon");
    range.steps(2);
    assert_eq!(range.count("Died", &text("Ada")), 1);
}
