//! Repeated queries about one place: which surfaces can be stood on, and where
//! there is clearance. For path finding, which asks cell by cell.

use frolic_motion::{EntityId, Pose, Vec3};
use frolic_terrain::Terrain;
use parry3d::bounding_volume::Aabb;
use parry3d::query::{Ray, intersection_test};
use parry3d::shape::Capsule;

use crate::block::TERRAIN;
use crate::collision::CollisionWorld;
use crate::convex::Core;

/// Surfaces of one solid that a vertical line crosses; a mesh may have many.
const SURFACES_PER_SOLID_MAX: usize = 8;
/// Surfaces closer than this are merged.
const SURFACE_GAP_M: f32 = 0.05;

/// The solids in a box and the terrain, in their current state.
pub struct Around<'world> {
    world: &'world CollisionWorld,
    slots: Vec<u32>,
    terrain: Option<&'world Terrain>,
}

/// A surface that faces up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Surface {
    /// Its entity.
    pub entity: EntityId,
    /// Its height there.
    pub height: f32,
    /// The vertical component of its normal: 1 is level.
    pub slope: f32,
}

impl CollisionWorld {
    /// The bounding box of an entity's solid: its lowest and its highest
    /// corner.
    pub fn bounds_of(&self, entity: EntityId) -> Option<(Vec3, Vec3)> {
        let solid = self.solid(entity)?;
        Some((solid.bounds.mins, solid.bounds.maxs))
    }

    /// The solids that intersect a box and satisfy `wanted`; terrain has the id
    /// [`TERRAIN`].
    pub fn around(&self, low: Vec3, high: Vec3, wanted: impl Fn(EntityId) -> bool) -> Around<'_> {
        let mut slots = Vec::new();
        if low.is_finite() && high.is_finite() {
            self.near(&Aabb::new(low, high), &mut slots);
        }
        slots.retain(|&slot| self.at(slot).is_some_and(|solid| wanted(solid.entity)));
        let terrain = self.terrain().filter(|_| wanted(TERRAIN));
        Around {
            world: self,
            slots,
            terrain,
        }
    }
}

