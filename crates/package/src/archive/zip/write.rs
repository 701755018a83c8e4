//! Writes the zip that `frolic pack` makes: the same files give the same bytes.

use std::collections::BTreeMap;
use std::io::Write;

use flate2::Compression;
use flate2::write::DeflateEncoder;

use crate::names::{PathSet, check_path};
use crate::{Problem, Report};

use super::{CENTRAL_SIGNATURE, END_SIGNATURE, LOCAL_SIGNATURE, METHOD_DEFLATE, METHOD_STORED};

/// 1980-01-01, the first day that zip knows, for every file.
const DATE: u16 = 1 << 5 | 1;
/// Readers need version 2.0 of the format, for deflate.
const VERSION: u16 = 20;
/// Made on Unix, so that unzip tools look at the mode.
const MADE_BY: u16 = 3 << 8 | VERSION;
/// A regular file, `rw-r--r--`.
const UNIX_MODE: u32 = 0o100_644;
/// File formats that are compressed already.
const STORED_EXTENSIONS: [&str; 7] = ["glb", "jpeg", "jpg", "mp3", "ogg", "png", "webp"];

/// Why files cannot be packed.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// A path is not allowed in a package.
    #[error("{0}")]
    Path(Report),
    /// The archive would be over 4 GB or 65,534 files: zip has no room for it.
    #[error("too big: a package is under 4 GB and 65,534 files")]
    TooBig,
}

/// Packs files into a `.game` archive. The result depends on nothing but the paths and contents.
///
/// This does not ask whether the files make a game; [`crate::Package::build`] does.
///
/// # Errors
/// When a path is not allowed in a package, or when there is more than zip can hold.
pub fn pack(files: &BTreeMap<String, Vec<u8>>) -> Result<Vec<u8>, PackError> {
    check_paths(files.keys())?;
    let count = u16::try_from(files.len())
        .ok()
        .filter(|count| *count < u16::MAX);
    let count = count.ok_or(PackError::TooBig)?;
    let mut archive = vec![];
    let mut directory = vec![];
    // A BTreeMap iterates in the order of its keys: no need to sort.
    for (path, bytes) in files {
        let header_at = u32::try_from(archive.len()).map_err(|_| PackError::TooBig)?;
        let (method, packed) = compress(path, bytes);
        let common = common_fields(path, method, bytes, &packed)?;
        put_u32(&mut archive, LOCAL_SIGNATURE);
        archive.extend_from_slice(&common);
        archive.extend_from_slice(path.as_bytes());
        archive.extend_from_slice(&packed);
        put_u32(&mut directory, CENTRAL_SIGNATURE);
        put_u16s(&mut directory, &[MADE_BY]);
        directory.extend_from_slice(&common);
        // Comment length, disk number, internal attributes.
        put_u16s(&mut directory, &[0, 0, 0]);
        put_u32(&mut directory, UNIX_MODE << 16);
        put_u32(&mut directory, header_at);
        directory.extend_from_slice(path.as_bytes());
    }
    let directory_at = u32::try_from(archive.len()).map_err(|_| PackError::TooBig)?;
    let directory_bytes = u32::try_from(directory.len()).map_err(|_| PackError::TooBig)?;
    archive.append(&mut directory);
    put_u32(&mut archive, END_SIGNATURE);
    put_u16s(&mut archive, &[0, 0, count, count]);
    put_u32(&mut archive, directory_bytes);
    put_u32(&mut archive, directory_at);
    put_u16s(&mut archive, &[0]);
    Ok(archive)
}

fn check_paths<'p>(paths: impl Iterator<Item = &'p String>) -> Result<(), PackError> {
    let mut report = Report::default();
    let mut set = PathSet::default();
    for path in paths {
        match check_path(path) {
            Ok(()) => set.add(path, &mut report),
            Err(problem) => report.push(problem),
        }
    }
    match report.has_errors() {
        true => Err(PackError::Path(report)),
        false => Ok(()),
    }
}

/// Deflates what gets smaller by it.
fn compress(path: &str, bytes: &[u8]) -> (u16, Vec<u8>) {
    let extension = path.rsplit('.').next().unwrap_or_default();
    if STORED_EXTENSIONS.contains(&extension) {
        return (METHOD_STORED, bytes.to_vec());
    }
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(6));
    let deflated = encoder
        .write_all(bytes)
        .and_then(|()| encoder.finish())
        .expect("a Vec accepts every write");
    match deflated.len() < bytes.len() {
        true => (METHOD_DEFLATE, deflated),
        false => (METHOD_STORED, bytes.to_vec()),
    }
}

/// The fields that the local and the central header share, in their order.
fn common_fields(
    path: &str,
    method: u16,
    bytes: &[u8],
    packed: &[u8],
) -> Result<Vec<u8>, PackError> {
    let size = |len: usize| u32::try_from(len).map_err(|_| PackError::TooBig);
    let mut out = vec![];
    // Version needed, flags, method, time, date.
    put_u16s(&mut out, &[VERSION, 0, method, 0, DATE]);
    put_u32(&mut out, crc32fast::hash(bytes));
    put_u32(&mut out, size(packed.len())?);
    put_u32(&mut out, size(bytes.len())?);
    let path_bytes = u16::try_from(path.len()).map_err(|_| PackError::TooBig)?;
    // Lengths of the path and of the extra field.
    put_u16s(&mut out, &[path_bytes, 0]);
    Ok(out)
}

fn put_u16s(out: &mut Vec<u8>, values: &[u16]) {
    for value in values {
        out.extend_from_slice(&value.to_le_bytes());
    }
}

fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

impl From<PackError> for Report {
    fn from(error: PackError) -> Self {
        match error {
            PackError::Path(report) => report,
            PackError::TooBig => {
                let message = error.to_string();
                Problem::error(crate::Rule::PackedSize, "", message).into()
            }
        }
    }
}
