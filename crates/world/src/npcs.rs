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
use frolic_scene::{Npc as Settings, PatrolPoint};
use frolic_script::{NpcHappening, ScriptEvent};
use frolic_sim::{
    CharacterInput, CharacterState, Pose, Rotation, StepCache, Vec3, step_character_with,
};

use crate::entities::Entity;
use crate::gait::Gait;
use crate::nav::Nav;
use crate::nav::grid::Ground;
use crate::player::PlayerNumber;
use crate::space::Space;
use crate::trigger::Way;
use behaviour::Rounds;
use body::yaw_of;
use journey::Journey;
use orders::Orders;
use perception::{HIDDEN_TAG, Noticed, Person, RAYS_PER_LOOK_MAX, Senses};

pub use report::NpcReport;

/// How often each NPC perceives its surroundings.
const LOOKS_PER_S: u32 = 10;
/// Rays of all NPCs in one tick; an NPC without a ray sees nothing new.
const RAYS_PER_TICK_MAX: u32 = 512;
/// Speed above walking that is loud, and landing speed that is loud.
const LOUD_MS: f32 = 1.0;
const LOUD_FALL_MS: f32 = 6.0;

/// One NPC.
struct Npc {
    pub entity: u32,
    pub settings: Settings,
    /// Cosine of half its field of view.
    sight_cos: f32,
    pub patrol: Vec<PatrolPoint>,
    /// Where it was placed, and which way it faced.
    home: Vec3,
    home_yaw: f32,
    gait: Gait,
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
    all: BTreeMap<u32, Npc>,
    nav: Nav,
    /// Rays that were cast in the last tick.
    rays: u32,
}

/// What an NPC can query of the world around it.
struct Surroundings<'a> {
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

impl Npcs {
    /// Starts to control an entity, if it is an NPC.
    pub fn add(&mut self, space: &Space, id: u32) {
        if let Some(entity) = space
            .entities
            .get(id)
            .filter(|_| space.entities.npcs().contains(&id))
            && let Some(settings) = entity.components.npc.as_ref()
        {
            let yaw = yaw_of(entity.rotation);
            let npc = Npc::new(id, settings, entity.position, yaw, space.tick);
            self.all.insert(id, npc);
        }
    }

    /// Stops controlling an entity.
    pub fn remove(&mut self, id: u32) {
        if self.all.remove(&id).is_some() {
            self.nav.cancel(id);
        }
    }

    /// Follows an entity that was put somewhere else.
    pub fn follow(&mut self, space: &mut Space, id: u32) {
        if let Some(npc) = self.all.get_mut(&id)
            && let Some(pose) = space.entities.get(id).map(Entity::pose)
        {
            npc.jump_to(&pose, &mut self.nav);
            space.entities.count_jump(id);
        }
    }

    /// Invalidates paths in a box in which something solid changed.
    pub fn solid_changed(&mut self, low: Vec3, high: Vec3) {
        self.nav.changed(low, high);
    }

    /// Rays that were cast in the last tick.
    pub fn rays(&self) -> u32 {
        self.rays
    }

    /// Steps all NPCs: perception, decision, movement. Terrain changed in these
    /// boxes.
    pub fn step(&mut self, space: &mut Space, changed: &[[[f32; 3]; 2]]) {
        for [low, high] in changed {
            self.nav.changed(Vec3::from(*low), Vec3::from(*high));
        }
        if self.all.is_empty() {
            return;
        }
        let noticed = self.let_look(space);
        self.let_think(space);
        self.let_plan(space);
        let happenings = noticed.into_iter();
        space
            .events
            .extend(happenings.map(|(id, noticed)| happening(id, noticed)));
        self.walk(space);
        space.entities.follow_solids(!self.nav.is_empty());
    }

    /// Runs the perception of the NPCs whose turn it is.
    fn let_look(&mut self, space: &Space) -> Vec<(u32, Noticed)> {
        let people = people(space);
        let period = (space.tick_hz / LOOKS_PER_S).max(1);
        let seconds = period as f32 * space.dt();
        let mut found = Vec::new();
        let mut rays = 0;
        let mut look = |npc: &mut Npc| {
            let turn = space.tick.wrapping_add(npc.entity).is_multiple_of(period);
            if turn && rays + RAYS_PER_LOOK_MAX <= RAYS_PER_TICK_MAX {
                let feet = space.entities.feet(npc.entity);
                let noticed = npc.look_around(feet, &people, &space.collision, seconds, &mut rays);
                let noticed = noticed.into_iter();
                found.extend(noticed.map(|noticed| (npc.entity, noticed)));
            }
        };
        // Alternately from both ends: when there are too many, none is always
        // last.
        match space.tick / period % 2 {
            0 => self.all.values_mut().for_each(&mut look),
            _ => self.all.values_mut().rev().for_each(&mut look),
        }
        self.rays = rays;
        found
    }

    /// Updates the state of every NPC.
    fn let_think(&mut self, space: &Space) {
        let world = surroundings(space, &|_| None);
        for npc in self.all.values_mut() {
            let next = npc.think(&world);
            if next != npc.state {
                npc.enter(next, &mut self.nav, space.tick);
            }
        }
    }

