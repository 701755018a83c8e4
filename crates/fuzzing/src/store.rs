//! Uploads of creators.

use std::io::Write;

use frolic_package::{Limits, Manifest, Package, Scene, Triangles};

/// Small, so that a fuzzer finds the limits.
fn limits() -> Limits {
    Limits {
        packed_bytes_max: 1 << 20,
        unpacked_bytes_max: 4 << 20,
        file_bytes_max: 2 << 20,
        entries_max: 64,
        scene_bytes_max: 1 << 20,
        ..Limits::default()
    }
}

pub fn manifest(bytes: &[u8]) {
    let _ = Manifest::parse(bytes, &limits());
}

/// A scene that is taken has a canonical form, which is taken and is its own.
pub fn scene(bytes: &[u8]) {
    let Ok(scene) = Scene::parse(bytes, &limits()) else {
        return;
    };
    // The scene that a world runs and its clients receive: of format 1.
    let expanded = scene.clone().expand();
    frolic_sim::scene::load(&expanded);
    let for_clients = expanded.for_clients().to_canonical_json();
    if scene.format > 1
        && let Err(report) = Scene::parse(for_clients.as_bytes(), &Limits::default())
    {
        panic!("clients refuse the scene:\n{report}\n{for_clients}");
    }
    let canonical = scene.to_canonical_json();
    match Scene::parse(canonical.as_bytes(), &limits()) {
        Ok(again) => assert_eq!(again.to_canonical_json(), canonical),
        Err(report) => panic!("the canonical form is refused:\n{report}\n{canonical}"),
    }
}

/// The solid part of an asset: from glTF, and in the form that clients get.
/// Every accepted mesh can be walked on.
pub fn mesh(bytes: &[u8]) {
    for mesh in [
        frolic_package::gltf::read(bytes).ok(),
        Triangles::decode(bytes),
    ] {
        let Some(mesh) = mesh else { continue };
        assert_eq!(Triangles::decode(&mesh.encode()).as_ref(), Some(&mesh));
        let mut meshes = frolic_sim::Meshes::default();
        meshes.add("assets/a.glb", &mesh);
        let Some((id, found)) = meshes.find("assets/a.glb") else {
            continue;
        };
        let scale = frolic_sim::Vec3::ONE;
        let reach = found.reach(scale);
        let mut world = frolic_sim::CollisionWorld::with_meshes(meshes);
        let shape = frolic_sim::Shape::Mesh { id, scale, reach };
        world.insert(1, shape, frolic_sim::Pose::identity());
        let mut state = frolic_sim::CharacterState::at(frolic_sim::Vec3::Y);
        let input = frolic_sim::CharacterInput::default();
        for _ in 0..4 {
            let params = frolic_sim::CharacterParams::default();
            frolic_sim::step_character(&world, &params, &mut state, &input, 1.0 / 60.0);
        }
    }
}

/// The first byte says whether the rest is the archive itself, or a tar that
/// is to be compressed: a fuzzer does not guess checksums.
pub fn package(bytes: &[u8]) {
    let Some((form, rest)) = bytes.split_first() else {
        return;
    };
    let archive = match form % 3 {
        0 => rest.to_vec(),
        1 => gzip(rest),
        _ => zstd::bulk::compress(rest, 1).expect("memory is enough"),
    };
    let Ok(package) = Package::read(&archive, &limits()) else {
        return;
    };
    let built = Package::build(package.files.clone(), &limits());
    let (again, packed) = built.expect("what was taken can be packed");
    assert_eq!(again.files, package.files);
    let read = Package::read(&packed, &limits()).expect("what we pack we read");
    assert_eq!(read.revision, again.revision);
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("a vector takes everything");
    encoder.finish().expect("a vector takes everything")
}
