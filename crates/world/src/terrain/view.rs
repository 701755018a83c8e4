//! What one client has of the ground, and what it is told next: operations
//! as they happen, and chunks that are not as the client would make them
//! itself, the nearest first, in so many bytes per second.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use frolic_protocol::terrain::{ChunkData, ChunkVersion};
use frolic_sim::Vec3;
use frolic_terrain::{ChunkPos, Grid};

use crate::player::PlayerNumber;
use crate::state::WorldState;
use crate::world::World;

/// Bytes of chunks for one client in a second, on top of its snapshots.
const BYTES_PER_S: f32 = 96.0 * 1024.0;
/// Bytes that may be saved up.
const SAVED_BYTES: f32 = 48.0 * 1024.0;
/// Chunks beyond this are not told of: nobody sees that far.
const FAR_M: f32 = 384.0;
/// Where the game sets a radius: so much further, because the ground
/// has to be there before somebody who runs or falls stands on it.
const AHEAD_M: f32 = 2.0 * LOOK_AGAIN_M;
/// Chunks that a client may wait for.
const WISHES_MAX: usize = 256;
/// Whoever went so far has other chunks near.
const LOOK_AGAIN_M: f32 = 12.0;
/// Ticks between two looks for chunks that are behind.
const LOOK_TICKS: u32 = 12;

/// One client's view of the ground. The line must keep the order of messages.
pub struct TerrainView {
    player: PlayerNumber,
    /// Versions that the client has; all others are as they were made.
    known: BTreeMap<ChunkPos, u32>,
    /// Chunks that it asked for.
    wishes: VecDeque<ChunkPos>,
    /// Chunks that are behind, the nearest last.
    behind: Vec<ChunkPos>,
    /// What the last look saw: the state of the world's news, from where, when.
    looked: Option<(u64, Vec3, u32)>,
    bytes_left: f32,
    tick: u32,
    /// Clients that make no ground themselves ask for every chunk they want.
    pushes: bool,
}

impl TerrainView {
    /// The view of a client that has nothing but the scene, and makes its
    /// ground from that.
    pub fn new(player: PlayerNumber) -> Self {
        Self {
            player,
            known: BTreeMap::new(),
            wishes: VecDeque::new(),
            behind: Vec::new(),
            looked: None,
            bytes_left: SAVED_BYTES,
            tick: 0,
            pushes: true,
        }
    }

    /// The view of a client that gets chunks only when it asks.
    pub fn asking(player: PlayerNumber) -> Self {
        Self {
            pushes: false,
            ..Self::new(player)
        }
    }

    /// Whether this client is told of an operation that changed these chunks.
    /// If so, it has them in those versions, as far as it had the ones before.
    pub fn hears(&mut self, world: &World, chunks: &[ChunkVersion]) -> bool {
        let state = world.borrow_state();
        let near = |reach: Reach| chunks.iter().any(|at| reach.distance(at.chunk).is_some());
        if !Reach::of(&state, self.player).is_some_and(near) {
            return false;
        }
        for at in chunks {
            let known = self.known.entry(at.chunk).or_insert(0);
            if known.wrapping_add(1) == at.version {
                *known = at.version;
            }
        }
        true
    }

    /// Whether this client may ask for a chunk: any, unless the game says how
    /// far its players are told of anything.
    pub fn may_ask(&self, world: &World, at: ChunkPos) -> bool {
        let state = world.borrow_state();
        state.updates.policy.radius.is_none()
            || Reach::of(&state, self.player).is_some_and(|reach| reach.distance(at).is_some())
    }

    /// The client asks for a chunk. False when it waits for too many already.
    pub fn wish(&mut self, at: ChunkPos) -> bool {
        if self.wishes.contains(&at) {
            return true;
        }
        let room = self.wishes.len() < WISHES_MAX;
        if room {
            self.wishes.push_back(at);
        }
        room
    }

    /// Chunks to send now; call it once per tick. Not for clients that are
    /// behind with what they were sent.
    pub fn next(&mut self, world: &mut World, send: &mut dyn FnMut(ChunkData)) {
        let tick = world.tick();
        let passed = tick.saturating_sub(self.tick) as f32 / world.tick_hz() as f32;
        self.tick = tick;
        self.bytes_left = (self.bytes_left + passed * BYTES_PER_S).min(SAVED_BYTES);
        // One that is wished for again and again is made only once per round.
        for _ in 0..self.wishes.len() {
            if self.bytes_left <= 0.0 {
                return;
            }
            let Some(at) = self.wishes.pop_front() else {
                break;
            };
            match world.packed_chunk(at) {
                Some(packed) => self.send(at, packed, send),
                None => self.wishes.push_back(at),
            }
        }
        if !self.pushes {
            return;
        }
        self.look(world);
        while self.bytes_left > 0.0
            && let Some(at) = self.behind.pop()
        {
            let version = world.with_terrain(|terrain| terrain.version(at));
            if version == Some(self.known_version(at)) {
                continue;
            }
            match world.packed_chunk(at) {
                Some(packed) => self.send(at, packed, send),
                None => {
                    // Not kept yet, or enough for this tick: look again.
                    self.looked = None;
                    break;
                }
            }
        }
    }

