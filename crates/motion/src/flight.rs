//! A projectile as data: how its kind flies, and where it is.

use glamx::Vec3;
use serde::{Deserialize, Serialize};

/// Flight parameters of a kind of projectile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlightParams {
    /// Metres per second squared, downwards.
    pub gravity: f32,
    /// Metres.
    pub radius: f32,
    /// Fraction of the speed that remains after a bounce, 0 to 1.
    pub bounce: f32,
}

/// A projectile in flight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flight {
    /// Its centre.
    pub position: Vec3,
    /// Metres per second.
    pub velocity: Vec3,
    /// Remaining bounces.
    pub bounces: u8,
}
