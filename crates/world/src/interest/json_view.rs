//! What one JSON client has. Its snapshots are differences between whole
//! sets, as NET-14 wants them, so it costs what it sees.

use std::collections::VecDeque;
use std::rc::Rc;

use frolic_protocol::EntityState;
use frolic_protocol::json::{self, JsonHeader, SnapshotView};
use frolic_sim::Vec3;

use super::watch::{Viewer, Watch};
use crate::player::PlayerNumber;
use crate::world::World;

/// Sets kept per client: three seconds at 20 Hz. A client that has not
/// acknowledged for longer gets a full snapshot.
const SENT_MAX: usize = 60;

/// One JSON client's view of the world.
pub struct JsonView {
    pub(crate) player: PlayerNumber,
    watch: Watch,
    sent: VecDeque<Sent>,
    acknowledged: Option<u32>,
}

struct Sent {
    tick: u32,
    entities: Rc<[EntityState]>,
}

impl JsonView {
    /// The view of a client that has nothing yet.
    pub fn new(player: PlayerNumber) -> Self {
        Self {
            player,
            watch: Watch::default(),
            sent: VecDeque::new(),
            acknowledged: None,
        }
    }

    /// Whether nothing was sent yet.
    pub fn is_new(&self) -> bool {
        self.sent.is_empty()
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

    fn baseline(&self) -> Option<&Sent> {
        let tick = self.acknowledged?;
        self.sent.front().filter(|sent| sent.tick == tick)
    }

    /// Everything in view, in order of ids.
    pub(crate) fn seen(&mut self, world: &World) -> Vec<EntityState> {
        let cells = world.cells();
        let eye = world
            .character(self.player)
            .map_or(Vec3::ZERO, |character| character.feet);
        let viewer = Viewer {
            player: self.player,
            eye,
            number: 0,
        };
        self.watch.refresh(cells, world.interest(), viewer);
        self.watch.forget_leaving();
        let watched = self.watch.cells.iter();
        let mut seen: Vec<EntityState> = watched
            .flat_map(|watched| cells.members(watched.slot))
            .copied()
            .collect();
        seen.sort_unstable_by_key(|state| state.id);
        seen.dedup_by_key(|state| state.id);
        seen
    }

    /// The text of the next snapshot.
    pub(crate) fn next(&mut self, world: &World) -> String {
        let current = self.seen(world);
        let header = JsonHeader {
            tick: world.cells().tick(),
            scripts: world.script_version(),
            baseline: self.baseline().map(|sent| sent.tick),
            ack_seq: world.ack_seq(self.player),
        };
        let players = match header.baseline {
            None => world.players(),
            Some(tick) => world.presence_changes_after(tick),
        };
        let text = json::snapshot(&SnapshotView {
            header,
            baseline: self.baseline().map_or(&[], |sent| &sent.entities),
            current: &current,
            players: &players,
            prefab_of: &|state| world.prefab_of(state),
            tick_hz: world.tick_hz(),
        });
        if self.sent.len() == SENT_MAX {
            self.sent.pop_front();
        }
        self.sent.push_back(Sent {
            tick: header.tick,
            entities: current.into(),
        });
        text
    }
}
