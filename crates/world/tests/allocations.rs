//! In steady state a tick allocates nothing per player, entity or pair: what
//! is counted here is every call of the allocator from a client's bytes to its
//! next snapshot.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeMap;

use frolic_package::Package;
use frolic_protocol::packet::{self, CLIENT_MESSAGE_BYTES_MAX};
use frolic_protocol::{ClientMessage, NumberedInput, PacketAck};
use frolic_scene::Limits;
use frolic_sim::{Buttons, CharacterInput, Vec3};
use frolic_world::{ClientView, Delivery, World, WorldOptions, input};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, counting. Of each thread its own: tests run at the
/// same time.
struct Counting;

// Safety: everything is handed to the system's allocator as it came.
#[expect(unsafe_code, reason = "an allocator cannot be written without")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        unsafe { System.realloc(memory, layout, bytes) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Ticks until every cell holds its maximum of versions, and buffers have their
/// final size.
const WARM_UP_TICKS: u32 = 1_200;
const COUNTED_TICKS: u32 = 300;
/// A walk that turns all the time: it crosses cells and stays in the area.
const TURN_PER_TICK: f32 = 0.02;

/// Moving objects besides players. Excluded: bodies in contact, because rapier
/// allocates for contacts; and NPCs that start a journey, because a path search
/// allocates. That occurs once per journey and not per tick.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// An NPC that walks a long way and sees players on it, slow to believe it.
    Guard,
    /// Continues as a script set it once, with no script in between.
    Ball,
    /// A body on a rod, which swings for ever and touches nothing.
    Pendulum,
}

impl Kind {
    /// The components of the nth of them.
    fn components(self, n: u32) -> String {
        // In the same cells whatever their number.
        let (x, z) = ((n % 15) as f32 * 3.0, (n / 15) as f32 * 0.7);
        let ball = r#""Shape":{"type":"sphere","radius":0.3}"#;
        let (y, z, rest) = match self {
            Kind::Guard => (
                0.1,
                z + 60.0,
                format!(
                    r#""Npc":{{"patrol":[[{x},0,-60],[{x},0,60]],"sight_distance":40,"suspicion_rise":600}}"#
                ),
            ),
            Kind::Ball => (3.0, z, ball.to_owned()),
            Kind::Pendulum => (
                5.0 + z * 3.0,
                0.0,
                format!(
                    r#"{ball},"Body":{{"type":"dynamic"}},"Joint":{{"type":"ball","anchor":[-1,0,0]}}"#
                ),
            ),
        };
        format!(r#""Transform":{{"position":[{x},{y},{z}]}},{rest}"#)
    }
}

/// A meadow with this many moving objects.
fn meadow(kind: Kind, count: u32) -> Package {
    let entities = (0..count).map(|n| {
        let (id, components) = (n + 10, kind.components(n));
        format!(r#",{{"id":{id},"name":"Mover","components":{{{components}}}}}"#)
    });
    let entities: String = entities.collect();
    let manifest = "[game]\nid = \"meadow\"\nname = \"Meadow\"\nmax_players = 500\n";
    let scene = format!(
        r#"{{"format":1,"prefabs":{{}},"entities":[
        {{"id":1,"name":"Ground","components":{{"Transform":{{"position":[0,-0.5,0]}},"Shape":{{"type":"box","size":[800,1,800]}}}}}},
        {{"id":2,"name":"Spawn","components":{{"Transform":{{"position":[0,0.1,0]}},"SpawnPoint":{{}}}}}}{entities}]}}"#
    );
    // At another speed each, slow enough to stay about.
    let script = r#"for n, mover in World.FindAll("Mover") do
        if not mover.Npc then mover.SetVelocity(Vector3.new(0.1 + n % 7 * 0.1, 0, 0.2)) end
    end"#;
    let files = BTreeMap::from([
        ("game.toml".to_owned(), manifest.as_bytes().to_vec()),
        ("scene.json".to_owned(), scene.into_bytes()),
        (
            "scripts/ServerScriptService/Push.luau".to_owned(),
            script.as_bytes().to_vec(),
        ),
    ]);
    Package::from_files(files, &Limits::default()).unwrap_or_else(|report| panic!("{report}"))
}

struct Crowd {
    world: World,
    views: Vec<ClientView>,
    /// Packets that each client was sent.
    sent: Vec<u32>,
    /// The client messages of this tick; made before the measurement starts.
    said: Vec<Vec<u8>>,
    delivery: Delivery,
}

