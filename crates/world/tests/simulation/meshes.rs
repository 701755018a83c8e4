//! Mesh shapes in whole worlds: solid for characters, bodies and rays,
//! and predicted by clients to the last bit.

use std::collections::BTreeMap;

use frolic_package::Package;
use frolic_scene::Limits;
use frolic_sim::random::Random;
use frolic_sim::{CharacterInput, Vec3};

use crate::harness::{Run, walk};
use crate::network::Quality;

const SIDE: usize = 25;

/// Gentle hills with a wall across, as a .glb.
fn hills() -> Vec<u8> {
    let mut random = Random::new(4);
    let mut corners: Vec<[f32; 3]> = (0..SIDE * SIDE)
        .map(|i| {
            let (x, z) = ((i % SIDE) as f32 - 12.0, (i / SIDE) as f32 - 12.0);
            [x, random.range(0.0, 0.35), z]
        })
        .collect();
    let mut faces: Vec<u16> = (0..(SIDE - 1) * (SIDE - 1))
        .flat_map(|i| {
            let a = (i / (SIDE - 1) * SIDE + i % (SIDE - 1)) as u16;
            let row = SIDE as u16;
            [a, a + row, a + 1, a + 1, a + row, a + row + 1]
        })
        .collect();
    // A wall without any thickness at z = -8.
    let first = corners.len() as u16;
    corners.extend([
        [-12.0, -1.0, -8.0],
        [12.0, -1.0, -8.0],
        [12.0, 4.0, -8.0],
        [-12.0, 4.0, -8.0],
    ]);
    faces.extend([first, first + 1, first + 2, first, first + 2, first + 3]);
    glb(&corners, &faces)
}

fn glb(corners: &[[f32; 3]], faces: &[u16]) -> Vec<u8> {
    let mut binary: Vec<u8> = corners
        .iter()
        .flatten()
        .flat_map(|x| x.to_le_bytes())
        .collect();
    let at = binary.len();
    binary.extend(faces.iter().flat_map(|index| index.to_le_bytes()));
    binary.resize(binary.len().next_multiple_of(4), 0);
    let json = format!(
        r#"{{"asset":{{"version":"2.0"}},"scene":0,"scenes":[{{"nodes":[0]}}],"nodes":[{{"mesh":0}}],"meshes":[{{"primitives":[{{"attributes":{{"POSITION":0}},"indices":1}}]}}],"accessors":[{{"bufferView":0,"componentType":5126,"count":{},"type":"VEC3"}},{{"bufferView":1,"componentType":5123,"count":{},"type":"SCALAR"}}],"bufferViews":[{{"buffer":0,"byteLength":{at}}},{{"buffer":0,"byteOffset":{at},"byteLength":{}}}],"buffers":[{{"byteLength":{}}}]}}"#,
        corners.len(),
        faces.len(),
        faces.len() * 2,
        binary.len()
    );
    let length = |bytes: usize| (bytes as u32).to_le_bytes();
    [
        &b"glTF\x02\0\0\0"[..],
        &length(28 + json.len() + binary.len()),
        &length(json.len()),
        b"JSON",
        json.as_bytes(),
        &length(binary.len()),
        b"BIN\0",
        &binary,
    ]
    .concat()
}

fn package(asset: Vec<u8>, script: &str) -> Result<Package, String> {
    let scene = r#"{"format":1,"prefabs":{"Ball":{"components":{"Shape":{"type":"sphere","radius":0.3},"Body":{"type":"dynamic"}}},
        "Rock":{"components":{"Transform":{"scale":[0.2,4,0.2]},"Shape":{"type":"mesh","asset":"assets/hills.glb"}}}},
        "entities":[
        {"id":1,"name":"Hills","components":{"Transform":{"scale":[1.5,1,1.5]},"Shape":{"type":"mesh","asset":"assets/hills.glb"}}},
        {"id":2,"name":"Spawn","components":{"Transform":{"position":[0,1,6]},"SpawnPoint":{}}}]}"#;
    let manifest = "[game]\nid = \"test\"\nname = \"Test\"\nversion = \"1.0.0\"\n";
    let files = BTreeMap::from([
        ("game.toml".to_owned(), manifest.as_bytes().to_vec()),
        ("scene.json".to_owned(), scene.as_bytes().to_vec()),
        ("assets/hills.glb".to_owned(), asset),
        (
            "scripts/ServerScriptService/Main.luau".to_owned(),
            script.as_bytes().to_vec(),
        ),
    ]);
    Package::from_files(files, &Limits::default()).map_err(|report| report.to_string())
}

