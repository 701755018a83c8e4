//! A character as data: its parameters, a player's input for one tick, and the state that a step
//! changes.

use glamx::Vec3;
use serde::{Deserialize, Serialize};

use crate::EntityId;
use crate::angle::Angle;

/// Movement parameters. The same for all characters in a world.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CharacterParams {
    /// Radius of the capsule.
    pub radius: f32,
    /// From the feet to the top of the head.
    pub height: f32,
    /// Metres per second.
    pub walk_speed: f32,
    /// Metres per second.
    pub run_speed: f32,
    /// Upward metres per second at the start of a jump.
    pub jump_speed: f32,
    /// Metres per second squared, downwards.
    pub gravity: f32,
    /// Highest edge it steps onto; not more than the radius.
    pub step_height: f32,
    /// Cosine of the steepest slope it walks on.
    pub slope_cos_min: f32,
    /// Acceleration on the ground, in m/s².
    pub ground_acceleration: f32,
    /// Acceleration in the air, in m/s².
    pub air_acceleration: f32,
    /// Fastest fall, in m/s.
    pub fall_speed_max: f32,
}

impl Default for CharacterParams {
    fn default() -> Self {
        Self {
            radius: 0.4,
            height: 1.8,
            walk_speed: 5.0,
            run_speed: 8.0,
            jump_speed: 9.0,
            gravity: 25.0,
            step_height: 0.4,
            slope_cos_min: 0.7,
            ground_acceleration: 70.0,
            air_acceleration: 25.0,
            fall_speed_max: 60.0,
        }
    }
}

impl CharacterParams {
    /// All fields, for bitwise comparison.
    pub fn bits(&self) -> [u32; 11] {
        [
            self.radius,
            self.height,
            self.walk_speed,
            self.run_speed,
            self.jump_speed,
            self.gravity,
            self.step_height,
            self.slope_cos_min,
            self.ground_acceleration,
            self.air_acceleration,
            self.fall_speed_max,
        ]
        .map(f32::to_bits)
    }

    /// Whether a character can stand on a surface of this normal.
    pub fn walkable(&self, normal: Vec3) -> bool {
        normal.y >= self.slope_cos_min
    }
}

/// The buttons that a player holds, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buttons(pub u8);

impl Buttons {
    /// Jump, as long as it is held.
    pub const JUMP: Buttons = Buttons(1);
    /// Run instead of walk.
    pub const RUN: Buttons = Buttons(2);
    /// Fire the weapon or tool that the game provides.
    pub const FIRE: Buttons = Buttons(4);
    /// Use the entity in front.
    pub const INTERACT: Buttons = Buttons(8);

    /// Whether all of `other` are held.
    pub fn contains(self, other: Buttons) -> bool {
        self.0 & other.0 == other.0
    }

    /// The union of both.
    #[must_use]
    pub fn with(self, other: Buttons) -> Buttons {
        Buttons(self.0 | other.0)
    }
}

/// A player's input for one tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CharacterInput {
    /// To the right, −127…127.
    pub right: i8,
    /// Forward, −127…127.
    pub forward: i8,
    /// Where the camera looks; forward is towards it.
    pub yaw: Angle,
    /// Up and down.
    pub pitch: Angle,
    /// The held buttons.
    pub buttons: Buttons,
}

impl CharacterInput {
    /// The same view without movement or buttons.
    #[must_use]
    pub fn at_rest(self) -> Self {
        Self {
            yaw: self.yaw,
            pitch: self.pitch,
            ..Self::default()
        }
    }

    /// From the unit square of a stick or keys; longer input is clamped.
    pub fn new(right: f32, forward: f32, yaw: f32, pitch: f32, buttons: Buttons) -> Self {
        let axis = |x: f32| {
            if x.is_finite() {
                libm::roundf(x.clamp(-1.0, 1.0) * 127.0) as i8
            } else {
                0
            }
        };
        Self {
            right: axis(right),
            forward: axis(forward),
            yaw: Angle::from_radians(yaw),
            pitch: Angle::from_radians(pitch),
            buttons,
        }
    }

    /// Whether it does not move the character: view and fire have no effect on
    /// movement.
    pub fn wants_nothing(&self) -> bool {
        self.right == 0 && self.forward == 0 && !self.buttons.contains(Buttons::JUMP)
    }

    /// Walking direction in world space, of length at most one.
    pub fn direction(&self) -> Vec3 {
        let (right, forward) = (
            f32::from(self.right) / 127.0,
            f32::from(self.forward) / 127.0,
        );
        let length_sq = right * right + forward * forward;
        if length_sq == 0.0 {
            return Vec3::ZERO;
        }
        let scale = if length_sq > 1.0 {
            1.0 / length_sq.sqrt()
        } else {
            1.0
        };
        let (sin, cos) = self.yaw.sin_cos();
        Vec3::new(
            (right * cos - forward * sin) * scale,
            0.0,
            (-right * sin - forward * cos) * scale,
        )
    }
}

/// Everything that determines a character's next step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CharacterState {
    /// The lowest point of the capsule.
    pub feet: Vec3,
    /// Metres per second, relative to what carries it.
    pub velocity: Vec3,
    /// The normal of the ground while standing on it.
    pub ground_normal: Vec3,
    /// The entity it stands on.
    pub ground: Option<EntityId>,
    /// Ticks since it last stood on something, up to 255.
    pub air_ticks: u8,
}

impl CharacterState {
    /// At rest in the air at `feet`.
    pub fn at(feet: Vec3) -> Self {
        Self {
            feet,
            velocity: Vec3::ZERO,
            ground_normal: Vec3::Y,
            ground: None,
            air_ticks: u8::MAX,
        }
    }

    /// Whether it stands on something.
    pub fn grounded(&self) -> bool {
        self.ground.is_some()
    }
}
