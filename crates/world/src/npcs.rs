//! Non-player characters: they perceive, decide and walk.
//!
//! In each tick, in order of ids, an NPC whose turn it is perceives its
//! surroundings ([`perception`]), updates its state ([`mind`]), chooses a goal
//! ([`behaviour`]), finds a path to it ([`journey`], over [`crate::nav`]) and
//! takes a step ([`body`]) with the same function that moves players. Scripts
//! may take over ([`orders`]). NPCs do not collide with each other or with
//! players, as players do not, so a crowd never traps a player.

mod behaviour;
mod body;
mod hash;
mod journey;
mod mind;
mod orders;
mod perception;
mod report;

use std::collections::BTreeMap;

use frolic_protocol::npc::{NpcEvent, NpcState};
use frolic_protocol::{EntityState, ServerMessage};
use frolic_scene::{BodyKind, Npc as Settings, PatrolPoint};
use frolic_script::{NpcHappening, ScriptEvent};
use frolic_sim::{
    CharacterInput, CharacterState, Pose, Rotation, StepCache, Vec3, step_character_with,
};

use crate::entity::Entity;
use crate::nav::Nav;
use crate::nav::grid::{Ground, Role};
use crate::state::{Outgoing, WorldState};
use crate::trigger::Way;
use behaviour::Rounds;
use body::yaw_of;
use journey::Journey;
use orders::Orders;
use perception::{HIDDEN_TAG, Noticed, Person, RAYS_PER_LOOK_MAX, Senses};

pub use report::NpcReport;

/// NPCs of one world.
pub(crate) const NPCS_MAX: usize = 1000;
/// How often each NPC perceives its surroundings.
const LOOKS_PER_S: u32 = 10;
/// Rays of all NPCs in one tick; an NPC without a ray sees nothing new.
const RAYS_PER_TICK_MAX: u32 = 512;
/// Speed above walking that is loud, and landing speed that is loud.
const LOUD_MS: f32 = 1.0;
const LOUD_FALL_MS: f32 = 6.0;

/// One NPC.
pub(crate) struct Npc {
    pub entity: u32,
    pub settings: Settings,
    /// Cosine of half its field of view.
    sight_cos: f32,
    pub patrol: Vec<PatrolPoint>,
    /// Where it was placed, and which way it faced.
    home: Vec3,
    home_yaw: f32,
    pub character: CharacterState,
    step_cache: StepCache,
    input: CharacterInput,
    /// Its yaw in radians, and the yaw that it looks around from.
    pub yaw: f32,
    facing: f32,
    pub senses: Senses,
    pub state: NpcState,
    /// The state last reported to clients and scripts.
    reported: NpcState,
    /// The tick since which it is in that state.
    since: u32,
    rounds: Rounds,
    journey: Journey,
    pub orders: Orders,
    /// Whether scripts were notified of the journey's end.
    reported_arrival: bool,
    /// Its state as last replicated.
    shown: Option<EntityState>,
}

/// All NPCs of a world.
#[derive(Default)]
pub(crate) struct Npcs {
    pub all: BTreeMap<u32, Npc>,
    pub nav: Nav,
    /// Rays that were cast in the last tick.
    pub rays: u32,
}

/// What an NPC can query of the world around it.
pub(crate) struct Surroundings<'a> {
    tick: u32,
    tick_hz: u32,
    /// The place of the first entity with a name or tag.
    place_of: &'a dyn Fn(&str) -> Option<Vec3>,
}

impl Surroundings<'_> {
    fn ticks(&self, seconds: f32) -> u32 {
        (seconds * self.tick_hz as f32) as u32
    }
}

impl WorldState {
    /// Whether there is capacity for one more NPC.
    pub fn has_room_for_npc(&self) -> bool {
        self.npcs.all.len() < NPCS_MAX
    }

    /// Makes an entity with the component an NPC. In a scene with too many of
    /// them the last ones are not added.
    pub fn add_npc(&mut self, id: u32) {
        let Some(entity) = self.entities.get(&id) else {
            return;
        };
        let Some(settings) = entity.components.npc.as_ref() else {
            return;
        };
        if self.npcs.all.len() < NPCS_MAX {
            let yaw = yaw_of(entity.rotation);
            let npc = Npc::new(id, settings, entity.position, yaw, self.tick);
            self.npcs.all.insert(id, npc);
            self.replicate(id);
        }
    }

    /// Removes the NPC of an entity.
    pub fn remove_npc(&mut self, id: u32) {
        if self.npcs.all.remove(&id).is_some() {
            self.npcs.nav.cancel(id);
        }
    }

