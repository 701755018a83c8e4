//! Angles in their network form: a 16-bit fraction of a turn.
//!
//! Client and server both compute with the rounded angle, never with the exact
//! one of the mouse, so that rounding cannot make them diverge.

use serde::{Deserialize, Serialize};

/// An angle in 1/65536 of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Angle(pub u16);

impl Angle {
    /// The nearest angle. Anything that is not finite becomes zero.
    pub fn from_radians(radians: f32) -> Self {
        if !radians.is_finite() {
            return Self(0);
        }
        let turns = f64::from(radians) / core::f64::consts::TAU;
        let fraction = turns - libm::floor(turns);
        Self((libm::round(fraction * 65536.0) as u32 & 0xffff) as u16)
    }

    /// In radians, from −π up to π.
    pub fn radians(self) -> f32 {
        f32::from(self.0 as i16) * (core::f32::consts::TAU / 65536.0)
    }

    /// Sine and cosine, bit-identical on every machine.
    pub fn sin_cos(self) -> (f32, f32) {
        let radians = self.radians();
        (libm::sinf(radians), libm::cosf(radians))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_stays_within_half_a_step() {
        for radians in [-3.1, -1.0, 0.0, 0.5, 3.0, 6.0, -9.0, 1e6] {
            let back = Angle::from_radians(radians).radians();
            let turns = (radians - back) / core::f32::consts::TAU;
            let error = (turns - turns.round()).abs();
            assert!(error < 1e-2, "{radians} came back as {back}");
        }
        assert_eq!(Angle::from_radians(f32::NAN), Angle(0));
    }
}
