//! Natives for the world: spawn, find, rays, time.

use std::rc::Rc;

use frolic_terrain::Material;
use mlua::{Lua, Table, Value as LuaValue};

use super::Host;
use super::spawning::SpawnRefusal;
use crate::convert::{Reader, kind_of, name, number, vector};
use crate::engine::{RaycastRequest, SpawnRequest, SpawnSource, Spawned};
use crate::ids::{EntityId, PlayerId};
use crate::limits::COORDINATE_MAX;

/// Longest ray and largest search radius, in metres.
const DISTANCE_MAX: f64 = 10_000.0;
/// The entity id of terrain in ray hits: no entity has this id.
const TERRAIN: EntityId = 0;
const IGNORE_MAX: usize = 256;
/// Entities in one result: a handle takes a microsecond to create, and this
/// cannot be interrupted.
const RESULTS_MAX: usize = 10_000;

pub(super) fn add(host: &Rc<Host>, lua: &Lua, table: &Table) -> mlua::Result<()> {
    add_time(host, lua, table)?;
    add_search(host, lua, table)?;
    let this = Rc::clone(host);
    table.set(
        "spawn",
        lua.create_function(
            move |_, (source, position, script): (LuaValue, LuaValue, u32)| {
                Ok(match spawn(&this, &source, &position, script) {
                    Ok(spawned) => {
                        let (ids, paths): (Vec<_>, Vec<_>) = spawned.below.into_iter().unzip();
                        let id = Some(spawned.entity);
                        (id, None, spawned.scripts, false, ids, paths)
                    }
                    Err(refusal) => {
                        let offence = refusal.is_offence();
                        let message = Some(refusal.to_string());
                        (None, message, Vec::new(), offence, Vec::new(), Vec::new())
                    }
                })
            },
        )?,
    )
}

fn spawn(
    host: &Host,
    source: &LuaValue,
    position: &LuaValue,
    script: u32,
) -> Result<Spawned, SpawnRefusal> {
    let source = match source {
        LuaValue::Table(_) => {
            let entities = host.entities().map_err(|error| error.to_string())?;
            let components = Reader::new(entities).read(source)?;
            SpawnSource::Components(plain_json(&components))
        }
        other => SpawnSource::Prefab(name(other, "the prefab's name")?),
    };
    let position = match position {
        LuaValue::Nil => None,
        other => Some(vector(other, "the position")?),
    };
    let mut quota = host.quota.borrow_mut();
    quota.spawning.charge(script, &host.limits)?;
    let request = SpawnRequest { source, position };
    let spawned = host
        .engine
        .borrow_mut()
        .spawn(&request)
        .map_err(|error| error.to_string())?;
    quota.spawning.made(spawned.entity, script);
    Ok(spawned)
}

/// Components in the form of `scene.json`, where vectors are plain lists.
fn plain_json(value: &frolic_protocol::Value) -> serde_json::Value {
    use frolic_protocol::Value;
    match value {
        Value::Vector(v) => serde_json::json!(v),
        Value::List(items) => items.iter().map(plain_json).collect(),
        Value::Map(map) => map
            .iter()
            .map(|(key, item)| (key.clone(), plain_json(item)))
            .collect(),
        simple => simple.to_json(),
    }
}

fn add_time(host: &Rc<Host>, lua: &Lua, table: &Table) -> mlua::Result<()> {
    let this = Rc::clone(host);
    table.set(
        "tick",
        lua.create_function(move |_, ()| Ok(this.engine.borrow().tick() as f64))?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "time",
        lua.create_function(move |_, ()| Ok(this.engine.borrow().time()))?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "wallClock",
        lua.create_function(move |_, ()| Ok(this.engine.borrow().wall_clock_ms() as f64))?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "gravity",
        lua.create_function(move |_, ()| Ok(this.engine.borrow().gravity()))?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "setGravity",
        lua.create_function(move |_, value: LuaValue| {
            let checked = number(&value, "Gravity", -1000.0..=1000.0);
            Ok(super::outcome(checked, |gravity| {
                this.engine.borrow_mut().set_gravity(gravity as f32)
            }))
        })?,
    )
}

