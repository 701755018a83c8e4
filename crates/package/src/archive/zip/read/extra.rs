//! Extra fields of zip headers. Some readers take an entry's name or size from there instead of from
//! the header; both must say the same, or one archive would mean two packages.

use super::{Entry, Fields};
use crate::{Problem, Rule};
use frolic_scene::text::shown;

const ZIP64: u16 = 0x0001;
const UNICODE_PATH: u16 = 0x7075;
/// Version (1 byte) and checksum of the header's name (4 bytes) before the name itself.
const UNICODE_PATH_PREFIX_BYTES: usize = 5;

/// Which header an extra field belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Header {
    Local,
    Central,
}

/// Refuses an extra field that contradicts its entry. Fields about times and owners are ignored.
pub(super) fn check(entry: &Entry<'_>, header: Header, mut extra: &[u8]) -> Result<(), Problem> {
    let refuse = |rule, message: &str| Err(Problem::error(rule, shown(&entry.path), message));
    while !extra.is_empty() {
        let fields = Fields(extra);
        let record = fields.u16(0).zip(fields.u16(2)).and_then(|(id, bytes)| {
            let end = 4 + usize::from(bytes);
            Some((id, extra.get(4..end)?, &extra[end..]))
        });
        let Some((id, data, rest)) = record else {
            return refuse(Rule::NotAnArchive, "its extra field is damaged");
        };
        match id {
            UNICODE_PATH
                if data.get(UNICODE_PATH_PREFIX_BYTES..) != Some(entry.path.as_bytes()) =>
            {
                let message = "its Unicode path field gives it another name";
                return refuse(Rule::ConflictingName, message);
            }
            ZIP64 if !zip64_agrees(entry, header, data) => {
                let message = "its zip64 field gives it another size or place";
                return refuse(Rule::LyingSize, message);
            }
            _ => {}
        }
        extra = rest;
    }
    Ok(())
}

/// A zip64 field holds the unpacked size, the packed size, the place and the disk, in this order,
/// and may end after any of them. Streaming tools write zero sizes into local headers and put the
/// real ones behind the data.
fn zip64_agrees(entry: &Entry<'_>, header: Header, data: &[u8]) -> bool {
    let fields = Fields(data);
    let expected = [
        entry.unpacked_bytes,
        entry.packed_bytes,
        entry.header_at as u64,
    ];
    let streamed = header == Header::Local && entry.flags & super::FLAG_DESCRIPTOR != 0;
    let mut at = 0;
    for value in expected {
        if at == data.len() {
            return true;
        }
        match fields.u64(at) {
            Some(found) if found == value || (streamed && found == 0) => at += 8,
            _ => return false,
        }
    }
    data[at..].is_empty() || data[at..] == [0; 4]
}
