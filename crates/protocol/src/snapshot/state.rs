//! One entity inside a cell record: what changed since the version the client has.
//!
//! Fields that are read first predict most of what follows: a character that turned
//! while walking moves where it looks now, and the distance follows from the two
//! velocities. Only differences from the prediction are written; for walking,
//! turning or falling characters they are next to nothing.

use frolic_motion::{Motion, Vec3};

use super::SnapshotError;
use crate::bits::{BitReader, BitWriter};
use crate::details::DETAILS_BYTES_MAX;
use crate::entity::{EntityKind, EntityState, flags};
use crate::npc::Mood;
use crate::quantize;

/// Time between the version a client has and the one it gets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub ticks: u32,
    pub tick_hz: u32,
}

/// Bits per axis of a position's difference, from "as predicted" to "anywhere".
const POSITION_BITS: [u32; 4] = [2, 5, 9, 25];
/// Bits per axis of a velocity's difference, from "as predicted" to "anything".
const VELOCITY_BITS: [u32; 4] = [4, 7, 10, 17];
/// Yaw is rounded to 12 bits, pitch to 9; see [`quantize::look`].
const YAW_BITS: u32 = 12;
const PITCH_BITS: u32 = 9;
const YAW_DELTA_BITS: u32 = 6;

/// The state that a client assumes before it receives one.
pub(super) fn blank(id: u32) -> EntityState {
    EntityState::new(id, EntityKind::Thing)
}

pub(super) fn write_created(writer: &mut BitWriter, new: &EntityState, details: &[u8]) {
    writer.flag(new.kind == EntityKind::Character);
    let span = Span {
        ticks: 0,
        tick_hz: 1,
    };
    write_changed(writer, &blank(new.id), new, span, details);
}

pub(super) fn write_changed(
    writer: &mut BitWriter,
    old: &EntityState,
    new: &EntityState,
    span: Span,
    details: &[u8],
) {
    writer.flag(new.look != old.look);
    if new.look != old.look {
        write_look(writer, old.look, new.look);
    }
    let expected = expected_velocity(old, new.look);
    let sped =
        std::array::from_fn(|axis| i32::from(new.velocity[axis]) - i32::from(expected[axis]));
    write_vector(writer, sped, VELOCITY_BITS);
    let expected = expected_position(old, new.velocity, span);
    let moved = std::array::from_fn(|axis| new.position[axis].wrapping_sub(expected[axis]));
    write_vector(writer, moved, POSITION_BITS);
    let rare = |state: &EntityState| {
        (
            (state.definition, state.owner, state.details),
            (state.rotation, state.flags, state.motion, state.mood),
        )
    };
    writer.flag(rare(new) != rare(old));
    if rare(new) != rare(old) {
        write_rare(writer, old, new, details);
    }
}

/// The velocity that the receiver predicts for this look: a grounded character
/// continues in the same direction relative to its look.
fn expected_velocity(old: &EntityState, look: [u16; 2]) -> [i16; 3] {
    let turned = look[0].wrapping_sub(old.look[0]);
    let [x, _, z] = old.velocity;
    let walks = old.flags & flags::GROUNDED != 0 && (x, z) != (0, 0);
    if turned == 0 || !walks {
        return old.velocity;
    }
    quantize::turned(old.velocity, turned)
}

/// The position that the receiver predicts for this velocity: moved by it, or on
/// its path.
fn expected_position(old: &EntityState, velocity: [i16; 3], span: Span) -> [i32; 3] {
    if old.motion.is_some() {
        return old.position;
    }
    let velocities = [old.velocity, velocity];
    quantize::carried_on(old.position, velocities, span.ticks, span.tick_hz)
}

fn write_vector(writer: &mut BitWriter, [x, y, z]: [i32; 3], sizes: [u32; 4]) {
    let (level, height) = ((x, z) != (0, 0), y != 0);
    writer.flag(level || height);
    if !level && !height {
        return;
    }
    // Most entities stay at their height, and then only the rest changed.
    writer.flag(height);
    if height {
        writer.flag(level);
    }
    if level {
        write_parts(writer, &[x, z], sizes);
    }
    if height {
        write_parts(writer, &[y], sizes);
    }
}

