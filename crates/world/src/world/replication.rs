//! Replication: the views of clients, taken from the collected changes.

use frolic_protocol::details::Details;
use frolic_protocol::terrain::{ChunkData, ChunkVersion};
use frolic_protocol::{EntityState, ServerMessage};
use frolic_terrain::{ChunkPos, Terrain};

use super::World;
use crate::entities::Entity;
use crate::interest::{ClientView, JsonView, Source};
use crate::player::PlayerNumber;
use crate::terrain::TerrainView;

impl World {
    /// Updates to each client per second.
    pub fn snapshot_hz(&self) -> u32 {
        self.replication.snapshot_hz
    }

    /// Whether a player's update falls on this tick.
    pub fn update_is_due(&self, player: PlayerNumber) -> bool {
        let time = self.state.borrow().space.time();
        self.replication.is_due(player, time)
    }

    /// Collects the changes of this tick for replication; call it after the
    /// step, in each tick with snapshots, before those.
    pub fn collect_changes(&mut self) {
        self.replication.collect(&mut self.state.borrow_mut());
    }

    /// Prefetch: reads a little of a player; the result is meaningless. A
    /// caller that processes many players calls it ahead for the next ones,
    /// because memory loads overlap.
    pub fn glance(&self, player: PlayerNumber) -> u32 {
        let state = self.state.borrow();
        let player = state.space.players.get(&player);
        player.map_or(0, |player| player.glance())
    }

    /// Encodes a client's next snapshot from the state of
    /// [`World::collect_changes`] and passes its packets to `send`. Under
    /// `pressure` (0 to 3) distant entities are sent less often.
    pub fn snapshot(&mut self, view: &mut ClientView, pressure: u8, send: &mut dyn FnMut(&[u8])) {
        let state = self.state.borrow();
        self.replication.snapshot(&state, view, pressure, send);
    }

    /// A JSON client's next snapshot from the state of
    /// [`World::collect_changes`]; none if the last ones have used up its
    /// budget.
    pub fn json_snapshot(&self, view: &mut JsonView) -> Option<String> {
        self.with_source(|source| view.next(source))
    }

    /// The replicated state of all entities, as of the last collection.
    pub fn replicated(&self) -> Vec<EntityState> {
        self.replication.cells.everything()
    }

    /// The entities that should be replicated to a player at their current
    /// place, in order of ids: cells within the radius, and entities that are
    /// replicated to all.
    pub fn visible_from(&self, player: PlayerNumber) -> Vec<EntityState> {
        self.with_source(|source| JsonView::new(player).seen(source))
    }

    /// The replicated details of an entity that are not in its definition.
    pub fn details_of(&self, id: u32) -> Option<Details> {
        let state = self.state.borrow();
        state.space.entities.get(id).map(Entity::details)
    }

    /// Whether only entities within a radius are replicated to players.
    pub fn is_near_only(&self) -> bool {
        self.replication.is_near_only()
    }

    /// Passes the terrain to `look`, if the world has one.
    pub fn with_terrain<T>(&self, look: impl FnOnce(&Terrain) -> T) -> Option<T> {
        self.state.borrow().space.collision.terrain().map(look)
    }

    /// The version of every changed chunk that may be replicated.
    pub fn terrain_versions(&self) -> Vec<ChunkVersion> {
        self.state.borrow().ground.versions_after(None)
    }

    fn with_source<T>(&self, read: impl FnOnce(Source) -> T) -> T {
        let state = self.state.borrow();
        read(Source {
            replication: &self.replication,
            state: &state,
        })
    }
}

impl ClientView {
    /// Sends what the client must receive before its next snapshot.
    pub fn introduce(&mut self, world: &World, send: &mut dyn FnMut(&ServerMessage)) {
        world.with_source(|source| self.introduce_from(source, send));
    }
}

impl JsonView {
    /// Sends what the client must receive besides its next snapshot.
    pub fn introduce(&mut self, world: &World, send: &mut dyn FnMut(&ServerMessage)) {
        world.with_source(|source| self.introduce_from(source, send));
    }
}

impl TerrainView {
    /// Whether an operation that changed these chunks is sent to this client.
    /// If so, it then has them in those versions, provided that it had the ones
    /// before.
    pub fn receives(&mut self, world: &World, chunks: &[ChunkVersion]) -> bool {
        self.takes(&world.state.borrow().space, chunks)
    }

    /// Whether this client may request a chunk: any, unless the game sets a
    /// radius of interest.
    pub fn may_ask(&self, world: &World, at: ChunkPos) -> bool {
        self.reaches(&world.state.borrow().space, at)
    }

    /// Sends the chunks that are due; call it once per tick. Not for clients
    /// whose connection is behind.
    pub fn next(&mut self, world: &mut World, send: &mut dyn FnMut(ChunkData)) {
        let mut state = world.state.borrow_mut();
        let state = &mut *state;
        self.send_due(&mut state.ground, &state.space, send);
    }
}