#[test]
fn hills_are_walked_on_and_predicted_exactly() {
    let mut run = Run::new(&package(hills(), "").unwrap(), 3, Quality::BAD);
    let player = run.join("Ada");
    run.for_ms(3_000);
    run.measure(true);
    for turn in 0..8 {
        run.steer(player, walk(turn as f32 * 0.9));
        run.for_ms(700);
        let state = run.server_character(player);
        assert!((-0.05..2.0).contains(&state.feet.y), "{}", state.feet);
    }
    let errors = run.prediction_errors(player);
    let worst = errors.iter().copied().fold(0.0, f32::max);
    assert!(errors.len() > 80, "{}", errors.len());
    assert_eq!(worst, 0.0, "every step was predicted");
    // Along -z stands a wall without thickness.
    run.steer(player, walk(0.0));
    run.for_ms(6_000);
    let feet = run.server_character(player).feet;
    assert!((feet.z + 11.6).abs() < 0.1, "stopped by the wall: {feet}");
    run.steer(player, CharacterInput::default());
}

#[test]
fn scripts_cannot_spawn_assets_that_are_not_there() {
    let script = r#"
        local function try(components)
            print(select(2, pcall(World.Spawn, components, Vector3.zero)))
        end
        try({ Model = { asset = "assets/none.glb" } })
        try({ Sound = { asset = "assets/none.wav" } })
        try({ Shape = { type = "mesh", asset = "assets/none.glb" } })
        try({ Shape = { type = "mesh", asset = "assets/unused.glb" } })
        try({ Shape = { type = "mesh", asset = "assets/hills.glb" } })
    "#;
    let mut files = package(hills(), script).unwrap().files;
    files.insert("assets/unused.glb".to_owned(), hills());
    let package = Package::from_files(files, &Limits::default()).unwrap();
    let mut run = Run::new(&package, 3, Quality::GOOD);
    run.for_ms(500);
    let lines = run.world_mut().take_logs();
    let lines: Vec<&str> = lines.iter().map(|line| line.message.as_str()).collect();
    let expected = [
        "Model: there is no file assets/none.glb in this game",
        "Sound: there is no file assets/none.wav in this game",
        "Shape: there is no file assets/none.glb in this game",
        "Shape: the mesh assets/unused.glb is not loaded; give it to a prefab",
        "Entity ",
    ];
    assert_eq!(lines.len(), expected.len(), "{lines:?}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.contains(expected), "{line}");
    }
}

#[test]
fn bodies_rest_on_meshes_and_rays_meet_them() {
    let script = r#"
        for i = 1, 20 do World.Spawn("Ball", Vector3.new(i - 10, 3, i % 5)) end
        local fast = World.Spawn("Ball", Vector3.new(0, 2, 4))
        fast.SetVelocity(Vector3.new(0, 0, -300))
        local hit = World.Raycast(Vector3.new(0.4, 10, 0.4), Vector3.new(0, -20, 0))
        print(hit.Entity.Name, hit.Position.Y > -0.01 and hit.Position.Y < 0.4, hit.Normal.Y > 0.7)
        print(pcall(World.Spawn, { Shape = { type = "mesh", asset = "assets/hills.glb" }, Body = { type = "dynamic" } }))
        local rock = World.Spawn("Rock", Vector3.new(3, 0, 3))
        task.wait(2)
        print("fast", fast.Position.Z > -12.1)
        print("rock", World.Raycast(Vector3.new(3, 10, 3), Vector3.new(0, -20, 0)).Entity.Name)
        local low = 0
        for _, ball in World.FindAll("Ball") do if ball.Position.Y < 0.1 then low += 1 end end
        print("low", low)
    "#;
    let package = package(hills(), script).unwrap();
    let mut run = Run::new(&package, 3, Quality::GOOD);
    run.for_ms(4_000);
    let lines = run.world_mut().take_logs();
    let lines: Vec<&str> = lines.iter().map(|line| line.message.as_str()).collect();
    assert_eq!(lines[0], "Hills true true", "{lines:?}");
    assert!(lines[1].contains("a mesh cannot be dynamic"), "{lines:?}");
    assert_eq!(lines[2..], ["fast true", "rock Rock", "low 0"]);
    run.for_ms(8_000);
    assert_eq!(run.world().position_of("Hills"), Some(Vec3::ZERO));
}

#[test]
fn an_asset_that_is_no_mesh_is_refused_with_its_name() {
    let mut broken = hills();
    let end = broken.len() - 3;
    broken[end] = 0xff;
    let problem = package(broken, "").unwrap_err();
    assert!(
        problem.contains("assets/hills.glb") && problem.contains("corner"),
        "{problem}"
    );
}