    /// Moves the NPC of an entity that was teleported.
    pub fn npc_placed(&mut self, id: u32, pose: &Pose) {
        if let Some(npc) = self.npcs.all.get_mut(&id) {
            npc.jump_to(pose, &mut self.npcs.nav);
            if let Some(entity) = self.entities.get_mut(&id) {
                entity.jumps = (entity.jumps + 1) & 3;
            }
        }
    }

    /// Invalidates paths around an entity whose solid is about to change, or
    /// has changed.
    pub fn solid_changed(&mut self, id: u32) {
        if !self.npcs.nav.is_empty()
            && let Some((low, high)) = self.collision.bounds_of(id)
            && self.role(id) != Role::Passing
        {
            self.npcs.nav.changed(low, high);
        }
    }

    /// The role of an entity's solid in path planning.
    fn role(&self, id: u32) -> Role {
        let body = |entity: &Entity| entity.components.body.map(|body| body.kind);
        match self.entities.get(&id).and_then(body) {
            Some(BodyKind::Dynamic) => Role::Passing,
            _ if self.moving.contains(&id) => Role::Passing,
            Some(BodyKind::Kinematic) => Role::Obstacle,
            _ => Role::Ground,
        }
    }

    /// Steps all NPCs: perception, decision, movement.
    pub fn step_npcs(&mut self) {
        for [low, high] in &self.ground.changes {
            self.npcs.nav.changed(Vec3::from(*low), Vec3::from(*high));
        }
        if self.npcs.all.is_empty() {
            return;
        }
        let mut npcs = std::mem::take(&mut self.npcs);
        let noticed = self.let_look(&mut npcs);
        self.let_think(&mut npcs);
        self.let_walk(&mut npcs);
        self.npcs = npcs;
        for (id, noticed) in noticed {
            self.events.push(happening(id, noticed));
        }
        self.settle_npcs();
    }

    /// Runs the perception of the NPCs whose turn it is.
    fn let_look(&self, npcs: &mut Npcs) -> Vec<(u32, Noticed)> {
        let people = self.people();
        let period = (self.tick_hz / LOOKS_PER_S).max(1);
        let seconds = period as f32 * self.dt();
        let mut found = Vec::new();
        let mut rays = 0;
        let mut look = |npc: &mut Npc| {
            let turn = self.tick.wrapping_add(npc.entity).is_multiple_of(period);
            if turn && rays + RAYS_PER_LOOK_MAX <= RAYS_PER_TICK_MAX {
                let noticed = npc.look_around(&people, &self.collision, seconds, &mut rays);
                let noticed = noticed.into_iter();
                found.extend(noticed.map(|noticed| (npc.entity, noticed)));
            }
        };
        // Alternately from both ends: when there are too many, none is always
        // last.
        match self.tick / period % 2 {
            0 => npcs.all.values_mut().for_each(&mut look),
            _ => npcs.all.values_mut().rev().for_each(&mut look),
        }
        npcs.rays = rays;
        found
    }

