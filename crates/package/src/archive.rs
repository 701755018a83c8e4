//! From the bytes of an archive to its files, in memory, with nothing trusted.

mod tar;
mod zip;

use std::collections::BTreeMap;
use std::io::Read;

use crate::{Limits, Problem, Report, Rule, limits};

pub use zip::{PackError, pack};

/// The files of a package by path.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// Whether [`read`] would take an archive made by [`pack`]; cheap, as no data is read.
pub(crate) fn check_packed(archive: &[u8], limits: &Limits) -> Result<(), Report> {
    check_packed_size(archive, limits)?;
    zip::check(archive, limits)
}

/// Reads a zip, .tar.gz or .tar.zst, recognised by how it starts.
pub(crate) fn read(archive: &[u8], limits: &Limits) -> Result<Files, Report> {
    check_packed_size(archive, limits)?;
    match archive {
        [b'P', b'K', 3, 4, ..] => zip::read(archive, limits),
        [0x1f, 0x8b, ..] => tar::read(
            flate2::read::GzDecoder::new(archive),
            archive.len() as u64,
            limits,
        ),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(archive).map_err(|error| {
                let message = format!("cannot be decompressed: {error}");
                Report::from(Problem::error(Rule::NotAnArchive, "", message))
            })?;
            tar::read(decoder, archive.len() as u64, limits)
        }
        _ => {
            let message = "isn't a Frolic package: it should be a zip made by `frolic pack`, \
                           a .tar.gz or a .tar.zst";
            Err(Problem::error(Rule::NotAnArchive, "", message).into())
        }
    }
}

/// Reads one file of a zip, and nothing else of it.
pub(crate) fn read_one(archive: &[u8], path: &str, limits: &Limits) -> Result<Vec<u8>, Report> {
    check_packed_size(archive, limits)?;
    zip::read_one(archive, path, limits)
}

fn check_packed_size(archive: &[u8], limits: &Limits) -> Result<(), Report> {
    if archive.len() as u64 <= limits.packed_bytes_max {
        return Ok(());
    }
    let message = format!(
        "{} bytes packed; at most {} are allowed",
        archive.len(),
        limits.packed_bytes_max
    );
    Err(Problem::error(Rule::PackedSize, "", message).into())
}

/// Reads exactly `size` bytes and not one more.
fn read_sized(reader: impl Read, path: &str, size: u64) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    // The size has passed the limits; what is reserved but not filled costs nothing.
    bytes
        .try_reserve_exact(usize::try_from(size).unwrap_or(usize::MAX))
        .map_err(|_| Problem::error(Rule::FileSize, path, "does not fit into memory"))?;
    let read = reader.take(size.saturating_add(1)).read_to_end(&mut bytes);
    if let Err(error) = read {
        let message = format!("cannot be decompressed: {error}");
        return Err(Problem::error(Rule::NotAnArchive, path, message));
    }
    if bytes.len() as u64 != size {
        let message = format!("the archive says {size} bytes, but that is not what is in it");
        return Err(Problem::error(Rule::LyingSize, path, message));
    }
    Ok(bytes)
}

/// Adds up declared sizes and refuses what goes over a limit, before any content is read.
pub(crate) struct Budget<'l> {
    limits: &'l Limits,
    total: Sum,
    scripts: Sum,
}

impl<'l> Budget<'l> {
    pub(crate) fn new(limits: &'l Limits) -> Self {
        Budget {
            limits,
            total: Sum::default(),
            scripts: Sum::default(),
        }
    }

    /// Counts a file of this declared size. A total that is exceeded is reported once.
    pub(crate) fn spend(&mut self, path: &str, bytes: u64) -> Result<(), Problem> {
        let max = limits::file_bytes_max_at(self.limits, path);
        if bytes > max {
            let message = format!("{bytes} bytes; this file has at most {max}");
            return Err(Problem::error(Rule::FileSize, path, message));
        }
        let max = self.limits.unpacked_bytes_max;
        if self.total.exceeds(bytes, max) {
            let message = format!("all files together have at most {max} bytes");
            return Err(Problem::error(Rule::UnpackedSize, path, message));
        }
        let max = self.limits.scripts_bytes_max as u64;
        if limits::counts_as_script(path) && self.scripts.exceeds(bytes, max) {
            let message = format!("all scripts and texts together have at most {max} bytes");
            return Err(Problem::error(Rule::FileSize, "scripts", message));
        }
        Ok(())
    }
}

/// A sum that tells once when it passes its limit.
#[derive(Default)]
struct Sum {
    bytes: u64,
    told: bool,
}

impl Sum {
    fn exceeds(&mut self, bytes: u64, max: u64) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        self.bytes > max && !std::mem::replace(&mut self.told, true)
    }
}

/// Whether `unpacked_bytes` from `packed_bytes` is a decompression bomb. Files below 1 MiB are
/// harmless at any ratio.
fn is_bomb(packed_bytes: u64, unpacked_bytes: u64, limits: &Limits) -> bool {
    unpacked_bytes > 1 << 20 && unpacked_bytes / packed_bytes.max(1) > limits.ratio_max
}
