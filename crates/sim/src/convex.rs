//! Closed forms for the collision of a capsule's core, a segment, with a convex
//! solid, in the solid's frame.
//!
//! Every solid here can compute its point nearest to a given one. Along a
//! segment the distance to a convex solid falls and then rises, so the nearest
//! point of the segment is where the gap has no component along it. Usually
//! that is the lower end, and one evaluation decides.
//!
//! Uses only sums, products, quotients and square roots, so the result is
//! bit-identical everywhere.

use crate::shape::Shape;
use frolic_motion::{Pose, Vec3};

/// A core nearer than this to a solid is inside it: the direction to the
/// nearest point is no longer the way out.
const INSIDE_M: f32 = 1e-4;
/// Precision of the nearest point of the segment, as a fraction of its length.
const PRECISION: f32 = 1e-6;
/// Bounds the search for it. Flat sides take two or three rounds, the rim of a
/// rotated cylinder up to thirty.
const ROUNDS_MAX: usize = 32;

/// The surface of a solid, centred on its origin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Convex {
    /// All points within `round` of a box: for spheres the box is a point, for
    /// capsules a segment.
    Box {
        half: Vec3,
        round: f32,
    },
    Cylinder {
        half_height: f32,
        radius: f32,
    },
    /// Full height at −z, nothing at +z.
    Wedge(Vec3),
    /// A triangle of a mesh.
    Triangle(Triangle),
}

/// A triangle of a mesh.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Triangle {
    /// Counter-clockwise, seen from the front.
    pub corners: [Vec3; 3],
    /// Edges that do not protrude, because the neighbour there continues flat
    /// or rises: bits 0 to 2 from the front, bits 3 to 5 from behind. Edge n is
    /// between corner n and the next.
    pub seams: u8,
}

impl From<Shape> for Convex {
    fn from(shape: Shape) -> Self {
        match shape {
            Shape::Box(half) => Convex::Box { half, round: 0.0 },
            Shape::Sphere(round) => Convex::Box {
                half: Vec3::ZERO,
                round,
            },
            Shape::Capsule {
                half_height,
                radius,
            } => Convex::Box {
                half: Vec3::new(0.0, half_height, 0.0),
                round: radius,
            },
            Shape::Cylinder {
                half_height,
                radius,
            } => Convex::Cylinder {
                half_height,
                radius,
            },
            Shape::Wedge(half) => Convex::Wedge(half),
            // Only its triangles are ever touched.
            Shape::Mesh { reach, .. } => Convex::Box {
                half: Vec3::ZERO,
                round: reach,
            },
        }
    }
}

/// A pose as an origin and three axes, computed once per pose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Frame {
    place: Vec3,
    /// Directions of the frame's x, y and z.
    axes: [Vec3; 3],
}

impl From<&Pose> for Frame {
    fn from(pose: &Pose) -> Self {
        let q = pose.rotation;
        let (x, y, z, w) = (q.x, q.y, q.z, q.w);
        let axis_x = Vec3::new(
            1.0 - 2.0 * (y * y + z * z),
            2.0 * (x * y + w * z),
            2.0 * (x * z - w * y),
        );
        let axis_y = Vec3::new(
            2.0 * (x * y - w * z),
            1.0 - 2.0 * (x * x + z * z),
            2.0 * (y * z + w * x),
        );
        let axis_z = Vec3::new(
            2.0 * (x * z + w * y),
            2.0 * (y * z - w * x),
            1.0 - 2.0 * (x * x + y * y),
        );
        Self {
            place: pose.translation,
            axes: [axis_x, axis_y, axis_z],
        }
    }
}

impl Frame {
    /// A frame without rotation.
    pub fn upright(place: Vec3) -> Self {
        Self {
            place,
            axes: [Vec3::X, Vec3::Y, Vec3::Z],
        }
    }

    /// Converts a point from world space to the frame.
    fn enter(&self, point: Vec3) -> Vec3 {
        let from = point - self.place;
        let [x, y, z] = self.axes;
        Vec3::new(from.dot(x), from.dot(y), from.dot(z))
    }

    /// The world's up direction in the frame.
    fn up(&self) -> Vec3 {
        let [x, y, z] = self.axes;
        Vec3::new(x.y, y.y, z.y)
    }

