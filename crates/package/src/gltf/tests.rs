//! A small writer of glTF, what comes back from it, and what happens when it lies.

use super::*;

/// A .glb of this JSON and these bytes.
fn glb(json: &str, binary: &[u8]) -> Vec<u8> {
    let mut json = json.as_bytes().to_vec();
    json.resize(json.len().next_multiple_of(4), b' ');
    let mut binary = binary.to_vec();
    binary.resize(binary.len().next_multiple_of(4), 0);
    let mut bytes = b"glTF".to_vec();
    let mut word = |number: usize| bytes.extend((number as u32).to_le_bytes());
    word(2);
    word(12 + 8 + json.len() + 8 + binary.len());
    word(json.len());
    bytes.extend(b"JSON");
    bytes.extend(&json);
    bytes.extend((binary.len() as u32).to_le_bytes());
    bytes.extend(b"BIN\0");
    bytes.extend(&binary);
    bytes
}

/// A square of two triangles, one metre wide, as positions and short indices.
fn square() -> Vec<u8> {
    let corners = [
        [0.0f32, 0.0, 0.0],
        [1.0, 0.0, 0.0],
        [1.0, 0.0, -1.0],
        [0.0, 0.0, -1.0],
    ];
    let indices = [0u16, 1, 2, 0, 2, 3];
    let mut bytes: Vec<u8> = corners
        .iter()
        .flatten()
        .flat_map(|x| x.to_le_bytes())
        .collect();
    bytes.extend(indices.iter().flat_map(|x| x.to_le_bytes()));
    bytes
}

fn json(node: &str, extra: &str) -> String {
    format!(
        r#"{{"asset":{{"version":"2.0"}},"scene":0,"scenes":[{{"nodes":[0]}}],"nodes":[{node}],
        "meshes":[{{"primitives":[{{"attributes":{{"POSITION":0,"NORMAL":7}},"indices":1}},{{"attributes":{{"POSITION":0}},"mode":0}}]}}],
        "accessors":[{{"bufferView":0,"componentType":5126,"count":4,"type":"VEC3"}},
                     {{"bufferView":1,"componentType":5123,"count":6,"type":"SCALAR"}}],
        "bufferViews":[{{"buffer":0,"byteLength":48}},{{"buffer":0,"byteOffset":48,"byteLength":12}}],
        "buffers":[{{"byteLength":60}}]{extra}}}"#
    )
}

#[test]
fn corners_go_where_their_nodes_put_them() {
    let plain = read(&glb(&json(r#"{"mesh":0}"#, ""), &square())).unwrap();
    assert_eq!(plain.triangles(), [[0, 1, 2], [0, 2, 3]]);
    assert_eq!(plain.corners()[2], [1.0, 0.0, -1.0]);
    // A quarter turn about y, twice as large, two metres up; below a node that moves on.
    let turned = r#"{"children":[1],"translation":[5,0,0]},
        {"mesh":0,"rotation":[0,0.70710678,0,0.70710678],"scale":[2,2,2],"translation":[0,2,0]}"#;
    let turned = read(&glb(&json(turned, ""), &square())).unwrap();
    let corner = turned.corners()[1];
    for (part, wanted) in corner.iter().zip([5.0, 2.0, -2.0]) {
        assert!((part - wanted).abs() < 1e-5, "{corner:?}");
    }
    let mirrored = r#"{"mesh":0,"scale":[-1,1,1]}"#;
    let mirrored = read(&glb(&json(mirrored, ""), &square())).unwrap();
    assert_eq!(mirrored.triangles()[0], [0, 1, 2]);
    assert_eq!(
        mirrored.corners()[1],
        [-1.0, 0.0, -1.0],
        "turned round again"
    );
}

#[test]
fn text_files_carry_their_buffers_along() {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in square().chunks(3) {
        let bits = group
            .iter()
            .fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - group.len()));
        for at in 0..=group.len() {
            text.push(char::from(letters[(bits >> (18 - 6 * at) & 63) as usize]));
        }
    }
    let gltf = json(r#"{"mesh":0}"#, "").replace(
        r#"{"byteLength":60}"#,
        &format!(r#"{{"byteLength":60,"uri":"data:application/octet-stream;base64,{text}"}}"#),
    );
    assert_eq!(read(gltf.as_bytes()).unwrap().triangles().len(), 2);
    let outside = gltf.replace("data:application/octet-stream;base64,", "../secret.bin?");
    assert!(matches!(read(outside.as_bytes()), Err(Unsupported(_))));
}

#[test]
fn lies_are_refused() {
    let good = json(r#"{"mesh":0}"#, "");
    let lies = [
        (r#""count":4"#, r#""count":5"#),
        (r#""count":4"#, r#""count":18446744073709551615"#),
        (r#""count":6"#, r#""count":4000000000"#),
        (r#""byteLength":48"#, r#""byteLength":18446744073709551615"#),
        (r#""byteOffset":48"#, r#""byteOffset":61"#),
        (r#""byteLength":12"#, r#""byteLength":12,"byteStride":1"#),
        (r#""bufferView":1"#, r#""bufferView":9"#),
        (r#""bufferView":0"#, r#""sparse":{},"bufferView":0"#),
        (
            r#"{"buffer":0,"byteLength":48}"#,
            r#"{"buffer":3,"byteLength":48}"#,
        ),
        (r#"{"nodes":[0]}"#, r#"{"nodes":[0,0]}"#),
        (r#"{"nodes":[0]}"#, r#"{"nodes":[7]}"#),
        (r#"{"mesh":0}"#, r#"{"mesh":3}"#),
        (r#"{"mesh":0}"#, r#"{"mesh":0,"children":[0]}"#),
        (r#""VEC3""#, r#""VEC2""#),
        ("5126", "5123"),
        (r#""POSITION":0,"NORMAL":7"#, r#""POSITION":1"#),
        (
            r#""asset""#,
            r#""extensionsRequired":["KHR_draco_mesh_compression"],"asset""#,
        ),
        (r#""indices":1}"#, r#""indices":1,"mode":9}"#),
        (r#""indices":1}"#, r#""mode":1}"#),
    ];
    for (from, to) in lies {
        assert!(good.contains(from), "{from}");
        let lie = good.replacen(from, to, 1);
        assert!(read(&glb(&lie, &square())).is_err(), "{to}");
    }
    let mut wild = square();
    wild[0..4].copy_from_slice(&f32::INFINITY.to_le_bytes());
    assert!(read(&glb(&good, &wild)).is_err(), "an infinite corner");
    let mut wild = square();
    wild[48] = 4;
    assert!(
        read(&glb(&good, &wild)).is_err(),
        "a corner that is not there"
    );
    let whole = glb(&good, &square());
    for cut in 0..whole.len() - 1 {
        assert!(read(&whole[..cut]).is_err(), "cut at {cut}");
    }
}