    /// Chooses the movement of every NPC.
    fn let_plan(&mut self, space: &Space) {
        let dt = space.dt();
        let role = |id: u32| space.role(id);
        let ground = Ground {
            solids: &space.collision,
            params: space.params,
            role: &role,
        };
        let place_of = |name: &str| space.entities.place_of(name);
        let world = surroundings(space, &place_of);
        self.nav.begin_tick();
        for npc in self.all.values_mut() {
            let feet = space.entities.feet(npc.entity);
            npc.steer(feet, &mut self.nav, &ground, &world, dt);
        }
        self.nav.work(&ground);
    }

    /// Moves all NPCs, respawns those that fell out of the world, and notifies
    /// scripts of arrivals.
    fn walk(&mut self, space: &mut Space) {
        let dt = space.dt();
        let mut moved = Vec::with_capacity(self.all.len());
        let mut fallen = Vec::new();
        let mut changed = Vec::new();
        for (id, npc) in &mut self.all {
            let params = npc.params(&space.params);
            let rotation = npc.rotation();
            let step = |character: &mut CharacterState| {
                let (cache, input) = (&mut npc.step_cache, &npc.input);
                step_character_with(cache, &space.collision, &params, character, input, dt);
            };
            let walked = space
                .entities
                .walk(*id, &mut npc.gait, Some(rotation), step);
            let Some((before, entity)) = walked else {
                continue;
            };
            let feet = entity.position;
            space.ways.push(Way {
                entity: *id,
                from: before.translation,
                to: feet,
                radius: params.radius,
                height: params.height,
            });
            let mut shown = entity.replicated();
            npc.dress(feet, &mut shown);
            if npc.shown != Some(shown) {
                npc.shown = Some(shown);
                moved.push((*id, before));
            }
            if feet.y < space.kill_height {
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
                space.events.push(ScriptEvent::Npc { entity: *id, what });
            }
            if npc.journey.ended().is_none() {
                npc.reported_arrival = false;
            }
        }
        for (id, before) in moved {
            space.entities.replicate(id);
            carry_children(space, id, before);
        }
        for (id, before) in changed {
            self.report_state(space, id, before);
        }
        for (id, home, yaw) in fallen {
            let turn = Rotation::from_xyzw(0.0, libm::sinf(yaw * 0.5), 0.0, libm::cosf(yaw * 0.5));
            space.place(id, Pose::from_parts(home, turn));
        }
    }

    /// Sends NPC_EVENT to scripts, and to clients that are near enough.
    fn report_state(&self, space: &mut Space, id: u32, before: NpcState) {
        let Some(npc) = self.all.get(&id) else {
            return;
        };
        let feet = space.entities.feet(id);
        let event = NpcEvent {
            entity: id,
            before,
            state: npc.state,
            target: npc.senses.target,
            suspicion: npc.senses.suspicion,
            position: feet.to_array(),
        };
        let state = npc.state;
        let what = NpcHappening::StateChanged { state, before };
        space.events.push(ScriptEvent::Npc { entity: id, what });
        let policy = space.updates.policy;
        let reached = space
            .online()
            .filter(|player| policy.reaches(space.feet_of(player), feet));
        let reached: Vec<PlayerNumber> = reached.map(|player| player.number).collect();
        for player in reached {
            space.outbox.send(Some(player), ServerMessage::Npc(event));
        }
    }

    /// Adds the NPC's part to the replicated state of its entity.
    pub fn dress(&self, entity: &Entity, state: &mut EntityState) -> bool {
        let npc = self.all.get(&entity.id);
        npc.inspect(|npc| npc.dress(entity.position, state))
            .is_some()
    }
}

/// The characters of players, as input of perception.
fn people(space: &Space) -> Vec<Person<'_>> {
    let here = space.players.values().filter(|player| player.is_living());
    let mut people = Vec::with_capacity(space.players.len());
    people.extend(here.filter_map(|player| {
        let entity = space.alive(player.entity)?;
        let speed = player.gait.velocity;
        let level = Vec3::new(speed.x, 0.0, speed.z).length();
        let runs = player.gait.grounded() && level > space.params.walk_speed + LOUD_MS;
        Some(Person {
            entity: player.entity,
            feet: entity.position,
            loud: runs || speed.y < -LOUD_FALL_MS,
            hidden: entity.tags.iter().any(|tag| tag == HIDDEN_TAG),
            team: player.style.team.as_deref(),
        })
    }));
    people
}

fn surroundings<'a>(space: &Space, place_of: &'a dyn Fn(&str) -> Option<Vec3>) -> Surroundings<'a> {
    Surroundings {
        tick: space.tick,
        tick_hz: space.tick_hz,
        place_of,
    }
}

/// Moves the children of an NPC.
fn carry_children(space: &mut Space, id: u32, before: Pose) {
    let Some(entity) = space.alive(id).filter(|entity| !entity.children.is_empty()) else {
        return;
    };
    let (now, children) = (entity.pose(), entity.children.clone());
    for child in children {
        if let Some(pose) = space.alive(child).map(Entity::pose) {
            space.place(child, now * (before.inverse() * pose));
        }
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
