//! Triangles of meshes: the nearest point, rays, edges that are never touched,
//! and the way out of a penetration.

use frolic_motion::Vec3;

use super::{Convex, Core, Frame, Gap, Triangle};

/// The part of a triangle nearest to a point: bits 0 to 2 are its edges, a
/// corner is both of its edges, and none of them is the interior.
type Part = u8;

impl Triangle {
    /// Its point nearest to a point.
    pub fn nearest(&self, point: Vec3) -> (Vec3, Part) {
        let [a, b, c] = self.corners;
        let (ab, ac) = (b - a, c - a);
        let from_a = point - a;
        let (d1, d2) = (ab.dot(from_a), ac.dot(from_a));
        if d1 <= 0.0 && d2 <= 0.0 {
            return (a, 0b101);
        }
        let from_b = point - b;
        let (d3, d4) = (ab.dot(from_b), ac.dot(from_b));
        if d3 >= 0.0 && d4 <= d3 {
            return (b, 0b011);
        }
        let vc = d1 * d4 - d3 * d2;
        if vc <= 0.0 && d1 >= 0.0 && d3 <= 0.0 {
            return (a + ab * (d1 / (d1 - d3)), 0b001);
        }
        let from_c = point - c;
        let (d5, d6) = (ab.dot(from_c), ac.dot(from_c));
        if d6 >= 0.0 && d5 <= d6 {
            return (c, 0b110);
        }
        let vb = d5 * d2 - d1 * d6;
        if vb <= 0.0 && d2 >= 0.0 && d6 <= 0.0 {
            return (a + ac * (d2 / (d2 - d6)), 0b100);
        }
        let va = d3 * d6 - d5 * d4;
        if va <= 0.0 && d4 >= d3 && d5 >= d6 {
            let along = (d4 - d3) / ((d4 - d3) + (d5 - d6));
            return (b + (c - b) * along, 0b010);
        }
        let whole = va + vb + vc;
        (a + ab * (vb / whole) + ac * (vc / whole), 0)
    }

    /// The normal of its front.
    fn front(&self) -> Option<Vec3> {
        let [a, b, c] = self.corners;
        (b - a).cross(c - a).try_normalize()
    }

    /// Its normal towards the side that a ray comes from, if the ray hits it
    /// within the distance.
    pub fn met_by(&self, from: Vec3, way: Vec3, distance: f32) -> Option<Vec3> {
        let front = self.front()?;
        let sinks = way.dot(front);
        let at = (self.corners[0] - from).dot(front) / sinks;
        if !(0.0..=distance).contains(&at) {
            return None;
        }
        let point = from + way * at;
        let (nearest, _) = self.nearest(point);
        let inside = (nearest - point).length_squared() < 1e-8;
        inside.then_some(if sinks < 0.0 { front } else { -front })
    }
}

/// Whether a gap ends at an edge where the neighbour continues: there the
/// neighbour itself is touched.
pub(crate) fn is_seam(convex: &Convex, frame: &Frame, gap: &Gap) -> bool {
    let Convex::Triangle(triangle) = convex else {
        return false;
    };
    let toucher = frame.enter(gap.point + gap.normal * gap.distance);
    let (nearest, edges) = triangle.nearest(toucher);
    if edges == 0 {
        return false;
    }
    let [a, b, c] = triangle.corners;
    let in_front = (toucher - nearest).dot((b - a).cross(c - a)) >= 0.0;
    let seams = triangle.seams >> if in_front { 0 } else { 3 };
    edges & !seams & 0b111 == 0
}

/// The way out for a core that crosses a triangle: to the side that most of it
/// is on.
pub(crate) fn way_out(triangle: &Triangle, frame: &Frame, core: &Core) -> Option<Gap> {
    let front = triangle.front()?;
    let low = frame.enter(core.low);
    let high = low + frame.up() * core.length;
    let above = |point: Vec3| (point - triangle.corners[0]).dot(front);
    let (low_above, high_above) = (above(low), above(high));
    let side = if low_above + high_above >= 0.0 {
        1.0
    } else {
        -1.0
    };
    let deepest = (low_above * side).min(high_above * side);
    let (point, _) = triangle.nearest(if low_above * side < high_above * side {
        low
    } else {
        high
    });
    Some(Gap {
        distance: deepest,
        normal: frame.turn(front * side),
        point: frame.place + frame.turn(point),
    })
}
