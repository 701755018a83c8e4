//! Snapshots: what a client sees at a tick, as the difference from what it already
//! has.
//!
//! The world is divided into cells. A snapshot is a header for one client and one
//! record for each cell that changed since the version the client has; unchanged
//! cells cost nothing. On a lossy connection a snapshot is several numbered
//! packets, each usable without the others.

mod cell;
mod state;

use frolic_motion::{CharacterState, Vec3};

use crate::bits::{BitError, BitReader, BitWriter};

pub use cell::{
    CellContent, CellKey, CellRecord, CellSource, CellVersion, KnownCells, write_cell,
    write_dropped_cell,
};

/// The header before the cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SnapshotHeader {
    /// The tick whose end it shows.
    pub tick: u32,
    /// Version of the scripts that made this state; the manifest of
    /// that version names their revision and hashes.
    pub scripts: u32,
    /// The packet's number, on a lossy connection: the client acknowledges it. None
    /// on a reliable connection.
    pub number: Option<u32>,
    /// About the client itself; in the first packet of each snapshot.
    pub own: Option<OwnState>,
}

/// The state of a client's own character.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnState {
    /// The last input of this client that the simulation used.
    pub ack_seq: u32,
    /// Ticks simulated since without a new input: inputs that arrive for them later
    /// count as used.
    pub late_ticks: u8,
    /// Inputs queued on the server: the client adapts its clock to it.
    pub queued_inputs: u8,
    /// The client's own character, exactly as the server computes with it.
    pub character: CharacterState,
}

/// A snapshot packet, decoded.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The header before the cells.
    pub header: SnapshotHeader,
    /// The cells that changed.
    pub cells: Vec<CellRecord>,
}

/// Why a snapshot could not be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The bytes are not a snapshot.
    #[error("the snapshot is malformed")]
    Malformed,
    /// It builds on a version that this client does not have (any more).
    #[error("the snapshot builds on tick {0}, which is not known")]
    UnknownBaseline(u32),
}

impl From<BitError> for SnapshotError {
    fn from(_: BitError) -> Self {
        SnapshotError::Malformed
    }
}

/// More entities than a world may have: a longer list is an attack.
const ENTITIES_MAX: usize = 300_000;

/// Appends a header; cells follow it.
pub fn write_header(bytes: Vec<u8>, header: &SnapshotHeader) -> Vec<u8> {
    let mut writer = BitWriter::after(bytes);
    writer.bits(header.tick, 32);
    writer.number(header.scripts, 3);
    writer.flag(header.number.is_some());
    if let Some(number) = header.number {
        writer.bits(number, 32);
    }
    writer.flag(header.own.is_some());
    if let Some(own) = &header.own {
        writer.bits(own.ack_seq, 32);
        writer.number(u32::from(own.late_ticks), 1);
        writer.number(u32::from(own.queued_inputs), 2);
        write_character(&mut writer, &own.character);
    }
    writer.finish()
}

/// Reads only the header.
///
/// # Errors
/// When the bytes are malformed.
pub fn header(bytes: &[u8]) -> Result<SnapshotHeader, SnapshotError> {
    read_header(&mut BitReader::new(bytes))
}

/// Reads a snapshot packet of a world with `tick_hz` ticks a second.
///
/// # Errors
/// When the bytes are malformed, or a baseline is not known.
pub fn decode(
    bytes: &[u8],
    tick_hz: u32,
    known: &impl KnownCells,
) -> Result<Snapshot, SnapshotError> {
    let mut reader = BitReader::new(bytes);
    let header = read_header(&mut reader)?;
    reader.align();
    let mut cells = Vec::new();
    let mut room = ENTITIES_MAX;
    while reader.remaining() > 0 {
        let record = cell::read_cell(&mut reader, header.tick, tick_hz, known, &mut room)?;
        cells.push(record);
        reader.align();
    }
    Ok(Snapshot { header, cells })
}

fn read_header(reader: &mut BitReader) -> Result<SnapshotHeader, SnapshotError> {
    let tick = reader.bits(32)?;
    let scripts = reader.number(3)?;
    let number = if reader.flag()? {
        Some(reader.bits(32)?)
    } else {
        None
    };
    let own = if reader.flag()? {
        Some(OwnState {
            ack_seq: reader.bits(32)?,
            late_ticks: small(reader.number(1)?)?,
            queued_inputs: small(reader.number(2)?)?,
            character: read_character(reader)?,
        })
    } else {
        None
    };
    Ok(SnapshotHeader {
        tick,
        scripts,
        number,
        own,
    })
}

fn write_character(writer: &mut BitWriter, own: &CharacterState) {
    state::write_floats(writer, own.feet);
    state::write_floats(writer, own.velocity);
    writer.flag(own.ground.is_some());
    if let Some(ground) = own.ground {
        writer.number(ground, 8);
        writer.flag(own.ground_normal != Vec3::Y);
        if own.ground_normal != Vec3::Y {
            state::write_floats(writer, own.ground_normal);
        }
    }
    writer.bits(u32::from(own.air_ticks), 8);
}

fn read_character(reader: &mut BitReader) -> Result<CharacterState, SnapshotError> {
    let mut own = CharacterState::at(state::read_floats(reader)?);
    own.velocity = state::read_floats(reader)?;
    if reader.flag()? {
        own.ground = Some(reader.number(8)?);
        if reader.flag()? {
            own.ground_normal = state::read_floats(reader)?;
        }
    }
    own.air_ticks = reader.bits(8)? as u8;
    Ok(own)
}

fn small(number: u32) -> Result<u8, SnapshotError> {
    u8::try_from(number).map_err(|_| SnapshotError::Malformed)
}

#[cfg(test)]
mod tests;
