//! The view of one JSON client. Its snapshots are differences between whole
//! sets, as the JSON protocol defines them, so the cost is proportional to what
//! it sees. What exceeds its budget stays as the client has it, the distant and
//! the recently sent first, and new and known entities divide the budget; a
//! client without a baseline is sent everything, and its next snapshot later.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use frolic_protocol::json::{self, JsonHeader, SnapshotView};
use frolic_protocol::{EntityState, ServerMessage};
use frolic_sim::Vec3;

use super::budget::{BandwidthBudget, Side, Turns};
use super::introductions::Introductions;
use super::replication::Source;
use super::visible_cells::{Background, Viewer, Watch, Watched};
use crate::player::PlayerNumber;
use crate::terrain::VersionsView;

/// Snapshots whose set is stored: three seconds at 20 Hz. A client that has not
/// acknowledged for longer gets a full one.
const SENT_MAX: u32 = 60;
/// States in all stored sets of a client, about 6 MB.
const STATES_MAX: usize = 64 * 1024;
/// A new entity right here precedes everything that has waited for less than
/// this.
const NEAR_TICKS: f32 = 60.0;
/// Approximate size of an entity in a snapshot, without its details.
const ENTITY_BYTES: f32 = 170.0;

/// One JSON client's view of the world.
pub struct JsonView {
    pub(crate) player: PlayerNumber,
    watch: Watch,
    /// Snapshots that it may acknowledge, oldest first; the first is the one it
    /// has acknowledged.
    sent: VecDeque<Sent>,
    /// Counts snapshots.
    snapshots: u32,
    acknowledged: Option<u32>,
    /// Bytes that may be sent; none before the first snapshot.
    purse: Option<BandwidthBudget>,
    turns: Turns,
    /// The tick at which each visible entity was last sent in its current
    /// state.
    sent_at: BTreeMap<u32, u32>,
    /// The tick since which each new entity waits to be sent.
    waiting: BTreeMap<u32, u32>,
    ground: VersionsView,
    introduced: Introductions,
}

/// A visible entity, and the distance of its cell.
#[derive(Clone, Copy)]
struct InView {
    state: EntityState,
    distance: f32,
}

/// An entity that is due in a snapshot.
struct Due {
    side: Side,
    urgency: f32,
    /// Index among the visible ones.
    index: usize,
    bytes: f32,
}

/// The content of a snapshot.
struct Choice {
    /// The client's state after it, in order of ids.
    current: Vec<EntityState>,
    /// Moving entities that are left out, in order of ids.
    left_out: Vec<u32>,
}

struct Sent {
    tick: u32,
    /// Number of the snapshot.
    number: u32,
    entities: Rc<[EntityState]>,
}

impl JsonView {
    /// The view of a client that has nothing yet.
    pub fn new(player: PlayerNumber) -> Self {
        Self {
            player,
            watch: Watch::default(),
            sent: VecDeque::new(),
            snapshots: 0,
            acknowledged: None,
            purse: None,
            turns: Turns::default(),
            sent_at: BTreeMap::new(),
            waiting: BTreeMap::new(),
            ground: VersionsView::default(),
            introduced: Introductions::default(),
        }
    }

    /// Sends what the client must receive besides its next snapshot.
    pub(crate) fn introduce_from(&mut self, source: Source, send: &mut dyn FnMut(&ServerMessage)) {
        if !self.introduced.may_lack(source) {
            return;
        }
        self.watch(source);
        self.introduced
            .send(source, (self.player, &self.watch), send);
    }

    /// Whether nothing was sent yet.
    pub fn is_new(&self) -> bool {
        self.sent.is_empty()
    }

