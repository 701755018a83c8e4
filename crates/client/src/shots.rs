//! Shots as this client shows them. The server sends where a shot began and what it
//! hit; in between it is simulated here, with the server's own function.
//!
//! Own shots appear in the step that fires them, before the server knows, and are
//! simulated in the own character's time; the server's message then replaces them.
//! Shots of others are simulated in the time in which others are drawn.

use std::collections::BTreeMap;

use frolic_protocol::projectile::{Launch, ProjectileHit, Weapon};
use frolic_sim::flight::{self, EYE_HEIGHT_M};
use frolic_sim::{
    Buttons, CharacterInput, CharacterParams, CollisionWorld, Flight, FlightParams, Sweeper, Vec3,
    capsule,
};

use crate::drawn::{Drawn, DrawnKind};
use crate::event::ClientEvent;

/// Shots that are shown at a time.
const SHOTS_MAX: usize = 4_096;
const WEAPONS_MAX: usize = 1_024;
const ARMED_MAX: usize = 100_000;
/// Fire rates are counted in this fraction of a tick, as on the server.
const PER_TICK: u64 = 256;
/// An own shot that the server has not confirmed this many inputs later was not
/// fired there.
const UNCONFIRMED_INPUTS: u32 = 40;
/// Input numbers by which server and client may differ about a shot.
const SAME_SHOT_INPUTS: u32 = 20;
/// Steps of one shot in one frame; a page that was suspended longer skips the rest.
const STEPS_PER_FRAME: u32 = 120;
/// Ticks that a shot which ended here waits for the server's result.
const VERDICT_TICKS: f64 = 60.0;
/// An impact that was shown already is not shown again within this distance.
const SAME_PLACE_M: f32 = 0.75;

/// A shot, ready to draw.
#[derive(Clone, Copy, Debug)]
pub struct DrawnShot {
    /// Stays the same while it is drawn.
    pub key: u32,
    /// Number of its weapon.
    pub weapon: u16,
    /// Whether this player fired it.
    pub own: bool,
    /// Where.
    pub position: Vec3,
    /// Metres per second.
    pub velocity: Vec3,
}

/// The clock that a shot is drawn by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clock {
    Own,
    Others,
}

struct Shot {
    key: u32,
    /// The server's number; none while only this client knows the shot.
    id: Option<u32>,
    /// Number of the own input that fired it.
    input: u32,
    weapon: u16,
    shooter: u32,
    clock: Clock,
    params: FlightParams,
    /// As it is at the end of `tick`, and where it was a tick before.
    flight: Flight,
    before: Vec3,
    tick: u32,
    last_tick: u32,
    /// Whether the host was notified that it began.
    begun: bool,
    /// The server's result.
    verdict: Option<ProjectileHit>,
    /// Where it ended here, if it did.
    stopped: Option<Stop>,
}

#[derive(Clone, Copy)]
struct Stop {
    tick: u32,
    point: Vec3,
    normal: Vec3,
    /// On a solid, which is shown at once; hits on characters are up to the server.
    solid: bool,
    shown: bool,
}

/// Where the two clocks are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    pub own_tick: f64,
    pub others_tick: f64,
}

/// All shots of this client.
#[derive(Default)]
pub(crate) struct Shots {
    weapons: BTreeMap<u16, Weapon>,
    /// The weapon of each player.
    armed: BTreeMap<u32, u16>,
    flying: Vec<Shot>,
    next_key: u32,
    /// When the own weapon may fire again, in 1/256 of a tick.
    ready: u64,
    drawn: Vec<DrawnShot>,
}

impl Shots {
    pub fn define(&mut self, weapon: Weapon) -> Option<ClientEvent> {
        let sound = weapon.speed.is_finite() && weapon.flight.gravity.is_finite();
        let room = self.weapons.len() < WEAPONS_MAX || self.weapons.contains_key(&weapon.index);
        if !sound || !room {
            return None;
        }
        self.weapons.insert(weapon.index, weapon.clone());
        Some(ClientEvent::Weapon(weapon))
    }

    pub fn arm(&mut self, player: u32, weapon: Option<u16>) -> ClientEvent {
        match weapon {
            Some(weapon) if self.armed.len() < ARMED_MAX => self.armed.insert(player, weapon),
            _ => self.armed.remove(&player),
        };
        ClientEvent::Armed { player, weapon }
    }

    /// The weapon of this player.
    fn weapon_of(&self, player: u32) -> Option<&Weapon> {
        self.weapons.get(self.armed.get(&player)?)
    }

