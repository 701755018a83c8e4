//! Content encodings: negotiation with the client, and compression.

use std::io::Write as _;

use axum::http::{HeaderMap, header};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Below this size, the added headers outweigh the saving.
const BYTES_MIN: usize = 1024;
/// Above this size, compression would take a noticeable part of a second.
const BYTES_MAX: usize = 32 * 1024 * 1024;
/// Close to zstd's best ratio, at 20 MB/s.
const ZSTD_LEVEL: i32 = 11;

/// A content encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Encoding {
    /// Brotli: produced only by the build, not at run time.
    Brotli,
    /// Zstandard.
    Zstd,
    /// Gzip, which every client supports.
    Gzip,
}

impl Encoding {
    /// Its token in `Content-Encoding`.
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Brotli => "br",
            Encoding::Zstd => "zstd",
            Encoding::Gzip => "gzip",
        }
    }

    /// Compresses `plain`; `None` when that saves too little.
    pub fn compress(self, plain: &[u8]) -> Option<Bytes> {
        if !(BYTES_MIN..=BYTES_MAX).contains(&plain.len()) {
            return None;
        }
        let packed = match self {
            Encoding::Brotli => return None,
            Encoding::Zstd => zstd::bulk::compress(plain, ZSTD_LEVEL).ok()?,
            Encoding::Gzip => {
                let room = Vec::with_capacity(plain.len() / 3);
                let mut encoder = GzEncoder::new(room, Compression::new(6));
                encoder.write_all(plain).ok()?;
                encoder.finish().ok()?
            }
        };
        (packed.len() < plain.len() - plain.len() / 20).then(|| Bytes::from(packed))
    }
}

/// The first of `offered` that the client accepts.
pub fn negotiate(request: &HeaderMap, offered: &[Encoding]) -> Option<Encoding> {
    let given = request.get_all(header::ACCEPT_ENCODING);
    let given: Vec<_> = given.iter().filter_map(|one| one.to_str().ok()).collect();
    let accepted = || given.iter().flat_map(|one| one.split(','));
    let weight = |name: &str| {
        accepted().find_map(|one| {
            let mut parts = one.split(';').map(str::trim);
            let named = parts.next()?.eq_ignore_ascii_case(name);
            let weight = parts.find_map(|part| part.strip_prefix("q=")?.parse::<f32>().ok());
            named.then(|| weight.unwrap_or(1.0))
        })
    };
    let taken = |encoding: &&Encoding| {
        weight(encoding.name())
            .or_else(|| weight("*"))
            .unwrap_or(0.0)
            > 0.0
    };
    offered.iter().find(taken).copied()
}

/// Whether content of this type shrinks under compression.
pub fn is_compressible(media_type: &str) -> bool {
    let name = media_type.split(';').next().unwrap_or_default().trim();
    let packed_already = ["image/", "audio/", "video/", "font/"];
    name == "image/svg+xml" || !packed_already.iter().any(|kind| name.starts_with(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_encoding_that_is_taken_is_used() {
        let offered = [Encoding::Zstd, Encoding::Gzip];
        for (given, expected) in [
            ("gzip, deflate, br, zstd", Some(Encoding::Zstd)),
            ("gzip", Some(Encoding::Gzip)),
            ("GZIP;q=0.5", Some(Encoding::Gzip)),
            ("zstd;q=0, gzip", Some(Encoding::Gzip)),
            ("*", Some(Encoding::Zstd)),
            ("*, zstd; q=0", Some(Encoding::Gzip)),
            ("br", None),
            ("identity", None),
            ("", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, given.parse().unwrap());
            assert_eq!(negotiate(&headers, &offered), expected, "{given}");
        }
        assert_eq!(negotiate(&HeaderMap::new(), &offered), None);
    }

    #[test]
    fn only_what_becomes_smaller_is_packed() {
        let text = "frolic ".repeat(1_000);
        for encoding in [Encoding::Zstd, Encoding::Gzip] {
            let packed = encoding.compress(text.as_bytes()).unwrap();
            assert!(packed.len() < text.len() / 10, "{}", encoding.name());
            assert_eq!(encoding.compress(b"short"), None);
        }
        let mut noise = vec![0; 4_096];
        getrandom::fill(&mut noise).unwrap();
        assert_eq!(Encoding::Zstd.compress(&noise), None);
        assert_eq!(Encoding::Gzip.compress(&noise), None);
    }
}
