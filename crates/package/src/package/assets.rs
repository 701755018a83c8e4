//! Assets are what their names say: the first bytes of each are looked at before it is kept.
//!
//! Browsers guess types from content. A page of HTML in a .png must never get as far as being
//! served, and a picture of 50,000 by 50,000 pixels must not reach a player's memory.

use crate::{Problem, Rule};

/// The largest width and height of a picture.
const PIXELS_MAX: u32 = 8192;

/// Whether a path names a picture.
pub(super) fn is_picture(path: &str) -> bool {
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
    path.starts_with("assets/") && matches!(extension, "png" | "jpg" | "jpeg" | "webp")
}

/// Checks that an asset is of a known type and starts as that type does.
pub(super) fn check(path: &str, extension: &str, bytes: &[u8]) -> Result<(), Problem> {
    let genuine = match extension {
        "png" => bytes.starts_with(b"\x89PNG\r\n\x1a\n") && bytes.get(12..16) == Some(b"IHDR"),
        "jpg" | "jpeg" => bytes.starts_with(b"\xff\xd8\xff"),
        "webp" => is_riff(bytes, b"WEBP"),
        "wav" => is_riff(bytes, b"WAVE"),
        "ogg" => bytes.starts_with(b"OggS"),
        "mp3" => is_mp3(bytes),
        "glb" => is_glb(bytes),
        "gltf" => is_gltf(bytes),
        _ => {
            let message = "assets are png jpg webp gltf glb ogg mp3 wav (names in lower case)";
            return Err(Problem::error(Rule::UnexpectedFile, path, message));
        }
    };
    if !genuine {
        let message = format!("is not a {extension} file, whatever its name says");
        return Err(Problem::error(Rule::WrongMagic, path, message));
    }
    let too_big = |size: u32| !(1..=PIXELS_MAX).contains(&size);
    match pixels(extension, bytes) {
        Some((width, height)) if too_big(width) || too_big(height) => {
            let message = format!(
                "{width} by {height} pixels; a picture has at most {PIXELS_MAX} by {PIXELS_MAX}"
            );
            Err(Problem::error(Rule::InvalidValue, path, message))
        }
        _ => Ok(()),
    }
}

fn is_riff(bytes: &[u8], form: &[u8]) -> bool {
    bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(form)
}

/// An ID3 tag, or the sync bits of an MPEG layer 3 frame.
fn is_mp3(bytes: &[u8]) -> bool {
    let frame = matches!(bytes, [0xff, second, ..] if second & 0xe6 == 0xe2);
    bytes.starts_with(b"ID3") || frame
}

/// Binary glTF 2 whose length field is its length.
fn is_glb(bytes: &[u8]) -> bool {
    bytes.starts_with(b"glTF\x02\0\0\0") && le_u32(bytes, 8) == u32::try_from(bytes.len()).ok()
}

/// JSON with an `asset`, as every glTF has, nested no deeper than serde_json goes.
fn is_gltf(bytes: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Gltf {
        #[serde(rename = "asset")]
        _asset: serde::de::IgnoredAny,
    }
    serde_json::from_slice::<Gltf>(bytes).is_ok()
}

/// Width and height, where the header gives them at a fixed place.
fn pixels(extension: &str, bytes: &[u8]) -> Option<(u32, u32)> {
    match extension {
        "png" => Some((be_u32(bytes, 16)?, be_u32(bytes, 20)?)),
        "webp" => webp_pixels(bytes),
        "jpg" | "jpeg" => jpeg_pixels(bytes),
        _ => None,
    }
}

fn webp_pixels(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(12..16)? {
        b"VP8X" => {
            let size = |at| Some((le_u32(bytes, at)? & 0xff_ffff) + 1);
            Some((size(24)?, size(27)?))
        }
        b"VP8L" => {
            let bits = le_u32(bytes, 21)?;
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        _ => {
            let sizes = le_u32(bytes, 26)?;
            Some((sizes & 0x3fff, sizes >> 16 & 0x3fff))
        }
    }
}

/// Walks the segments of a JPEG to the frame header.
fn jpeg_pixels(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let &[0xff, marker] = bytes.get(at..at + 2)? else {
            return None;
        };
        let is_frame = matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc);
        if is_frame {
            let size = |at| Some(u32::from(be_u16(bytes, at)?));
            return Some((size(at + 7)?, size(at + 5)?));
        }
        // The length counts itself, so every step moves on.
        at += 2 + usize::from(be_u16(bytes, at + 2)?).max(2);
    }
}

fn be_u16(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
}

fn be_u32(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

fn le_u32(bytes: &[u8], at: usize) -> Option<u32> {
    be_u32(bytes, at).map(u32::swap_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(path: &str, bytes: &[u8]) -> Option<Rule> {
        let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
        check(path, extension, bytes).err().map(|p| p.rule)
    }

    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes
    }

    #[test]
    fn genuine_files_pass() {
        let glb = b"glTF\x02\0\0\0\x0c\0\0\0";
        let jpg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x0b\x08\0\x10\0\x20";
        assert_eq!(rule("assets/a.png", &png(16, 9)), None);
        assert_eq!(rule("assets/a.glb", glb), None);
        assert_eq!(rule("assets/a.jpg", jpg), None);
        assert_eq!(jpeg_pixels(jpg), Some((32, 16)));
        assert_eq!(
            rule("assets/a.gltf", br#"{"asset": {"version": "2.0"}}"#),
            None
        );
        assert_eq!(rule("assets/a.mp3", b"\xff\xfb\x90\0"), None);
        assert_eq!(rule("assets/a.wav", b"RIFF\0\0\0\0WAVE"), None);
        assert_eq!(rule("assets/a.ogg", b"OggS\0"), None);
    }

    #[test]
    fn disguised_and_oversized_files_are_refused() {
        let html = b"<script>alert(1)</script>";
        for extension in ["png", "jpg", "webp", "wav", "ogg", "mp3", "glb", "gltf"] {
            let path = format!("assets/a.{extension}");
            assert_eq!(rule(&path, html), Some(Rule::WrongMagic), "{path}");
            assert_eq!(rule(&path, b""), Some(Rule::WrongMagic), "{path}");
        }
        assert_eq!(rule("assets/a.svg", html), Some(Rule::UnexpectedFile));
        assert_eq!(rule("assets/a.html", html), Some(Rule::UnexpectedFile));
        assert_eq!(rule("assets/a", html), Some(Rule::UnexpectedFile));
        assert_eq!(
            rule("assets/a.png", &png(50_000, 9)),
            Some(Rule::InvalidValue)
        );
        assert_eq!(rule("assets/a.png", &png(0, 9)), Some(Rule::InvalidValue));
    }
}