fn add_search(host: &Rc<Host>, lua: &Lua, table: &Table) -> mlua::Result<()> {
    let this = Rc::clone(host);
    table.set(
        "ofType",
        lua.create_function(move |lua, wanted: LuaValue| {
            let found = name(&wanted, "the type").map(|name| this.engine.borrow().of_type(&name));
            handles(&this, lua, found)
        })?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "find",
        lua.create_function(move |lua, (wanted, most): (LuaValue, Option<usize>)| {
            let found = name(&wanted, "the name or tag").map(|name| {
                let mut found = this.engine.borrow().find(&name);
                found.truncate(most.unwrap_or(usize::MAX));
                found
            });
            handles(&this, lua, found)
        })?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "inRadius",
        lua.create_function(
            move |lua, (center, radius, seen_by): (LuaValue, LuaValue, Option<PlayerId>)| {
                let found = vector(&center, "the centre").and_then(|center| {
                    let radius = number(&radius, "the radius", 0.0..=DISTANCE_MAX)? as f32;
                    let engine = this.engine.borrow();
                    Ok(match seen_by {
                        Some(player) => engine.in_radius_seen_by(center, radius, player),
                        None => engine.in_radius(center, radius),
                    })
                });
                handles(&this, lua, found)
            },
        )?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "raycast",
        lua.create_function(move |lua, (origin, direction, options, seen_by): Ray| {
            let mut request = match ray(&this, &origin, &direction, &options) {
                Ok(request) => request,
                Err(text) => return Ok((None, Some(text))),
            };
            request.seen_by = seen_by;
            let Some(hit) = this.engine.borrow().raycast(&request) else {
                return Ok((None, None));
            };
            let result = lua.create_table_with_capacity(0, 4)?;
            let point = |v: [f32; 3]| mlua::Vector::new(v[0], v[1], v[2]);
            if hit.entity == TERRAIN {
                let inside =
                    std::array::from_fn(|axis| hit.position[axis] - hit.normal[axis] * 0.01);
                let material = this.engine.borrow().terrain_block(inside);
                result.raw_set("Material", material.ok().map(Material::name))?;
            } else {
                result.raw_set("Entity", this.entities()?.handle(hit.entity)?)?;
                result.raw_set("Material", this.engine.borrow().surface(hit.entity))?;
            }
            result.raw_set("Position", point(hit.position))?;
            result.raw_set("Normal", point(hit.normal))?;
            result.raw_set("Distance", hit.distance)?;
            Ok((Some(result), None))
        })?,
    )
}

/// Origin, direction, options, and the player whose view of the world is used.
type Ray = (LuaValue, LuaValue, LuaValue, Option<PlayerId>);

pub(super) fn handles(
    host: &Host,
    lua: &Lua,
    found: Result<Vec<EntityId>, String>,
) -> mlua::Result<(Option<Table>, Option<String>)> {
    let ids = match found {
        Ok(ids) => ids,
        Err(text) => return Ok((None, Some(text))),
    };
    if ids.len() > RESULTS_MAX {
        let text = format!(
            "{} entities match, more than {RESULTS_MAX}; look nearer, or by a rarer tag",
            ids.len()
        );
        return Ok((None, Some(text)));
    }
    let entities = host.entities()?;
    let list = lua.create_table_with_capacity(ids.len(), 0)?;
    for (index, id) in ids.into_iter().enumerate() {
        list.raw_seti(index + 1, entities.handle(id)?)?;
    }
    Ok((Some(list), None))
}

fn ray(
    host: &Host,
    origin: &LuaValue,
    direction: &LuaValue,
    options: &LuaValue,
) -> Result<RaycastRequest, String> {
    let origin = vector(origin, "the origin")?;
    let direction = vector(direction, "the direction")?;
    let length = f64::from(direction.iter().map(|c| c * c).sum::<f32>().sqrt());
    if length.is_nan() || length <= 1.0 / COORDINATE_MAX {
        return Err("the direction of a ray must not be zero".to_owned());
    }
    let mut request = RaycastRequest {
        origin,
        direction: direction.map(|c| c / length as f32),
        distance_max: length.min(DISTANCE_MAX) as f32,
        ignore: Vec::new(),
        tag: None,
        seen_by: None,
    };
    match options {
        LuaValue::Nil => {}
        LuaValue::Table(options) => read_ray_options(host, options, &mut request)?,
        other => {
            return Err(format!("the options are a table, not a {}", kind_of(other)));
        }
    }
    Ok(request)
}

fn read_ray_options(
    host: &Host,
    options: &Table,
    request: &mut RaycastRequest,
) -> Result<(), String> {
    let field = |key: &str| {
        options
            .raw_get::<LuaValue>(key)
            .map_err(|error| error.to_string())
    };
    let distance = field("MaxDistance")?;
    if !distance.is_nil() {
        request.distance_max = number(&distance, "MaxDistance", 0.0..=DISTANCE_MAX)? as f32;
    }
    let tag = field("Tag")?;
    if !tag.is_nil() {
        request.tag = Some(name(&tag, "Tag")?);
    }
    if let LuaValue::Table(list) = field("Ignore")? {
        let entities = host.entities().map_err(|error| error.to_string())?;
        for index in 1..=list.raw_len().min(IGNORE_MAX) {
            let item: LuaValue = list.raw_get(index).map_err(|error| error.to_string())?;
            request.ignore.extend(entities.id(&item));
        }
    }
    Ok(())
}