    /// A predicted step of the own character, which may fire.
    pub fn own_step(
        &mut self,
        player: u32,
        entity: u32,
        (input_number, tick): (u32, u32),
        input: &CharacterInput,
        feet: Vec3,
    ) {
        if !input.buttons.contains(Buttons::FIRE) {
            return;
        }
        let now = u64::from(tick) * PER_TICK;
        // A clock that was set back would block the weapon for long.
        let interval = match self.weapon_of(player) {
            Some(weapon) => u64::from(weapon.interval),
            None => return,
        };
        self.ready = self.ready.min(now + interval);
        if self.ready > now || self.flying.len() >= SHOTS_MAX {
            return;
        }
        let Some(weapon) = self.weapon_of(player) else {
            return;
        };
        let position = feet + Vec3::Y * EYE_HEIGHT_M;
        let shot = Shot {
            key: self.next_key,
            id: None,
            input: input_number,
            weapon: weapon.index,
            shooter: entity,
            clock: Clock::Own,
            params: weapon.flight,
            flight: Flight {
                position,
                velocity: flight::direction(input.yaw, input.pitch) * weapon.speed,
                bounces: weapon.ricochets,
            },
            before: position,
            tick,
            last_tick: tick.saturating_add(weapon.life_ticks),
            begun: false,
            verdict: None,
            stopped: None,
        };
        self.ready = self.ready.max(now.saturating_sub(PER_TICK - 1)) + interval;
        self.next_key = self.next_key.wrapping_add(1);
        self.flying.push(shot);
    }

    /// The server has used own inputs up to this one.
    pub fn acknowledged(&mut self, input: u32) {
        self.flying.retain(|shot| {
            let waits = shot.id.is_none() && input.saturating_sub(shot.input) > UNCONFIRMED_INPUTS;
            !waits
        });
    }

    pub fn launched(&mut self, launches: Vec<Launch>) {
        for launch in launches.into_iter().filter(Launch::is_sound) {
            let known = self.flying.iter().any(|shot| shot.id == Some(launch.id));
            if known || self.flying.len() >= SHOTS_MAX {
                continue;
            }
            let Some(weapon) = self.weapons.get(&launch.weapon) else {
                continue;
            };
            let flight = launch.flight();
            let predicted = self.flying.iter_mut().find(|shot| {
                launch.input != 0
                    && shot.id.is_none()
                    && shot.weapon == launch.weapon
                    && shot.input.abs_diff(launch.input) <= SAME_SHOT_INPUTS
            });
            if let Some(shot) = predicted {
                shot.id = Some(launch.id);
                shot.flight = flight;
                shot.before = flight.position;
                shot.tick = launch.tick;
                shot.last_tick = launch.last_tick;
                continue;
            }
            let own = launch.input != 0;
            self.flying.push(Shot {
                key: self.next_key,
                id: Some(launch.id),
                input: launch.input,
                weapon: launch.weapon,
                shooter: launch.shooter,
                clock: if own { Clock::Own } else { Clock::Others },
                params: weapon.flight,
                flight,
                before: flight.position,
                tick: launch.tick,
                last_tick: launch.last_tick,
                begun: false,
                verdict: None,
                stopped: None,
            });
            self.next_key = self.next_key.wrapping_add(1);
        }
    }

    /// Applies the server's hits. Returns impacts of shots that were never shown
    /// here, which are shown at once.
    pub fn ended(&mut self, hits: Vec<ProjectileHit>, own_entity: u32) -> Vec<ClientEvent> {
        let mut unknown = Vec::new();
        for hit in hits {
            let sound = hit.point.iter().chain(&hit.normal).all(|x| x.is_finite());
            if !sound {
                continue;
            }
            match self.flying.iter_mut().find(|shot| shot.id == Some(hit.id)) {
                Some(shot) => shot.verdict = Some(hit),
                None if hit.met => unknown.push(impact(&hit, own_entity)),
                None => {}
            }
        }
        unknown
    }

    /// Simulates all shots up to now. Returns which began and which ended.
    pub fn advance(
        &mut self,
        now: Now,
        dt: f32,
        (own_entity, params): (u32, &CharacterParams),
        solids: &CollisionWorld,
        others: &[Drawn],
    ) -> Vec<ClientEvent> {
        let mut events = Vec::new();
        self.drawn.clear();
        if self.flying.is_empty() {
            return events;
        }
        let mut sweeper = Sweeper::new(solids);
        let drawn = &mut self.drawn;
        self.flying.retain_mut(|shot| {
            let at = match shot.clock {
                Clock::Own => now.own_tick.max(f64::from(shot.tick)),
                Clock::Others => now.others_tick,
            };
            let own = shot.shooter == own_entity;
            if !shot.begun {
                if shot.clock == Clock::Others && at < f64::from(shot.tick) {
                    return true;
                }
                shot.begun = true;
                events.push(ClientEvent::Shot {
                    weapon: shot.weapon,
                    own,
                    shooter: shot.shooter,
                    position: shot.flight.position,
                    velocity: shot.flight.velocity,
                });
            }
            shot.fly_to(at, dt, &mut sweeper, params, others);
            if shot.is_over(at, own_entity, &mut events) {
                return false;
            }
            drawn.extend(shot.drawn_at(at, own));
            true
        });
        events
    }

