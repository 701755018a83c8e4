//! Quantization of positions, velocities and rotations for the wire.

use frolic_motion::{Angle, Pose, Rotation, Vec3};

/// Steps per metre: positions are accurate to 2 mm.
const POSITION_SCALE: f32 = 256.0;
/// Steps per metre per second.
const VELOCITY_SCALE: f32 = 64.0;
/// Positions beyond this are clamped; about 8 km.
pub const POSITION_MAX: f32 = 8_000.0;

/// Quantizes a position.
pub fn position(place: Vec3) -> [i32; 3] {
    place
        .to_array()
        .map(|c| (c.clamp(-POSITION_MAX, POSITION_MAX) * POSITION_SCALE).round() as i32)
}

/// The position from its quantized form.
pub fn position_back(steps: [i32; 3]) -> Vec3 {
    Vec3::from(steps.map(|c| c as f32 / POSITION_SCALE))
}

/// Quantizes a velocity.
pub fn velocity(velocity: Vec3) -> [i16; 3] {
    velocity
        .to_array()
        .map(|c| (c * VELOCITY_SCALE).round() as i16)
}

/// A velocity after a turn by this many 1/65536 of a turn, seen from above and
/// counter-clockwise.
pub fn turned(velocity: [i16; 3], by: u16) -> [i16; 3] {
    let (sin, cos) = Angle(by).sin_cos();
    let [x, z] = [velocity[0], velocity[2]].map(f32::from);
    let (x, z) = (x * cos + z * sin, z * cos - x * sin);
    [x.round() as i16, velocity[1], z.round() as i16]
}

/// The displacement after `ticks` in which the velocity changed evenly from one to
/// another, in steps. As in the simulation, each tick moves by its new velocity.
pub fn carried_on(
    position: [i32; 3],
    [from, to]: [[i16; 3]; 2],
    ticks: u32,
    tick_hz: u32,
) -> [i32; 3] {
    const STEPS_PER_SPEED: i64 = (POSITION_SCALE / VELOCITY_SCALE) as i64;
    const STEPS_MAX: i64 = (POSITION_MAX * POSITION_SCALE) as i64;
    if ticks == 0 {
        return position;
    }
    // Twice the mean speed times ticks: the sum of an arithmetic series.
    let (ticks, halves) = (i64::from(ticks), 2 * i64::from(tick_hz.max(1)));
    std::array::from_fn(|axis| {
        let (from, to) = (i64::from(from[axis]), i64::from(to[axis]));
        let way = (from * (ticks - 1) + to * (ticks + 1)) * STEPS_PER_SPEED;
        let there = i64::from(position[axis]) + (way + halves / 2).div_euclid(halves);
        there.clamp(-STEPS_MAX, STEPS_MAX) as i32
    })
}

/// The velocity from its quantized form.
pub fn velocity_back(steps: [i16; 3]) -> Vec3 {
    Vec3::from(steps.map(|c| f32::from(c) / VELOCITY_SCALE))
}

/// Quantizes a character's look, yaw and pitch in 1/65536 of a turn: to 1/4096 and
/// 1/512 of a turn. Interpolation hides the steps.
pub fn look(yaw: u16, pitch: u16) -> [u16; 2] {
    [yaw & !0xf, pitch & !0x7f]
}

const ROTATION_BITS: u32 = 10;
const ROTATION_MAX: f32 = core::f32::consts::FRAC_1_SQRT_2;
/// Half of the steps on either side of zero, which is a step of its own: the
/// identity, and rotations about one axis only, stay exact.
const ROTATION_HALF: u32 = (1 << (ROTATION_BITS - 1)) - 1;
const ROTATION_STEPS: f32 = (2 * ROTATION_HALF) as f32;

/// The quantized form of the identity.
pub const ROTATION_NONE: u32 =
    0b11 << 30 | ROTATION_HALF << 20 | ROTATION_HALF << 10 | ROTATION_HALF;

/// Quantizes a rotation to its three smallest components of 10 bits each; the
/// largest follows from the unit length. Among components that are equal except for
/// rounding it is always the last, so that quantization is idempotent.
pub fn rotation(rotation: Rotation) -> u32 {
    const STEP: f32 = 2.0 * ROTATION_MAX / ROTATION_STEPS;
    let parts = rotation.normalize().to_array();
    let size = parts.iter().fold(0.0f32, |size, part| size.max(part.abs()));
    let as_large = |part: &f32| part.abs() > size - STEP;
    let largest = parts.iter().rposition(as_large).unwrap_or(3);
    let sign = if parts[largest] < 0.0 { -1.0 } else { 1.0 };
    let mut packed = largest as u32;
    for (_, part) in parts.iter().enumerate().filter(|(i, _)| *i != largest) {
        let unit = (part * sign / ROTATION_MAX * 0.5 + 0.5).clamp(0.0, 1.0);
        packed = (packed << ROTATION_BITS) | (unit * ROTATION_STEPS).round() as u32;
    }
    packed
}

