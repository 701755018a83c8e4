//! Natives for players.

use std::rc::Rc;

use frolic_protocol::Value;
use mlua::{Lua, Table, Value as LuaValue};

use super::{Host, outcome};
use crate::convert::{name, number, vector};
use crate::engine::PlayerProperty;
use crate::ids::PlayerId;

/// Numbers as in `builtin/server/players.luau`.
const PROPERTIES: [PlayerProperty; 6] = [
    PlayerProperty::Name,
    PlayerProperty::UserId,
    PlayerProperty::Character,
    PlayerProperty::Health,
    PlayerProperty::MaxHealth,
    PlayerProperty::Team,
];

/// Health may be as large as a boss needs.
const HEALTH_MAX: f64 = 1.0e9;

fn property(code: usize) -> mlua::Result<PlayerProperty> {
    PROPERTIES
        .get(code)
        .copied()
        .ok_or_else(|| mlua::Error::runtime("unknown property number"))
}

pub(super) fn add(host: &Rc<Host>, lua: &Lua, table: &Table) -> mlua::Result<()> {
    add_properties(host, lua, table)?;
    add_stats(host, lua, table)?;
    let this = Rc::clone(host);
    table.set(
        "players",
        lua.create_function(move |_, ()| Ok(this.engine.borrow().players()))?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "respawn",
        lua.create_function(move |_, id: PlayerId| {
            Ok(outcome(Ok(()), |()| this.engine.borrow_mut().respawn(id)))
        })?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "kill",
        lua.create_function(move |_, id: PlayerId| {
            Ok(outcome(Ok(()), |()| this.engine.borrow_mut().kill(id)))
        })?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "teleport",
        lua.create_function(move |_, (id, position): (PlayerId, LuaValue)| {
            Ok(outcome(vector(&position, "the position"), |to| {
                this.engine.borrow_mut().teleport(id, to)
            }))
        })?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "face",
        lua.create_function(move |_, (id, place): (PlayerId, LuaValue)| {
            Ok(outcome(vector(&place, "the place to look at"), |place| {
                this.engine.borrow_mut().face(id, place)
            }))
        })?,
    )
}

fn add_properties(host: &Rc<Host>, lua: &Lua, table: &Table) -> mlua::Result<()> {
    let this = Rc::clone(host);
    table.set(
        "playerProperty",
        lua.create_function(move |lua, (id, code): (PlayerId, usize)| {
            let result = this.engine.borrow().player_property(id, property(code)?);
            this.answer(lua, result)
        })?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "setPlayerProperty",
        lua.create_function(move |_, (id, code, value): (PlayerId, usize, LuaValue)| {
            let property = property(code)?;
            Ok(outcome(property_value(property, &value), |value| {
                let mut engine = this.engine.borrow_mut();
                engine.set_player_property(id, property, value)
            }))
        })?,
    )
}

fn property_value(property: PlayerProperty, value: &LuaValue) -> Result<Value, String> {
    match property {
        PlayerProperty::Health => {
            number(value, "Health", -HEALTH_MAX..=HEALTH_MAX).map(Value::Number)
        }
        PlayerProperty::MaxHealth => {
            number(value, "MaxHealth", 0.0..=HEALTH_MAX).map(Value::Number)
        }
        PlayerProperty::Team if value.is_nil() => Ok(Value::Nil),
        PlayerProperty::Team => name(value, "Team").map(Value::String),
        PlayerProperty::Name | PlayerProperty::UserId | PlayerProperty::Character => {
            Err("this property is read-only".to_owned())
        }
    }
}

fn add_stats(host: &Rc<Host>, lua: &Lua, table: &Table) -> mlua::Result<()> {
    let this = Rc::clone(host);
    table.set(
        "playerStat",
        lua.create_function(move |lua, (id, key): (PlayerId, LuaValue)| {
            match name(&key, "a figure's name") {
                Ok(key) => {
                    let result = this.engine.borrow().player_stat(id, &key);
                    this.answer(lua, result)
                }
                Err(text) => Ok((LuaValue::Nil, Some(text))),
            }
        })?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "playerStats",
        lua.create_function(move |lua, id: PlayerId| {
            let result = this.engine.borrow().player_stats(id);
            this.answer(lua, result)
        })?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "setPlayerStat",
        lua.create_function(move |_, (id, key, value): (PlayerId, LuaValue, LuaValue)| {
            let checked =
                name(&key, "a figure's name").and_then(|key| Ok((key, stat_value(&value)?)));
            Ok(outcome(checked, |(key, value)| {
                this.engine.borrow_mut().set_player_stat(id, &key, value)
            }))
        })?,
    )
}

fn stat_value(value: &LuaValue) -> Result<Value, String> {
    match value {
        LuaValue::Nil => Ok(Value::Nil),
        LuaValue::String(_) => name(value, "a figure").map(Value::String),
        other => number(other, "a figure", -1.0e15..=1.0e15).map(Value::Number),
    }
}
