//! The state of a walking character apart from its position, which only its
//! entity has.

use frolic_sim::{CharacterState, Vec3};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Gait {
    /// Metres per second, relative to what carries it.
    pub velocity: Vec3,
    ground_normal: Vec3,
    /// The entity it stands on.
    pub ground: Option<u32>,
    air_ticks: u8,
}

impl Default for Gait {
    /// At rest in the air.
    fn default() -> Self {
        Self::of(&CharacterState::at(Vec3::ZERO))
    }
}

impl Gait {
    pub fn of(character: &CharacterState) -> Self {
        let CharacterState {
            feet: _,
            velocity,
            ground_normal,
            ground,
            air_ticks,
        } = *character;
        Self {
            velocity,
            ground_normal,
            ground,
            air_ticks,
        }
    }

    /// The whole state of the character.
    pub fn at(&self, feet: Vec3) -> CharacterState {
        CharacterState {
            feet,
            velocity: self.velocity,
            ground_normal: self.ground_normal,
            ground: self.ground,
            air_ticks: self.air_ticks,
        }
    }

    /// Whether it stands on something.
    pub fn grounded(&self) -> bool {
        self.ground.is_some()
    }
}
