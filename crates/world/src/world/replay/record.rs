//! The file format of a recording: a magic number, a header, then records, each
//! prefixed by its length, so that a truncated file can be read up to the last
//! complete record.

use frolic_fleet_api::persist::SavedWorld;
use frolic_script::VmLimits;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::policy::InterestPolicy;
use crate::world::input::Input;

/// Magic number of a recording; the last byte is the format version.
const MARK: [u8; 8] = *b"frolrec\x06";
/// Longest record that is stored as it is: the longest message of a client, plus
/// names.
const RECORD_BYTES_MAX: usize = 128 * 1024;
/// Limit of what is stored in parts: the saved world that a recording starts
/// from, and a package's scripts.
const PARTS_BYTES_MAX: u64 = 256 * 1024 * 1024;
const PART_BYTES: usize = 64 * 1024;

/// What a recording was made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordingHeader {
    /// SHA-256 of the package, in hexadecimal.
    pub revision: String,
    /// Seed of everything random.
    pub seed: u64,
    /// Ticks per second.
    pub tick_hz: u32,
    /// Updates to clients per second, and what is replicated: what a player saw
    /// depends on both.
    pub snapshot_hz: u32,
    /// See `snapshot_hz`.
    pub interest: InterestPolicy,
    /// Ticks between two fingerprints.
    pub hash_every_ticks: u32,
    /// Limits of scripts that decide what they can do.
    pub scripts: ScriptLimits,
    /// Scripts that were disabled.
    pub disabled_scripts: Vec<String>,
    /// The wall-clock time of scripts at the start.
    pub started_unix_ms: u64,
    /// The program that recorded it; see [`this_build`](super::this_build).
    pub made_by: String,
    /// The saved state that the world was created from. Stored behind the
    /// header, because it may be long.
    #[serde(skip)]
    pub saved: SavedWorld,
}

/// The script limits that do not depend on a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptLimits {
    /// See [`VmLimits::memory_bytes`].
    pub memory_bytes: u64,
    /// See [`VmLimits::offences_max`].
    pub offences_max: u32,
    /// See [`VmLimits::log_lines_per_second`].
    pub log_lines_per_second: u32,
    /// See [`VmLimits::spawns_per_tick`].
    pub spawns_per_tick: u32,
    /// See [`VmLimits::spawns_per_script_tick`].
    pub spawns_per_script_tick: u32,
    /// See [`VmLimits::entities_per_script`].
    pub entities_per_script: u32,
    /// See [`VmLimits::send_bytes_per_tick`].
    pub send_bytes_per_tick: u64,
}

impl From<&VmLimits> for ScriptLimits {
    fn from(limits: &VmLimits) -> Self {
        Self {
            memory_bytes: limits.memory_bytes as u64,
            offences_max: limits.offences_max,
            log_lines_per_second: limits.log_lines_per_second,
            spawns_per_tick: limits.spawns_per_tick,
            spawns_per_script_tick: limits.spawns_per_script_tick,
            entities_per_script: limits.entities_per_script,
            send_bytes_per_tick: limits.send_bytes_per_tick as u64,
        }
    }
}

/// An input of a world, or a fact about the world at that point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Record {
    /// The world was given this.
    Input(Input),
    /// The fingerprint of the world at this point.
    Hash(u64),
    /// A limit stopped or paused scripts here. That depends on a clock or on
    /// the allocator, so a replay may differ from here on.
    Cut,
    /// The end of the recording.
    End(Ending),
}

/// How a record is stored.
#[derive(Serialize, Deserialize)]
enum Stored<R> {
    /// As it is.
    Record(R),
    /// A long input of this many bytes, in the parts that follow.
    Parts(u64),
}

/// How a recording ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// With the world.
    Complete,
    /// Before it; the reason.
    Incomplete(String),
}

/// Why a recording cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordingError {
    /// It has a different magic number.
    #[error("this is not a recording of a world")]
    NotOne,
    /// Made by another version.
    #[error("the recording has form {found}, and this program reads form {}", MARK[7])]
    Version {
        /// The format version of the file.
        found: u8,
    },
    /// A record is not valid.
    #[error("the recording is damaged at byte {at}")]
    Damaged {
        /// Offset of the record.
        at: u64,
    },
}

/// Writes the start of a recording.
pub(super) fn write_header(out: &mut Vec<u8>, header: &RecordingHeader) {
    out.extend_from_slice(&MARK);
    write_framed(out, header);
    let saved = if header.saved == SavedWorld::default() {
        Vec::new()
    } else {
        postcard::to_allocvec(&header.saved).unwrap_or_default()
    };
    write_framed(out, &(saved.len() as u64));
    write_parts(out, &saved);
}

fn write_parts(out: &mut Vec<u8>, bytes: &[u8]) {
    for part in bytes.chunks(PART_BYTES) {
        write_framed(out, &part);
    }
}