    /// What to draw, as of the last [`Shots::advance`].
    pub fn drawn(&self) -> &[DrawnShot] {
        &self.drawn
    }
}

impl Shot {
    /// Simulates as many steps as needed to draw it at this moment.
    fn fly_to(
        &mut self,
        at: f64,
        dt: f32,
        sweeper: &mut Sweeper,
        params: &CharacterParams,
        others: &[Drawn],
    ) {
        for _ in 0..STEPS_PER_FRAME {
            let done = f64::from(self.tick) >= at || self.tick >= self.last_tick;
            if done || self.stopped.is_some() {
                return;
            }
            self.before = self.flight.position;
            let legs = flight::step_flight(sweeper, &self.params, &mut self.flight, &[], dt);
            self.tick += 1;
            if let Some(solid) = flight::is_over(&self.flight, &legs) {
                self.stopped = Some(Stop {
                    tick: self.tick,
                    point: self.flight.position,
                    normal: solid.normal,
                    solid: true,
                    shown: false,
                });
            }
            if self.clock == Clock::Own && self.meets_any(params, others) {
                self.stopped = Some(Stop {
                    tick: self.tick,
                    point: self.before,
                    normal: Vec3::Y,
                    solid: false,
                    shown: false,
                });
            }
        }
        // The page was suspended: the path meanwhile is not shown.
        self.last_tick = self.tick;
    }

    /// Whether the last step went through a character as drawn: the server decides
    /// what really happened.
    fn meets_any(&self, params: &CharacterParams, others: &[Drawn]) -> bool {
        let way = self.flight.position - self.before;
        let Some(along) = way.try_normalize() else {
            return false;
        };
        let (wide, tall) = (
            params.radius + self.params.radius,
            params.height + 2.0 * self.params.radius,
        );
        let characters = others
            .iter()
            .filter(|other| other.kind == DrawnKind::Character && !other.own);
        characters.into_iter().any(|other| {
            let lowest = other.position - Vec3::Y * self.params.radius;
            let hit = capsule::cast(self.before, along, lowest, wide, tall);
            hit.is_some_and(|(distance, _)| distance <= way.length())
        })
    }

    /// Whether there is nothing left to show; adds its impact to `events`.
    fn is_over(&mut self, at: f64, own_entity: u32, events: &mut Vec<ClientEvent>) -> bool {
        let shown_at = self
            .stopped
            .filter(|stop| stop.shown)
            .map(|stop| stop.point);
        if let Some(hit) = self.verdict.filter(|hit| at >= f64::from(hit.tick)) {
            let point = Vec3::from(hit.point);
            let again = shown_at.is_some_and(|shown| (shown - point).length() < SAME_PLACE_M);
            if hit.met && !again {
                events.push(impact(&hit, own_entity));
            }
            return true;
        }
        if let Some(stop) = &mut self.stopped {
            if stop.solid && !stop.shown && at >= f64::from(stop.tick) {
                stop.shown = true;
                events.push(ClientEvent::Impact {
                    weapon: self.weapon,
                    own: self.shooter == own_entity,
                    target: 0,
                    point: stop.point,
                    normal: stop.normal,
                });
            }
            return at > f64::from(stop.tick) + VERDICT_TICKS;
        }
        self.tick >= self.last_tick && at >= f64::from(self.last_tick)
    }

    fn drawn_at(&self, at: f64, own: bool) -> Option<DrawnShot> {
        if self.stopped.is_some_and(|stop| at >= f64::from(stop.tick)) {
            return None;
        }
        let share = (at - f64::from(self.tick) + 1.0).clamp(0.0, 1.0) as f32;
        Some(DrawnShot {
            key: self.key,
            weapon: self.weapon,
            own,
            position: self.before + (self.flight.position - self.before) * share,
            velocity: self.flight.velocity,
        })
    }
}

fn impact(hit: &ProjectileHit, own_entity: u32) -> ClientEvent {
    ClientEvent::Impact {
        weapon: hit.weapon,
        own: hit.shooter == own_entity,
        target: hit.target,
        point: hit.point.into(),
        normal: hit.normal.into(),
    }
}
