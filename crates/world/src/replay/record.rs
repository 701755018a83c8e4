//! The file format of a recording: a magic number, a header, then records, each
//! prefixed by its length, so that a truncated file can be read up to the last
//! complete record.

use std::borrow::Cow;

use frolic_fleet_api::persist::{PlayerState, SavedWorld};
use frolic_package::spells::SpellSettings;
use frolic_protocol::avatar::AvatarLooks;
use frolic_protocol::terrain::TerrainOp;
use frolic_protocol::{Args, NumberedInput};
use frolic_script::VmLimits;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::interest::InterestPolicy;
use crate::player::PlayerNumber;

/// Magic number of a recording; the last byte is the format version.
const MARK: [u8; 8] = *b"frolrec\x05";
/// Longest record: the longest message of a client, plus names.
const RECORD_BYTES_MAX: usize = 128 * 1024;
/// Limit of the saved world that a recording starts from, also for one part of
/// it.
const SAVED_BYTES_MAX: u64 = 256 * 1024 * 1024;
const SAVED_PART_BYTES: usize = 64 * 1024;

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

/// A call on a world, or a fact about it at that point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Record<'a> {
    /// One tick.
    Step,
    /// New inputs of a player.
    Inputs {
        /// The player.
        player: PlayerNumber,
        /// Without those that the world already had.
        inputs: Cow<'a, [NumberedInput]>,
    },
    /// A player joined; numbers are assigned in order.
    Join {
        /// Persistent id.
        id: Cow<'a, str>,
        /// Display name.
        name: Cow<'a, str>,
    },
    /// A player left for good.
    Leave {
        /// The player.
        player: PlayerNumber,
    },
    /// A player's client reconnected.
    Reconnect {
        /// The player.
        player: PlayerNumber,
    },
    /// A client fired an event.
    Event {
        /// The player.
        player: PlayerNumber,
        /// Name of the event.
        name: Cow<'a, str>,
        /// Its arguments.
        args: Cow<'a, Args>,
    },
    /// A client called a function.
    Invoke {
        /// The player.
        player: PlayerNumber,
        /// Chosen by the client.
        id: u32,
        /// Name of the function.
        name: Cow<'a, str>,
        /// Its arguments.
        args: Cow<'a, Args>,
    },
    /// A client reported what it shows of other players.
    Shown {
        /// The player.
        player: PlayerNumber,
        /// The tick.
        tick: u32,
        /// Progress to the next tick, in 1/256.
        fraction: u8,
    },
    /// The round-trip time of a client.
    RoundTrip {
        /// The player.
        player: PlayerNumber,
        /// Milliseconds.
        ms: u16,
    },
    /// The fingerprint of the world at this point.
    Hash(u64),
    /// A limit stopped or paused scripts here. That depends on a clock or on
    /// the allocator, so a replay may differ from here on.
    Cut,
    /// The end of the recording.
    End(Ending),
    /// The next piece of a changed script's source, for the reload that
    /// follows.
    Script {
        /// Path below `scripts/`.
        path: Cow<'a, str>,
        /// A part of the text; parts of one path follow each other.
        text: Cow<'a, str>,
    },
    /// The scripts in the records before this replaced those that ran.
    Reload {
        /// SHA-256 of their package.
        revision: Cow<'a, str>,
        /// Paths of removed scripts.
        removed: Vec<String>,
    },
    /// The scripts before the last reload were restored.
    SwapBack,
    /// The store answered.
    StoreAnswer {
        /// Number of the request.
        id: u32,
        /// Its result, or the error.
        result: Result<Cow<'a, Args>, Cow<'a, str>>,
    },
    /// The wall-clock time was set for scripts.
    WallClock {
        /// Milliseconds since the start of 1970.
        unix_ms: u64,
    },
    /// A client cast a spell.
    Cast {
        /// The player.
        player: PlayerNumber,
        /// The spell.
        spell: Cow<'a, str>,
        /// Requested revision, if any.
        revision: Option<Cow<'a, str>>,
        /// One value.
        params: Cow<'a, Args>,
    },
    /// Persistent operations are stored up to this number.
    OpsPersisted {
        /// Its number.
        up_to: u64,
    },
    /// A player joined who was known to an earlier process of this world.
    JoinAgain {
        /// Persistent id.
        id: Cow<'a, str>,
        /// Display name.
        name: Cow<'a, str>,
        /// Their saved state.
        saved: Box<PlayerState>,
    },
    /// A player sent a chat message.
    Chat {
        /// The player.
        player: PlayerNumber,
        /// The text.
        text: Cow<'a, str>,
    },
    /// A player requested a terrain change.
    Terraform {
        /// The player.
        player: PlayerNumber,
        /// The operation.
        op: Cow<'a, TerrainOp>,
    },
    /// The appearance of a player's character changed.
    Dress {
        /// The player.
        player: PlayerNumber,
        /// The new appearance.
        looks: AvatarLooks,
    },
    /// A player was moved next to another, who had invited them.
    Beside {
        /// The player.
        player: PlayerNumber,
        /// The player who invited them.
        friend: PlayerNumber,
    },
    /// The code of a spell came with the reload before this; it can be cast.
    Learn {
        /// The name that it is cast by.
        name: Cow<'a, str>,
        /// Its revision.
        revision: Cow<'a, str>,
        /// Cost and limits of a cast.
        settings: SpellSettings,
        /// The spell that was removed to make capacity.
        forgotten: Option<String>,
    },
    /// A user without a character cast a spell.
    CastFromOutside {
        /// Persistent id.
        by: Cow<'a, str>,
        /// The spell.
        spell: Cow<'a, str>,
        /// Requested revision, if any.
        revision: Option<Cow<'a, str>>,
        /// One value.
        params: Cow<'a, Args>,
    },
    /// A user without a character requested a terrain change.
    TerraformFromOutside {
        /// Persistent id.
        by: Cow<'a, str>,
        /// The operation.
        op: Cow<'a, TerrainOp>,
    },
    /// All changes ever made were reverted.
    Clear {
        /// Persistent id of the user.
        by: Cow<'a, str>,
    },
    /// The code of a spell was removed with the reload before this; it cannot
    /// be cast.
    Forget {
        /// The name that it was cast by.
        name: Cow<'a, str>,
    },
    /// A player was teleported.
    Teleport {
        /// The player.
        player: PlayerNumber,
        /// New position of the feet.
        place: [f32; 3],
    },
    /// The world began to close.
    Close,
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
    for part in saved.chunks(SAVED_PART_BYTES) {
        write_framed(out, &part);
    }
}