    fn send(&mut self, chunk: ChunkPos, packed: (u32, Arc<[u8]>), send: &mut dyn FnMut(ChunkData)) {
        let (version, bytes) = packed;
        self.bytes_left -= bytes.len() as f32 + 16.0;
        self.known.insert(chunk, version);
        send(ChunkData {
            at: ChunkVersion { chunk, version },
            zstd: bytes.to_vec(),
        });
    }

    fn known_version(&self, at: ChunkPos) -> u32 {
        self.known.get(&at).copied().unwrap_or(0)
    }

    /// Finds the chunks that are behind, if that can have changed.
    fn look(&mut self, world: &World) {
        let Some(eye) = world.character(self.player).map(|c| c.feet) else {
            return;
        };
        let (news, tick) = (world.borrow_state().ground.news, world.tick());
        let holds = self.looked.is_some_and(|(seen, from, at)| {
            let same = seen == news && (eye - from).length() < LOOK_AGAIN_M;
            // Many look in turn, and not in every tick.
            same || tick.saturating_sub(at) < LOOK_TICKS
        });
        if holds {
            return;
        }
        self.looked = Some((news, eye, tick));
        let state = world.borrow_state();
        let told = state.ground.told.iter();
        let stale = told.filter(|(at, (version, _))| *version != self.known_version(**at));
        let reach = Reach::of(&state, self.player);
        let mut behind: Vec<(f32, ChunkPos)> = stale
            .filter_map(|(at, _)| Some((reach.as_ref()?.distance(*at)?, *at)))
            .collect();
        behind.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
        self.behind = behind.into_iter().map(|(_, at)| at).collect();
    }
}

/// The versions that a JSON client is told of in its snapshots.
#[derive(Default)]
pub(crate) struct VersionsView {
    /// Where the game sets a radius: the changed chunks that are in reach, and
    /// the tick of the first snapshot since they are.
    entered: BTreeMap<ChunkPos, u32>,
}

impl VersionsView {
    /// What the snapshot of this tick tells a client that has the baseline:
    /// chunks that have changed since, and those that have come into reach.
    pub fn after(
        &mut self,
        world: &World,
        player: PlayerNumber,
        tick: u32,
        baseline: Option<u32>,
    ) -> Vec<ChunkVersion> {
        let state = world.borrow_state();
        if state.updates.policy.radius.is_none() {
            return world.terrain_versions_after(baseline);
        }
        let Some(reach) = Reach::of(&state, player) else {
            return Vec::new();
        };
        let mut news = Vec::new();
        for (&chunk, &(version, since)) in &state.ground.told {
            if reach.distance(chunk).is_none() {
                self.entered.remove(&chunk);
                continue;
            }
            let entered = *self.entered.entry(chunk).or_insert(tick);
            if baseline.is_none_or(|baseline| since.max(entered) > baseline) {
                news.push(ChunkVersion { chunk, version });
            }
        }
        news
    }
}

/// How far a player is told of the ground.
struct Reach<'world> {
    grid: &'world Grid,
    eye: Vec3,
    /// On the level, as far as the squares of the interest go; at any height,
    /// because whoever falls is at the bottom soon.
    level_m: f32,
}

impl<'world> Reach<'world> {
    /// None for somebody who is not there, and where there is no ground.
    fn of(state: &'world WorldState, player: PlayerNumber) -> Option<Self> {
        let grid = state.collision.terrain()?.grid();
        // From the middle of a chunk to its corner.
        let half_m = grid.chunk_m() * std::f32::consts::FRAC_1_SQRT_2;
        let radius = state.updates.policy.radius;
        Some(Self {
            grid,
            eye: state.players.get(&player)?.character.feet,
            level_m: radius.map_or(FAR_M, |radius| radius + AHEAD_M + half_m),
        })
    }

    /// How far away the middle of a chunk is; none when it is out of reach.
    fn distance(&self, at: ChunkPos) -> Option<f32> {
        let way = Vec3::from(self.grid.middle_of_chunk(at)) - self.eye;
        let level = Vec3::new(way.x, 0.0, way.z).length();
        let away = way.length();
        (away <= FAR_M && level <= self.level_m).then_some(away)
    }
}
