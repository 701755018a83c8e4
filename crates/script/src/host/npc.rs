//! Natives for NPCs: reading their state, and giving them orders.

use std::rc::Rc;

use mlua::{Lua, Table, Value as LuaValue};

use super::{Host, outcome};
use crate::convert::{name, vector};
use crate::ids::EntityId;
use crate::npc::{NpcOrder, NpcPlace, NpcState};

/// Points read from a list; the world accepts fewer.
const PLACES_MAX: usize = 1024;

pub(super) fn add(host: &Rc<Host>, lua: &Lua, table: &Table) -> mlua::Result<()> {
    let this = Rc::clone(host);
    table.set(
        "npcs",
        lua.create_function(move |_, ()| Ok(this.engine.borrow().npcs()))?,
    )?;
    let this = Rc::clone(host);
    // State, target, suspicion, overridden, problem; all nil for an entity that
    // is not an NPC.
    table.set(
        "npc",
        lua.create_function(move |_, id: EntityId| {
            let facts = this.engine.borrow().npc(id);
            Ok(match facts {
                Ok(Some(facts)) => (
                    Some(facts.state.name()),
                    facts.target,
                    Some(facts.suspicion),
                    Some(facts.overridden),
                    None,
                ),
                Ok(None) => (None, None, None, None, None),
                Err(error) => (None, None, None, None, Some(error.to_string())),
            })
        })?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "orderNpc",
        lua.create_function(
            move |_, (id, what, value, run): (EntityId, String, LuaValue, Option<bool>)| {
                let order = order(&what, &value, run.unwrap_or(false));
                Ok(outcome(order, |order| {
                    this.engine.borrow_mut().order_npc(id, order)
                }))
            },
        )?,
    )
}

fn order(what: &str, value: &LuaValue, run: bool) -> Result<NpcOrder, String> {
    Ok(match what {
        "MoveTo" => NpcOrder::MoveTo {
            to: vector(value, "the target of MoveTo")?,
            run,
        },
        "Stop" => NpcOrder::Stop,
        "LookAt" if value.is_nil() => NpcOrder::LookAt(None),
        "LookAt" => NpcOrder::LookAt(Some(vector(value, "the place to look at")?)),
        "SetState" => {
            let word = name(value, "the state")?;
            let state = NpcState::from_name(&word).ok_or_else(|| {
                let states = NpcState::ALL.map(NpcState::name).join(", ");
                format!("there is no state \"{word}\"; there are {states}")
            })?;
            NpcOrder::SetState(state)
        }
        "Patrol" => NpcOrder::Patrol(places(value)?),
        "Release" => NpcOrder::Release,
        "Forget" => NpcOrder::Forget,
        other => return Err(format!("NPCs take no order \"{other}\"")),
    })
}

fn places(value: &LuaValue) -> Result<Vec<NpcPlace>, String> {
    let LuaValue::Table(list) = value else {
        return Err("a patrol is a list of places and names of entities".to_owned());
    };
    let length = list.raw_len();
    if length > PLACES_MAX {
        return Err(format!("a patrol of {length} points is too long"));
    }
    (1..=length)
        .map(|index| {
            let place: LuaValue = list.raw_get(index).map_err(|error| error.to_string())?;
            match place {
                LuaValue::String(_) => name(&place, "a point's name").map(NpcPlace::Named),
                other => vector(&other, "a point of the patrol").map(NpcPlace::At),
            }
        })
        .collect()
}
