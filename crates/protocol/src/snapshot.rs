//! Snapshots: what a client sees at a tick, as the difference from what it
//! already has (NET-5). Entities that did not change cost nothing.

use frolic_sim::{CharacterState, Motion, Vec3};

use crate::bits::{BitError, BitReader, BitWriter};
use crate::entity::{Difference, EntityKind, EntityState, differences};

/// What a snapshot says besides the entities.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SnapshotHeader {
    /// The tick whose end it shows.
    pub tick: u32,
    /// The acknowledged tick it is relative to; none when it stands alone.
    pub baseline: Option<u32>,
    /// The last input of this client that the simulation used.
    pub ack_seq: u32,
    /// Ticks simulated since without a new input: inputs that arrive for
    /// them later are counted as used.
    pub late_ticks: u8,
    /// Inputs that wait on the server: the client slows down or speeds up by it.
    pub queued_inputs: u8,
    /// The client's own character, exactly as the server computes with it.
    pub own: Option<CharacterState>,
}

/// Why a snapshot could not be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The bytes are not a snapshot.
    #[error("the snapshot is malformed")]
    Malformed,
    /// It builds on a tick that this client does not have (any more).
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

/// Writes the entities of a snapshot: what turns `baseline` into `current`,
/// both in order of ids. Clients with the same baseline and the same view
/// share the result.
pub fn encode_entities(baseline: &[EntityState], current: &[EntityState]) -> Vec<u8> {
    let mut writer = BitWriter::new();
    let mut last_id = 0;
    for difference in differences(baseline, current) {
        writer.flag(true);
        let id = match difference {
            Difference::Created(state) | Difference::Changed(_, state) => state.id,
            Difference::Removed(id) => id,
        };
        writer.number(id - last_id, 2);
        last_id = id;
        match difference {
            Difference::Removed(_) => writer.flag(true),
            Difference::Created(state) => {
                writer.flag(false);
                write_state(&mut writer, &blank(id), state, true);
            }
            Difference::Changed(before, state) => {
                writer.flag(false);
                write_state(&mut writer, before, state, false);
            }
        }
    }
    writer.flag(false);
    writer.finish()
}

/// Puts a client's header before shared entities.
pub fn join(header: &SnapshotHeader, entities: &[u8]) -> Vec<u8> {
    let mut writer = BitWriter::new();
    write_header(&mut writer, header);
    let mut bytes = writer.finish();
    bytes.extend_from_slice(entities);
    bytes
}

/// Writes a whole snapshot; `baseline` is empty when the header names none.
pub fn encode(
    header: &SnapshotHeader,
    baseline: &[EntityState],
    current: &[EntityState],
) -> Vec<u8> {
    join(header, &encode_entities(baseline, current))
}

/// Reads only what stands before the entities.
///
/// # Errors
/// When the bytes are malformed.
pub fn header(bytes: &[u8]) -> Result<SnapshotHeader, SnapshotError> {
    read_header(&mut BitReader::new(bytes))
}

/// Reads a snapshot. `baseline_of` finds the entities of an earlier tick.
///
/// # Errors
/// When the bytes are malformed, or the baseline is not known.
pub fn decode<'a>(
    bytes: &[u8],
    baseline_of: impl FnOnce(u32) -> Option<&'a [EntityState]>,
) -> Result<(SnapshotHeader, Vec<EntityState>), SnapshotError> {
    let mut reader = BitReader::new(bytes);
    let header = read_header(&mut reader)?;
    reader.align();
    let baseline = match header.baseline {
        Some(tick) => baseline_of(tick).ok_or(SnapshotError::UnknownBaseline(tick))?,
        None => &[],
    };
    let mut entities = Vec::with_capacity(baseline.len() + 8);
    let mut rest = baseline;
    let mut last_id = 0u32;
    while reader.flag()? {
        let id = last_id
            .checked_add(reader.number(2)?)
            .ok_or(SnapshotError::Malformed)?;
        if (last_id != 0 && id == last_id) || entities.len() >= ENTITIES_MAX {
            return Err(SnapshotError::Malformed);
        }
        last_id = id;
        let unchanged = rest.partition_point(|state| state.id < id);
        entities.extend_from_slice(&rest[..unchanged]);
        rest = &rest[unchanged..];
        let before = rest.first().filter(|state| state.id == id);
        rest = &rest[usize::from(before.is_some())..];
        if reader.flag()? {
            if before.is_none() {
                return Err(SnapshotError::Malformed);
            }
            continue;
        }
        let state = match before {
            Some(before) => read_state(&mut reader, before, false)?,
            None => read_state(&mut reader, &blank(id), true)?,
        };
        entities.push(state);
    }
    entities.extend_from_slice(rest);
    Ok((header, entities))
}

fn blank(id: u32) -> EntityState {
    EntityState::new(id, EntityKind::Thing)
}

fn write_header(writer: &mut BitWriter, header: &SnapshotHeader) {
    writer.bits(header.tick, 32);
    writer.flag(header.baseline.is_some());
    if let Some(baseline) = header.baseline {
        writer.number(header.tick.wrapping_sub(baseline), 4);
    }
    writer.bits(header.ack_seq, 32);
    writer.number(u32::from(header.late_ticks), 1);
    writer.number(u32::from(header.queued_inputs), 2);
    writer.flag(header.own.is_some());
    if let Some(own) = &header.own {
        write_vector(writer, own.feet);
        write_vector(writer, own.velocity);
        writer.flag(own.ground.is_some());
        if let Some(ground) = own.ground {
            writer.number(ground, 8);
            writer.flag(own.ground_normal != Vec3::Y);
            if own.ground_normal != Vec3::Y {
                write_vector(writer, own.ground_normal);
            }
        }
        writer.bits(u32::from(own.air_ticks), 8);
    }
}

