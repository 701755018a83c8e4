//! Projectile flight: one step of a point with gravity, swept against every
//! solid in its path, bit-identical on the server and in browsers.
//!
//! The centre of a projectile is swept, so no wall is too thin and no speed too
//! high. Its radius keeps it that far off the surfaces it hits, and makes
//! characters easier to hit.

use frolic_motion::{Angle, EntityId, Flight, FlightParams, Vec3};

use crate::collision::RayHit;
use crate::sweep::Sweeper;

/// Height of a character's eyes, the origin of its shots.
pub const EYE_HEIGHT_M: f32 = 1.55;
/// Bounces per step; in a corner the projectile then rests.
const BOUNCES_PER_STEP: usize = 4;
/// A bouncing projectile is placed this far off the surface, or the next ray
/// would start inside.
const OFF_SURFACE_M: f32 = 1e-3;
/// Below this sine of the angle to a surface the radius moves the hit no
/// further back along the path.
const SLANT_MIN: f32 = 0.25;
/// Below this speed it does not bounce any more.
const BOUNCE_SPEED_MIN: f32 = 0.5;

/// A straight segment of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Leg {
    /// Where it begins.
    pub from: Vec3,
    /// Where it ends.
    pub to: Vec3,
    /// Fractions of the step at both ends, 0 to 1.
    pub share: (f32, f32),
    /// The solid at its end.
    pub hit: Option<RayHit>,
}

/// The straight segments of a step; more than one only after a bounce.
#[derive(Clone, Copy, Debug, Default)]
pub struct Legs {
    legs: [Option<Leg>; BOUNCES_PER_STEP + 1],
    count: usize,
}

impl Legs {
    fn push(&mut self, leg: Leg) {
        if let Some(place) = self.legs.get_mut(self.count) {
            *place = Some(leg);
            self.count += 1;
        }
    }

    /// In order.
    pub fn iter(&self) -> impl Iterator<Item = &Leg> {
        self.legs.iter().flatten()
    }
}

/// The view direction.
pub fn direction(yaw: Angle, pitch: Angle) -> Vec3 {
    let (yaw_sin, yaw_cos) = yaw.sin_cos();
    let (pitch_sin, pitch_cos) = pitch.sin_cos();
    Vec3::new(-yaw_sin * pitch_cos, pitch_sin, -yaw_cos * pitch_cos)
}

/// Moves a projectile by one step. If the last leg has a hit, it hit a solid
/// that it does not bounce off, and the flight is over.
pub fn step_flight(
    sweeper: &mut Sweeper,
    params: &FlightParams,
    flight: &mut Flight,
    except: &[EntityId],
    dt: f32,
) -> Legs {
    let mut legs = Legs::default();
    flight.velocity.y -= params.gravity * dt;
    let mut begun = 0.0f32;
    for _ in 0..=BOUNCES_PER_STEP {
        let left = 1.0 - begun;
        let way = flight.velocity * (dt * left);
        let Some(along) = way.try_normalize() else {
            break;
        };
        let length = way.length();
        let from = flight.position;
        let ahead = along * (length + params.radius / SLANT_MIN);
        let hit = sweeper.meet(from, from + ahead, except);
        // Position of the centre when its sphere touches the surface.
        let met = hit.and_then(|hit| {
            let slant = (-along.dot(hit.normal)).max(SLANT_MIN);
            let distance = (hit.distance - params.radius / slant).max(0.0);
            (distance <= length).then_some((hit, distance))
        });
        let Some((hit, distance)) = met else {
            flight.position += way;
            legs.push(Leg {
                from,
                to: flight.position,
                share: (begun, 1.0),
                hit: None,
            });
            break;
        };
        let to = from + along * distance;
        let ended = begun + left * (distance / length);
        flight.position = to;
        legs.push(Leg {
            from,
            to,
            share: (begun, ended),
            hit: Some(hit),
        });
        let into = flight.velocity.dot(hit.normal);
        let slow = flight.velocity.length() * params.bounce < BOUNCE_SPEED_MIN;
        if flight.bounces == 0 || slow {
            flight.bounces = 0;
            break;
        }
        flight.bounces -= 1;
        if into < 0.0 {
            flight.velocity = (flight.velocity - hit.normal * (2.0 * into)) * params.bounce;
        }
        flight.position = to + hit.normal * OFF_SURFACE_M;
        begun = ended;
        if begun >= 1.0 {
            break;
        }
    }
    legs
}

