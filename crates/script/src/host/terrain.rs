//! Natives for terrain: queries and changes.

use std::rc::Rc;

use frolic_terrain::{Action, Material, Op, Shape};
use mlua::{Lua, Table, Value as LuaValue};

use super::Host;
use crate::convert::{name, number, vector};
use crate::engine::EngineError;

/// Longest ray, in metres.
const DISTANCE_MAX: f64 = 10_000.0;
/// Largest side of an operation, in metres.
const SIDE_MAX: f64 = 4096.0;

type Answer<T> = (Option<T>, Option<String>);

pub(super) fn add(host: &Rc<Host>, lua: &Lua, table: &Table) -> mlua::Result<()> {
    let this = Rc::clone(host);
    table.set(
        "terrainInfo",
        lua.create_function(move |_, ()| {
            let info = this.engine.borrow().terrain_info();
            Ok(match info {
                Ok(info) => (
                    Some(point(info.min)),
                    Some(point(info.max)),
                    info.block_size,
                    None,
                ),
                Err(error) => (None, None, 0.0, Some(error.to_string())),
            })
        })?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "terrainBlock",
        lua.create_function(move |_, at: LuaValue| {
            let found = vector(&at, "the place").and_then(|at| {
                let engine = this.engine.borrow();
                engine.terrain_block(at).map_err(|error| error.to_string())
            });
            Ok(match found {
                Ok(Material::AIR) => (None, None),
                Ok(material) => (Some(material.name()), None),
                Err(text) => (None, Some(text)),
            })
        })?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "terrainHeight",
        lua.create_function(move |_, (x, z): (LuaValue, LuaValue)| {
            let far = DISTANCE_MAX * 100.0;
            let found = number(&x, "x", -far..=far).and_then(|x| {
                let z = number(&z, "z", -far..=far)?;
                let height = this.engine.borrow().terrain_height(x as f32, z as f32);
                height.map_err(|error| error.to_string())
            });
            Ok(answer(found))
        })?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "terrainRaycast",
        lua.create_function(move |lua, (origin, direction, most): Ray| {
            let hit = match raycast(&this, &origin, &direction, &most) {
                Ok(Some(hit)) => hit,
                Ok(None) => return Ok((None, None)),
                Err(text) => return Ok((None, Some(text))),
            };
            let result = lua.create_table_with_capacity(0, 5)?;
            result.raw_set("Position", point(hit.position))?;
            result.raw_set("Normal", point(hit.normal))?;
            result.raw_set("Distance", hit.distance)?;
            result.raw_set("Material", hit.material.name())?;
            result.raw_set("Block", point(hit.block))?;
            Ok((Some(result), None))
        })?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "terraform",
        lua.create_function(move |_, (action, center, size, material): Change| {
            let done = op(&action, &center, &size, &material).and_then(|op| {
                let done = this.engine.borrow_mut().terraform(&op);
                done.map_err(|error: EngineError| error.to_string())
            });
            Ok(match done {
                Ok(changed) => (Some(changed), None),
                Err(text) => (None, Some(text)),
            })
        })?,
    )
}

/// Origin, direction, and length.
type Ray = (LuaValue, LuaValue, LuaValue);
/// Action, position, size (a number for spheres, a vector for boxes), material.
type Change = (LuaValue, LuaValue, LuaValue, LuaValue);

fn point(at: [f32; 3]) -> mlua::Vector {
    mlua::Vector::new(at[0], at[1], at[2])
}

fn answer<T>(found: Result<Option<T>, String>) -> Answer<T> {
    match found {
        Ok(found) => (found, None),
        Err(text) => (None, Some(text)),
    }
}

fn raycast(
    host: &Host,
    origin: &LuaValue,
    direction: &LuaValue,
    most: &LuaValue,
) -> Result<Option<crate::engine::TerrainHit>, String> {
    let origin = vector(origin, "the origin")?;
    let direction = vector(direction, "the direction")?;
    let length = direction.iter().map(|part| part * part).sum::<f32>().sqrt();
    if length.is_nan() || length < 1e-7 {
        return Err("the direction of a ray must not be zero".to_owned());
    }
    let most = match most {
        LuaValue::Nil => f64::from(length).min(DISTANCE_MAX),
        other => number(other, "maxDistance", 0.0..=DISTANCE_MAX)?,
    };
    let direction = direction.map(|part| part / length);
    let hit = host
        .engine
        .borrow()
        .terrain_raycast(origin, direction, most as f32);
    hit.map_err(|error| error.to_string())
}

fn op(
    action: &LuaValue,
    center: &LuaValue,
    size: &LuaValue,
    material: &LuaValue,
) -> Result<Op, String> {
    let action = match name(action, "op")?.as_str() {
        "add" => Action::Add,
        "subtract" => Action::Subtract,
        "paint" => Action::Paint,
        other => {
            return Err(format!(
                "op is \"add\", \"subtract\" or \"paint\", not \"{other}\""
            ));
        }
    };
    let center = vector(center, "center")?;
    let shape = match size {
        LuaValue::Vector(_) => {
            let size = vector(size, "size")?;
            if size.iter().any(|side| f64::from(*side) > SIDE_MAX) {
                return Err(format!("size is at most {SIDE_MAX} metres along each side"));
            }
            Shape::Box { size }
        }
        other => {
            let radius = number(other, "radius", 0.0..=SIDE_MAX / 2.0)?;
            Shape::Sphere {
                radius: radius as f32,
            }
        }
    };
    let material = match material {
        LuaValue::Nil => None,
        other => Some(material_named(&name(other, "material")?)?),
    };
    Op::new(action, center, shape, material).map_err(|error| error.to_string())
}

fn material_named(name: &str) -> Result<Material, String> {
    Material::from_name(name).ok_or_else(|| {
        let known: Vec<&str> = Material::all().map(Material::name).collect();
        format!(
            "\"{name}\" is not a material; there are {}",
            known.join(", ")
        )
    })
}
