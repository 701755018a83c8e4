//! One cell of the world inside a snapshot. A record has the difference of the
//! cell's entities from a version the client has; all clients with that version get
//! the same bytes.

use super::SnapshotError;
use super::state::{self, Span};
use crate::bits::{BitReader, BitWriter};
use crate::entity::EntityState;

/// A part of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CellKey {
    /// A cell of the map grid, counted from the origin.
    Grid {
        /// To the east.
        x: i16,
        /// To the south.
        z: i16,
    },
    /// Entities that all players see wherever they are.
    Everywhere,
    /// Entities that belong to one player, wherever they are.
    Owned(u32),
}

/// A version of a cell, to encode from or to.
#[derive(Clone, Copy, Debug)]
pub struct CellVersion<'a> {
    /// The tick at which it became so.
    pub tick: u32,
    /// Its entities in order of ids.
    pub entities: &'a [EntityState],
}

/// Queries of the encoder to the world, only where needed.
pub trait CellSource {
    /// Encoded details of an entity.
    fn details(&self, id: u32) -> Vec<u8>;
    /// The grid cell an entity is in now, if it is in one.
    fn cell_of(&self, id: u32) -> Option<(i16, i16)>;
}

/// Appends the record that turns `baseline` into `current`.
pub fn write_cell(
    bytes: Vec<u8>,
    snapshot_tick: u32,
    tick_hz: u32,
    key: CellKey,
    baseline: Option<CellVersion>,
    current: CellVersion,
    source: &impl CellSource,
) -> Vec<u8> {
    let mut writer = BitWriter::after(bytes);
    write_key(&mut writer, key);
    writer.flag(false);
    writer.number(snapshot_tick.wrapping_sub(current.tick), 0);
    writer.flag(baseline.is_some());
    let mut old: &[EntityState] = &[];
    let mut span = Span { ticks: 0, tick_hz };
    if let Some(baseline) = baseline {
        span.ticks = current.tick.wrapping_sub(baseline.tick);
        writer.number(span.ticks, 2);
        old = baseline.entities;
    }
    write_entities(&mut writer, key, old, current.entities, span, source);
    writer.finish()
}

/// Appends the record that removes a cell from a client's view.
pub fn write_dropped_cell(bytes: Vec<u8>, key: CellKey) -> Vec<u8> {
    let mut writer = BitWriter::after(bytes);
    write_key(&mut writer, key);
    writer.flag(true);
    writer.finish()
}

fn write_key(writer: &mut BitWriter, key: CellKey) {
    match key {
        CellKey::Grid { x, z } => {
            writer.bits(0, 2);
            writer.signed(i32::from(x), 4);
            writer.signed(i32::from(z), 4);
        }
        CellKey::Everywhere => writer.bits(1, 2),
        CellKey::Owned(player) => {
            writer.bits(2, 2);
            writer.number(player, 8);
        }
    }
}

/// First the changes of the old entities, in order, each preceded by the number of
/// unchanged ones before it; then the new ones.
fn write_entities(
    writer: &mut BitWriter,
    key: CellKey,
    old: &[EntityState],
    new: &[EntityState],
    span: Span,
    source: &impl CellSource,
) {
    let mut rest = new;
    let mut created = 0u32;
    let mut unchanged = 0u32;
    for before in old {
        // One by one: mostly there is none, and in total this is one pass through
        // the list.
        let is_new = |after: &&EntityState| after.id < before.id;
        let skipped = rest.iter().take_while(is_new).count();
        created += skipped as u32;
        rest = &rest[skipped..];
        let after = rest.first().filter(|after| after.id == before.id);
        rest = &rest[usize::from(after.is_some())..];
        let stays = after.filter(|after| !went_elsewhere(before, after));
        created += u32::from(after.is_some() && stays.is_none());
        let after = stays;
        if after == Some(before) {
            unchanged += 1;
            continue;
        }
        writer.number(unchanged, 0);
        unchanged = 0;
        writer.flag(after.is_none());
        match after {
            None => write_way_out(writer, key, source.cell_of(before.id)),
            Some(after) => {
                let details = details_if_changed(before, after, source);
                state::write_changed(writer, before, after, span, &details);
            }
        }
    }
    if unchanged > 0 {
        writer.number(unchanged, 0);
    }
    created += rest.len() as u32;
    writer.number(created, 0);
    if created == 0 {
        return;
    }
    let mut known = old.iter().peekable();
    let mut last_id = 0;
    for state in new {
        while known.next_if(|before| before.id < state.id).is_some() {}
        let stays = |before: &&EntityState| before.id == state.id && !went_elsewhere(before, state);
        if known.peek().is_some_and(stays) {
            continue;
        }
        writer.number(state.id - last_id, 6);
        last_id = state.id;
        let details = details_if_changed(&state::blank(state.id), state, source);
        state::write_created(writer, state, &details);
    }
}

/// Whether a part of the scene left the cell in which the file has it. It is
/// written as removed, with its direction, and then as the placeholder that remains
/// there.
fn went_elsewhere(before: &EntityState, after: &EntityState) -> bool {
    after.is_elsewhere() && !before.is_elsewhere()
}

fn details_if_changed(
    before: &EntityState,
    after: &EntityState,
    source: &impl CellSource,
) -> Vec<u8> {
    if before.details == after.details {
        return Vec::new();
    }
    source.details(after.id)
}

