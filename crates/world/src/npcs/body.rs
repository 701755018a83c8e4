//! The body of one NPC: turns goals into movement.

use frolic_protocol::entity::{EntityKind, flags};
use frolic_protocol::npc::{Mood, NpcState};
use frolic_protocol::{EntityState, quantize};
use frolic_scene::Npc as Settings;
use frolic_sim::{
    Angle, Buttons, CharacterInput, CharacterParams, Pose, Rotation, StepCache, Vec3,
};

use super::behaviour::{Gaze, Rounds};
use super::journey::{Here, Journey};
use super::mind::{self, Facts};
use super::orders::Orders;
use super::perception::Senses;
use super::{Npc, Surroundings};
use crate::gait::Gait;
use crate::nav::grid::Ground;
use crate::nav::{Nav, Step};

/// Turn rate in radians per second, calm and excited.
const TURNS: (f32, f32) = (3.5, 9.0);
/// Height of a ledge that requires a jump, and the distance to jump from.
const JUMP_RISE_M: f32 = 0.3;
const JUMP_FROM_M: f32 = 1.9;

impl Npc {
    pub fn new(entity: u32, settings: &Settings, feet: Vec3, yaw: f32, tick: u32) -> Self {
        let half = (settings.field_of_view * 0.5).to_radians();
        Self {
            entity,
            sight_cos: libm::cosf(half.clamp(0.0, core::f32::consts::PI)),
            patrol: settings.patrol.clone(),
            settings: settings.clone(),
            home: feet,
            home_yaw: yaw,
            gait: Gait::default(),
            step_cache: StepCache::default(),
            input: CharacterInput::default(),
            yaw,
            facing: yaw,
            senses: Senses::default(),
            state: NpcState::Idle,
            reported: NpcState::Idle,
            since: tick,
            rounds: Rounds::default(),
            journey: Journey::default(),
            orders: Orders::default(),
            reported_arrival: false,
            shown: None,
        }
    }

    pub fn state_seconds(&self, world: &Surroundings) -> f32 {
        world.tick.saturating_sub(self.since) as f32 / world.tick_hz as f32
    }

    pub fn forward(&self) -> Vec3 {
        Vec3::new(-libm::sinf(self.yaw), 0.0, -libm::cosf(self.yaw))
    }

    pub fn think(&self, world: &Surroundings) -> NpcState {
        if self.orders.takes_over() {
            return self.orders.state.unwrap_or(self.state);
        }
        mind::next(
            self.state,
            &Facts {
                suspicion: self.senses.suspicion,
                sees: self.senses.sees,
                unseen_s: self.senses.unseen_s,
                in_state_s: self.state_seconds(world),
                search_s: self.settings.search_time,
                journey_over: self.journey.ended().is_some(),
            },
        )
    }

    /// Enters another state, which starts a new journey.
    pub fn enter(&mut self, state: NpcState, nav: &mut Nav, tick: u32) {
        self.state = state;
        self.since = tick;
        self.journey.stop(nav, self.entity);
        self.reported_arrival = false;
        self.rounds.waited = 0;
        self.rounds.spot = None;
    }

    /// Computes the movement input of this tick.
    pub fn steer(
        &mut self,
        feet: Vec3,
        nav: &mut Nav,
        ground: &Ground,
        world: &Surroundings,
        dt: f32,
    ) {
        let wish = self.wish(feet, world);
        let here = Here {
            who: self.entity,
            feet,
            tick: world.tick,
            tick_hz: world.tick_hz,
            sees_goal: self.senses.sees && self.state == NpcState::Chase,
        };
        let step = match wish.goal {
            Some((goal, runs)) => {
                self.journey.aim(nav, goal, runs, &here);
                self.journey.walk(nav, ground, &here)
            }
            None => {
                self.journey.stop(nav, self.entity);
                None
            }
        };
        self.input = step.map_or_else(CharacterInput::default, |step| self.walk_input(feet, step));
        let excited = matches!(self.state, NpcState::Alert | NpcState::Chase);
        let to = match (wish.look, step) {
            (Gaze::At(place), _) => direction(place - feet),
            (Gaze::Around(..), Some(step)) => {
                let course = direction(step.place - feet);
                self.facing = course.unwrap_or(self.facing);
                course
            }
            (Gaze::Around(middle, (side, seconds)), None) => {
                // It holds each direction for a while: a head that turns
                // constantly costs bandwidth.
                let quarter = (self.state_seconds(world) / seconds * 4.0) as usize;
                Some(middle + [0.0, side, 0.0, -side][quarter % 4])
            }
        };
        if let Some(to) = to {
            let speed = if excited { TURNS.1 } else { TURNS.0 };
            self.yaw = turned(self.yaw, to, speed * dt);
        }
    }

    fn walk_input(&self, feet: Vec3, step: Step) -> CharacterInput {
        let way = step.place - feet;
        let Some(yaw) = direction(way) else {
            return CharacterInput::default();
        };
        let mut buttons = Buttons::default();
        if self.journey.runs {
            buttons = buttons.with(Buttons::RUN);
        }
        let near = Vec3::new(way.x, 0.0, way.z).length() < JUMP_FROM_M;
        if step.leap && way.y > JUMP_RISE_M && near && self.gait.grounded() {
            buttons = buttons.with(Buttons::JUMP);
        }
        CharacterInput::new(0.0, 1.0, yaw, 0.0, buttons)
    }

    pub fn params(&self, world: &CharacterParams) -> CharacterParams {
        CharacterParams {
            walk_speed: self.settings.walk_speed,
            run_speed: self.settings.run_speed,
            ..*world
        }
    }

    pub fn rotation(&self) -> Rotation {
        Rotation::from_xyzw(
            0.0,
            libm::sinf(self.yaw * 0.5),
            0.0,
            libm::cosf(self.yaw * 0.5),
        )
    }

    /// Adds the NPC's part to the replicated state of its entity.
    pub fn dress(&self, feet: Vec3, state: &mut EntityState) {
        state.kind = EntityKind::Character;
        state.rotation = quantize::ROTATION_NONE;
        state.position = quantize::position(feet);
        state.velocity = quantize::velocity(self.gait.velocity);
        state.look = quantize::look(Angle::from_radians(self.yaw).0, 0);
        state.mood = Mood::new(self.state, self.senses.suspicion);
        if self.gait.grounded() {
            state.flags |= flags::GROUNDED;
        }
    }

    /// Teleports it.
    pub fn jump_to(&mut self, pose: &Pose, nav: &mut Nav) {
        self.gait = Gait::default();
        self.yaw = yaw_of(pose.rotation);
        self.facing = self.yaw;
        self.journey.stop(nav, self.entity);
    }
}

/// The yaw that faces along `way`; none for length zero.
fn direction(way: Vec3) -> Option<f32> {
    let level = way.x * way.x + way.z * way.z;
    (level > 1e-6).then(|| libm::atan2f(-way.x, -way.z))
}

pub fn yaw_of(rotation: Rotation) -> f32 {
    direction(rotation * -Vec3::Z).unwrap_or(0.0)
}

/// Turns from an angle towards another by at most `most`.
fn turned(from: f32, to: f32, most: f32) -> f32 {
    let tau = core::f32::consts::TAU;
    let mut by = libm::fmodf(to - from, tau);
    if by > tau * 0.5 {
        by -= tau;
    } else if by < -tau * 0.5 {
        by += tau;
    }
    let yaw = libm::fmodf(from + by.clamp(-most, most), tau);
    if yaw.is_finite() { yaw } else { 0.0 }
}