fn read_header(reader: &mut BitReader) -> Result<SnapshotHeader, SnapshotError> {
    let tick = reader.bits(32)?;
    let baseline = if reader.flag()? {
        Some(tick.wrapping_sub(reader.number(4)?))
    } else {
        None
    };
    let ack_seq = reader.bits(32)?;
    let late_ticks = small(reader.number(1)?)?;
    let queued_inputs = small(reader.number(2)?)?;
    let own = if reader.flag()? {
        Some(read_character(reader)?)
    } else {
        None
    };
    Ok(SnapshotHeader {
        tick,
        baseline,
        ack_seq,
        late_ticks,
        queued_inputs,
        own,
    })
}

fn read_character(reader: &mut BitReader) -> Result<CharacterState, SnapshotError> {
    let mut own = CharacterState::at(read_vector(reader)?);
    own.velocity = read_vector(reader)?;
    if reader.flag()? {
        own.ground = Some(reader.number(8)?);
        if reader.flag()? {
            own.ground_normal = read_vector(reader)?;
        }
    }
    own.air_ticks = reader.bits(8)? as u8;
    Ok(own)
}

fn small(number: u32) -> Result<u8, SnapshotError> {
    u8::try_from(number).map_err(|_| SnapshotError::Malformed)
}

fn write_vector(writer: &mut BitWriter, vector: Vec3) {
    vector.to_array().iter().for_each(|&c| writer.float(c));
}

fn read_vector(reader: &mut BitReader) -> Result<Vec3, SnapshotError> {
    Ok(Vec3::new(reader.float()?, reader.float()?, reader.float()?))
}

/// Deltas of a walking player at 20 Hz are below 128 steps: 6 low bits fit best.
const POSITION_LOW_BITS: u32 = 6;
const VELOCITY_LOW_BITS: u32 = 5;

fn write_state(writer: &mut BitWriter, old: &EntityState, new: &EntityState, created: bool) {
    if created {
        writer.flag(new.kind == EntityKind::Character);
        writer.number(u32::from(new.definition), 3);
        writer.number(new.owner, 3);
    }
    writer.flag(new.position != old.position);
    if new.position != old.position {
        for axis in 0..3 {
            let delta = new.position[axis].wrapping_sub(old.position[axis]);
            writer.signed(delta, POSITION_LOW_BITS);
        }
    }
    writer.flag(new.velocity != old.velocity);
    if new.velocity != old.velocity {
        for axis in 0..3 {
            let delta = i32::from(new.velocity[axis]) - i32::from(old.velocity[axis]);
            writer.signed(delta, VELOCITY_LOW_BITS);
        }
    }
    writer.flag(new.look != old.look);
    if new.look != old.look {
        writer.bits(u32::from(new.look[0]), 16);
        writer.bits(u32::from(new.look[1]), 16);
    }
    let rare = |state: &EntityState| (state.rotation, state.flags, state.motion);
    writer.flag(rare(new) != rare(old));
    if rare(new) != rare(old) {
        writer.flag(new.rotation != old.rotation);
        if new.rotation != old.rotation {
            writer.bits(new.rotation, 32);
        }
        writer.bits(u32::from(new.flags), 8);
        writer.flag(new.motion != old.motion);
        if new.motion != old.motion {
            writer.flag(new.motion.is_some());
            if let Some(motion) = &new.motion {
                write_vector(writer, motion.from);
                write_vector(writer, motion.to);
                writer.bits(motion.start_tick, 32);
                writer.number(motion.end_tick.saturating_sub(motion.start_tick), 8);
            }
        }
    }
}

fn read_state(
    reader: &mut BitReader,
    old: &EntityState,
    created: bool,
) -> Result<EntityState, SnapshotError> {
    let mut state = *old;
    if created {
        if reader.flag()? {
            state.kind = EntityKind::Character;
        }
        state.definition =
            u16::try_from(reader.number(3)?).map_err(|_| SnapshotError::Malformed)?;
        state.owner = reader.number(3)?;
    }
    if reader.flag()? {
        for axis in &mut state.position {
            *axis = axis.wrapping_add(reader.signed(POSITION_LOW_BITS)?);
        }
    }
    if reader.flag()? {
        for axis in &mut state.velocity {
            *axis = axis.wrapping_add(reader.signed(VELOCITY_LOW_BITS)? as i16);
        }
    }
    if reader.flag()? {
        state.look = [reader.bits(16)? as u16, reader.bits(16)? as u16];
    }
    if reader.flag()? {
        if reader.flag()? {
            state.rotation = reader.bits(32)?;
        }
        state.flags = reader.bits(8)? as u8;
        if reader.flag()? {
            state.motion = read_motion(reader)?;
        }
    }
    Ok(state)
}

fn read_motion(reader: &mut BitReader) -> Result<Option<Motion>, SnapshotError> {
    if !reader.flag()? {
        return Ok(None);
    }
    let (from, to) = (read_vector(reader)?, read_vector(reader)?);
    let start_tick = reader.bits(32)?;
    let end_tick = start_tick.saturating_add(reader.number(8)?);
    Ok(Some(Motion {
        from,
        to,
        start_tick,
        end_tick,
    }))
}

#[cfg(test)]
mod tests;
