//! What changes worlds: casts, operations on the ground, and clearing.

use frolic_protocol::outside::{OutsideReply, OutsideRequest};
use frolic_protocol::terrain::{TerrainAction, TerrainOp, TerrainShape};
use serde_json::{Value, json};

use super::door::{Answer, Reply, optional, text};
use super::visitor::Visitor;
use super::worlds::here;
use crate::Platform;
use crate::error::ApiError;
use crate::spells::cast::{self, Wanted};
use crate::visits;

/// What is added or painted with when nothing is said.
const MATERIAL: &str = "stone";

/// `spell.cast_request`: the world tells everybody in it, the sender too.
pub async fn cast(platform: &Platform, visitor: &Visitor, data: &Value) -> Answer {
    let world_id = here(visitor)?;
    let spell_id = text(data, "spell_id")?;
    let mut params = match data.get("params") {
        None | Some(Value::Null) => json!({}),
        Some(params) => params.clone(),
    };
    // A target beside params means the same as one in it.
    let target = ["target", "target_position", "position"].into_iter();
    let target = target.filter_map(|name| data.get(name)).find_map(place);
    if let (Some(target), Value::Object(map)) = (target, &mut params) {
        map.entry("target").or_insert_with(|| json!(target));
    }
    if let Some(place) = params.get("target").and_then(place) {
        params["target"] = json!(place);
    }
    let wanted = Wanted {
        spell_id: spell_id.clone(),
        revision_id: optional(data, "revision_id")?,
        params,
    };
    cast::cast(platform, &visitor.actor, &world_id, &wanted).await?;
    let accepted = json!({ "accepted": true, "spell_id": spell_id, "world_id": world_id });
    Ok(Reply::Told(accepted))
}

/// `request_spell`: an operation on the ground of the world.
pub async fn change_ground(platform: &Platform, visitor: &Visitor, data: &Value) -> Answer {
    let world_id = here(visitor)?;
    let op = operation(data)?;
    let request = OutsideRequest::Terraform {
        by: visitor.actor.user_id.clone(),
        op,
    };
    ask(platform, visitor, &world_id, &request).await?;
    Ok(Reply::Told(
        json!({ "accepted": true, "world_id": world_id }),
    ))
}

/// `clear_world`: undoes everything; for whoever made the world, and admins.
pub async fn clear(platform: &Platform, visitor: &Visitor) -> Answer {
    let world_id = here(visitor)?;
    let owner = visits::owner_of(platform.db(), &world_id).await?;
    if owner != visitor.actor.user_id && !visitor.is_admin() {
        return Err(ApiError::forbidden(
            "only whoever made this world can clear it; make one of your own with world.create",
        ));
    }
    let request = OutsideRequest::Clear {
        by: visitor.actor.user_id.clone(),
    };
    ask(platform, visitor, &world_id, &request).await?;
    Ok(Reply::Told(
        json!({ "accepted": true, "world_id": world_id }),
    ))
}

async fn ask(
    platform: &Platform,
    visitor: &Visitor,
    world_id: &str,
    request: &OutsideRequest,
) -> Result<(), ApiError> {
    let spec = visits::world(platform, &visitor.actor, world_id).await?;
    let server = platform.fleet().wake(&spec).await?;
    match visits::ask(platform, &server, request).await? {
        OutsideReply::Done => Ok(()),
        OutsideReply::Refused { code, message } => Err(visits::refused(&code, message)),
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
        _ => return Err(bad("type is add, subtract or paint")),
    };
    let center = data.get("center").and_then(place);
    let center = center.ok_or_else(|| bad("center is [x, y, z] in metres"))?;
    let number = |name: &str| data.get(name).and_then(Value::as_f64).map(|n| n as f32);
    let size = data.get("size").and_then(place);
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

/// `[x, y, z]` or `{x, y, z}`.
fn place(value: &Value) -> Option<[f32; 3]> {
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