    /// Converts a direction from the frame to world space.
    fn turn(&self, direction: Vec3) -> Vec3 {
        let [x, y, z] = self.axes;
        x * direction.x + y * direction.y + z * direction.z
    }
}

/// An upright segment: a capsule without its radius.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Core {
    pub low: Vec3,
    pub length: f32,
}

/// The gap between a core and a solid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Gap {
    pub distance: f32,
    /// From the solid towards the core.
    pub normal: Vec3,
    /// The nearest point of the solid.
    pub point: Vec3,
}

/// The gap between a core and a solid; none if the core is inside the solid, or
/// exactly at the centre of a round one.
pub(crate) fn gap(convex: &Convex, frame: &Frame, core: &Core) -> Option<Gap> {
    let start = frame.enter(core.low);
    let along = frame.up() * core.length;
    // Each kind gets a specialised search without branches.
    let ((on_core, on_solid), round) = match *convex {
        Convex::Box { half, round } => (nearest(start, along, |p| p.clamp(-half, half)), round),
        Convex::Cylinder {
            half_height,
            radius,
        } => (
            nearest(start, along, |p| onto_cylinder(half_height, radius, p)),
            0.0,
        ),
        Convex::Wedge(half) => (nearest(start, along, |p| onto_wedge(half, p)), 0.0),
        Convex::Triangle(ref triangle) => (nearest(start, along, |p| triangle.nearest(p).0), 0.0),
    };
    let between = on_core - on_solid;
    let length_sq = between.length_squared();
    if length_sq < INSIDE_M * INSIDE_M || !length_sq.is_finite() {
        return None;
    }
    let length = length_sq.sqrt();
    let normal = frame.turn(between / length);
    let point = frame.place + frame.turn(on_solid) + normal * round;
    Some(Gap {
        distance: length - round,
        normal,
        point,
    })
}

/// The nearest points of the segment from `start` to `start + along` and of a
/// convex solid; `onto` returns the solid's nearest point to a point.
#[inline(always)]
fn nearest(start: Vec3, along: Vec3, onto: impl Fn(Vec3) -> Vec3) -> (Vec3, Vec3) {
    let look = |part: f32| {
        let on_line = start + along * part;
        let on_solid = onto(on_line);
        // Grows along the segment: negative where continuing brings it nearer.
        ((on_line, on_solid), (on_line - on_solid).dot(along))
    };
    let (lowest, mut falls) = look(0.0);
    if falls >= 0.0 {
        return lowest;
    }
    let (highest, mut rises) = look(1.0);
    if rises <= 0.0 {
        return highest;
    }
    // False position, halving the weight of an end that stays (the Illinois
    // method): exact at once where the gap grows linearly.
    let (mut from, mut to) = (0.0f32, 1.0f32);
    let tolerance = PRECISION * along.length_squared();
    let mut found = highest;
    let mut stayed = 0;
    for _ in 0..ROUNDS_MAX {
        let part = from + (to - from) * (falls / (falls - rises));
        let (here, slope) = look(part);
        found = here;
        if slope.abs() <= tolerance {
            break;
        }
        if slope < 0.0 {
            (from, falls) = (part, slope);
            if stayed == 1 {
                rises *= 0.5;
            }
            stayed = 1;
        } else {
            (to, rises) = (part, slope);
            if stayed == -1 {
                falls *= 0.5;
            }
            stayed = -1;
        }
    }
    found
}

/// The result of a ray straight down.
pub(crate) enum FloorBelow {
    /// The normal of the first surface, if there is one.
    Known(Option<Vec3>),
    /// Round solids have no closed form here.
    Unknown,
}

