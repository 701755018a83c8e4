//! Natives for persistent structures: build, list, and storage progress.

use std::rc::Rc;

use mlua::{Lua, Table, Value as LuaValue};

use super::Host;
use super::spawning::SpawnRefusal;
use super::world::handles;
use crate::convert::{name, vector};
use crate::engine::{BuildRequest, Built};
use crate::ids::EntityId;

/// Longest id of an owner.
const OWNER_BYTES_MAX: usize = 64;

/// Prefab, position, rotation, the owner's persistent id and the script's
/// number.
type Order = (LuaValue, LuaValue, LuaValue, Option<mlua::LuaString>, u32);

pub(super) fn add(host: &Rc<Host>, lua: &Lua, table: &Table) -> mlua::Result<()> {
    let this = Rc::clone(host);
    table.set(
        "build",
        lua.create_function(move |_, order: Order| {
            Ok(match build(&this, &order) {
                Ok(built) => {
                    let seq = built.seq as f64;
                    (Some(built.entity), None, built.scripts, seq, false)
                }
                Err(refusal) => {
                    let offence = refusal.is_offence();
                    (None, Some(refusal.to_string()), Vec::new(), 0.0, offence)
                }
            })
        })?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "structures",
        lua.create_function(move |lua, owner: Option<mlua::LuaString>| {
            let found = owner_id(owner.as_ref())
                .map(|owner| this.engine.borrow().structures(owner.as_deref()));
            handles(&this, lua, found)
        })?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "builtBy",
        lua.create_function(move |_, id: EntityId| Ok(this.engine.borrow().built_by(id)))?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "newestOp",
        lua.create_function(move |_, ()| Ok(this.engine.borrow().newest_op() as f64))?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "keptOp",
        lua.create_function(move |_, ()| Ok(this.engine.borrow().persisted_op() as f64))?,
    )
}

fn build(host: &Host, order: &Order) -> Result<Built, SpawnRefusal> {
    let (prefab, position, rotation, owner, script) = order;
    let request = BuildRequest {
        prefab: name(prefab, "the prefab's name")?,
        position: vector(position, "the position")?,
        rotation: match rotation {
            LuaValue::Nil => None,
            other => Some(vector(other, "the rotation")?),
        },
        owner: owner_id(owner.as_ref())?,
    };
    // Persistent structures have a limit of their own, and outlive the script.
    let mut quota = host.quota.borrow_mut();
    quota.spawning.charge(*script, &host.limits)?;
    let mut engine = host.engine.borrow_mut();
    let built = engine.build(&request);
    Ok(built.map_err(|error| error.to_string())?)
}

fn owner_id(owner: Option<&mlua::LuaString>) -> Result<Option<String>, String> {
    let Some(owner) = owner else {
        return Ok(None);
    };
    let bytes = owner.as_bytes();
    let text = std::str::from_utf8(&bytes).ok();
    let short = text.filter(|text| (1..=OWNER_BYTES_MAX).contains(&text.len()));
    short.map_or_else(
        || {
            Err(format!(
                "an owner's id is a text of 1 to {OWNER_BYTES_MAX} bytes"
            ))
        },
        |text| Ok(Some(text.to_owned())),
    )
}
