//! Natives for entities: properties, attributes, tags, motion.

use std::rc::Rc;

use frolic_protocol::Value;
use mlua::{Lua, Table, Value as LuaValue};

use super::{Host, outcome};
use crate::convert::{Reader, name, number, vector};
use crate::engine::Property;
use crate::ids::EntityId;

/// Longest motion segment, in seconds.
const MOVE_SECONDS_MAX: f64 = 3600.0;

/// Numbers as in `builtin/server/entity.luau`.
const PROPERTIES: [Property; 11] = [
    Property::Name,
    Property::Position,
    Property::Rotation,
    Property::Velocity,
    Property::Scale,
    Property::Color,
    Property::Opacity,
    Property::Parent,
    Property::Children,
    Property::Tags,
    Property::Owner,
];

fn property(code: usize) -> mlua::Result<Property> {
    PROPERTIES
        .get(code)
        .copied()
        .ok_or_else(|| mlua::Error::runtime("unknown property number"))
}

pub(super) fn add(host: &Rc<Host>, lua: &Lua, table: &Table) -> mlua::Result<()> {
    add_properties(host, lua, table)?;
    add_attributes(host, lua, table)?;
    add_motion(host, lua, table)
}

fn add_properties(host: &Rc<Host>, lua: &Lua, table: &Table) -> mlua::Result<()> {
    let this = Rc::clone(host);
    table.set(
        "property",
        lua.create_function(move |lua, (id, code): (EntityId, usize)| {
            let result = this.engine.borrow().property(id, property(code)?);
            this.answer(lua, result)
        })?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "setProperty",
        lua.create_function(move |_, (id, code, value): (EntityId, usize, LuaValue)| {
            let property = property(code)?;
            let checked = property_value(&this, property, &value);
            Ok(outcome(checked, |value| {
                this.engine.borrow_mut().set_property(id, property, value)
            }))
        })?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "exists",
        lua.create_function(move |_, id: EntityId| Ok(this.engine.borrow().exists(id)))?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "playerOf",
        lua.create_function(move |_, id: EntityId| Ok(this.engine.borrow().player_of_entity(id)))?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "watchTouches",
        lua.create_function(move |_, id: EntityId| {
            this.engine.borrow_mut().watch_touches(id);
            Ok(())
        })?,
    )
}

/// Checks an assigned value by what the property takes.
fn property_value(host: &Host, property: Property, value: &LuaValue) -> Result<Value, String> {
    match property {
        Property::Name => name(value, "Name").map(Value::String),
        Property::Position => vector(value, "Position").map(Value::Vector),
        Property::Rotation => vector(value, "Rotation").map(Value::Vector),
        Property::Velocity => vector(value, "Velocity").map(Value::Vector),
        Property::Scale => vector(value, "Scale").map(Value::Vector),
        Property::Color => color(value).map(Value::String),
        Property::Opacity => number(value, "Opacity", 0.0..=1.0).map(Value::Number),
        Property::Parent if value.is_nil() => Ok(Value::Nil),
        Property::Parent => host
            .entities()
            .ok()
            .and_then(|entities| entities.id(value))
            .map(Value::Entity)
            .ok_or_else(|| "Parent must be an entity or nil".to_owned()),
        Property::Children | Property::Tags | Property::Owner => {
            Err("this property is read-only".to_owned())
        }
    }
}

fn color(value: &LuaValue) -> Result<String, String> {
    let text = name(value, "Color")?;
    let digits = text.strip_prefix('#').unwrap_or_default();
    if digits.len() == 6 && digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(text);
    }
    Err(format!("Color must be written \"#rrggbb\", not \"{text}\""))
}

fn add_attributes(host: &Rc<Host>, lua: &Lua, table: &Table) -> mlua::Result<()> {
    let this = Rc::clone(host);
    table.set(
        "attribute",
        lua.create_function(move |lua, (id, key): (EntityId, LuaValue)| {
            match name(&key, "an attribute's name") {
                Ok(key) => {
                    let result = this.engine.borrow().attribute(id, &key);
                    this.answer(lua, result)
                }
                Err(text) => Ok((LuaValue::Nil, Some(text))),
            }
        })?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "attributes",
        lua.create_function(move |lua, id: EntityId| {
            let result = this.engine.borrow().attributes(id);
            this.answer(lua, result)
        })?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "setAttribute",
        lua.create_function(move |_, (id, key, value): (EntityId, LuaValue, LuaValue)| {
            let mut reader = Reader::new(this.entities()?);
            let checked = name(&key, "an attribute's name")
                .and_then(|key| Ok((key, reader.read(&value).and_then(attribute_value)?)));
            Ok(outcome(checked, |(key, value)| {
                this.engine.borrow_mut().set_attribute(id, &key, value)
            }))
        })?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "setTag",
        lua.create_function(move |_, (id, tag, on): (EntityId, LuaValue, bool)| {
            Ok(outcome(name(&tag, "a tag"), |tag| {
                this.engine.borrow_mut().set_tag(id, &tag, on)
            }))
        })?,
    )
}

fn attribute_value(value: Value) -> Result<Value, String> {
    match value {
        Value::List(_) | Value::Map(_) | Value::Entity(_) => {
            Err("an attribute is a number, boolean, string, Vector3 or nil".to_owned())
        }
        simple => Ok(simple),
    }
}

fn add_motion(host: &Rc<Host>, lua: &Lua, table: &Table) -> mlua::Result<()> {
    let this = Rc::clone(host);
    table.set(
        "setVelocity",
        lua.create_function(move |_, (id, velocity): (EntityId, LuaValue)| {
            Ok(outcome(vector(&velocity, "velocity"), |velocity| {
                this.engine.borrow_mut().set_velocity(id, velocity)
            }))
        })?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "applyImpulse",
        lua.create_function(move |_, (id, impulse): (EntityId, LuaValue)| {
            Ok(outcome(vector(&impulse, "impulse"), |impulse| {
                this.engine.borrow_mut().apply_impulse(id, impulse)
            }))
        })?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "moveTo",
        lua.create_function(
            move |_, (id, target, seconds): (EntityId, LuaValue, LuaValue)| {
                let checked = vector(&target, "the target of MoveTo").and_then(|to| {
                    Ok((
                        to,
                        number(&seconds, "the time of MoveTo", 0.0..=MOVE_SECONDS_MAX)?,
                    ))
                });
                Ok(outcome(checked, |(to, seconds)| {
                    this.engine.borrow_mut().move_to(id, to, seconds as f32)
                }))
            },
        )?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "destroy",
        lua.create_function(move |_, id: EntityId| {
            Ok(outcome(Ok(()), |()| this.engine.borrow_mut().destroy(id)))
        })?,
    )
}