impl Crowd {
    fn new(game: &Package, players: u32, delivery: Delivery) -> Self {
        let options = WorldOptions::default();
        let mut world = World::load(game, options).expect("the world loads");
        let mut views = Vec::new();
        for n in 0..players {
            let number = world.apply(input::Join::new(format!("p{n}"), format!("P{n}")));
            // Two metres and a half from one to the next, whatever the number.
            let place = Vec3::new((n % 20) as f32, 0.04, (n / 20) as f32) * 2.5;
            world.apply(input::Teleport::new(number, place));
            views.push(ClientView::new(number, delivery));
        }
        Self {
            world,
            sent: vec![0; views.len()],
            said: vec![Vec::new(); views.len()],
            views,
            delivery,
        }
    }

    /// Where everything is that the first player sees.
    fn places(&self) -> Vec<(u32, Vec3)> {
        let seen = self.world.visible_from(self.views[0].player());
        seen.iter().map(|state| (state.id, state.place())).collect()
    }

    fn speak(&mut self, tick: u32) {
        for (n, said) in self.said.iter_mut().enumerate() {
            let yaw = n as f32 + tick as f32 * TURN_PER_TICK;
            let newest = self.sent[n];
            let ack = PacketAck {
                newest,
                earlier: u32::MAX,
            };
            let numbered = |seq: u32| NumberedInput {
                seq,
                input: CharacterInput::new(0.0, 1.0, yaw, 0.1, Buttons::default()),
            };
            *said = packet::single(&ClientMessage::Inputs {
                ack: (self.delivery == Delivery::Lossy).then_some(ack),
                shown: None,
                inputs: (tick..tick + 4).map(numbered).collect(),
            });
        }
    }

    fn tick(&mut self) {
        for (view, said) in self.views.iter_mut().zip(&self.said) {
            for message in packet::messages(said, CLIENT_MESSAGE_BYTES_MAX) {
                let Ok(ClientMessage::Inputs { ack, inputs, .. }) = message else {
                    panic!("{message:?}");
                };
                self.world
                    .apply(input::Controls::new(view.player(), inputs.iter().copied()));
                if let Some(ack) = ack {
                    view.acknowledge(ack);
                }
            }
        }
        self.world.apply(input::Step);
        self.world.take_outbox();
        self.world.collect_changes();
        for (view, sent) in self.views.iter_mut().zip(&mut self.sent) {
            if self.world.update_is_due(view.player()) {
                self.world.snapshot(view, 0, &mut |_| *sent += 1);
            }
        }
    }

    /// Calls of the allocator per tick, in a crowd that has been there a while.
    fn allocations_per_tick(game: &Package, players: u32, delivery: Delivery) -> f64 {
        let mut crowd = Self::new(game, players, delivery);
        let (mut counted, mut before) = (0, Vec::new());
        for tick in 1..=WARM_UP_TICKS + COUNTED_TICKS {
            crowd.speak(tick);
            let until_now = ALLOCATIONS.get();
            crowd.tick();
            if tick > WARM_UP_TICKS {
                counted += ALLOCATIONS.get() - until_now;
            } else if tick == WARM_UP_TICKS {
                before = crowd.places();
            }
        }
        let places = crowd.places();
        let moved = places.iter().filter(|place| !before.contains(place));
        let (moved, all) = (moved.count(), places.len());
        // The ground stays where it is; so may some who wait for a moment.
        assert!(moved * 10 >= (all - 1) * 8, "{moved} of {all} moved");
        assert!(
            crowd.sent.iter().all(|sent| *sent > 100),
            "all received updates"
        );
        counted as f64 / f64::from(COUNTED_TICKS)
    }
}

#[test]
fn a_tick_allocates_nothing_per_player() {
    let game = meadow(Kind::Ball, 0);
    for delivery in [Delivery::Ordered, Delivery::Lossy] {
        let few = Crowd::allocations_per_tick(&game, 100, delivery);
        let many = Crowd::allocations_per_tick(&game, 300, delivery);
        println!("{delivery:?}: {few:.1} allocations a tick with 100 players, {many:.1} with 300");
        // A list grows now and then where more meet than ever before.
        let per_player = (many - few) / 200.0;
        assert!(
            per_player < 0.02,
            "{per_player} allocations per player and tick"
        );
    }
}

#[test]
fn nor_does_it_for_anything_else_that_moves() {
    for kind in [Kind::Guard, Kind::Ball, Kind::Pendulum] {
        let [few, many] = [50, 150].map(|count| {
            let game = meadow(kind, count);
            Crowd::allocations_per_tick(&game, 20, Delivery::Lossy)
        });
        println!("{kind:?}: {few:.1} allocations a tick with 50, {many:.1} with 150");
        let per_entity = (many - few) / 100.0;
        assert!(
            per_entity < 0.02,
            "{kind:?}: {per_entity} allocations per entity and tick"
        );
    }
}
