//! Paths over slopes, around and onto obstacles, and through changing scenes.

use frolic_sim::{CharacterParams, CollisionWorld, Pose, Shape, Vec3};

use super::grid::{Ground, Role};
use super::*;

fn boxed(world: &mut CollisionWorld, id: u32, low: [f32; 3], high: [f32; 3]) {
    let (low, high) = (Vec3::from(low), Vec3::from(high));
    let middle = (low + high) * 0.5;
    let pose = Pose::translation(middle.x, middle.y, middle.z);
    world.insert(id, Shape::Box((high - low) * 0.5), pose);
}

fn meadow() -> CollisionWorld {
    let mut world = CollisionWorld::new();
    boxed(&mut world, 1, [-20.0, -1.0, -20.0], [20.0, 0.0, 20.0]);
    world
}

fn find(nav: &mut Nav, world: &CollisionWorld, from: [f32; 3], to: [f32; 3]) -> Path {
    find_with(nav, world, from, to, &|_| Role::Ground)
}

fn find_with(
    nav: &mut Nav,
    world: &CollisionWorld,
    from: [f32; 3],
    to: [f32; 3],
    role: &dyn Fn(u32) -> Role,
) -> Path {
    let ground = Ground {
        solids: world,
        params: CharacterParams::default(),
        role,
    };
    nav.request(Request {
        who: 7,
        from: Vec3::from(from),
        to: Vec3::from(to),
        avoid: Vec::new(),
    });
    for _ in 0..200 {
        nav.begin_tick();
        nav.work(&ground);
        if let Some(path) = nav.take(7) {
            return path;
        }
    }
    panic!("no answer");
}

fn length(from: [f32; 3], path: &Path) -> f32 {
    let mut at = Vec3::from(from);
    let mut sum = 0.0;
    for step in &path.steps {
        sum += (step.place - at).length();
        at = step.place;
    }
    sum
}

#[test]
fn straight_where_nothing_is_in_the_way() {
    let world = meadow();
    let path = find(&mut Nav::default(), &world, [0.0; 3], [9.0, 0.0, 5.3]);
    assert!(path.complete);
    assert_eq!(path.steps.len(), 1, "{path:?}");
    let off = path.steps[0].place - Vec3::new(9.0, 0.0, 5.3);
    assert!(off.length() < 0.01, "to the very place");
}

#[test]
fn around_a_wall_and_no_further_than_needed() {
    let mut world = meadow();
    boxed(&mut world, 2, [-8.0, 0.0, 4.0], [8.0, 3.0, 5.0]);
    let (from, to) = ([0.0; 3], [0.0, 0.0, 9.0]);
    let path = find(&mut Nav::default(), &world, from, to);
    assert!(path.complete);
    let length = length(from, &path);
    assert!((18.0..23.0).contains(&length), "{length} m: {path:?}");
    for step in &path.steps {
        assert!(!(step.place.x.abs() < 8.0 && (3.7..5.3).contains(&step.place.z)));
    }
}

#[test]
fn up_a_ramp_to_the_upper_floor_and_not_through_the_ceiling() {
    let mut world = meadow();
    // A gallery three metres up, reached by a ramp of six.
    boxed(&mut world, 2, [-10.0, 2.5, -10.0], [10.0, 3.0, -6.0]);
    let ramp = Shape::Wedge(Vec3::new(1.5, 1.5, 3.0));
    world.insert(3, ramp, Pose::translation(0.0, 1.5, -3.0));
    let (from, to) = ([6.0, 0.0, -8.0], [6.0, 3.0, -8.0]);
    let path = find(&mut Nav::default(), &world, from, to);
    assert!(path.complete, "{path:?}");
    assert!(length(from, &path) > 12.0, "by the ramp: {path:?}");
    let on_ramp = |step: &Step| step.place.x.abs() < 1.5 && (0.1..2.9).contains(&step.place.y);
    assert!(path.steps.iter().any(on_ramp), "{path:?}");
    let down = find(&mut Nav::default(), &world, to, from);
    assert!(down.complete);
}

#[test]
fn onto_a_ledge_by_a_jump_and_over_a_wall_of_boxes() {
    let mut world = meadow();
    boxed(&mut world, 2, [-20.0, 0.0, 4.0], [20.0, 1.0, 6.0]);
    let path = find(&mut Nav::default(), &world, [0.0; 3], [0.0, 0.0, 9.0]);
    assert!(path.complete, "{path:?}");
    assert_eq!(path.steps.iter().filter(|step| step.leap).count(), 2);
    boxed(&mut world, 2, [-20.0, 0.0, 4.0], [20.0, 1.5, 6.0]);
    let path = find(&mut Nav::default(), &world, [0.0; 3], [0.0, 0.0, 9.0]);
    assert!(!path.complete, "too high: {path:?}");
    let end = path.steps.last().expect("as near as one gets").place;
    assert!((2.5..4.0).contains(&end.z), "{end}");
}

