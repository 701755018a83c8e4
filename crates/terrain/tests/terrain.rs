//! A terrain as a whole: what one does and another follows is the same.

use frolic_terrain::{
    Action, ChunkVersion, Generator, Material, Op, Settings, Shape, Terrain, codec,
};
use proptest::prelude::*;

fn settings() -> Settings {
    let generator = Generator::Hills {
        seed: 11,
        height: 30,
        amplitude: 16,
        scale: 50,
        water: 26,
        snow: 0,
        trees: 0.5,
        clearing: None,
    };
    let mut settings = Settings::new([128, 64, 128], generator);
    settings.ops = vec![Op::fill(
        [-8.0, 20.0, -8.0],
        [8.0, 40.0, 8.0],
        Material::SAND,
    )];
    settings
}

fn op() -> impl Strategy<Value = Op> {
    let shape = prop_oneof![
        (0.2f32..9.0).prop_map(|radius| Shape::Sphere { radius }),
        prop::array::uniform3(0.2f32..20.0).prop_map(|size| Shape::Box { size }),
    ];
    let place = [-70f32..70.0, -5f32..70.0, -70f32..70.0];
    (0..3u8, place, shape, 1..Material::COUNT as u8).prop_map(
        |(action, center, shape, material)| {
            let action = [Action::Add, Action::Subtract, Action::Paint][usize::from(action)];
            Op::new(action, center, shape, Material::from_number(material)).expect("a sound shape")
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The one that decides, one that follows operation by operation, one
    /// that lost some and got chunks instead, and one rebuilt from the list.
    #[test]
    fn all_copies_agree(ops in prop::collection::vec((op(), any::<bool>()), 1..40)) {
        let mut server = Terrain::new(&settings());
        let (mut close, mut lossy) = (Terrain::new(&settings()), Terrain::new(&settings()));
        for (op, lost) in &ops {
            let changed = server.apply(op);
            for version in &changed {
                prop_assert_eq!(server.version(version.chunk), version.version);
            }
            prop_assert_eq!(close.follow(op, &changed).len(), changed.len());
            if !lost {
                lossy.follow(op, &changed);
            }
        }
        prop_assert!(server == close);
        prop_assert_eq!(server.fingerprint(), close.fingerprint());
        let behind: Vec<ChunkVersion> = server
            .edited()
            .filter(|known| lossy.version(known.chunk) != known.version)
            .collect();
        for version in behind {
            let packed = codec::pack(server.chunk(version.chunk).unwrap());
            prop_assert!(lossy.install(version, codec::unpack(&packed).unwrap()));
        }
        prop_assert!(server == lossy);
        let mut rebuilt = Terrain::new(&settings());
        for (op, _) in &ops {
            rebuilt.apply(op);
        }
        prop_assert!(server == rebuilt);
        server.reset();
        prop_assert!(server == Terrain::new(&settings()));
    }

    /// Rays, boxes and heights say what the blocks are.
    #[test]
    fn questions_agree_with_the_blocks(
        ops in prop::collection::vec(op(), 0..6),
        origin in [-80f32..80.0, -10f32..80.0, -80f32..80.0],
        towards in prop::array::uniform3(-1f32..1.0),
        half in 0.3f32..3.0,
        block in prop_oneof![Just(1.0f32), Just(0.5), Just(2.0)],
    ) {
        let settings = Settings { block, ops, ..settings() };
        let terrain = Terrain::new(&settings);
        let length = towards.iter().map(|part| part * part).sum::<f32>().sqrt();
        prop_assume!(length > 0.1);
        let direction = towards.map(|part| part / length);
        let hit = terrain.raycast(origin, direction, 60.0);
        // Small steps along the ray find no solid block before the hit.
        let end = hit.map_or(60.0, |hit| hit.distance);
        for step in 0..600 {
            let distance = step as f32 * 0.1;
            if distance > end - 0.05 {
                break;
            }
            let point = std::array::from_fn(|axis| origin[axis] + direction[axis] * distance);
            let at = terrain.grid().block_at(point);
            // A hair beside a border it may be the block next to it.
            let inner = std::array::from_fn::<f32, 3, _>(|axis| point[axis] / block - at[axis] as f32);
            if inner.iter().all(|part| (0.01..0.99).contains(part)) {
                prop_assert!(!terrain.is_solid(at), "passed {at:?} before {hit:?}");
            }
        }
        if let Some(hit) = hit {
            prop_assert!(terrain.is_solid(hit.block));
            prop_assert_eq!(terrain.block(hit.block), hit.material);
            prop_assert_eq!(hit.normal.iter().map(|part| part.abs()).sum::<i32>(), 1);
        }
        if let Some(height) = terrain.height_at(origin[0], origin[2]) {
            let at = |y: f32| terrain.grid().block_at([origin[0], y, origin[2]]);
            prop_assert!(terrain.is_solid(at(height - 0.1)) && !terrain.is_solid(at(height + 0.1)));
        }
        let (min, max) = (origin.map(|at| at - half), origin.map(|at| at + half));
        let mut blocks = Vec::new();
        terrain.blocks_touching(min, max, &mut blocks);
        let mut boxes = Vec::new();
        terrain.solid_boxes(min, max, &mut boxes);
        let range = terrain.grid().blocks_meeting(min, max);
        let volume: f32 = boxes.iter().map(|[low, high]| (0..3).map(|a| high[a] - low[a]).product::<f32>()).sum();
        let mut solid = 0;
        for y in range.min[1]..=range.max[1] {
            for z in range.min[2]..=range.max[2] {
                for x in range.min[0]..=range.max[0] {
                    if terrain.is_solid([x, y, z]) {
                        solid += 1;
                        prop_assert!(blocks.iter().any(|block| block.at == [x, y, z]));
                    }
                }
            }
        }
        prop_assert!((volume - solid as f32 * block * block * block).abs() < 1e-3);
        for found in &blocks {
            prop_assert!(terrain.is_solid(found.at));
        }
    }
}

#[test]
fn chunks_are_generated_only_when_queried() {
    let terrain = Terrain::new(&settings());
    let before = terrain.heap_bytes();
    terrain.block([0, 20, 0]);
    let one = terrain.heap_bytes();
    assert!(one > before);
    terrain.make_all();
    assert!(terrain.heap_bytes() > one);
    assert!(
        terrain
            .raycast([f32::NAN; 3], [0.0, -1.0, 0.0], 9.0)
            .is_none()
    );
    assert!(
        terrain
            .raycast([0.0, 90.0, 0.0], [0.0, -1.0, 0.0], f32::INFINITY)
            .is_none()
    );
    assert_eq!(
        terrain
            .raycast([0.5, 90.0, 0.5], [0.0, -1.0, 0.0], 99.0)
            .map(|hit| hit.normal),
        Some([0, 1, 0])
    );
    assert!(terrain.height_at(f32::NAN, 0.0).is_none() && terrain.height_at(1e9, 0.0).is_none());
}