/// Writes numbers with as many bits as the largest of them needs.
fn write_parts(writer: &mut BitWriter, parts: &[i32], sizes: [u32; 4]) {
    let fits = |bits: u32| {
        let range = -(1 << (bits - 1))..1 << (bits - 1);
        parts.iter().all(|part| range.contains(part))
    };
    let class = sizes.iter().position(|&bits| fits(bits)).unwrap_or(3);
    writer.bits(class as u32, 2);
    for &part in parts {
        writer.signed_bits(part, sizes[class]);
    }
}

fn write_look(writer: &mut BitWriter, old: [u16; 2], new: [u16; 2]) {
    let [old_yaw, new_yaw] = [old[0], new[0]].map(|yaw| yaw >> (16 - YAW_BITS));
    let half = 1 << (YAW_DELTA_BITS - 1);
    let delta = (new_yaw.wrapping_sub(old_yaw).wrapping_add(half)) & ((1 << YAW_BITS) - 1);
    let small = delta < 1 << YAW_DELTA_BITS;
    writer.flag(small);
    if small {
        writer.bits(u32::from(delta), YAW_DELTA_BITS);
    } else {
        writer.bits(u32::from(new_yaw), YAW_BITS);
    }
    writer.flag(new[1] != old[1]);
    if new[1] != old[1] {
        writer.bits(u32::from(new[1] >> (16 - PITCH_BITS)), PITCH_BITS);
    }
}

fn write_rare(writer: &mut BitWriter, old: &EntityState, new: &EntityState, details: &[u8]) {
    let belongs = (new.definition, new.owner) != (old.definition, old.owner);
    writer.flag(belongs);
    if belongs {
        writer.number(u32::from(new.definition), 3);
        writer.number(new.owner, 6);
    }
    writer.flag(new.rotation != old.rotation);
    if new.rotation != old.rotation {
        writer.bits(new.rotation, 32);
    }
    writer.bits(u32::from(new.flags), 8);
    writer.flag(new.motion != old.motion);
    if new.motion != old.motion {
        write_motion(writer, new.motion.as_ref());
    }
    writer.flag(new.mood != old.mood);
    if new.mood != old.mood {
        writer.bits(u32::from(new.mood.0), 8);
    }
    writer.flag(new.details != old.details);
    if new.details != old.details {
        writer.bits(u32::from(new.details), 16);
        let details = if details.len() > DETAILS_BYTES_MAX {
            &[]
        } else {
            details
        };
        writer.number(details.len() as u32, 6);
        details
            .iter()
            .for_each(|&byte| writer.bits(u32::from(byte), 8));
    }
}

fn write_motion(writer: &mut BitWriter, motion: Option<&Motion>) {
    writer.flag(motion.is_some());
    if let Some(motion) = motion {
        write_floats(writer, motion.from);
        write_floats(writer, motion.to);
        writer.bits(motion.start_tick, 32);
        writer.number(motion.end_tick.saturating_sub(motion.start_tick), 8);
    }
}

pub(super) fn write_floats(writer: &mut BitWriter, vector: Vec3) {
    vector.to_array().iter().for_each(|&c| writer.float(c));
}

pub(super) fn read_floats(reader: &mut BitReader) -> Result<Vec3, SnapshotError> {
    Ok(Vec3::new(reader.float()?, reader.float()?, reader.float()?))
}

/// A decoded entity, and the bytes of its details where they changed.
pub(super) type Decoded = (EntityState, Option<Vec<u8>>);

pub(super) fn read_created(reader: &mut BitReader, id: u32) -> Result<Decoded, SnapshotError> {
    let mut new = blank(id);
    if reader.flag()? {
        new.kind = EntityKind::Character;
    }
    let span = Span {
        ticks: 0,
        tick_hz: 1,
    };
    read_changed(reader, &new, span)
}

