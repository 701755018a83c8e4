//! Seeded random numbers that are the same everywhere: PCG-XSH-RR 64/32.

use crate::shape::Shape;
use crate::{Rotation, Vec3};

/// A stream of random numbers; equal seeds give equal streams.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

const MULTIPLIER: u64 = 6_364_136_223_846_793_005;
const INCREMENT: u64 = 1_442_695_040_888_963_407;

impl Random {
    /// Starts the stream of `seed`.
    pub fn new(seed: u64) -> Self {
        let mut random = Self {
            state: seed.wrapping_add(INCREMENT),
        };
        random.next_u32();
        random
    }

    /// The next number.
    pub fn next_u32(&mut self) -> u32 {
        let old = self.state;
        self.state = old.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT);
        let shifted = (((old >> 18) ^ old) >> 27) as u32;
        shifted.rotate_right((old >> 59) as u32)
    }

    /// A number from 0 up to 1.
    pub fn unit(&mut self) -> f32 {
        (self.next_u32() >> 8) as f32 / 16_777_216.0
    }

    /// A number from `low` up to `high`.
    pub fn range(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * self.unit()
    }

    /// An integer below `count`; zero if `count` is zero.
    pub fn below(&mut self, count: u32) -> u32 {
        ((u64::from(self.next_u32()) * u64::from(count)) >> 32) as u32
    }

    /// A solid of any kind, with sizes from `low` up to `high`.
    pub fn shape(&mut self, low: f32, high: f32) -> Shape {
        let mut size = || self.range(low, high);
        let (half, radius) = (Vec3::new(size(), size(), size()), size());
        let half_height = half.y;
        match self.below(5) {
            0 => Shape::Sphere(radius),
            1 => Shape::Capsule {
                half_height,
                radius,
            },
            2 => Shape::Cylinder {
                half_height,
                radius,
            },
            3 => Shape::Wedge(half),
            _ => Shape::Box(half),
        }
    }

    /// Any rotation; not uniformly distributed.
    pub fn rotation(&mut self) -> Rotation {
        let mut part = || self.range(-1.0, 1.0);
        Rotation::from_xyzw(part(), part(), part(), part() + 1.5).normalize()
    }

    /// A rotation as in typical scenes: one in three upright, one rotated about
    /// the vertical, one arbitrary.
    pub fn stance(&mut self) -> Rotation {
        match self.below(3) {
            0 => Rotation::IDENTITY,
            1 => Rotation::from_xyzw(0.0, self.range(-1.0, 1.0), 0.0, self.range(1.0, 3.0))
                .normalize(),
            _ => self.rotation(),
        }
    }
}
