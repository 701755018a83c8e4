//! Converts the persisted state of a world between its forms: for the REST API, for a save, and for
//! game servers.

use std::io::Read;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use frolic_fleet_api::ops::LoggedOp;
use frolic_fleet_api::persist::{
    CHECKPOINT_BYTES_MAX, Checkpoint, SECTION_BYTES_MAX, SECTIONS_MAX, SavedWorld, Section,
};

use crate::api::{StateOp, StateSection, WorldState};
use crate::core::error::ApiError;

/// Operations of a state in a request.
const OPS_MAX: usize = 50_000;
/// Maximum length of section names and of player ids.
const NAME_BYTES_MAX: usize = 128;
/// Size of a save as text.
pub const SAVE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Size of a decompressed save.
const UNPACKED_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// Converts a state for the REST API.
///
/// # Errors
/// When an operation cannot be serialised.
pub fn to_api(world: SavedWorld) -> Result<WorldState, serde_json::Error> {
    let sections = world.checkpoint.sections.into_iter();
    let ops = world.ops.into_iter();
    Ok(WorldState {
        checkpoint_op: world.checkpoint.seq,
        sections: sections
            .map(|(name, section)| StateSection {
                name,
                version: section.version,
                data: BASE64.encode(section.bytes),
            })
            .collect(),
        ops: ops
            .map(|logged| {
                Ok(StateOp {
                    op_id: logged.seq,
                    player_id: logged.by,
                    op_data: serde_json::to_value(&logged.op)?,
                })
            })
            .collect::<Result<_, serde_json::Error>>()?,
    })
}

/// Converts and checks a state of a REST request.
///
/// # Errors
/// 400 that names the error.
pub fn from_api(state: WorldState) -> Result<SavedWorld, ApiError> {
    let refused = |message: String| ApiError::bad_request("invalid_state", message);
    if state.sections.len() > SECTIONS_MAX || state.ops.len() > OPS_MAX {
        return Err(refused(format!(
            "a state can have at most {SECTIONS_MAX} sections and {OPS_MAX} operations"
        )));
    }
    let mut checkpoint = Checkpoint {
        seq: state.checkpoint_op,
        ..Checkpoint::default()
    };
    let mut bytes_in_all = 0;
    for StateSection {
        name,
        version,
        data,
    } in state.sections
    {
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err(refused(
                "the name of a section must have 1 to 128 bytes".to_owned(),
            ));
        }
        let bytes = BASE64
            .decode(data)
            .map_err(|_| refused(format!("the section {name:?} is not base64")))?;
        bytes_in_all += bytes.len();
        if bytes.len() > SECTION_BYTES_MAX || bytes_in_all > CHECKPOINT_BYTES_MAX {
            return Err(refused(format!("the section {name:?} is too large")));
        }
        let section = Section { version, bytes };
        if checkpoint.sections.insert(name.clone(), section).is_some() {
            return Err(refused(format!("the section {name:?} occurs twice")));
        }
    }
    let mut ops = Vec::with_capacity(state.ops.len());
    for (op, number) in state.ops.into_iter().zip(1..) {
        let wanted = state.checkpoint_op.checked_add(number);
        if wanted != Some(op.op_id) {
            return Err(refused(format!(
                "operations must follow checkpoint_op without gaps; {} does not",
                op.op_id
            )));
        }
        if op
            .player_id
            .as_ref()
            .is_some_and(|id| id.len() > NAME_BYTES_MAX)
        {
            return Err(refused("a player id is too long".to_owned()));
        }
        let done = serde_json::from_value(op.op_data)
            .map_err(|error| refused(format!("operation {} is invalid: {error}", op.op_id)))?;
        ops.push(LoggedOp {
            seq: op.op_id,
            by: op.player_id,
            op: done,
        });
    }
    Ok(SavedWorld { checkpoint, ops })
}

/// Compresses a state for a save; `None` if it is too large.
pub fn pack(world: &SavedWorld) -> Option<String> {
    let json = serde_json::to_vec(world).ok()?;
    let packed = zstd::bulk::compress(&json, 3).ok()?;
    let text = BASE64.encode(packed);
    (text.len() <= SAVE_BYTES_MAX).then_some(text)
}

/// Decompresses a save; `None` if it is damaged.
pub fn unpack(text: &str) -> Option<SavedWorld> {
    let packed = BASE64.decode(text).ok()?;
    let decoder = zstd::stream::Decoder::new(packed.as_slice()).ok()?;
    let mut json = Vec::new();
    decoder
        .take(UNPACKED_BYTES_MAX)
        .read_to_end(&mut json)
        .ok()?;
    serde_json::from_slice(&json).ok()
}

/// Renumbers the operations to follow `newest`, because numbers must not repeat and those of a
/// request are not trusted.
pub fn renumbered(mut world: SavedWorld, newest: u64) -> SavedWorld {
    world.checkpoint.seq = newest.saturating_add(1);
    for (op, number) in world.ops.iter_mut().zip(1..) {
        op.seq = world.checkpoint.seq.saturating_add(number);
    }
    world
}

#[cfg(test)]
mod tests {
    use super::*;
    use frolic_fleet_api::ops::WorldOp;

    fn world() -> SavedWorld {
        let section = Section {
            version: 2,
            bytes: vec![0, 255, 7],
        };
        let clear = |seq| LoggedOp {
            seq,
            by: None,
            op: WorldOp::Clear,
        };
        SavedWorld {
            checkpoint: Checkpoint {
                seq: 4,
                sections: [("terrain/0,0,0".to_owned(), section)].into(),
            },
            ops: vec![clear(5), clear(6)],
        }
    }

    #[test]
    fn conversions_preserve_the_world() {
        assert_eq!(from_api(to_api(world()).unwrap()).unwrap(), world());
        assert_eq!(unpack(&pack(&world()).unwrap()), Some(world()));
        assert_eq!(unpack("no save"), None);
        assert_eq!(unpack(&BASE64.encode("no save")), None);
    }

    #[test]
    fn operation_numbers_never_repeat() {
        let moved = renumbered(world(), 10);
        assert_eq!((moved.checkpoint.seq, moved.newest()), (11, 13));
        let mut far = world();
        far.checkpoint.seq = u64::MAX;
        assert_eq!(renumbered(far, 2).newest(), 5);
    }

    #[test]
    fn invalid_states_are_refused() {
        let damage: [fn(&mut WorldState); 6] = [
            |state| state.sections[0].data = "%".to_owned(),
            |state| state.sections[0].name = String::new(),
            |state| state.sections.push(state.sections[0].clone()),
            |state| state.ops[1].op_id = 9,
            |state| state.ops[0].op_data = serde_json::json!({ "explode": true }),
            |state| state.checkpoint_op = u64::MAX,
        ];
        for change in damage {
            let mut state = to_api(world()).unwrap();
            change(&mut state);
            assert!(from_api(state.clone()).is_err(), "{state:?}");
        }
    }
}
