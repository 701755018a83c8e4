//! What one client has of the terrain, and what it is sent next: operations as
//! they happen, and chunks that differ from what the client generates itself,
//! nearest first, within a byte rate.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use frolic_protocol::terrain::{ChunkData, ChunkVersion};
use frolic_sim::Vec3;
use frolic_terrain::{ChunkPos, Grid};

use super::Ground;
use crate::player::PlayerNumber;
use crate::space::Space;

/// Bytes of chunks for one client per second, in addition to its snapshots.
const BYTES_PER_S: f32 = 96.0 * 1024.0;
/// Bytes that may accumulate.
const SAVED_BYTES: f32 = 48.0 * 1024.0;
/// Chunks beyond this distance are not sent, because they are not visible.
const FAR_M: f32 = 384.0;
/// Added to the game's radius, because the terrain must have arrived before a
/// character that runs or falls stands on it.
const AHEAD_M: f32 = 2.0 * LOOK_AGAIN_M;
/// Chunk requests that a client may have pending.
const WISHES_MAX: usize = 256;
/// Distance after which a client has other chunks near.
const LOOK_AGAIN_M: f32 = 12.0;
/// Ticks between two searches for outdated chunks.
const LOOK_TICKS: u32 = 12;

/// One client's view of the terrain. The connection must preserve the order of
/// messages.
pub struct TerrainView {
    player: PlayerNumber,
    /// Versions that the client has; all other chunks are as generated.
    known: BTreeMap<ChunkPos, u32>,
    /// Chunks that it requested.
    wishes: VecDeque<ChunkPos>,
    /// Outdated chunks, the nearest last.
    behind: Vec<ChunkPos>,
    /// State at the last search: the world's terrain news, viewpoint, tick.
    looked: Option<(u64, Vec3, u32)>,
    bytes_left: f32,
    tick: u32,
    /// False for clients that do not generate terrain and request every chunk
    /// they want.
    pushes: bool,
}

impl TerrainView {
    /// The view of a client that has only the scene, and generates its terrain
    /// from that.
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

    /// The view of a client that receives chunks only on request.
    pub fn asking(player: PlayerNumber) -> Self {
        Self {
            pushes: false,
            ..Self::new(player)
        }
    }