/// An entity that moved to a neighbouring cell is not removed: the client continues
/// to draw it until that cell's record has it.
fn write_way_out(writer: &mut BitWriter, key: CellKey, now_in: Option<(i16, i16)>) {
    let step = match (key, now_in) {
        (CellKey::Grid { x, z }, Some((to_x, to_z))) => {
            let (dx, dz) = (to_x.wrapping_sub(x), to_z.wrapping_sub(z));
            let next_door = dx.abs() <= 1 && dz.abs() <= 1 && (dx, dz) != (0, 0);
            next_door.then_some((dx, dz))
        }
        _ => None,
    };
    writer.flag(step.is_some());
    if let Some((dx, dz)) = step {
        writer.bits((dx + 1) as u32, 2);
        writer.bits((dz + 1) as u32, 2);
    }
}

/// A decoded record.
#[derive(Clone, Debug, PartialEq)]
pub struct CellRecord {
    /// The cell.
    pub key: CellKey,
    /// Its current entities; none when it left the view.
    pub content: Option<CellContent>,
}

/// The current content of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct CellContent {
    /// The tick at which it became so.
    pub version: u32,
    /// The version that the record built on.
    pub baseline: Option<u32>,
    /// Everything in it, in order of ids.
    pub entities: Vec<EntityState>,
    /// Entities that moved to a neighbouring cell.
    pub gone_next_door: Vec<(u32, CellKey)>,
    /// Encoded details of those whose details changed.
    pub details: Vec<(u32, Vec<u8>)>,
}

/// The state that a decoder has already.
pub trait KnownCells {
    /// A cell's entities at a version.
    fn entities(&self, key: CellKey, version: u32) -> Option<&[EntityState]>;
}

/// Reads one record. `room` limits the entities of a whole snapshot.
pub(super) fn read_cell(
    reader: &mut BitReader,
    snapshot_tick: u32,
    tick_hz: u32,
    known: &impl KnownCells,
    room: &mut usize,
) -> Result<CellRecord, SnapshotError> {
    let key = read_key(reader)?;
    if reader.flag()? {
        return Ok(CellRecord { key, content: None });
    }
    let version = snapshot_tick.wrapping_sub(reader.number(0)?);
    let mut span = Span { ticks: 0, tick_hz };
    let mut baseline = None;
    let mut old: &[EntityState] = &[];
    if reader.flag()? {
        span.ticks = reader.number(2)?;
        let tick = version.wrapping_sub(span.ticks);
        baseline = Some(tick);
        old = known
            .entities(key, tick)
            .ok_or(SnapshotError::UnknownBaseline(tick))?;
    }
    *room = room
        .checked_sub(old.len())
        .ok_or(SnapshotError::Malformed)?;
    let mut content = CellContent {
        version,
        baseline,
        entities: Vec::with_capacity(old.len() + 4),
        gone_next_door: Vec::new(),
        details: Vec::new(),
    };
    read_known(reader, key, old, span, &mut content)?;
    read_created(reader, room, &mut content)?;
    Ok(CellRecord {
        key,
        content: Some(content),
    })
}

fn read_key(reader: &mut BitReader) -> Result<CellKey, SnapshotError> {
    let short = |number: i32| i16::try_from(number).map_err(|_| SnapshotError::Malformed);
    match reader.bits(2)? {
        0 => Ok(CellKey::Grid {
            x: short(reader.signed(4)?)?,
            z: short(reader.signed(4)?)?,
        }),
        1 => Ok(CellKey::Everywhere),
        2 => Ok(CellKey::Owned(reader.number(8)?)),
        _ => Err(SnapshotError::Malformed),
    }
}

fn read_known(
    reader: &mut BitReader,
    key: CellKey,
    mut old: &[EntityState],
    span: Span,
    content: &mut CellContent,
) -> Result<(), SnapshotError> {
    while !old.is_empty() {
        let unchanged = reader.number(0)? as usize;
        let (same, rest) = old
            .split_at_checked(unchanged)
            .ok_or(SnapshotError::Malformed)?;
        content.entities.extend_from_slice(same);
        let Some((before, rest)) = rest.split_first() else {
            break;
        };
        old = rest;
        if reader.flag()? {
            if let Some(to) = read_way_out(reader, key)? {
                content.gone_next_door.push((before.id, to));
            }
            continue;
        }
        let (state, details) = state::read_changed(reader, before, span)?;
        content.entities.push(state);
        content
            .details
            .extend(details.map(|bytes| (state.id, bytes)));
    }
    Ok(())
}

fn read_way_out(reader: &mut BitReader, key: CellKey) -> Result<Option<CellKey>, SnapshotError> {
    if !reader.flag()? {
        return Ok(None);
    }
    let (dx, dz) = (reader.bits(2)? as i16 - 1, reader.bits(2)? as i16 - 1);
    let CellKey::Grid { x, z } = key else {
        return Err(SnapshotError::Malformed);
    };
    Ok(Some(CellKey::Grid {
        x: x.wrapping_add(dx),
        z: z.wrapping_add(dz),
    }))
}

fn read_created(
    reader: &mut BitReader,
    room: &mut usize,
    content: &mut CellContent,
) -> Result<(), SnapshotError> {
    let count = reader.number(0)? as usize;
    *room = room.checked_sub(count).ok_or(SnapshotError::Malformed)?;
    let known = content.entities.len();
    let mut last_id = 0u32;
    for _ in 0..count {
        let step = reader.number(6)?;
        let id = last_id
            .checked_add(step)
            .filter(|_| step > 0)
            .ok_or(SnapshotError::Malformed)?;
        last_id = id;
        let (state, details) = state::read_created(reader, id)?;
        content.entities.push(state);
        content.details.extend(details.map(|bytes| (id, bytes)));
    }
    if count > 0 && known > 0 {
        content.entities.sort_by_key(|state| state.id);
        let doubled = content
            .entities
            .windows(2)
            .any(|two| two[0].id == two[1].id);
        if doubled {
            return Err(SnapshotError::Malformed);
        }
    }
    Ok(())
}
