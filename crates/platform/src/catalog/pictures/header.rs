//! Detects the format and dimensions of a picture from its header, without decoding
//! it.

/// Format and dimensions of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PictureHeader {
    pub media_type: &'static str,
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
}

/// Reads the header; `None` for an unsupported format or invalid header.
pub fn read(bytes: &[u8]) -> Option<PictureHeader> {
    let (media_type, (width, height)) = if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        ("image/png", png(bytes)?)
    } else if bytes.starts_with(&[0xff, 0xd8, 0xff]) {
        ("image/jpeg", jpeg(bytes)?)
    } else if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        ("image/webp", webp(bytes)?)
    } else {
        return None;
    };
    Some(PictureHeader {
        media_type,
        width,
        height,
    })
}

fn png(bytes: &[u8]) -> Option<(u32, u32)> {
    if bytes.get(12..16)? != b"IHDR" {
        return None;
    }
    let number = |at: usize| {
        let four: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_be_bytes(four))
    };
    Some((number(16)?, number(20)?))
}

/// Walks the JPEG segments to the frame header.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        if *bytes.get(at)? != 0xff {
            return None;
        }
        let marker = *bytes.get(at + 1)?;
        let number = |at: usize| {
            let two: [u8; 2] = bytes.get(at..at + 2)?.try_into().ok()?;
            Some(usize::from(u16::from_be_bytes(two)))
        };
        match marker {
            // Fill bytes, and markers without content.
            0xff => at += 1,
            0x01 | 0xd0..=0xd7 => at += 2,
            // Frame headers; the four omitted codes are tables and reserved.
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                let (height, width) = (number(at + 5)?, number(at + 7)?);
                return Some((u32::try_from(width).ok()?, u32::try_from(height).ok()?));
            }
            // Image data or end of image before any frame header.
            0xd9 | 0xda => return None,
            _ => {
                let length = number(at + 2)?;
                at += 2 + length.max(2);
            }
        }
    }
}

fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    let two = |at: usize| {
        let two: [u8; 2] = bytes.get(at..at + 2)?.try_into().ok()?;
        Some(u32::from(u16::from_le_bytes(two)))
    };
    let three = |at: usize| Some(two(at)? | (u32::from(*bytes.get(at + 2)?) << 16));
    match bytes.get(12..16)? {
        b"VP8 " if bytes.get(23..26)? == [0x9d, 0x01, 0x2a] => {
            Some((two(26)? & 0x3fff, two(28)? & 0x3fff))
        }
        b"VP8L" if *bytes.get(20)? == 0x2f => {
            let bits = two(21)? | (two(23)? << 16);
            Some(((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1))
        }
        b"VP8X" => Some((three(24)? + 1, three(27)? + 1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(bytes: &[u8]) -> Option<(&'static str, u32, u32)> {
        read(bytes).map(|picture| (picture.media_type, picture.width, picture.height))
    }

    #[test]
    fn kinds_and_sizes_are_read() {
        let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        png.extend([0, 0, 5, 0, 0, 0, 2, 0xd0, 8, 2]);
        assert_eq!(sizes(&png), Some(("image/png", 1280, 720)));
        let mut jpeg = vec![0xff, 0xd8, 0xff, 0xe0, 0, 4, 1, 2, 0xff, 0xff];
        jpeg.extend([0xc2, 0, 11, 8, 0x02, 0xd0, 0x05, 0x00, 3]);
        assert_eq!(sizes(&jpeg), Some(("image/jpeg", 1280, 720)));
        let mut webp = b"RIFF\x20\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0".to_vec();
        webp.extend([0xff, 0x04, 0, 0xcf, 0x02, 0]);
        assert_eq!(sizes(&webp), Some(("image/webp", 1280, 720)));
        let mut lossless = b"RIFF\x20\0\0\0WEBPVP8L\x0a\0\0\0\x2f".to_vec();
        lossless.extend(((1279_u32) | (719 << 14)).to_le_bytes());
        assert_eq!(sizes(&lossless), Some(("image/webp", 1280, 720)));
        let mut lossy = b"RIFF\x20\0\0\0WEBPVP8 \x0a\0\0\0\0\0\0\x9d\x01\x2a".to_vec();
        lossy.extend([0x00, 0x05, 0xd0, 0x02]);
        assert_eq!(sizes(&lossy), Some(("image/webp", 1280, 720)));
    }

    #[test]
    fn nothing_else_is_a_picture_and_nothing_breaks() {
        for bad in [
            b"".as_slice(),
            b"<svg onload=alert(1)>",
            b"GIF89a",
            b"\x89PNG\r\n\x1a\n",
            b"\xff\xd8\xff",
            b"\xff\xd8\xff\xe0\xff\xff",
            b"\xff\xd8\xff\xd9",
            b"RIFF\0\0\0\0WEBP",
        ] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
        // Every truncation, and every single-byte change.
        let good = b"\xff\xd8\xff\xe0\0\x04\x01\x02\xff\xc0\0\x0b\x08\x02\xd0\x05\0\x03";
        for end in 0..good.len() {
            let _ = read(&good[..end]);
            for value in [0, 1, 0x7f, 0xff] {
                let mut changed = good.to_vec();
                changed[end] = value;
                let _ = read(&changed);
            }
        }
    }
}