impl Around<'_> {
    /// Appends the upward surfaces below a point of the map, in order of the
    /// solids' ids; then those of the terrain.
    pub fn surfaces(&self, x: f32, z: f32, out: &mut Vec<Surface>) {
        for solid in self.slots.iter().filter_map(|&slot| self.world.at(slot)) {
            let (low, high) = (solid.bounds.mins, solid.bounds.maxs);
            if x < low.x || x > high.x || z < low.z || z > high.z {
                continue;
            }
            let mut from = high.y + SURFACE_GAP_M;
            // A vertical line crosses only one upward surface of a convex
            // solid.
            let surfaces_max = match solid.mesh.is_none() {
                true => 1,
                false => SURFACES_PER_SOLID_MAX,
            };
            for _ in 0..surfaces_max {
                let ray = Ray::new(Vec3::new(x, from, z), -Vec3::Y);
                let reach = from - low.y + SURFACE_GAP_M;
                let hit = match &solid.mesh {
                    Some((mesh, scale)) => mesh.surface(*scale, &solid.pose, &ray, reach),
                    None => {
                        let shape = &solid.shape;
                        let hit = shape.cast_ray_and_get_normal(&solid.pose, &ray, reach, false);
                        hit.map(|hit| (hit.time_of_impact, hit.normal))
                    }
                };
                let Some((distance, normal)) = hit else {
                    break;
                };
                let height = from - distance;
                if normal.y > 0.0 {
                    out.push(Surface {
                        entity: solid.entity,
                        height,
                        slope: normal.y,
                    });
                }
                from = height - SURFACE_GAP_M;
                if from <= low.y {
                    break;
                }
            }
        }
        self.ground_surfaces(x, z, out);
    }

    /// From the highest block down, through every cave.
    fn ground_surfaces(&self, x: f32, z: f32, out: &mut Vec<Surface>) {
        let Some(terrain) = self.terrain else {
            return;
        };
        let [low, high] = terrain.grid().bounds_m();
        let mut from = high[1] + SURFACE_GAP_M;
        for _ in 0..SURFACES_PER_SOLID_MAX {
            let hit = terrain.raycast([x, from, z], [0.0, -1.0, 0.0], from - low[1]);
            let Some(hit) = hit else {
                return;
            };
            out.push(Surface {
                entity: TERRAIN,
                height: from - hit.distance,
                slope: 1.0,
            });
            // Descend to the ceiling of a possible cave below.
            let mut below = hit.block;
            while terrain.is_solid(below) {
                below[1] -= 1;
            }
            from = (below[1] + 1) as f32 * terrain.grid().block_m() - SURFACE_GAP_M;
        }
    }

    fn touches_ground(&self, feet: Vec3, radius: f32, height: f32) -> bool {
        let Some(terrain) = self.terrain else {
            return false;
        };
        let side = Vec3::new(radius, 0.0, radius);
        let (low, high) = (feet - side, feet + side + Vec3::Y * height);
        let mut blocks = Vec::new();
        terrain.blocks_touching(low.to_array(), high.to_array(), &mut blocks);
        let (foot, head) = (
            feet.y + radius,
            (feet.y + height - radius).max(feet.y + radius),
        );
        blocks.iter().any(|block| {
            let (low, high) = (Vec3::from(block.min), Vec3::from(block.max));
            let nearest = feet.clamp(low, high);
            let aside = Vec3::new(nearest.x - feet.x, 0.0, nearest.z - feet.z);
            let apart = (low.y - head).max(foot - high.y).max(0.0);
            aside.length_squared() + apart * apart < radius * radius
        })
    }

    /// Whether an upright capsule whose lowest point is `feet` touches nothing.
    pub fn is_free(&self, feet: Vec3, radius: f32, height: f32) -> bool {
        if self.touches_ground(feet, radius, height) {
            return false;
        }
        let low = feet + Vec3::Y * radius;
        let high = feet + Vec3::Y * (height - radius).max(radius);
        let around = Aabb::new(
            feet - Vec3::new(radius, 0.0, radius),
            feet + Vec3::new(radius, height, radius),
        );
        let capsule = Capsule::new(low, high, radius);
        let core = Core {
            low,
            length: high.y - low.y,
        };
        let solids = self.slots.iter().filter_map(|&slot| self.world.at(slot));
        !solids
            .filter(|solid| meets(&solid.bounds, &around))
            .any(|solid| {
                if solid.mesh.is_some() {
                    return solid.mesh_touches(&around, &core, radius);
                }
                intersection_test(
                    &solid.pose,
                    solid.shape.as_ref(),
                    &Pose::identity(),
                    &capsule,
                )
                .is_ok_and(|test| test.intersecting)
            })
    }
}

fn meets(a: &Aabb, b: &Aabb) -> bool {
    a.mins.cmple(b.maxs).all() && b.mins.cmple(a.maxs).all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Shape;

    #[test]
    fn surfaces_and_room_of_two_floors() {
        let mut world = CollisionWorld::new();
        let slab = Shape::Box(Vec3::new(5.0, 0.5, 5.0));
        world.insert(1, slab, Pose::translation(0.0, -0.5, 0.0));
        world.insert(2, slab, Pose::translation(3.0, 3.5, 0.0));
        world.insert(3, Shape::Sphere(1.0), Pose::translation(-3.0, 1.0, 0.0));
        let (low, high) = (Vec3::splat(-10.0), Vec3::splat(10.0));
        let around = world.around(low, high, |_| true);
        let surfaces = |x: f32| {
            let mut found = Vec::new();
            around.surfaces(x, 0.0, &mut found);
            let found = found.iter();
            found
                .map(|s| (s.entity, (s.height * 100.0).round() as i32))
                .collect::<Vec<_>>()
        };
        assert_eq!(surfaces(0.0), [(1, 0), (2, 400)]);
        assert_eq!(surfaces(-3.0), [(1, 0), (3, 200)]);
        assert_eq!(surfaces(9.0), []);
        assert!(around.is_free(Vec3::new(0.0, 0.1, 0.0), 0.4, 1.8));
        assert!(!around.is_free(Vec3::new(-3.0, 0.1, 0.0), 0.4, 1.8));
        assert!(!around.is_free(Vec3::new(0.0, 2.0, 0.0), 0.4, 1.8));
        let without = world.around(low, high, |id| id != 3);
        assert!(without.is_free(Vec3::new(-3.0, 0.1, 0.0), 0.4, 1.8));
        let nowhere = world.around(Vec3::NAN, high, |_| true);
        assert!(nowhere.is_free(Vec3::new(-3.0, 0.1, 0.0), 0.4, 1.8));
    }
}