/// Appends one record.
pub(super) fn write(out: &mut Vec<u8>, record: &Record) {
    let start = out.len();
    let length = write_framed(out, &Stored::Record(record));
    if length > RECORD_BYTES_MAX
        && let Record::Input(input) = record
    {
        out.truncate(start);
        let bytes = postcard::to_allocvec(input).unwrap_or_default();
        write_framed(out, &Stored::<&Record>::Parts(bytes.len() as u64));
        write_parts(out, &bytes);
    }
}

impl Record {
    /// The record as encoded in a file, for a host that has to end one.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes, self);
        bytes
    }
}

/// Three bytes hold every length, as 7-bit groups, lowest first. The body is
/// written behind one reserved byte, which suffices for nearly all records.
fn write_framed(out: &mut Vec<u8>, what: &impl Serialize) -> usize {
    let start = out.len();
    out.push(0);
    let taken = std::mem::take(out);
    match postcard::to_extend(what, taken) {
        Ok(written) => *out = written,
        // Cannot happen: the types are ours and the buffer grows.
        Err(_) => return 0,
    }
    let length = out.len() - start - 1;
    let mut rest = length;
    let mut prefix = [0u8; 4];
    let mut used = 0;
    while rest >= 0x80 {
        prefix[used] = rest as u8 | 0x80;
        rest >>= 7;
        used += 1;
    }
    prefix[used] = rest as u8;
    out.splice(start..=start, prefix[..=used].iter().copied());
    length
}

/// Reads a recording that arrives in pieces.
#[derive(Default)]
pub struct RecordReader {
    buffer: Vec<u8>,
    /// How much of the buffer is consumed.
    used: usize,
    /// Bytes of the recording before the buffer.
    before: u64,
    marked: bool,
    /// The header, while the saved world behind it is being read.
    head: Option<RecordingHeader>,
    /// What is being read in parts, and its announced size.
    parts: Option<(u64, Vec<u8>)>,
}

impl RecordReader {
    /// Appends bytes. Read all records before the next piece: unread bytes stay
    /// in memory.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.used);
        self.before += self.used as u64;
        self.used = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The header, to be read once before any record; none while it is
    /// incomplete.
    ///
    /// # Errors
    /// If this is not a recording, or has another version.
    pub fn header(&mut self) -> Result<Option<RecordingHeader>, RecordingError> {
        if !self.marked {
            let Some(mark) = self.buffer.first_chunk::<8>() else {
                let fits = MARK.starts_with(&self.buffer);
                return if fits {
                    Ok(None)
                } else {
                    Err(RecordingError::NotOne)
                };
            };
            if mark[..7] != MARK[..7] {
                return Err(RecordingError::NotOne);
            }
            if mark[7] != MARK[7] {
                return Err(RecordingError::Version { found: mark[7] });
            }
            self.used = MARK.len();
            self.marked = true;
        }
        if self.head.is_none() {
            self.head = self.framed()?;
        }
        if self.head.is_none() {
            return Ok(None);
        }
        if self.parts.is_none() {
            match self.framed()? {
                Some(bytes) => self.expect_parts(bytes)?,
                None => return Ok(None),
            }
        }
        let Some(saved) = self.read_parts()? else {
            return Ok(None);
        };
        let mut head = self.head.take();
        if let Some(head) = head.as_mut().filter(|_| !saved.is_empty()) {
            head.saved = postcard::from_bytes(&saved).map_err(|_| self.damaged())?;
        }
        Ok(head)
    }

    /// The next complete record; none if there is none.
    ///
    /// # Errors
    /// If the next bytes are not a record.
    pub fn record(&mut self) -> Result<Option<Record>, RecordingError> {
        if self.parts.is_none() {
            match self.framed()? {
                None => return Ok(None),
                Some(Stored::Record(record)) => return Ok(Some(record)),
                Some(Stored::Parts(bytes)) => self.expect_parts(bytes)?,
            }
        }
        match self.read_parts()? {
            None => Ok(None),
            Some(bytes) => match postcard::take_from_bytes(&bytes) {
                Ok((input, [])) => Ok(Some(Record::Input(input))),
                _ => Err(self.damaged()),
            },
        }
    }

    fn expect_parts(&mut self, bytes: u64) -> Result<(), RecordingError> {
        if bytes > PARTS_BYTES_MAX {
            return Err(self.damaged());
        }
        self.parts = Some((bytes, Vec::new()));
        Ok(())
    }

    /// What was announced, once all of it is there.
    fn read_parts(&mut self) -> Result<Option<Vec<u8>>, RecordingError> {
        let Some((wanted, mut bytes)) = self.parts.take() else {
            return Ok(None);
        };
        while (bytes.len() as u64) < wanted {
            match self.framed::<Vec<u8>>()? {
                Some(part) if part.is_empty() => return Err(self.damaged()),
                Some(part) => bytes.extend_from_slice(&part),
                None => {
                    self.parts = Some((wanted, bytes));
                    return Ok(None);
                }
            }
        }
        Ok(Some(bytes))
    }