/// Appends one record.
pub(super) fn write(out: &mut Vec<u8>, record: &Record) {
    write_framed(out, record);
}

impl Record<'_> {
    /// The record as encoded in a file, for a host that has to end one.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes, self);
        bytes
    }
}

/// Three bytes hold every length, as 7-bit groups, lowest first. The body is
/// written behind one reserved byte, which suffices for nearly all records.
fn write_framed(out: &mut Vec<u8>, what: &impl Serialize) {
    let start = out.len();
    out.push(0);
    let taken = std::mem::take(out);
    match postcard::to_extend(what, taken) {
        Ok(written) => *out = written,
        // Cannot happen: the types are ours and the buffer grows.
        Err(_) => return,
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
    saved: Vec<u8>,
    saved_bytes: Option<u64>,
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
        let damaged = RecordingError::Damaged {
            at: self.bytes_read(),
        };
        if self.saved_bytes.is_none() {
            self.saved_bytes = self.framed()?;
        }
        let wanted = match self.saved_bytes {
            None => return Ok(None),
            Some(bytes) if bytes > SAVED_BYTES_MAX => return Err(damaged),
            Some(bytes) => bytes,
        };
        while (self.saved.len() as u64) < wanted {
            let Some(part) = self.framed::<Vec<u8>>()? else {
                return Ok(None);
            };
            if part.is_empty() {
                return Err(damaged);
            }
            self.saved.extend_from_slice(&part);
        }
        let mut head = self.head.take();
        let saved = std::mem::take(&mut self.saved);
        if let Some(head) = head.as_mut().filter(|_| wanted > 0) {
            head.saved = postcard::from_bytes(&saved).map_err(|_| damaged)?;
        }
        Ok(head)
    }

    /// The next complete record; none if there is none.
    ///
    /// # Errors
    /// If the next bytes are not a record.
    pub fn record(&mut self) -> Result<Option<Record<'static>>, RecordingError> {
        self.framed()
    }

    /// Bytes of an incomplete record.
    pub fn left(&self) -> usize {
        self.buffer.len() - self.used
    }

    /// Bytes of the recording that were consumed.
    pub fn bytes_read(&self) -> u64 {
        self.before + self.used as u64
    }

    fn framed<T: DeserializeOwned>(&mut self) -> Result<Option<T>, RecordingError> {
        let damaged = RecordingError::Damaged {
            at: self.bytes_read(),
        };
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
    use frolic_fleet_api::ops::{LoggedOp, WorldOp};
    use frolic_protocol::Value;

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

    fn records() -> Vec<Record<'static>> {
        vec![
            Record::Join {
                id: "guest".into(),
                name: "n".repeat(200).into(),
            },
            Record::Event {
                player: 1,
                name: "Buy".into(),
                args: Cow::Owned(Args(vec![Value::String("x".repeat(16_000)), Value::Nil])),
            },
            Record::Step,
            Record::Hash(u64::MAX),
            Record::End(Ending::Incomplete("the disk is slow".into())),
        ]
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