#[test]
fn a_change_is_noticed_where_it_is_and_nowhere_else() {
    let mut world = meadow();
    let mut nav = Nav::default();
    boxed(&mut world, 2, [-20.0, 0.0, 4.0], [20.0, 3.0, 5.0]);
    let path = find(&mut nav, &world, [0.0; 3], [0.0, 0.0, 9.0]);
    assert!(!path.complete && nav.holds(&path));
    // A door, far from what the other path crosses.
    let west = find(&mut nav, &world, [-18.0, 0.0, -18.0], [-15.0, 0.0, -18.0]);
    let changes = nav.changes();
    let (low, high) = world.bounds_of(2).expect("it is solid");
    world.remove(2);
    nav.changed(low, high);
    assert!(!nav.holds(&path) && nav.holds(&west) && nav.changes() > changes);
    let path = find(&mut nav, &world, [0.0; 3], [0.0, 0.0, 9.0]);
    assert!(path.complete && length([0.0; 3], &path) < 10.0);
    nav.changed(Vec3::splat(f32::NEG_INFINITY), Vec3::splat(f32::NAN));
    assert!(nav.holds(&path));
    nav.changed(Vec3::splat(-9e5), Vec3::splat(9e5));
    assert!(!nav.holds(&path) && nav.is_empty());
}

#[test]
fn what_moves_is_neither_ground_nor_in_the_way() {
    let mut world = meadow();
    boxed(&mut world, 2, [20.0, -1.0, -2.0], [24.0, 0.0, 2.0]);
    boxed(&mut world, 3, [24.0, -1.0, -2.0], [30.0, 0.0, 2.0]);
    let (from, to) = ([15.0, 0.0, 0.0], [28.0, 0.0, 0.0]);
    let path = find(&mut Nav::default(), &world, from, to);
    assert!(path.complete, "a bridge");
    let ferry = |id| match id {
        2 => Role::Obstacle,
        _ => Role::Ground,
    };
    let path = find_with(&mut Nav::default(), &world, from, to, &ferry);
    assert!(!path.complete, "a ferry");
    boxed(&mut world, 4, [-20.0, 0.0, 4.0], [20.0, 3.0, 5.0]);
    let passing = |id| match id {
        4 => Role::Passing,
        _ => Role::Ground,
    };
    let (from, to) = ([0.0; 3], [0.0, 0.0, 9.0]);
    let path = find_with(&mut Nav::default(), &world, from, to, &passing);
    assert!(path.complete, "it will be elsewhere by then");
}

#[test]
fn places_without_sense_have_no_way() {
    let world = meadow();
    for bad in [f32::NAN, f32::INFINITY, 1e30, -5e5] {
        let mut nav = Nav::default();
        let path = find(&mut nav, &world, [bad, 0.0, 0.0], [0.0; 3]);
        assert_eq!((path.steps.len(), path.complete), (0, false));
        let path = find(&mut nav, &world, [0.0; 3], [bad, bad, bad]);
        assert!(!path.complete);
    }
}

#[test]
fn a_crowd_of_requests_does_a_bounded_part_in_each_tick() {
    let mut world = meadow();
    // A maze of pillars.
    for at in 0..100 {
        let (x, z) = ((at % 10) as f32 * 3.5 - 16.0, (at / 10) as f32 * 3.5 - 16.0);
        boxed(&mut world, 10 + at, [x, 0.0, z], [x + 1.2, 3.0, z + 1.2]);
    }
    let ground = Ground {
        solids: &world,
        params: CharacterParams::default(),
        role: &|_| Role::Ground,
    };
    let mut nav = Nav::default();
    for who in 0..200 {
        let (x, z) = ((who % 20) as f32 - 10.0, (who / 20) as f32 * 2.0 - 10.0);
        nav.request(Request {
            who,
            from: Vec3::new(x, 0.0, z),
            to: Vec3::new(-x, 0.0, -z),
            avoid: Vec::new(),
        });
    }
    nav.cancel(3);
    let (mut ticks, mut found) = (0, 0);
    while found < 199 {
        nav.begin_tick();
        nav.work(&ground);
        ticks += 1;
        for who in 0..200 {
            if let Some(path) = nav.take(who) {
                assert!(path.complete || who == 3, "{who}: {path:?}");
                found += 1;
            }
        }
        assert!(ticks < 600, "{found} found");
    }
    assert!(ticks > 5, "all at once is not bounded: {ticks}");
}
