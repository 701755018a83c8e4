//! Sweep of a point through one tick. Solids move in a tick, too: a wall that
//! slides over a point hits it just as a point that flies into a wall.

use frolic_motion::{EntityId, Vec3};
use parry3d::bounding_volume::{Aabb, BoundingVolume};
use parry3d::query::Ray;

use crate::collision::{CollisionWorld, RayHit};

/// Sweeps points against the solids of one tick. Create one per tick: it
/// collects what moved only once.
pub struct Sweeper<'world> {
    world: &'world CollisionWorld,
    /// Distance that the fastest solid moved in this tick; none if all are at
    /// rest.
    moved: Option<f32>,
    near: Vec<u32>,
}

impl<'world> Sweeper<'world> {
    /// For the solids after this tick's movement.
    pub fn new(world: &'world CollisionWorld) -> Self {
        let ways = world.moved_solids().map(|solid| {
            let aside = (solid.pose.translation - solid.previous_pose.translation).length();
            // A rotation moves the points furthest from the centre most.
            let turned = solid.pose.rotation != solid.previous_pose.rotation;
            aside + if turned { reach(&solid.bounds) } else { 0.0 }
        });
        Self {
            world,
            moved: ways.reduce(f32::max),
            near: Vec::new(),
        }
    }

    /// The first solid that a point hits between two places, ignoring `except`.
    /// Distances are along the path.
    pub fn meet(&mut self, from: Vec3, to: Vec3, except: &[EntityId]) -> Option<RayHit> {
        let way = to - from;
        let length = way.length();
        let direction = way.try_normalize()?;
        let standing = self.world.raycast(from, direction, length, except);
        let Some(moved) = self.moved else {
            return standing;
        };
        let moving = self.meet_moving(from, to, moved, except);
        match (standing, moving) {
            (Some(a), Some(b)) if b.distance < a.distance => Some(b),
            (None, b) => b,
            (a, _) => a,
        }
    }

    /// The same against moving solids: in the frame of each of them, it rests
    /// and the point moves by the opposite in addition to its own movement.
    fn meet_moving(
        &mut self,
        from: Vec3,
        to: Vec3,
        moved: f32,
        except: &[EntityId],
    ) -> Option<RayHit> {
        let bounds = Aabb::new(from.min(to), from.max(to)).loosened(moved + 0.01);
        self.world.near(&bounds, &mut self.near);
        let length = (to - from).length();
        let mut first: Option<RayHit> = None;
        for slot in &self.near {
            let Some(solid) = self.world.at(*slot) else {
                continue;
            };
            if solid.pose == solid.previous_pose || except.contains(&solid.entity) {
                continue;
            }
            let start = solid.pose * (solid.previous_pose.inverse() * from);
            let way = to - start;
            let Some(direction) = way.try_normalize() else {
                continue;
            };
            let ray = Ray::new(start, direction);
            let reach = way.length();
            let Some((met, normal)) = solid.raycast(&ray, reach) else {
                continue;
            };
            let share = met / reach.max(f32::MIN_POSITIVE);
            let distance = length * share.clamp(0.0, 1.0);
            if first.is_none_or(|known| distance < known.distance) {
                first = Some(RayHit {
                    entity: solid.entity,
                    distance,
                    point: start + direction * met,
                    normal: if met > 0.0 { normal } else { -direction },
                });
            }
        }
        first
    }
}

fn reach(bounds: &Aabb) -> f32 {
    (bounds.maxs - bounds.mins).length() * 0.5
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Pose, Shape};

    fn wall(x: f32) -> Pose {
        Pose::from_translation(Vec3::new(x, 0.0, 0.0))
    }

    #[test]
    fn a_wall_that_slides_over_a_point_meets_it() {
        let mut world = CollisionWorld::new();
        world.insert(7, Shape::Box(Vec3::new(0.005, 5.0, 5.0)), wall(1.0));
        world.begin_tick();
        // Past the point, which itself hardly moves.
        world.move_to(7, wall(-1.0));
        let mut sweeper = Sweeper::new(&world);
        let hit = sweeper.meet(Vec3::ZERO, Vec3::X * 0.1, &[]);
        assert_eq!(hit.map(|hit| hit.entity), Some(7));
        assert!(sweeper.meet(Vec3::ZERO, Vec3::X * 0.1, &[7]).is_none());
        // Far away nothing is hit.
        assert!(sweeper.meet(Vec3::X * 9.0, Vec3::X * 9.1, &[]).is_none());
    }

    #[test]
    fn a_wall_that_rests_is_met_at_its_face() {
        let mut world = CollisionWorld::new();
        world.insert(7, Shape::Box(Vec3::new(0.005, 5.0, 5.0)), wall(4.0));
        world.begin_tick();
        let hit = Sweeper::new(&world).meet(Vec3::ZERO, Vec3::X * 8.0, &[]);
        let hit = hit.expect("it is in the way");
        assert!((hit.distance - 3.995).abs() < 1e-4, "{hit:?}");
        assert_eq!(hit.normal, -Vec3::X);
    }
}
