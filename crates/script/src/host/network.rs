//! Natives that send to clients.

use std::rc::Rc;

use frolic_protocol::Value;
use mlua::{Lua, MultiValue, Table, Value as LuaValue, Variadic};

use super::Host;
use crate::convert::Reader;
use crate::engine::Recipient;
use crate::ids::PlayerId;

/// Arguments of one event.
const ARGS_MAX: usize = 64;

pub(super) fn add(host: &Rc<Host>, lua: &Lua, table: &Table) -> mlua::Result<()> {
    let this = Rc::clone(host);
    table.set(
        "send",
        lua.create_function(
            move |_,
                  (script, to, reliable, name, args): (
                u32,
                PlayerId,
                bool,
                String,
                Variadic<LuaValue>,
            )| { Ok(send(&this, script, to, reliable, &name, &args).err()) },
        )?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "reply",
        lua.create_function(
            move |_, (script, player, call, ok, results): (u32, PlayerId, u32, bool, MultiValue)| {
                let values: Vec<LuaValue> = results.into_iter().collect();
                let read = read_args(&this, &values).and_then(|(values, bytes)| {
                    let mut quota = this.quota.borrow_mut();
                    let charged = quota.sending.charge_bytes(script, bytes, &this.limits);
                    charged.map(|()| values)
                });
                let result = match (ok, read) {
                    (true, read) => read,
                    (false, Ok(mut values)) => Err(match values.pop() {
                        Some(Value::String(text)) => text,
                        _ => "the call failed".to_owned(),
                    }),
                    (false, Err(text)) => Err(text),
                };
                this.engine.borrow_mut().reply(player, call, result);
                Ok(())
            },
        )?,
    )
}

/// `to` 0 means all players.
fn send(
    host: &Host,
    script: u32,
    to: PlayerId,
    reliable: bool,
    name: &str,
    args: &[LuaValue],
) -> Result<(), String> {
    let (values, bytes) = read_args(host, args)?;
    host.quota.borrow_mut().sending.charge_event(
        script,
        to == 0,
        bytes + name.len(),
        &host.limits,
    )?;
    let recipient = match to {
        0 => Recipient::All,
        player => Recipient::One(player),
    };
    host.engine
        .borrow_mut()
        .send(recipient, name, values, reliable)
        .map_err(|error| error.to_string())
}

/// The arguments, and how many bytes they have.
fn read_args(host: &Host, args: &[LuaValue]) -> Result<(Vec<Value>, usize), String> {
    if args.len() > ARGS_MAX {
        return Err(format!("an event takes at most {ARGS_MAX} arguments"));
    }
    let entities = host.entities().map_err(|error| error.to_string())?;
    let mut reader = Reader::new(entities);
    let values = args
        .iter()
        .enumerate()
        .map(|(index, arg)| {
            reader
                .read(arg)
                .map_err(|text| format!("argument {}: {text}", index + 1))
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok((values, reader.bytes()))
}