    /// Whether an operation that changed these chunks is sent to this client.
    /// If so, it then has them in those versions, provided that it had the ones
    /// before.
    pub(crate) fn takes(&mut self, space: &Space, chunks: &[ChunkVersion]) -> bool {
        let near = |reach: Reach| chunks.iter().any(|at| reach.distance(at.chunk).is_some());
        if !Reach::of(space, self.player).is_some_and(near) {
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

    /// Whether this client may request a chunk: any, unless the game sets a
    /// radius of interest.
    pub(crate) fn reaches(&self, space: &Space, at: ChunkPos) -> bool {
        space.updates.policy.radius.is_none()
            || Reach::of(space, self.player).is_some_and(|reach| reach.distance(at).is_some())
    }

    /// Queues a client's request for a chunk. False if too many are pending.
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

    /// Sends the chunks that are due; call it once per tick. Not for clients
    /// whose connection is behind.
    pub(crate) fn send_due(
        &mut self,
        ground: &mut Ground,
        space: &Space,
        send: &mut dyn FnMut(ChunkData),
    ) {
        let (tick, tick_hz) = space.time();
        let passed = tick.saturating_sub(self.tick) as f32 / tick_hz as f32;
        self.tick = tick;
        self.bytes_left = (self.bytes_left + passed * BYTES_PER_S).min(SAVED_BYTES);
        // A chunk that is requested repeatedly is sent only once per round.
        for _ in 0..self.wishes.len() {
            if self.bytes_left <= 0.0 {
                return;
            }
            let Some(at) = self.wishes.pop_front() else {
                break;
            };
            match ground.packed_chunk(space, at) {
                Some(packed) => self.send(at, packed, send),
                None => self.wishes.push_back(at),
            }
        }
        if !self.pushes {
            return;
        }
        self.look(ground, space);
        while self.bytes_left > 0.0
            && let Some(at) = self.behind.pop()
        {
            let version = space.collision.terrain().map(|terrain| terrain.version(at));
            if version == Some(self.known_version(at)) {
                continue;
            }
            match ground.packed_chunk(space, at) {
                Some(packed) => self.send(at, packed, send),
                None => {
                    // Not stored yet, or over this tick's budget: search again.
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

    /// Finds the outdated chunks, if that can have changed.
    fn look(&mut self, ground: &Ground, space: &Space) {
        let Some(player) = space.players.get(&self.player) else {
            return;
        };
        let (revision, tick, eye) = (ground.revision, space.tick, space.feet_of(player));
        let holds = self.looked.is_some_and(|(seen, from, at)| {
            let same = seen == revision && (eye - from).length() < LOOK_AGAIN_M;
            // Searches of many clients are spread over ticks.
            same || tick.saturating_sub(at) < LOOK_TICKS
        });
        if holds {
            return;
        }
        self.looked = Some((revision, eye, tick));
        let replicable = ground.replicable.iter();
        let stale = replicable.filter(|(at, (version, _))| *version != self.known_version(**at));
        let reach = Reach::of(space, self.player);
        let mut behind: Vec<(f32, ChunkPos)> = stale
            .filter_map(|(at, _)| Some((reach.as_ref()?.distance(*at)?, *at)))
            .collect();
        behind.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
        self.behind = behind.into_iter().map(|(_, at)| at).collect();
    }
}

/// The chunk versions that a JSON client receives in its snapshots.
#[derive(Default)]
pub(crate) struct VersionsView {
    /// With a radius of interest: the changed chunks in range, and the tick of
    /// the first snapshot since they are.
    entered: BTreeMap<ChunkPos, u32>,
}

impl VersionsView {
    /// The versions in this tick's snapshot for a client with the baseline:
    /// chunks that changed since, and those that came into range.
    pub fn after(
        &mut self,
        (ground, space): (&Ground, &Space),
        player: PlayerNumber,
        tick: u32,
        baseline: Option<u32>,
    ) -> Vec<ChunkVersion> {
        if space.updates.policy.radius.is_none() {
            return ground.versions_after(baseline);
        }
        let Some(reach) = Reach::of(space, player) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for (&chunk, &(version, since)) in &ground.replicable {
            if reach.distance(chunk).is_none() {
                self.entered.remove(&chunk);
                continue;
            }
            let entered = *self.entered.entry(chunk).or_insert(tick);
            if baseline.is_none_or(|baseline| since.max(entered) > baseline) {
                found.push(ChunkVersion { chunk, version });
            }
        }
        found
    }
}

/// The range in which terrain is replicated to a player.
struct Reach<'space> {
    grid: &'space Grid,
    eye: Vec3,
    /// Horizontally, as far as the cells of interest; at any height, because a
    /// falling character is soon at the bottom.
    level_m: f32,
}

impl<'space> Reach<'space> {
    /// None for a player who is not in the world, and without terrain.
    fn of(space: &'space Space, player: PlayerNumber) -> Option<Self> {
        let grid = space.collision.terrain()?.grid();
        // From the centre of a chunk to its corner.
        let half_m = grid.chunk_m() * std::f32::consts::FRAC_1_SQRT_2;
        let radius = space.updates.policy.radius;
        Some(Self {
            grid,
            eye: space.feet_of(space.players.get(&player)?),
            level_m: radius.map_or(FAR_M, |radius| radius + AHEAD_M + half_m),
        })
    }

    /// The distance of a chunk's centre; none if it is out of range.
    fn distance(&self, at: ChunkPos) -> Option<f32> {
        let way = Vec3::from(self.grid.middle_of_chunk(at)) - self.eye;
        let level = Vec3::new(way.x, 0.0, way.z).length();
        let away = way.length();
        (away <= FAR_M && level <= self.level_m).then_some(away)
    }
}