/// The hit that ended a flight in this step, if it did.
pub fn is_over(flight: &Flight, legs: &Legs) -> Option<RayHit> {
    let last = legs.iter().last()?;
    last.hit
        .filter(|_| flight.bounces == 0 && last.to == flight.position)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CollisionWorld, Pose, Shape};

    const DT: f32 = 1.0 / 60.0;

    fn params() -> FlightParams {
        FlightParams {
            gravity: 0.0,
            radius: 0.0,
            bounce: 0.8,
        }
    }

    /// A wall of a centimetre at x = 20, and a floor.
    fn room() -> CollisionWorld {
        let mut world = CollisionWorld::new();
        let thin = Shape::Box(Vec3::new(0.005, 50.0, 50.0));
        world.insert(1, thin, Pose::translation(20.0, 0.0, 0.0));
        let ground = Shape::Box(Vec3::new(100.0, 0.5, 100.0));
        world.insert(2, ground, Pose::translation(0.0, -0.5, 0.0));
        world
    }

    fn fly(world: &CollisionWorld, params: &FlightParams, flight: &mut Flight) -> Option<RayHit> {
        let mut sweeper = Sweeper::new(world);
        for _ in 0..600 {
            let legs = step_flight(&mut sweeper, params, flight, &[], DT);
            if let Some(hit) = is_over(flight, &legs) {
                return Some(hit);
            }
        }
        None
    }

    #[test]
    fn no_speed_gets_through_a_thin_wall() {
        let world = room();
        for speed in [0.5, 10.0, 500.0, 2_000.0, 100_000.0] {
            for start in 0..20 {
                let mut flight = Flight {
                    position: Vec3::new(19.9 - start as f32 * 0.37, 2.0, 0.0),
                    velocity: Vec3::X * speed,
                    bounces: 0,
                };
                let hit = fly(&world, &params(), &mut flight);
                if let Some(hit) = hit {
                    assert_eq!(hit.entity, 1);
                    assert!(flight.position.x < 20.0, "{}", flight.position.x);
                } else {
                    assert!(speed < 1.0, "a fast one arrives");
                }
            }
        }
    }

    #[test]
    fn a_ball_stops_its_radius_before_the_wall() {
        let params = FlightParams {
            radius: 0.3,
            ..params()
        };
        let mut flight = Flight {
            position: Vec3::new(0.0, 2.0, 0.0),
            velocity: Vec3::X * 70.0,
            bounces: 0,
        };
        assert!(fly(&room(), &params, &mut flight).is_some());
        assert!((flight.position.x - 19.695).abs() < 1e-3, "{flight:?}");
    }

    #[test]
    fn it_bounces_as_often_as_it_may_and_stays_above_the_ground() {
        let params = FlightParams {
            gravity: 20.0,
            radius: 0.1,
            bounce: 0.9,
        };
        let mut flight = Flight {
            position: Vec3::Y * 3.0,
            velocity: Vec3::new(3.0, 0.0, 1.0),
            bounces: 3,
        };
        let world = room();
        let mut sweeper = Sweeper::new(&world);
        let mut bounced = 0;
        for _ in 0..600 {
            let before = flight.bounces;
            let legs = step_flight(&mut sweeper, &params, &mut flight, &[], DT);
            bounced += u32::from(flight.bounces < before);
            assert!(flight.position.y > 0.09, "{flight:?}");
            if let Some(hit) = is_over(&flight, &legs) {
                assert_eq!((hit.entity, bounced), (2, 3));
                return;
            }
        }
        panic!("it never came to its end");
    }

    #[test]
    fn looks_point_where_the_camera_looks() {
        let ahead = direction(Angle(0), Angle(0));
        assert!((ahead + Vec3::Z).length() < 1e-6);
        let left = direction(Angle::from_radians(core::f32::consts::FRAC_PI_2), Angle(0));
        assert!((left + Vec3::X).length() < 1e-3, "{left}");
        let up = direction(Angle(0), Angle::from_radians(0.5));
        assert!(up.y > 0.4);
    }
}
