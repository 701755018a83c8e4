//! The native below `Store`: reads a request, charges it and passes it on. The
//! answer is delivered as a separate event.

use std::rc::Rc;

use frolic_fleet_api::store::{
    Best, PAGE_MAX, RankKey, StoreAction, StoreKey, StoreRequest, requests_per_minute,
};
use frolic_protocol::{Args, Value};
use mlua::{Lua, MultiValue, Table, Value as LuaValue};

use super::Host;
use crate::convert::{Reader, kind_of};

/// Rate limit of this world's Store requests. Usage drains with world time, so
/// that a replay refuses the same requests; the limit grows with the number of
/// players.
#[derive(Default)]
pub(crate) struct Allowance {
    used: f64,
    at: f64,
}

impl Allowance {
    /// Charges one request; the error contains the limit.
    fn take(&mut self, now: f64, players: usize) -> Result<(), String> {
        let per_minute = f64::from(requests_per_minute(players));
        let drained = (now - self.at).max(0.0) * per_minute / 60.0;
        self.at = now;
        self.used = (self.used - drained).max(0.0);
        if self.used + 1.0 > per_minute {
            return Err(format!(
                "Store takes {per_minute} requests a minute from this world ({players} players), \
                 and they are used up; save less often, or more under one key"
            ));
        }
        self.used += 1.0;
        Ok(())
    }
}

pub(super) fn add(host: &Rc<Host>, lua: &Lua, table: &Table) -> mlua::Result<()> {
    let this = Rc::clone(host);
    table.set(
        "store",
        lua.create_function(move |_, (id, action, args): (u32, String, MultiValue)| {
            Ok(request(&this, id, &action, args).err())
        })?,
    )
}

fn request(host: &Host, id: u32, action: &str, args: MultiValue) -> Result<(), String> {
    let mut args = Arguments {
        host,
        rest: args.into_iter().collect::<Vec<_>>().into_iter(),
    };
    let action = match action {
        "get" => StoreAction::Get(args.at()?),
        "set" => StoreAction::Set {
            at: args.at()?,
            value: args.value()?,
        },
        "swap" => StoreAction::Swap {
            at: args.at()?,
            value: args.value()?,
            version: args.number("a version")? as u64,
        },
        "increment" => StoreAction::Increment {
            at: args.at()?,
            by: args.number("the amount")?,
        },
        "remove" => StoreAction::Remove(args.at()?),
        "list" => StoreAction::List {
            prefix: StoreKey {
                player: args.optional("a player's id")?,
                key: args.optional("a prefix")?.unwrap_or_default(),
            },
            after: args.optional("the key to go on after")?,
        },
        "rank_set" => StoreAction::RankSet {
            at: args.rank()?,
            score: args.number("a score")?,
        },
        "rank_increment" => StoreAction::RankIncrement {
            at: args.rank()?,
            by: args.number("the amount")?,
        },
        "rank_remove" => StoreAction::RankRemove(args.rank()?),
        "rank_top" => StoreAction::RankTop {
            ranking: args.text("a ranking's name")?,
            best: args.best(),
            count: args
                .number("the number of places")?
                .clamp(1.0, f64::from(PAGE_MAX)) as u32,
        },
        "rank_of" => {
            let best = args.best();
            StoreAction::RankOf {
                at: args.rank()?,
                best,
            }
        }
        other => return Err(format!("there is no request {other}")),
    };
    action.check().map_err(|refusal| refusal.to_string())?;
    let mut engine = host.engine.borrow_mut();
    let (now, players) = (engine.time(), engine.players().len());
    host.store_left.borrow_mut().take(now, players)?;
    engine
        .store(StoreRequest { id, action })
        .map_err(|error| error.to_string())
}

/// The arguments from the Luau side, in order.
struct Arguments<'a> {
    host: &'a Host,
    rest: std::vec::IntoIter<LuaValue>,
}

impl Arguments<'_> {
    fn next(&mut self) -> LuaValue {
        self.rest.next().unwrap_or(LuaValue::Nil)
    }

    fn optional(&mut self, what: &str) -> Result<Option<String>, String> {
        match self.next() {
            LuaValue::Nil => Ok(None),
            LuaValue::String(text) => match std::str::from_utf8(&text.as_bytes()) {
                Ok(text) => Ok(Some(text.to_owned())),
                Err(_) => Err(format!("{what} must be UTF-8 text")),
            },
            other => Err(format!(
                "{what} must be a string, not a {}",
                kind_of(&other)
            )),
        }
    }

    fn text(&mut self, what: &str) -> Result<String, String> {
        let text = self.optional(what)?;
        text.ok_or_else(|| format!("{what} must be a string, not nil"))
    }

    fn at(&mut self) -> Result<StoreKey, String> {
        Ok(StoreKey {
            player: self.optional("a player's id")?,
            key: self.text("a key")?,
        })
    }

    fn rank(&mut self) -> Result<RankKey, String> {
        Ok(RankKey {
            ranking: self.text("a ranking's name")?,
            key: self.text("whose score it is")?,
            name: self.optional("a name")?,
        })
    }

    fn best(&mut self) -> Best {
        match self.next() {
            LuaValue::Boolean(true) => Best::Lowest,
            _ => Best::Highest,
        }
    }

    fn number(&mut self, what: &str) -> Result<f64, String> {
        match self.next() {
            LuaValue::Number(number) => Ok(number),
            LuaValue::Integer(number) => Ok(number as f64),
            other => Err(format!(
                "{what} must be a number, not a {}",
                kind_of(&other)
            )),
        }
    }

    fn value(&mut self) -> Result<Args, String> {
        let value = self.next();
        let entities = self.host.entities().map_err(|error| error.to_string())?;
        let read = Reader::new(entities).read(&value);
        let value = read.map_err(|text| text.replace("be sent", "be stored"))?;
        debug_assert!(value != Value::Nil, "nil is a removal");
        Ok(Args(vec![value]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn players_who_join_bring_their_share_of_requests() {
        let mut allowance = Allowance::default();
        let mut taken = |now, players| {
            (0..5000)
                .take_while(|_| allowance.take(now, players).is_ok())
                .count()
        };
        assert_eq!(taken(0.0, 0), 300);
        assert_eq!(taken(0.0, 10), 600);
        assert_eq!(taken(0.0, 0), 0);
        assert_eq!(taken(60.0, 10), 900);
        assert_eq!(taken(90.0, 10), 450);
    }
}
