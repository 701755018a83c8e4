//! What each client sees, and what it already has.
//!
//! All clients that see the same set share it, and those that also have the
//! same baseline share its encoding: the cost of a snapshot grows with the
//! different views, not with the clients.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::rc::Rc;

use frolic_protocol::json::{self, SnapshotView};
use frolic_protocol::snapshot::{self, SnapshotHeader};
use frolic_protocol::{EntityState, PlayerInfo};

use crate::player::PlayerNumber;
use crate::world::World;

/// Sets kept per client: three seconds at 20 Hz. A client that has not
/// acknowledged for longer gets a full snapshot.
const SENT_MAX: usize = 60;
/// Who is in view leaves it only this much further out.
const HYSTERESIS: f32 = 1.15;

/// Everything there is to see at one tick, shared by all clients.
pub(crate) struct Sight {
    tick: u32,
    all: Rc<[EntityState]>,
    /// Encodings of `all`, by the tick of the baseline.
    encoded: HashMap<Option<u32>, Rc<[u8]>>,
}

impl Sight {
    pub fn new(tick: u32, all: Vec<EntityState>) -> Self {
        Self {
            tick,
            all: all.into(),
            encoded: HashMap::new(),
        }
    }
}

/// One client's view of the world.
pub struct ClientView {
    player: PlayerNumber,
    sent: VecDeque<Sent>,
    acknowledged: Option<u32>,
    near: BTreeSet<u32>,
}

struct Sent {
    tick: u32,
    entities: Rc<[EntityState]>,
    /// Whether this was everything: only then encodings can be shared.
    all: bool,
}

impl ClientView {
    /// The view of a client that has nothing yet.
    pub fn new(player: PlayerNumber) -> Self {
        Self {
            player,
            sent: VecDeque::with_capacity(SENT_MAX),
            acknowledged: None,
            near: BTreeSet::new(),
        }
    }

    /// Notes the newest snapshot that the client has.
    pub fn acknowledge(&mut self, tick: u32) {
        let known = self.sent.iter().any(|sent| sent.tick == tick);
        if known && self.acknowledged.is_none_or(|old| tick > old) {
            self.acknowledged = Some(tick);
            while self.sent.front().is_some_and(|sent| sent.tick < tick) {
                self.sent.pop_front();
            }
        }
    }

    /// The next snapshot in binary.
    pub fn binary_snapshot(&mut self, world: &World, sight: &mut SharedSight) -> Vec<u8> {
        let sight = &mut sight.0;
        let (header, current) = self.prepare(world, sight);
        let baseline = self.baseline();
        let shared = current.all && baseline.is_none_or(|sent| sent.all);
        let bytes = if shared {
            let encoded = sight.encoded.entry(header.baseline).or_insert_with(|| {
                let old = baseline.map_or(&[][..], |sent| &sent.entities);
                snapshot::encode_entities(old, &current.entities).into()
            });
            snapshot::join(&header, encoded)
        } else {
            let old = baseline.map_or(&[][..], |sent| &sent.entities);
            snapshot::encode(&header, old, &current.entities)
        };
        self.remember(current);
        bytes
    }

    /// The next snapshot as JSON.
    pub fn json_snapshot(&mut self, world: &World, sight: &mut SharedSight) -> String {
        let (header, current) = self.prepare(world, &sight.0);
        let players = world.presence_since(header.baseline);
        let text = json::snapshot(&SnapshotView {
            header,
            baseline: self.baseline().map_or(&[], |sent| &sent.entities),
            current: &current.entities,
            players: &players,
            prefab_of: &|state| world.prefab_of(state),
            tick_hz: world.tick_hz(),
        });
        self.remember(current);
        text
    }

    fn baseline(&self) -> Option<&Sent> {
        let tick = self.acknowledged?;
        self.sent.front().filter(|sent| sent.tick == tick)
    }

    fn prepare(&mut self, world: &World, sight: &Sight) -> (SnapshotHeader, Sent) {
        let header = world.header(self.player, sight.tick, self.baseline().map(|b| b.tick));
        let seen = world
            .interest_radius()
            .and_then(|radius| self.look_around(world, sight, radius));
        let current = match seen {
            Some(near) => Sent {
                tick: sight.tick,
                entities: near.into(),
                all: false,
            },
            None => Sent {
                tick: sight.tick,
                entities: sight.all.clone(),
                all: true,
            },
        };
        (header, current)
    }

    /// What is near; none when that is everything.
    fn look_around(
        &mut self,
        world: &World,
        sight: &Sight,
        radius: f32,
    ) -> Option<Vec<EntityState>> {
        let eye = world.place_of_player(self.player)?;
        let far = radius * HYSTERESIS;
        let near: Vec<EntityState> = sight
            .all
            .iter()
            .filter(|state| {
                let limit = if self.near.contains(&state.id) {
                    far
                } else {
                    radius
                };
                state.definition == 0 && state.owner == 0
                    || (state.place() - eye).length_squared() <= limit * limit
            })
            .copied()
            .collect();
        self.near = near.iter().map(|state| state.id).collect();
        (near.len() < sight.all.len()).then_some(near)
    }

    fn remember(&mut self, sent: Sent) {
        if self.sent.len() == SENT_MAX {
            self.sent.pop_front();
        }
        self.sent.push_back(sent);
    }
}

/// What [`World::sight`] gives, to be handed to each [`ClientView`] of a tick.
pub struct SharedSight(pub(crate) Sight);

impl World {
    /// Players to tell a JSON client of.
    fn presence_since(&self, baseline: Option<u32>) -> Vec<PlayerInfo> {
        match baseline {
            None => self.players(),
            Some(tick) => self.presence_changes_after(tick),
        }
    }
}