    /// The characters of players, as input of perception.
    fn people(&self) -> Vec<Person<'_>> {
        let here = self
            .players
            .values()
            .filter(|player| player.online && player.dead_until.is_none());
        let mut people = Vec::with_capacity(self.players.len());
        people.extend(here.filter_map(|player| {
            let entity = self.alive(player.entity)?;
            let speed = player.character.velocity;
            let level = Vec3::new(speed.x, 0.0, speed.z).length();
            let runs = player.character.grounded() && level > self.params.walk_speed + LOUD_MS;
            Some(Person {
                entity: player.entity,
                feet: player.character.feet,
                loud: runs || speed.y < -LOUD_FALL_MS,
                hidden: entity.tags.iter().any(|tag| tag == HIDDEN_TAG),
                team: player.team.as_deref(),
            })
        }));
        people
    }

    /// Updates the state of every NPC.
    fn let_think(&self, npcs: &mut Npcs) {
        let world = self.surroundings();
        for npc in npcs.all.values_mut() {
            let next = npc.think(&world);
            if next != npc.state {
                npc.enter(next, &mut npcs.nav, self.tick);
            }
        }
    }

    fn surroundings(&self) -> Surroundings<'_> {
        Surroundings {
            tick: self.tick,
            tick_hz: self.tick_hz,
            place_of: &|_| None,
        }
    }

    fn let_walk(&mut self, npcs: &mut Npcs) {
        let dt = self.dt();
        let role = |id: u32| self.role(id);
        let ground = Ground {
            solids: &self.collision,
            params: self.params,
            role: &role,
        };
        let place_of = |name: &str| {
            let id = *self.registry.named(name).first()?;
            Some(self.alive(id)?.position)
        };
        let world = Surroundings {
            place_of: &place_of,
            ..self.surroundings()
        };
        npcs.nav.begin_tick();
        for npc in npcs.all.values_mut() {
            npc.steer(&mut npcs.nav, &ground, &world, dt);
        }
        npcs.nav.work(&ground);
        let mut ways = std::mem::take(&mut self.ways);
        for (id, npc) in &mut npcs.all {
            let from = npc.character.feet;
            let params = npc.params(&self.params);
            step_character_with(
                &mut npc.step_cache,
                &self.collision,
                &params,
                &mut npc.character,
                &npc.input,
                dt,
            );
            ways.push(Way {
                entity: *id,
                from,
                to: npc.character.feet,
                radius: params.radius,
                height: params.height,
            });
        }
        self.ways = ways;
    }

    /// Copies the NPCs' poses to their entities, respawns those that fell out
    /// of the world, and notifies scripts of arrivals.
    fn settle_npcs(&mut self) {
        let kill_height = self.kill_height;
        let mut moved = Vec::with_capacity(self.npcs.all.len());
        let mut fallen = Vec::new();
        let mut changed = Vec::new();
        for (id, npc) in &mut self.npcs.all {
            let Some(entity) = self.entities.get_mut(id) else {
                continue;
            };
            if npc.character.feet.y < kill_height {
                fallen.push((*id, npc.home, npc.home_yaw));
            }
            // Once per tick, however often scripts change it.
            let before = std::mem::replace(&mut npc.reported, npc.state);
            if before != npc.state {
                changed.push((*id, before));
            }
            if let Some(reached) = npc.journey.ended()
                && !std::mem::replace(&mut npc.reported_arrival, true)
            {
                let what = NpcHappening::Arrived { reached };
                self.events.push(ScriptEvent::Npc { entity: *id, what });
            }
            if npc.journey.ended().is_none() {
                npc.reported_arrival = false;
            }
            let before = entity.pose();
            entity.position = npc.character.feet;
            entity.velocity = npc.character.velocity;
            entity.rotation = npc.rotation();
            let mut shown = entity.replicated();
            npc.dress(&mut shown);
            if npc.shown != Some(shown) {
                npc.shown = Some(shown);
                moved.push((*id, before));
            }
        }
        for (id, before) in moved {
            if let Some(place) = self.alive(id).map(|entity| entity.position) {
                self.registry.moved(id, place);
            }
            self.replicate(id);
            self.carry_children(id, before);
        }
        for (id, before) in changed {
            self.report_state(id, before);
        }
        for (id, home, yaw) in fallen {
            let turn = Rotation::from_xyzw(0.0, libm::sinf(yaw * 0.5), 0.0, libm::cosf(yaw * 0.5));
            self.place(id, Pose::from_parts(home, turn));
        }
    }

    /// Moves the children of an NPC.
    fn carry_children(&mut self, id: u32, before: Pose) {
        let Some(entity) = self.alive(id).filter(|entity| !entity.children.is_empty()) else {
            return;
        };
        let (now, children) = (entity.pose(), entity.children.clone());
        for child in children {
            if let Some(pose) = self.alive(child).map(Entity::pose) {
                self.place(child, now * (before.inverse() * pose));
            }
        }
    }

    /// Sends NPC_EVENT to scripts, and to clients that are near enough.
    fn report_state(&mut self, id: u32, before: NpcState) {
        let Some(npc) = self.npcs.all.get(&id) else {
            return;
        };
        let event = NpcEvent {
            entity: id,
            before,
            state: npc.state,
            target: npc.senses.target,
            suspicion: npc.senses.suspicion,
            position: npc.character.feet.to_array(),
        };
        let state = npc.state;
        let what = NpcHappening::StateChanged { state, before };
        self.events.push(ScriptEvent::Npc { entity: id, what });
        let (feet, policy) = (npc.character.feet, self.updates.policy);
        let present = self.players.values().filter(|player| player.online);
        let recipients = present.filter(|player| policy.reaches(player.character.feet, feet));
        self.outbox.extend(recipients.map(|player| Outgoing {
            to: Some(player.number),
            message: ServerMessage::Npc(event),
            reliable: true,
        }));
    }
}

fn happening(entity: u32, noticed: Noticed) -> ScriptEvent {
    let what = match noticed {
        Noticed::Saw(other) => NpcHappening::Saw { other },
        Noticed::Lost(other) => NpcHappening::Lost { other },
        Noticed::Caught(other) => NpcHappening::Caught { other },
    };
    ScriptEvent::Npc { entity, what }
}
