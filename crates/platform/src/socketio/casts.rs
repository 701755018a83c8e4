//! Messages that change worlds: casts, terrain operations, and clearing.

use frolic_fleet_api::remote_commands::{OutsideReply, OutsideRequest};
use frolic_protocol::terrain::{TerrainAction, TerrainOp, TerrainShape};
use serde_json::{Value, json};

use super::connection::{HandlerResult, Reply, optional, text};
use super::visitor::Visitor;
use super::worlds::joined_world;
use crate::Platform;
use crate::core::error::ApiError;
use crate::spells::cast::{self, CastRequest};
use crate::worlds::WorldRow;
use crate::worlds::remote_commands::{self, WorldRef};

/// Default material of add and paint operations.
const MATERIAL: &str = "stone";

/// `spell.cast_request`: the world broadcasts the cast to everyone in it, including
/// the sender.
pub async fn cast(platform: &Platform, visitor: &Visitor, data: &Value) -> HandlerResult {
    let place = target_world(visitor, data)?;
    let spell_id = text(data, "spell_id")?;
    let request = CastRequest {
        spell_id: spell_id.clone(),
        revision_id: optional(data, "revision_id")?,
        params: params(data),
    };
    cast::cast(&platform.spells, &visitor.actor, &place, &request).await?;
    let accepted = json!({ "accepted": true, "spell_id": spell_id, "world_id": place.world_id });
    Ok(Reply::Acknowledge(accepted))
}

/// The cast parameters: `params` or `cast_params`, with `target` normalized to three
/// numbers.
fn params(data: &Value) -> Value {
    const TARGETS: [&str; 3] = ["target", "target_position", "position"];
    let given = ["params", "cast_params"].into_iter();
    let mut given = given.filter_map(|name| data.get(name));
    let mut params = given.find(|given| !given.is_null()).cloned();
    let params = params.get_or_insert_with(|| json!({}));
    let inside = TARGETS.into_iter().filter_map(|name| params.get(name));
    let beside = TARGETS.into_iter().filter_map(|name| data.get(name));
    let target = inside.chain(beside).find_map(point);
    if let (Some(target), Value::Object(map)) = (target, &mut *params) {
        map.insert("target".to_owned(), json!(target));
    }
    params.take()
}

/// The world that a message addresses: the named one, or the joined one.
fn target_world(visitor: &Visitor, data: &Value) -> Result<WorldRef, ApiError> {
    let joined = visitor.place();
    match (optional(data, "world_id")?, joined) {
        (Some(named), Some(joined)) if named == joined.world_id => Ok(joined),
        (Some(named), _) => Ok(WorldRef::named(named)),
        (None, _) => joined_world(visitor),
    }
}

/// `request_spell`: an operation on the world's terrain.
pub async fn edit_terrain(platform: &Platform, visitor: &Visitor, data: &Value) -> HandlerResult {
    let place = target_world(visitor, data)?;
    // The operation is one field of the message, or the message itself.
    let spell = data.get("spell").filter(|spell| spell.is_object());
    let request = OutsideRequest::Terraform {
        by: visitor.actor.user_id.clone(),
        op: operation(spell.unwrap_or(data))?,
    };
    let world = remote_commands::editable_world(&platform.worlds, &visitor.actor, &place).await?;
    ask(platform, &world, &request).await
}

/// `clear_world`: undoes all operations; for the world's owner, their helpers, and
/// admins.
pub async fn clear(platform: &Platform, visitor: &Visitor, data: &Value) -> HandlerResult {
    let place = target_world(visitor, data)?;
    let world = remote_commands::world(&platform.worlds, &visitor.actor, &place).await?;
    if !remote_commands::is_trusted(&platform.worlds, &visitor.actor, &world).await? {
        return Err(ApiError::forbidden(
            "Only the owner of this world can clear it. Create your own with world.create.",
        ));
    }
    let request = OutsideRequest::Clear {
        by: visitor.actor.user_id.clone(),
    };
    ask(platform, &world, &request).await
}

