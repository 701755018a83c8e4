//! Natives for the chat.

use std::rc::Rc;

use frolic_protocol::packet::CHAT_BYTES_MAX;
use mlua::{Lua, Table, Value as LuaValue};

use super::{Host, outcome};
use crate::convert::kind_of;
use crate::engine::Recipient;
use crate::ids::PlayerId;

pub(super) fn add(host: &Rc<Host>, lua: &Lua, table: &Table) -> mlua::Result<()> {
    let this = Rc::clone(host);
    table.set(
        "chat",
        lua.create_function(
            move |_, (script, to, from, text): (u32, PlayerId, Option<PlayerId>, LuaValue)| {
                let to = match to {
                    0 => Recipient::All,
                    one => Recipient::One(one),
                };
                let checked = line(&text).and_then(|text| charge(&this, script, to, text));
                Ok(outcome(checked, |text| {
                    this.engine.borrow_mut().chat(to, from, &text)
                }))
            },
        )?,
    )
}

fn line(text: &LuaValue) -> Result<String, String> {
    let LuaValue::String(text) = text else {
        return Err(format!(
            "a line of chat is a string, not a {}",
            kind_of(text)
        ));
    };
    let text = text.to_string_lossy();
    let text = text.trim();
    if text.is_empty() || text.len() > CHAT_BYTES_MAX {
        return Err(format!("a line of chat has 1 to {CHAT_BYTES_MAX} bytes"));
    }
    Ok(text.to_owned())
}

/// Charges the text to the send quota of the script.
fn charge(host: &Host, script: u32, to: Recipient, text: String) -> Result<String, String> {
    let to_all = matches!(to, Recipient::All);
    let mut quota = host.quota.borrow_mut();
    let sending = &mut quota.sending;
    sending.charge_event(script, to_all, text.len(), &host.limits)?;
    Ok(text)
}