/// The normal of a solid's surface within `distance` straight below a point
/// outside of it.
pub(crate) fn floor_below(
    convex: &Convex,
    frame: &Frame,
    point: Vec3,
    distance: f32,
) -> FloorBelow {
    let mut ray = Descent {
        from: frame.enter(point),
        way: -frame.up(),
        enters: -1.0,
        leaves: distance,
        normal: Vec3::ZERO,
    };
    match *convex {
        Convex::Box { half, round: 0.0 } => {
            for (axis, half) in [(Vec3::X, half.x), (Vec3::Y, half.y), (Vec3::Z, half.z)] {
                ray.cut(axis, half);
                ray.cut(-axis, half);
            }
        }
        Convex::Box { .. } => return FloorBelow::Unknown,
        Convex::Cylinder {
            half_height,
            radius,
        } => {
            ray.cut(Vec3::Y, half_height);
            ray.cut(-Vec3::Y, half_height);
            ray.cut_round(radius);
        }
        Convex::Wedge(half) => {
            ray.cut(Vec3::X, half.x);
            ray.cut(-Vec3::X, half.x);
            ray.cut(-Vec3::Y, half.y);
            ray.cut(-Vec3::Z, half.z);
            let steep = (half.y * half.y + half.z * half.z).sqrt();
            ray.cut(Vec3::new(0.0, half.z, half.y) / steep, 0.0);
        }
        Convex::Triangle(triangle) => {
            let floor = triangle.met_by(ray.from, ray.way, distance);
            return FloorBelow::Known(floor.map(|normal| frame.turn(normal)));
        }
    }
    let hit = ray.enters >= 0.0 && ray.enters <= ray.leaves;
    FloorBelow::Known(hit.then(|| frame.turn(ray.normal)))
}

/// A ray, and the part of it inside all constraints so far.
struct Descent {
    from: Vec3,
    way: Vec3,
    enters: f32,
    leaves: f32,
    /// The surface normal where it enters.
    normal: Vec3,
}

impl Descent {
    /// Clips to the half-space behind a plane, `offset` from the origin along
    /// its normal.
    fn cut(&mut self, normal: Vec3, offset: f32) {
        let above = self.from.dot(normal) - offset;
        let sinks = -self.way.dot(normal);
        if sinks > 0.0 {
            self.enter(above / sinks, normal);
        } else if sinks < 0.0 {
            self.leave(above / sinks);
        } else if above > 0.0 {
            self.leaves = -1.0;
        }
    }

    /// Clips to the cylinder of `radius` around the y axis.
    fn cut_round(&mut self, radius: f32) {
        let (from, way) = (self.from, self.way);
        let speed_sq = way.x * way.x + way.z * way.z;
        let outside = from.x * from.x + from.z * from.z - radius * radius;
        if speed_sq < 1e-12 {
            if outside > 0.0 {
                self.leaves = -1.0;
            }
            return;
        }
        let half = from.x * way.x + from.z * way.z;
        let root_sq = half * half - speed_sq * outside;
        if root_sq < 0.0 {
            self.leaves = -1.0;
            return;
        }
        let root = root_sq.sqrt();
        let enters = (-half - root) / speed_sq;
        let at = from + way * enters;
        self.enter(enters, Vec3::new(at.x / radius, 0.0, at.z / radius));
        self.leave((-half + root) / speed_sq);
    }

    fn enter(&mut self, at: f32, normal: Vec3) {
        if at > self.enters {
            (self.enters, self.normal) = (at, normal);
        }
    }

    fn leave(&mut self, at: f32) {
        if at < self.leaves {
            self.leaves = at;
        }
    }
}

fn onto_cylinder(half_height: f32, radius: f32, point: Vec3) -> Vec3 {
    let aside_sq = point.x * point.x + point.z * point.z;
    let scale = if aside_sq > radius * radius {
        radius / aside_sq.sqrt()
    } else {
        1.0
    };
    Vec3::new(
        point.x * scale,
        point.y.clamp(-half_height, half_height),
        point.z * scale,
    )
}

/// A wedge is a triangle in y and z, extruded along x.
fn onto_wedge(half: Vec3, point: Vec3) -> Vec3 {
    let x = point.x.clamp(-half.x, half.x);
    let above_slope = point.y * half.z + point.z * half.y > 0.0;
    if !above_slope {
        // Below the slope's plane only floor and back wall can be nearest, and
        // each ends at an edge of the slope.
        let y = point.y.clamp(-half.y, half.y);
        let z = point.z.clamp(-half.z, half.z);
        return Vec3::new(x, y, z);
    }
    // From the foot of the slope (at +z) to its top.
    let (rise, run) = (2.0 * half.y, 2.0 * half.z);
    let part = ((point.y + half.y) * rise - (point.z - half.z) * run) / (rise * rise + run * run);
    let part = part.clamp(0.0, 1.0);
    Vec3::new(x, -half.y + rise * part, half.z - run * part)
}

mod triangle;

pub(crate) use triangle::{is_seam, way_out};

#[cfg(test)]
mod tests;
