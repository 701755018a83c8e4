//! Scales pictures down and encodes them as WebP, for cards and phones. Pictures are
//! untrusted, so their dimensions are checked before decoding.

use std::io::Cursor;

use bytes::Bytes;
use image::imageops::FilterType;
use image::{DynamicImage, ImageFormat, ImageReader, Limits};

use super::pictures::SIDE_MAX;

/// Available widths; a requested width is rounded up to the next.
const WIDTHS: [u32; 3] = [320, 640, 1280];
/// Memory limit for decoding one picture: the largest allowed in 8 bits per channel.
const UNPACKED_BYTES_MAX: u64 = 4 * (SIDE_MAX as u64) * (SIDE_MAX as u64);
/// Hardly distinguishable from the original at a tenth of its bytes.
const QUALITY: f32 = 80.0;

/// Rounds a requested width up to an available one.
pub fn round_width(requested: u32) -> u32 {
    let fits = WIDTHS.into_iter().find(|width| *width >= requested);
    fits.unwrap_or(WIDTHS[WIDTHS.len() - 1])
}

/// Whether pictures of this media type can be scaled.
pub fn is_picture(media_type: &str) -> bool {
    matches!(media_type, "image/png" | "image/jpeg" | "image/webp")
}

/// The picture at most `width` wide, as WebP; `None` when it cannot be decoded, is
/// too large, or would not become smaller.
pub fn to_width(bytes: &[u8], width: u32) -> Option<Bytes> {
    let mut reader = ImageReader::new(Cursor::new(bytes))
        .with_guessed_format()
        .ok()?;
    let known = [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP];
    if !known.contains(&reader.format()?) {
        return None;
    }
    let mut limits = Limits::no_limits();
    limits.max_image_width = Some(SIDE_MAX);
    limits.max_image_height = Some(SIDE_MAX);
    limits.max_alloc = Some(UNPACKED_BYTES_MAX);
    reader.limits(limits);
    let picture = reader.decode().ok()?;
    let small = if picture.width() > width {
        // The height follows the width; a sliver keeps at least one row.
        picture.resize(width, SIDE_MAX, FilterType::CatmullRom)
    } else {
        picture
    };
    let (width, height) = (small.width(), small.height());
    let packed = match small {
        picture if picture.color().has_alpha() => {
            let pixels = DynamicImage::into_rgba8(picture);
            webp::Encoder::from_rgba(&pixels, width, height).encode(QUALITY)
        }
        picture => {
            let pixels = DynamicImage::into_rgb8(picture);
            webp::Encoder::from_rgb(&pixels, width, height).encode(QUALITY)
        }
    };
    (packed.len() < bytes.len()).then(|| Bytes::copy_from_slice(&packed))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Roughly a photograph: no two pixels are equal.
    fn picture(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
        let pixels = image::RgbImage::from_fn(width, height, |x, y| {
            let noise = x.wrapping_mul(2_654_435_761) ^ y.wrapping_mul(40_503);
            image::Rgb([(x / 4) as u8, (y / 4) as u8, (noise >> 24) as u8])
        });
        let mut bytes = Cursor::new(Vec::new());
        pixels.write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    }

    fn size(bytes: &[u8]) -> (u32, u32) {
        assert_eq!(image::guess_format(bytes).unwrap(), ImageFormat::WebP);
        let picture = image::load_from_memory(bytes).unwrap();
        (picture.width(), picture.height())
    }

    #[test]
    fn pictures_become_small_webp() {
        for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP] {
            let original = picture(960, 540, format);
            let small = to_width(&original, 320).unwrap();
            assert_eq!(size(&small), (320, 180));
            assert!(small.len() < original.len(), "{format:?}");
        }
        // Pictures are never scaled up.
        let original = picture(200, 100, ImageFormat::Png);
        assert_eq!(size(&to_width(&original, 640).unwrap()), (200, 100));
    }

    #[test]
    fn hostile_pictures_are_left_alone() {
        let good = picture(64, 64, ImageFormat::Png);
        // A header that claims 60,000 × 60,000 pixels.
        let mut huge = good.clone();
        huge[16..20].copy_from_slice(&60_000_u32.to_be_bytes());
        huge[20..24].copy_from_slice(&60_000_u32.to_be_bytes());
        let cut = good[..good.len() / 2].to_vec();
        for bad in [huge, cut, b"GIF89a".to_vec(), b"<svg/>".to_vec(), vec![]] {
            assert_eq!(to_width(&bad, 320), None);
        }
        let mut state = 1_u32;
        for _ in 0..300 {
            let mut broken = good.clone();
            for _ in 0..8 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let at = state as usize % broken.len();
                broken[at] = (state >> 24) as u8;
            }
            to_width(&broken, 32);
        }
    }

    #[test]
    fn requested_widths_are_rounded_to_a_few() {
        let steps = [0, 1, 320, 321, 700, 5_000, u32::MAX].map(round_width);
        assert_eq!(steps, [320, 320, 320, 640, 1280, 1280, 1280]);
    }
}