    /// Records the newest snapshot that the client has.
    pub fn acknowledge(&mut self, tick: u32) {
        let known = self.sent.iter().any(|sent| sent.tick == tick);
        if known && self.acknowledged.is_none_or(|old| tick > old) {
            if self.acknowledged.is_none() {
                // The initial state has arrived, however large it was, so the
                // client need not wait for its debt. Only once: otherwise a
                // client that rarely acknowledges would receive everything for
                // free.
                self.purse.iter_mut().for_each(BandwidthBudget::forgive);
            }
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

    /// An entity as of the last snapshot.
    fn last_sent(&self, id: u32) -> Option<EntityState> {
        let last = self
            .sent
            .back()
            .filter(|sent| sent.number == self.snapshots)?;
        let place = last.entities.binary_search_by_key(&id, |state| state.id);
        place.ok().map(|place| last.entities[place])
    }

    /// All visible entities, in order of ids.
    pub(crate) fn seen(&mut self, source: Source) -> Vec<EntityState> {
        let in_view = self.look(source).into_iter().map(|seen| seen.state);
        in_view.filter(|state| !state.is_elsewhere()).collect()
    }

    /// Updates the visible cells; returns the viewpoint.
    fn watch(&mut self, source: Source) -> Vec3 {
        let eye = source.feet_of(self.player).unwrap_or_default();
        let viewer = Viewer {
            player: self.player,
            eye,
            number: 0,
            turn: 0,
        };
        self.watch.refresh(source.cells(), source.policy(), viewer);
        self.watch.forget_leaving();
        eye
    }

    fn look(&mut self, source: Source) -> Vec<InView> {
        let eye = self.watch(source);
        let cells = source.cells();
        let in_cell = |(watched, background): (&Watched, &Background)| {
            let distance = cells.distance(background.key, eye);
            let members = cells.members(watched.slot).iter();
            members.map(move |&state| InView { state, distance })
        };
        let watched = self.watch.cells.iter().zip(&self.watch.backgrounds);
        let mut seen: Vec<InView> = watched.flat_map(in_cell).collect();
        seen.sort_unstable_by(|a, b| {
            // An entity that is visible in one cell is not missing in the scene
            // file's.
            let key = |seen: &InView| (seen.state.id, seen.state.is_elsewhere());
            let order = key(a).cmp(&key(b));
            order.then(a.distance.total_cmp(&b.distance))
        });
        seen.dedup_by_key(|seen| seen.state.id);
        seen
    }

    /// The text of the next snapshot; none if it must wait for its bytes.
    pub(crate) fn next(&mut self, source: Source) -> Option<String> {
        let in_view = self.look(source);
        let header = JsonHeader {
            tick: source.cells().tick(),
            scripts: source.state.script_version,
            baseline: self.baseline().map(|sent| sent.tick),
            ack_seq: source.ack_seq(self.player),
        };
        let baseline = self.baseline().map(|sent| sent.entities.clone());
        let baseline = baseline.as_deref().unwrap_or(&[]);
        let choice = self.choose(source, &header, baseline, in_view)?;
        let players = match header.baseline {
            None => source.players(),
            Some(tick) => source.state.space.presence.changes_after(tick),
        };
        let projectiles = source
            .state
            .projectiles
            .json(&source.state.space, self.player);
        let text = json::snapshot(&SnapshotView {
            header,
            baseline,
            current: &choice.current,
            left_out: &choice.left_out,
            players: &players,
            projectiles: &projectiles,
            prefab_of: &|state| source.prefab_of(state),
            details_of: &|id| source.details_of(id),
            structure_of: &|id| source.structure_of(id),
            tick_hz: source.state.space.tick_hz,
            voxel: &self
                .ground
                .after(source.terrain(), self.player, header.tick, header.baseline),
        });
        if let Some(purse) = &mut self.purse {
            purse.pay(text.len() as f32);
        }
        self.remember(header.tick, choice.current);
        Some(text)
    }

    /// Stores the client's state after a snapshot, in case it is acknowledged.
    /// If there is no capacity the older ones stay: the first acknowledgement
    /// in flight is for one of those, and frees capacity.
    fn remember(&mut self, tick: u32, entities: Vec<EntityState>) {
        self.snapshots = self.snapshots.wrapping_add(1);
        let number = self.snapshots;
        let too_old = |sent: &Sent| number.wrapping_sub(sent.number) >= SENT_MAX;
        while self.sent.front().is_some_and(too_old) {
            self.sent.pop_front();
        }
        let remembered: usize = self.sent.iter().map(|sent| sent.entities.len()).sum();
        if self.sent.is_empty() || remembered + entities.len() <= STATES_MAX {
            self.sent.push_back(Sent {
                tick,
                number,
                entities: entities.into(),
            });
        }
    }

    /// Selects what fits this client's budget. None: nothing does now.
    fn choose(
        &mut self,
        source: Source,
        header: &JsonHeader,
        baseline: &[EntityState],
        in_view: Vec<InView>,
    ) -> Option<Choice> {
        self.purse =
            BandwidthBudget::refill(self.purse, source.policy(), source.replication.snapshot_hz);
        let Some(mut purse) = self.purse else {
            return Some(Choice {
                current: in_view.iter().map(|seen| seen.state).collect(),
                left_out: Vec::new(),
            });
        };

        let had = |id: u32| {
            let at = baseline.binary_search_by_key(&id, |state| state.id);
            at.ok().map(|at| &baseline[at])
        };
        let own = source.entity_of(self.player);
        let mut due: Vec<Due> = Vec::new();
        let mut must = 0.0;
        let mut again = Vec::new();
        for (index, seen) in in_view.iter().enumerate() {
            let state = &seen.state;
            let same = had(state.id) == Some(state);
            if same && !state.is_on_the_way(header.tick) {
                continue;
            }
            // An entity sent since the baseline would fall back to it.
            let last_sent = self.sent_at.get(&state.id).copied();
            let sent_since = header.baseline.is_some() && last_sent > header.baseline;
            let bytes = bytes_of(source, had(state.id), state);
            if own == Some(state.id) {
                must += bytes;
            } else if sent_since {
                must += bytes;
                again.push(index);
            } else {
                // Without a baseline everything is new to the client.
                let last_sent = last_sent.filter(|_| header.baseline.is_some());
                let side = last_sent.map_or(Side::New, |_| Side::Known);
                let since = last_sent.or_else(|| self.waiting.get(&state.id).copied());
                let since = since.unwrap_or(header.tick);
                let waited = header.tick.saturating_sub(since);
                let urgency = urgency(source, seen, side, waited);
                due.push(Due {
                    side,
                    urgency,
                    index,
                    bytes,
                });
            }
        }
        let all = must + due.iter().map(|due| due.bytes).sum::<f32>();
        // A client without a baseline gets everything: what is left out would
        // never be sent to a client that does not acknowledge. Its snapshots
        // are sent less often instead.
        let whole = header.baseline.is_none();
        let whole_again = whole && !self.is_new();
        let saved = purse.saved_max() - purse.per_update();
        let too_soon = match whole {
            true => whole_again && purse.balance() < all.min(saved),
            // While there is a debt, only what must be sent anyway and fits.
            false => !purse.affords(must),
        };
        if too_soon {
            return None;
        }
        let mut waits = vec![false; in_view.len()];
        let mut repeated = vec![None; in_view.len()];
        if whole || all <= purse.ready() {
            self.turns.end();
        } else {
            // Entities that must be sent again are sent in the same state as
            // before. With a new state each time they would never be
            // acknowledged, and would block all others.
            for index in again {
                repeated[index] = self.last_sent(in_view[index].state.id);
            }
            due.sort_unstable_by(|a, b| {
                let order = b.urgency.total_cmp(&a.urgency);
                let sides = a.side.cmp(&b.side);
                sides.then(order).then(a.index.cmp(&b.index))
            });
            // The text itself is charged once its length is known.
            purse.pay(must);
            self.turns.share_out(
                &mut purse,
                &mut due,
                |due| (due.side, due.bytes),
                |due, goes| waits[due.index] = !goes,
            );
        }
        let mut choice = Choice {
            current: Vec::with_capacity(in_view.len()),
            left_out: Vec::new(),
        };
        let before = std::mem::take(&mut self.sent_at);
        let waiting = std::mem::take(&mut self.waiting);
        for ((seen, waits), repeated) in in_view.iter().zip(waits).zip(repeated) {
            let id = seen.state.id;
            let last_sent = if let Some(state) = repeated {
                choice.current.push(state);
                before.get(&id).copied()
            } else if waits {
                choice.left_out.push(id);
                choice.current.extend(had(id));
                let last_sent = before.get(&id).copied();
                if last_sent.is_none() {
                    let since = waiting.get(&id).copied();
                    self.waiting.insert(id, since.unwrap_or(header.tick));
                }
                last_sent
            } else {
                let same = had(id) == Some(&seen.state) && !seen.state.is_on_the_way(header.tick);
                choice.current.push(seen.state);
                let known = before.get(&id).copied().filter(|_| same);
                known.or(Some(header.tick))
            };
            self.sent_at.extend(last_sent.map(|tick| (id, tick)));
        }
        Some(choice)
    }
}

/// The size of an entity in a snapshot for a client that has `before`.
fn bytes_of(source: Source, before: Option<&EntityState>, state: &EntityState) -> f32 {
    if !json::sends_details(before, state) {
        return ENTITY_BYTES;
    }
    // About as long in JSON; a wrong estimate is charged afterwards.
    let details = source.details_of(state.id);
    ENTITY_BYTES + details.map_or(0.0, |details| details.encode().len() as f32)
}

/// New entities are ordered by distance, with a bonus for waiting; known ones
/// by how long they have waited relative to their interval.
fn urgency(source: Source, seen: &InView, side: Side, waited: u32) -> f32 {
    match side {
        Side::New => waited as f32 + NEAR_TICKS / (1.0 + seen.distance),
        Side::Known => waited as f32 / f32::from(source.policy().interval(seen.distance)),
    }
}

#[cfg(test)]
mod tests;