async fn ask(platform: &Platform, world: &WorldRow, request: &OutsideRequest) -> HandlerResult {
    let server = platform.worlds.fleet.wake(&world.spec).await?;
    match remote_commands::send(&platform.worlds, &server, request).await? {
        OutsideReply::Done => {
            let world_id = &world.spec.world_id;
            Ok(Reply::Acknowledge(
                json!({ "accepted": true, "world_id": world_id }),
            ))
        }
        OutsideReply::Refused { code, message } => Err(remote_commands::refused(&code, message)),
    }
}

fn operation(data: &Value) -> Result<TerrainOp, ApiError> {
    let bad = |message: &str| ApiError::bad_request("bad_op", message);
    let kind = text(data, "type")?.to_lowercase();
    let action = match kind.as_str() {
        "add" | "build" | "fill" | "raise" | "grow" | "create" | "create_land" | "sphere" => {
            TerrainAction::Add
        }
        "subtract" | "remove" | "dig" | "carve" | "lower" | "explode" | "crater" | "destroy" => {
            TerrainAction::Subtract
        }
        "paint" => TerrainAction::Paint,
        _ => return Err(bad("type must be add, subtract or paint")),
    };
    let center = data.get("center").and_then(point);
    let center = center.ok_or_else(|| bad("center must be [x, y, z] in metres"))?;
    let number = |name: &str| data.get(name).and_then(Value::as_f64).map(|n| n as f32);
    let size = data.get("size").and_then(point);
    let shape = match (number("radius"), size) {
        (Some(radius), None) => TerrainShape::Sphere { radius },
        (None, Some(size)) => TerrainShape::Box { size },
        _ => return Err(bad("give either radius or size, in metres")),
    };
    let material = optional(data, "material")?;
    let material = match action {
        TerrainAction::Subtract => None,
        _ => Some(material.unwrap_or_else(|| MATERIAL.to_owned())),
    };
    Ok(TerrainOp {
        action,
        center,
        shape,
        material,
    })
}

/// Parses `[x, y, z]` or `{x, y, z}`.
fn point(value: &Value) -> Option<[f32; 3]> {
    let part = |part: Option<&Value>| {
        let number = part?.as_f64()? as f32;
        number.is_finite().then_some(number)
    };
    match value {
        Value::Array(parts) if parts.len() == 3 => Some([
            part(parts.first())?,
            part(parts.get(1))?,
            part(parts.get(2))?,
        ]),
        Value::Object(map) => Some([
            part(map.get("x"))?,
            part(map.get("y"))?,
            part(map.get("z"))?,
        ]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn params_of_a_cast_are_read_in_either_form() {
        let target = json!([1.0, 2.0, 3.0]);
        for message in [
            json!({ "params": { "target": [1, 2, 3] } }),
            json!({ "cast_params": { "target": { "x": 1, "y": 2, "z": 3 } } }),
            json!({ "cast_params": { "target_position": [1, 2, 3] } }),
            json!({ "params": null, "cast_params": { "position": [1, 2, 3] } }),
            json!({ "target_position": [1, 2, 3] }),
        ] {
            assert_eq!(params(&message)["target"], target, "{message}");
        }
        assert_eq!(params(&json!({})), json!({}));
        assert_eq!(
            params(&json!({ "cast_params": { "power": 7 } })),
            json!({ "power": 7 })
        );
    }

    #[test]
    fn operations_are_read_in_either_form() {
        let op = operation(&json!({ "type": "subtract", "center": [1, 2, 3], "radius": 2.5 }));
        let op = op.unwrap();
        assert_eq!(op.center, [1.0, 2.0, 3.0]);
        assert_eq!(op.shape, TerrainShape::Sphere { radius: 2.5 });
        let center = json!({ "x": 1, "y": 0, "z": -1 });
        let op = operation(&json!({ "type": "add", "center": center, "size": [1, 1, 1] }));
        assert_eq!(op.unwrap().material.as_deref(), Some("stone"));
        for bad in [
            json!({}),
            json!({ "type": "wish", "center": [0, 0, 0], "radius": 1 }),
            json!({ "type": "add", "center": [0, 0], "radius": 1 }),
            json!({ "type": "add", "center": "here", "radius": 1 }),
            json!({ "type": "add", "center": [0, 0, 0] }),
            json!({ "type": "add", "center": [0, 0, 0], "radius": 1, "material": 7 }),
            json!(null),
        ] {
            assert!(operation(&bad).is_err(), "{bad}");
        }
    }
}
