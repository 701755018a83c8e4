//! Meshes compared with the same solids without triangles, and with parry's.

use super::*;
use crate::character::step_character;
use crate::collision::CollisionWorld;
use crate::random::Random;
use crate::shape::Shape;
use frolic_motion::{Buttons, CharacterInput, CharacterParams, CharacterState, Rotation};
use parry3d::query::RayCast;
use parry3d::shape::TriMesh;

/// The twelve triangles of a box.
fn cuboid(half: Vec3) -> Triangles {
    let corners = (0..8).map(|bits| {
        let side = |bit: u32| if bits & bit == 0 { -1.0 } else { 1.0 };
        (Vec3::new(side(1), side(2), side(4)) * half).to_array()
    });
    let faces = [
        [0, 2, 3, 1],
        [4, 5, 7, 6],
        [0, 4, 6, 2],
        [1, 3, 7, 5],
        [0, 1, 5, 4],
        [2, 6, 7, 3],
    ];
    let halves = faces
        .iter()
        .flat_map(|[a, b, c, d]| [[*a, *b, *c], [*a, *c, *d]]);
    Triangles::new(corners.collect(), halves.collect()).unwrap()
}

/// Hills on a grid, as a surface.
fn hills(random: &mut Random, cells: u32) -> Triangles {
    let row = cells + 1;
    let corners: Vec<[f32; 3]> = (0..row * row)
        .map(|i| {
            let (x, z) = (
                (i % row) as f32 - cells as f32 / 2.0,
                (i / row) as f32 - cells as f32 / 2.0,
            );
            [x, random.range(0.0, 0.6), z]
        })
        .collect();
    let faces = (0..cells * cells).flat_map(|i| {
        let a = i / cells * row + i % cells;
        [[a, a + row, a + 1], [a + 1, a + row, a + row + 1]]
    });
    Triangles::new(corners, faces.collect()).unwrap()
}

fn world_of(asset: &Triangles, scale: Vec3, pose: Pose) -> CollisionWorld {
    let mut meshes = Meshes::default();
    meshes.add("assets/a.glb", asset);
    let (id, mesh) = meshes.find("assets/a.glb").unwrap();
    let reach = mesh.reach(scale);
    let mut world = CollisionWorld::with_meshes(meshes);
    world.insert(1, Shape::Mesh { id, scale, reach }, pose);
    world
}

fn walk(yaw: f32) -> CharacterInput {
    CharacterInput::new(0.0, 1.0, yaw, 0.0, Buttons::default())
}

#[test]
fn seams_are_edges_that_do_not_stick_out() {
    let mesh = Mesh::new(&cuboid(Vec3::ONE));
    for face in &mesh.faces {
        // The diagonal is flat from both sides; the box's edges are ridges from
        // outside, so they are seams only from inside.
        let front = (face.seams & 7).count_ones();
        let behind = (face.seams >> 3).count_ones();
        assert_eq!((front, behind), (1, 3));
    }
}

#[test]
fn a_box_of_triangles_is_walked_on_like_a_box() {
    let params = CharacterParams::default();
    let floor = Vec3::new(12.0, 0.5, 12.0);
    let pose = Pose::from_parts(Vec3::new(0.0, -0.5, 0.0), Rotation::from_rotation_y(0.3));
    let mut plain = CollisionWorld::new();
    plain.insert(1, Shape::Box(floor), pose);
    let meshed = world_of(&cuboid(Vec3::ONE), floor, pose);
    for yaw in [0.0, 0.7, 2.0, 4.0] {
        let mut a = CharacterState::at(Vec3::new(0.3, 0.5, 0.2));
        let mut b = a;
        for tick in 0..110 {
            step_character(&plain, &params, &mut a, &walk(yaw), 1.0 / 60.0);
            step_character(&meshed, &params, &mut b, &walk(yaw), 1.0 / 60.0);
            assert!(
                (a.feet - b.feet).length() < 2e-3,
                "{yaw} {tick}: {} {}",
                a.feet,
                b.feet
            );
            assert_eq!(a.grounded(), b.grounded(), "{yaw} {tick}");
        }
    }
}