/// The rotation from its quantized form.
pub fn rotation_back(packed: u32) -> Rotation {
    let largest = (packed >> (3 * ROTATION_BITS)) as usize & 3;
    let mut parts = [0.0f32; 4];
    let mut shift = 3 * ROTATION_BITS;
    let mut sum = 0.0;
    for (_, part) in parts.iter_mut().enumerate().filter(|(i, _)| *i != largest) {
        shift -= ROTATION_BITS;
        let steps = (packed >> shift) & ((1 << ROTATION_BITS) - 1);
        *part = (steps as f32 / ROTATION_STEPS * 2.0 - 1.0) * ROTATION_MAX;
        sum += *part * *part;
    }
    parts[largest] = (1.0 - sum).max(0.0).sqrt();
    Rotation::from_array(parts).normalize()
}

/// A pose after quantization, as a client has it; see [`pose_back`].
pub fn pose(pose: &Pose, home: Option<&Pose>) -> Pose {
    pose_back(position(pose.translation), rotation(pose.rotation), home)
}

/// The pose from its quantized form. An entity of the scene file has its `home`
/// there: all clients have that exactly, so it replaces every pose that is
/// quantized to the same.
pub fn pose_back(place: [i32; 3], turn: u32, home: Option<&Pose>) -> Pose {
    let at_home = home.filter(|home| position(home.translation) == place);
    let as_home = home.filter(|home| rotation(home.rotation) == turn);
    Pose::from_parts(
        at_home.map_or_else(|| position_back(place), |home| home.translation),
        as_home.map_or_else(|| rotation_back(turn), |home| home.rotation),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rotations_come_back_close(x in -1.0f32..1.0, y in -1.0f32..1.0, z in -1.0f32..1.0, w in -1.0f32..1.0) {
            prop_assume!(x * x + y * y + z * z + w * w > 0.01);
            let original = Rotation::from_xyzw(x, y, z, w).normalize();
            let back = rotation_back(rotation(original));
            // Three components are accurate to half a step each, and the largest is
            // off by the sum of them when all four are alike: 0.28°.
            prop_assert!(original.dot(back).abs() > 0.999_997 - f32::EPSILON);
        }

        #[test]
        fn a_rotation_about_y_is_not_tilted(yaw in -10.0f32..10.0) {
            let back = rotation_back(rotation(Rotation::from_rotation_y(yaw)));
            prop_assert_eq!((back.x, back.z), (0.0, 0.0));
            prop_assert_eq!(rotation_back(rotation(back)), back, "and stays as it is");
        }

        #[test]
        fn what_is_at_home_but_for_rounding_is_exactly_there(x in -9.0f32..9.0, yaw in -3.0f32..3.0) {
            let home = Pose::from_parts(Vec3::new(x, -x, 0.53), Rotation::from_rotation_y(yaw));
            prop_assert_eq!(pose(&pose(&home, None), Some(&home)), home);
            let moved = Pose::from_parts(home.translation + Vec3::X, home.rotation);
            let known = pose(&moved, Some(&home));
            prop_assert_eq!(known.translation, pose(&moved, None).translation);
            prop_assert_eq!(known.rotation, home.rotation);
        }

        #[test]
        fn positions_come_back_close(x in -7_000.0f32..7_000.0) {
            let back = position_back(position(Vec3::new(x, -x, 0.0)));
            prop_assert!((back - Vec3::new(x, -x, 0.0)).length() < 0.004);
        }
    }

    #[test]
    fn no_rotation_is_what_it_says() {
        assert_eq!(rotation(Rotation::IDENTITY), ROTATION_NONE);
        assert_eq!(rotation_back(ROTATION_NONE), Rotation::IDENTITY);
    }

    #[test]
    fn a_turning_character_walks_where_it_looks() {
        let ahead = |yaw: Angle| {
            let (sin, cos) = yaw.sin_cos();
            velocity(Vec3::new(-sin, 0.0, -cos) * 5.0)
        };
        for (yaw, by) in [(0, 700), (9_000, 33_000), (60_000, 50_000)] {
            let walks_on = turned(ahead(Angle(yaw)), by);
            let there = ahead(Angle(yaw.wrapping_add(by)));
            let off = |axis: usize| walks_on[axis].abs_diff(there[axis]);
            assert!(off(0) <= 1 && off(2) <= 1, "{walks_on:?} {there:?}");
        }
        assert_eq!(turned([i16::MAX, 3, i16::MAX], 8_192)[..2], [i16::MAX, 3]);
    }

    #[test]
    fn a_fall_is_foreseen_once_its_speed_is_known() {
        // 0.5 m/s faster with each of three ticks, and as far as that takes.
        let way = -(0.5 + 1.0 + 1.5) / 60.0;
        let [from, to] = [0.0, -1.5].map(|y| velocity(Vec3::new(4.0, y, 0.0)));
        let there = carried_on([0, 100, 0], [from, to], 3, 60);
        let fallen = (way * POSITION_SCALE).round() as i32;
        assert_eq!(there, [51, 100 + fallen, 0]);
        assert_eq!(carried_on([7; 3], [from, to], 0, 60), [7; 3], "no time");
    }

    #[test]
    fn garbage_does_not_leave_the_range() {
        assert_eq!(position(Vec3::splat(f32::MAX))[0], 2_048_000);
        assert_eq!(position(Vec3::splat(f32::NAN))[0], 0);
        assert_eq!(velocity(Vec3::splat(1e9))[0], i16::MAX);
        assert!(rotation_back(u32::MAX).is_finite());
    }
}