pub(super) fn read_changed(
    reader: &mut BitReader,
    old: &EntityState,
    span: Span,
) -> Result<Decoded, SnapshotError> {
    let mut state = *old;
    if reader.flag()? {
        state.look = read_look(reader, old.look)?;
    }
    let expected = expected_velocity(old, state.look);
    let sped = read_vector(reader, VELOCITY_BITS)?;
    state.velocity = std::array::from_fn(|axis| expected[axis].wrapping_add(sped[axis] as i16));
    let expected = expected_position(old, state.velocity, span);
    let moved = read_vector(reader, POSITION_BITS)?;
    state.position = std::array::from_fn(|axis| expected[axis].wrapping_add(moved[axis]));
    let mut details = None;
    if reader.flag()? {
        details = read_rare(reader, &mut state)?;
    }
    Ok((state, details))
}

fn read_vector(reader: &mut BitReader, sizes: [u32; 4]) -> Result<[i32; 3], SnapshotError> {
    if !reader.flag()? {
        return Ok([0; 3]);
    }
    let height = reader.flag()?;
    let level = !height || reader.flag()?;
    let [x, z] = if level {
        read_parts(reader, sizes)?
    } else {
        [0; 2]
    };
    let [y] = if height {
        read_parts(reader, sizes)?
    } else {
        [0]
    };
    Ok([x, y, z])
}

fn read_parts<const N: usize>(
    reader: &mut BitReader,
    sizes: [u32; 4],
) -> Result<[i32; N], SnapshotError> {
    let bits = sizes[reader.bits(2)? as usize];
    let mut parts = [0; N];
    for part in &mut parts {
        *part = reader.signed_bits(bits)?;
    }
    Ok(parts)
}

fn read_look(reader: &mut BitReader, old: [u16; 2]) -> Result<[u16; 2], SnapshotError> {
    let yaw = if reader.flag()? {
        let delta = (reader.bits(YAW_DELTA_BITS)? as u16).wrapping_sub(1 << (YAW_DELTA_BITS - 1));
        (old[0] >> (16 - YAW_BITS)).wrapping_add(delta)
    } else {
        reader.bits(YAW_BITS)? as u16
    };
    let pitch = if reader.flag()? {
        (reader.bits(PITCH_BITS)? as u16) << (16 - PITCH_BITS)
    } else {
        old[1]
    };
    Ok([yaw << (16 - YAW_BITS), pitch])
}

fn read_rare(
    reader: &mut BitReader,
    state: &mut EntityState,
) -> Result<Option<Vec<u8>>, SnapshotError> {
    if reader.flag()? {
        state.definition =
            u16::try_from(reader.number(3)?).map_err(|_| SnapshotError::Malformed)?;
        state.owner = reader.number(6)?;
    }
    if reader.flag()? {
        state.rotation = reader.bits(32)?;
    }
    state.flags = reader.bits(8)? as u8;
    if reader.flag()? {
        state.motion = read_motion(reader)?;
    }
    if reader.flag()? {
        state.mood = Mood(reader.bits(8)? as u8);
    }
    if !reader.flag()? {
        return Ok(None);
    }
    state.details = reader.bits(16)? as u16;
    let length = reader.number(6)? as usize;
    if length > DETAILS_BYTES_MAX || length * 8 > reader.remaining() {
        return Err(SnapshotError::Malformed);
    }
    let bytes: Result<Vec<u8>, _> = (0..length).map(|_| Ok(reader.bits(8)? as u8)).collect();
    bytes.map(Some)
}

fn read_motion(reader: &mut BitReader) -> Result<Option<Motion>, SnapshotError> {
    if !reader.flag()? {
        return Ok(None);
    }
    let (from, to) = (read_floats(reader)?, read_floats(reader)?);
    let start_tick = reader.bits(32)?;
    let end_tick = start_tick.saturating_add(reader.number(8)?);
    Ok(Some(Motion {
        from,
        to,
        start_tick,
        end_tick,
    }))
}