#[test]
fn walls_and_steps_of_triangles_stop_and_lift_like_boxes() {
    let params = CharacterParams::default();
    for (height, passes) in [(0.3, true), (1.5, false)] {
        let mut worlds = [
            CollisionWorld::new(),
            world_of(
                &cuboid(Vec3::new(2.0, height * 0.5, 2.0)),
                Vec3::ONE,
                Pose::translation(0.0, height * 0.5, -4.0),
            ),
        ];
        worlds[0].insert(
            1,
            Shape::Box(Vec3::new(2.0, height * 0.5, 2.0)),
            Pose::translation(0.0, height * 0.5, -4.0),
        );
        let ends = worlds.map(|mut world| {
            let floor = Shape::Box(Vec3::new(20.0, 0.5, 20.0));
            world.insert(9, floor, Pose::translation(0.0, -0.5, 0.0));
            let mut state = CharacterState::at(Vec3::new(0.1, 0.05, 0.0));
            for _ in 0..60 {
                step_character(&world, &params, &mut state, &walk(0.0), 1.0 / 60.0);
            }
            state.feet
        });
        assert!((ends[0] - ends[1]).length() < 0.02, "{height}: {ends:?}");
        assert_eq!(ends[1].z < -2.5, passes, "{height}: {}", ends[1]);
    }
}

#[test]
fn nobody_falls_through_hills_at_any_speed() {
    let mut random = Random::new(11);
    let params = CharacterParams::default();
    for round in 0..40 {
        let world = world_of(&hills(&mut random, 24), Vec3::ONE, Pose::identity());
        let mut state = CharacterState::at(Vec3::new(random.range(-5.0, 5.0), 2.0, 0.0));
        state.velocity = Vec3::new(
            random.range(-20.0, 20.0),
            random.range(-380.0, 0.0),
            random.range(-20.0, 20.0),
        );
        for tick in 0..200 {
            let input = walk(random.range(-3.0, 3.0));
            step_character(&world, &params, &mut state, &input, 1.0 / 60.0);
            let inside = state.feet.x.abs() < 11.5 && state.feet.z.abs() < 11.5;
            if !inside {
                break;
            }
            assert!(
                state.feet.y > -0.05,
                "round {round}, tick {tick}: {}",
                state.feet
            );
        }
    }
}

#[test]
fn rays_meet_what_the_collision_library_says() {
    let mut random = Random::new(3);
    let triangles = hills(&mut random, 16);
    let scale = Vec3::new(1.5, 2.0, 0.7);
    let pose = Pose::from_parts(Vec3::new(1.0, 2.0, 3.0), Rotation::from_rotation_x(0.4));
    let world = world_of(&triangles, scale, pose);
    let corners = triangles
        .corners()
        .iter()
        .map(|c| Vec3::from(*c) * scale)
        .collect();
    let library = TriMesh::new(corners, triangles.triangles().to_vec()).unwrap();
    let mut hits = 0;
    for _ in 0..3_000 {
        let mut vector = |size: f32| {
            Vec3::new(
                random.range(-size, size),
                random.range(-size, size),
                random.range(-size, size),
            )
        };
        let (from, to) = (vector(14.0), vector(6.0));
        let Some(way) = (to - from).try_normalize() else {
            continue;
        };
        let ray = Ray::new(from, way);
        let expected = library.cast_ray(&pose, &ray, 100.0, false);
        let found = world.raycast(from, way, 100.0, &[]);
        match (expected, found) {
            (Some(expected), Some(found)) => {
                hits += 1;
                assert!((expected - found.distance).abs() < 1e-3 * (1.0 + expected));
                assert!(
                    found.normal.dot(way) <= 1e-6 && (found.normal.length() - 1.0).abs() < 1e-4
                );
            }
            (None, None) => {}
            (expected, found) => {
                // A hit at an edge may go either way.
                let near = from + way * expected.or(found.map(|hit| hit.distance)).unwrap();
                let local = pose.inverse_transform_point(near) / scale;
                let edge = local.x.abs() > 7.99 || local.z.abs() > 7.99;
                assert!(edge, "{expected:?} {found:?} {local}");
            }
        }
    }
    assert!(hits > 300, "{hits}");
}

#[test]
fn a_mesh_that_is_not_there_is_not_solid() {
    let mut meshes = Meshes::default();
    meshes.add("assets/a.glb", &cuboid(Vec3::ONE));
    let (id, _) = meshes.find("assets/a.glb").unwrap();
    let mut world = CollisionWorld::new();
    let shape = Shape::Mesh {
        id,
        scale: Vec3::ONE,
        reach: 2.0,
    };
    world.insert(1, shape, Pose::identity());
    assert!(!world.contains(1));
}
