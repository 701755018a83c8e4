//! Noise that is the same everywhere: uses only integer hashing and sums,
//! products and floors of floats.

/// Hashes two integers and a seed into 32 evenly distributed bits.
pub(crate) fn hash(seed: u32, x: i32, z: i32) -> u32 {
    let mut mixed = seed
        .wrapping_add((x as u32).wrapping_mul(0x9e37_79b1))
        .wrapping_add((z as u32).wrapping_mul(0x85eb_ca6b));
    mixed ^= mixed >> 16;
    mixed = mixed.wrapping_mul(0x7feb_352d);
    mixed ^= mixed >> 15;
    mixed = mixed.wrapping_mul(0x846c_a68b);
    mixed ^ (mixed >> 16)
}

/// The contribution of a lattice corner, by the offset of the point from it.
fn slope(hash: u32, x: f32, z: f32) -> f32 {
    const DIAGONAL: f32 = 0.707_106_77;
    match hash & 7 {
        0 => x,
        1 => -x,
        2 => z,
        3 => -z,
        4 => (x + z) * DIAGONAL,
        5 => (x - z) * DIAGONAL,
        6 => (z - x) * DIAGONAL,
        _ => -(x + z) * DIAGONAL,
    }
}

/// Smooth noise with hills one unit wide, about −0.7 to 0.7.
pub(crate) fn smooth(seed: u32, x: f32, z: f32) -> f32 {
    let (floor_x, floor_z) = (libm::floorf(x), libm::floorf(z));
    let (fx, fz) = (x - floor_x, z - floor_z);
    let (ix, iz) = (floor_x as i32, floor_z as i32);
    let corner = |dx: i32, dz: i32| {
        let hash = hash(seed, ix.wrapping_add(dx), iz.wrapping_add(dz));
        slope(hash, fx - dx as f32, fz - dz as f32)
    };
    let ease = |t: f32| t * t * t * (t * (t * 6.0 - 15.0) + 10.0);
    let mix = |a: f32, b: f32, t: f32| a + (b - a) * t;
    let (u, v) = (ease(fx), ease(fz));
    mix(
        mix(corner(0, 0), corner(1, 0), u),
        mix(corner(0, 1), corner(1, 1), u),
        v,
    )
}

/// Hills with smaller ones on them, about −1 to 1.
pub(crate) fn hills(seed: u32, x: f32, z: f32) -> f32 {
    let mut sum = 0.0;
    let (mut height, mut width) = (1.0, 1.0);
    for octave in 0..4u32 {
        sum += smooth(
            seed.wrapping_add(octave.wrapping_mul(0x51_7cc1)),
            x * width,
            z * width,
        ) * height;
        height *= 0.45;
        width *= 2.03;
    }
    sum
}
