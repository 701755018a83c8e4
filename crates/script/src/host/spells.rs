//! Natives below `Spell`: casts by scripts, and the outcome of a cast.

use std::rc::Rc;

use frolic_protocol::Value;
use mlua::{Lua, Table, Value as LuaValue};

use super::Host;
use crate::convert::{Reader, name};
use crate::ids::PlayerId;

/// Bytes of one cast's query results, which are sent to every client.
const ANSWER_BYTES_MAX: usize = 16 * 1024;

pub(super) fn add(host: &Rc<Host>, lua: &Lua, table: &Table) -> mlua::Result<()> {
    let this = Rc::clone(host);
    table.set(
        "spells",
        lua.create_function(move |_, ()| Ok(this.engine.borrow().spells()))?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "cast",
        lua.create_function(
            move |_, (player, spell, params): (PlayerId, LuaValue, LuaValue)| {
                Ok(cast(&this, player, &spell, &params).err())
            },
        )?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "castDone",
        lua.create_function(move |_, (number, draws, answers): (u32, u32, Table)| {
            let answers = read_answers(&this, &answers).unwrap_or_default();
            this.engine.borrow_mut().cast_done(number, draws, answers);
            Ok(())
        })?,
    )
}

fn cast(host: &Host, player: PlayerId, spell: &LuaValue, params: &LuaValue) -> Result<(), String> {
    let spell = name(spell, "the spell's id")?;
    let entities = host.entities().map_err(|error| error.to_string())?;
    let params = Reader::new(entities).read(params)?;
    let mut engine = host.engine.borrow_mut();
    engine
        .cast(player, &spell, params)
        .map_err(|error| error.to_string())
}

/// In order; what cannot be sent is nil on every client.
fn read_answers(host: &Host, answers: &Table) -> Result<Vec<Value>, String> {
    let entities = host.entities().map_err(|error| error.to_string())?;
    let mut reader = Reader::new(entities);
    let mut values = Vec::new();
    for index in 1..=answers.raw_len() {
        let answer: LuaValue = answers.raw_get(index).map_err(|error| error.to_string())?;
        let value = reader.read(&answer).unwrap_or(Value::Nil);
        let fits = reader.bytes() <= ANSWER_BYTES_MAX;
        values.push(if fits { value } else { Value::Nil });
    }
    Ok(values)
}
