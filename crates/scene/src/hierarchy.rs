//! Where entities are in the world, once their parents' transforms are applied.

use std::collections::BTreeMap;

use crate::{ComponentKind, Components, Scene, Shape, Transform};

impl Scene {
    /// The transform of each entity in the world, in the order of [`Scene::entities`].
    ///
    /// Scales multiply axis by axis: a rotated child of an unevenly scaled parent is not sheared.
    /// Entities without a Transform are where their parent is. Rotations are normalised.
    pub fn world_transforms(&self) -> Vec<Transform> {
        let index_of: BTreeMap<u32, usize> = self
            .entities
            .iter()
            .enumerate()
            .map(|(index, entity)| (entity.id, index))
            .collect();
        let mut done: Vec<Option<Transform>> = vec![None; self.entities.len()];
        for start in 0..self.entities.len() {
            // Climb to the nearest ancestor that is known, then come back down. A parsed scene
            // has no cycles; the length check keeps a hand-made one from looping.
            let mut chain = vec![];
            let mut next = Some(start);
            while let Some(index) = next.filter(|index| done[*index].is_none()) {
                if chain.len() > self.entities.len() {
                    break;
                }
                chain.push(index);
                let parent = self.entities[index].parent;
                next = parent.and_then(|id| index_of.get(&id).copied());
            }
            let mut world = next.and_then(|index| done[index]).unwrap_or_default();
            for index in chain.into_iter().rev() {
                world = world.then(&self.local_transform(index));
                done[index] = Some(world);
            }
        }
        done.into_iter().map(Option::unwrap_or_default).collect()
    }

    fn local_transform(&self, index: usize) -> Transform {
        let entity = &self.entities[index];
        let prefab = entity.prefab.as_ref().and_then(|p| self.prefabs.get(p));
        let inherited = prefab.and_then(|prefab| prefab.components.transform);
        let own = entity.components.transform;
        match entity.overrides.get(ComponentKind::Transform) {
            Some(fields) => {
                let mut components = Components {
                    transform: own.or(inherited),
                    ..Components::default()
                };
                // The reader of scenes has tried this; a failure leaves the prefab's.
                let _ = components.apply(ComponentKind::Transform, fields);
                components.transform.unwrap_or_default()
            }
            None => own.or(inherited).unwrap_or_default(),
        }
    }
}

impl Transform {
    /// The world transform of a child whose transform relative to `self` is `child`.
    pub fn then(&self, child: &Transform) -> Transform {
        let [sx, sy, sz] = self.scale;
        let [x, y, z] = child.position;
        let offset = rotate(self.rotation, [x * sx, y * sy, z * sz]);
        let [px, py, pz] = self.position;
        Transform {
            position: [px + offset[0], py + offset[1], pz + offset[2]],
            rotation: normalise(multiply(self.rotation, child.rotation)),
            rotation_degrees: None,
            scale: [
                sx * child.scale[0],
                sy * child.scale[1],
                sz * child.scale[2],
            ],
        }
    }
}

impl Shape {
    /// The shape that a scaled transform makes of this one. Round shapes stay round: they take
    /// the larger of the factors that would apply. A mesh is returned unchanged: its triangles
    /// are scaled when they are loaded.
    pub fn scaled(&self, [x, y, z]: [f32; 3]) -> Shape {
        let (x, y, z) = (x.abs(), y.abs(), z.abs());
        match self {
            Shape::Box { size: [w, h, d] } => Shape::Box {
                size: [w * x, h * y, d * z],
            },
            Shape::Wedge { size: [w, h, d] } => Shape::Wedge {
                size: [w * x, h * y, d * z],
            },
            Shape::Sphere { radius } => Shape::Sphere {
                radius: radius * x.max(y).max(z),
            },
            Shape::Cylinder { radius, height } => Shape::Cylinder {
                radius: radius * x.max(z),
                height: height * y,
            },
            Shape::Capsule { radius, height } => {
                let radius = radius * x.max(z);
                let height = (height * y).max(2.0 * radius);
                Shape::Capsule { radius, height }
            }
            Shape::Mesh { asset } => Shape::Mesh {
                asset: asset.clone(),
            },
        }
    }
}

/// The product of two quaternions: `b` first, then `a`.
fn multiply([ax, ay, az, aw]: [f32; 4], [bx, by, bz, bw]: [f32; 4]) -> [f32; 4] {
    [
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
        aw * bw - ax * bx - ay * by - az * bz,
    ]
}

fn rotate(rotation: [f32; 4], [x, y, z]: [f32; 3]) -> [f32; 3] {
    let [qx, qy, qz, qw] = normalise(rotation);
    let turned = multiply(
        multiply([qx, qy, qz, qw], [x, y, z, 0.0]),
        [-qx, -qy, -qz, qw],
    );
    [turned[0], turned[1], turned[2]]
}

fn normalise([x, y, z, w]: [f32; 4]) -> [f32; 4] {
    let length = (x * x + y * y + z * z + w * w).sqrt();
    if length > 1e-6 {
        [x / length, y / length, z / length, w / length]
    } else {
        [0.0, 0.0, 0.0, 1.0]
    }
}