    fn damaged(&self) -> RecordingError {
        RecordingError::Damaged {
            at: self.bytes_read(),
        }
    }

    /// Bytes of an incomplete record.
    pub fn left(&self) -> usize {
        let parts = self.parts.as_ref().map_or(0, |(_, bytes)| bytes.len());
        parts + self.buffer.len() - self.used
    }

    /// Bytes of the recording that were consumed.
    pub fn bytes_read(&self) -> u64 {
        self.before + self.used as u64
    }

    fn framed<T: DeserializeOwned>(&mut self) -> Result<Option<T>, RecordingError> {
        let damaged = self.damaged();
        let waiting = &self.buffer[self.used..];
        let mut length = 0usize;
        for (index, &byte) in waiting.iter().enumerate() {
            if index > 2 {
                return Err(damaged);
            }
            length |= usize::from(byte & 0x7f) << (7 * index);
            if byte >= 0x80 {
                continue;
            }
            if length > RECORD_BYTES_MAX {
                return Err(damaged);
            }
            let start = index + 1;
            let Some(body) = waiting.get(start..start + length) else {
                return Ok(None);
            };
            let Ok((record, [])) = postcard::take_from_bytes(body) else {
                return Err(damaged);
            };
            self.used += start + length;
            return Ok(Some(record));
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reload::Changes;
    use crate::world::input;
    use frolic_fleet_api::ops::{LoggedOp, WorldOp};
    use frolic_protocol::{Args, Value};

    fn header() -> RecordingHeader {
        RecordingHeader {
            revision: "ab".repeat(32),
            seed: 7,
            tick_hz: 60,
            snapshot_hz: 20,
            interest: InterestPolicy::within(40.0),
            hash_every_ticks: 60,
            scripts: ScriptLimits::from(&VmLimits::default()),
            disabled_scripts: vec!["Workspace/Stuck.luau".into()],
            started_unix_ms: 1_800_000_000_000,
            made_by: "0.1.0".into(),
            saved: saved(),
        }
    }

    /// More than fits one record.
    fn saved() -> SavedWorld {
        let op = |seq| LoggedOp {
            seq,
            by: Some("client_".repeat(20)),
            op: WorldOp::Unbuild { structure: seq },
        };
        SavedWorld {
            ops: (1..2000).map(op).collect(),
            ..SavedWorld::default()
        }
    }

    fn records() -> Vec<Record> {
        let changes = Changes::from([("Long.luau".into(), Some("--".repeat(100_000)))]);
        let inputs: [Input; 4] = [
            input::Join::new("guest", "n".repeat(200)).into(),
            input::Event::new(1, "Buy", Args(vec![Value::Nil])).into(),
            input::Reload {
                revision: "ab".into(),
                changes,
            }
            .into(),
            input::Step.into(),
        ];
        let ending = Ending::Incomplete("the disk is slow".into());
        let facts = [Record::Hash(u64::MAX), Record::End(ending)];
        inputs.map(Record::Input).into_iter().chain(facts).collect()
    }

    fn bytes() -> Vec<u8> {
        let mut bytes = Vec::new();
        write_header(&mut bytes, &header());
        records()
            .iter()
            .for_each(|record| write(&mut bytes, record));
        bytes
    }

    #[test]
    fn whatever_the_pieces_the_records_are_the_same() {
        let bytes = bytes();
        for size in [1, 2, 7, 1000, bytes.len()] {
            let mut reader = RecordReader::default();
            let (mut found, mut read) = (None, Vec::new());
            for piece in bytes.chunks(size) {
                reader.push(piece);
                if found.is_none() {
                    found = reader.header().unwrap();
                }
                while found.is_some()
                    && let Some(record) = reader.record().unwrap()
                {
                    read.push(record);
                }
            }
            assert_eq!(found, Some(header()));
            assert_eq!(read, records());
            assert_eq!(
                (reader.left(), reader.bytes_read()),
                (0, bytes.len() as u64)
            );
        }
    }

    #[test]
    fn other_files_are_recognized() {
        let read = |bytes: &[u8]| {
            let mut reader = RecordReader::default();
            reader.push(bytes);
            reader.header()
        };
        assert_eq!(read(b"fro"), Ok(None));
        assert_eq!(read(b"PK\x03\x04"), Err(RecordingError::NotOne));
        assert_eq!(
            read(b"frolrec\x09more"),
            Err(RecordingError::Version { found: 9 })
        );
        let mut long = MARK.to_vec();
        long.extend([0xff, 0xff, 0x7f]);
        assert_eq!(read(&long), Err(RecordingError::Damaged { at: 8 }));
    }
}
