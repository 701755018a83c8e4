//! What to draw: others a little in the past, smoothly, whatever the network does.
//!
//! Snapshots are shown at a constant distance behind the server. That
//! distance follows the jitter of their arrival, and the playback clock
//! approaches its target by running slightly faster or slower, never by jumping.

use std::collections::HashMap;

use frolic_protocol::EntityState;
use frolic_protocol::entity::{EntityKind, flags};
use frolic_sim::{Angle, Rotation, Vec3};

use crate::replication::Replication;

/// What an entity is drawn as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrawnKind {
    /// A player's character.
    Character,
    /// Anything else.
    Thing,
}

/// One entity, ready to draw.
#[derive(Clone, Copy, Debug)]
pub struct Drawn {
    /// Its network id.
    pub id: u32,
    /// What it is.
    pub kind: DrawnKind,
    /// 0 for an entity of the scene, else its definition.
    pub definition: u16,
    /// Whether a character stands.
    pub grounded: bool,
    /// Whether it is this client's own character.
    pub own: bool,
    /// Where; of a character, its feet.
    pub position: Vec3,
    /// How it is turned.
    pub rotation: Rotation,
    /// Metres per second.
    pub velocity: Vec3,
    /// Where a character looks, in radians.
    pub yaw: f32,
    /// Up and down, in radians.
    pub pitch: f32,
}

/// Past the newest snapshot, things go straight on for this long, then stop.
const EXTRAPOLATION_MAX_S: f64 = 0.25;
/// A clock that is wrong by more than this jumps.
const CLOCK_JUMP_S: f64 = 0.5;

pub(crate) struct Playback {
    tick_s: f64,
    snapshot_s: f64,
    /// Smoothed arrival time of tick zero, and how much arrivals scatter.
    origin_s: Option<f64>,
    jitter_s: f64,
    shown_tick: f64,
    last_s: Option<f64>,
    /// How much of the own time each ridden platform is drawn in, 0 to 1.
    lead: HashMap<u32, f32>,
}

impl Playback {
    pub fn new(tick_hz: u32, snapshot_hz: u32) -> Self {
        Self {
            tick_s: 1.0 / f64::from(tick_hz.max(1)),
            snapshot_s: 1.0 / f64::from(snapshot_hz.max(1)),
            origin_s: None,
            jitter_s: 0.0,
            shown_tick: 0.0,
            last_s: None,
            lead: HashMap::new(),
        }
    }

    /// Notes when a snapshot came.
    pub fn arrived(&mut self, tick: u32, now_ms: f64) {
        let origin = now_ms / 1000.0 - f64::from(tick) * self.tick_s;
        let known = *self.origin_s.get_or_insert(origin);
        let late_by = origin - known;
        self.jitter_s += (late_by.abs() - self.jitter_s) * 0.05;
        self.origin_s = Some(known + late_by * 0.1);
    }

    pub fn jitter_ms(&self) -> f64 {
        self.jitter_s * 1000.0
    }

    /// The tick that others are shown at; none before the first snapshot.
    pub fn shown_tick(&self) -> Option<f64> {
        self.last_s.map(|_| self.shown_tick)
    }

    /// How far behind the server others are shown: one snapshot to move
    /// towards, and room for the scatter of the next.
    pub fn delay_s(&self) -> f64 {
        (self.snapshot_s * 1.5 + self.jitter_s * 2.5).clamp(self.snapshot_s * 1.5, 0.5)
    }

    fn advance(&mut self, now_ms: f64) {
        let now_s = now_ms / 1000.0;
        let Some(origin) = self.origin_s else {
            return;
        };
        let target = (now_s - origin - self.delay_s()) / self.tick_s;
        let elapsed = (now_s - self.last_s.unwrap_or(now_s)).max(0.0);
        self.last_s = Some(now_s);
        let error_s = (target - self.shown_tick) * self.tick_s - elapsed;
        if error_s.abs() > CLOCK_JUMP_S {
            self.shown_tick = target;
        } else {
            let rate = 1.0 + (error_s * 2.0).clamp(-0.1, 0.1);
            self.shown_tick += elapsed * rate / self.tick_s;
        }
    }

    /// What to draw at `now_ms`, the own character aside. `own_tick` is the
    /// tick the own character is shown at, `ground` what it stands on: a
    /// platform under our feet is drawn in our time, not in the past.
    pub fn frame(
        &mut self,
        replication: &Replication,
        now_ms: f64,
        own_id: u32,
        own_tick: f64,
        ground: Option<u32>,
        out: &mut Vec<Drawn>,
    ) {
        let frame_s = (now_ms / 1000.0 - self.last_s.unwrap_or(now_ms / 1000.0)).max(0.0);
        self.advance(now_ms);
        let tick = self.shown_tick;
        let (before, after) = replication.around(tick);
        let Some(shown) = after.or(before) else {
            return;
        };
        for state in &shown.entities {
            if state.id == own_id || state.has(flags::DESTROYED) {
                continue;
            }
            let mut drawn = match (before, after) {
                (Some(before), Some(after)) => {
                    let span = f64::from(after.tick - before.tick);
                    let fraction = ((tick - f64::from(before.tick)) / span) as f32;
                    match find(&before.entities, state.id) {
                        Some(old) => between(old, state, fraction),
                        None => drawn(state),
                    }
                }
                (Some(last), None) => {
                    let ahead_s = (tick - f64::from(last.tick)) * self.tick_s;
                    let mut drawn = drawn(state);
                    if state.kind == EntityKind::Character || state.motion.is_none() {
                        drawn.position +=
                            drawn.velocity * ahead_s.clamp(0.0, EXTRAPOLATION_MAX_S) as f32;
                    }
                    drawn
                }
                _ => drawn(state),
            };
            if let Some(motion) = &state.motion {
                let lead = self.lead.entry(state.id).or_insert(0.0);
                let wanted = if ground == Some(state.id) { 1.0 } else { 0.0 };
                *lead += (wanted - *lead) * (1.0 - (-12.0 * frame_s as f32).exp());
                let at = tick + (own_tick - tick) * f64::from(*lead);
                drawn.position = motion.position_between(at);
            }
            out.push(drawn);
        }
    }
}

fn find(entities: &[EntityState], id: u32) -> Option<&EntityState> {
    let index = entities.binary_search_by_key(&id, |state| state.id).ok()?;
    entities.get(index)
}

fn drawn(state: &EntityState) -> Drawn {
    let character = state.kind == EntityKind::Character;
    Drawn {
        id: state.id,
        kind: if character {
            DrawnKind::Character
        } else {
            DrawnKind::Thing
        },
        definition: state.definition,
        grounded: state.has(flags::GROUNDED),
        own: false,
        position: state.place(),
        rotation: state.turn(),
        velocity: state.speed(),
        yaw: Angle(state.look[0]).radians(),
        pitch: Angle(state.look[1]).radians(),
    }
}

fn between(old: &EntityState, new: &EntityState, fraction: f32) -> Drawn {
    let (a, mut b) = (drawn(old), drawn(new));
    if (old.flags ^ new.flags) & flags::JUMPS == 0 {
        b.position = a.position + (b.position - a.position) * fraction;
    }
    b.rotation = a.rotation.slerp(b.rotation, fraction);
    b.velocity = a.velocity + (b.velocity - a.velocity) * fraction;
    let turn = Angle(new.look[0].wrapping_sub(old.look[0])).radians();
    b.yaw = a.yaw + turn * fraction;
    b
}
