//! Natives for projectiles, death and respawning.

use std::rc::Rc;

use frolic_protocol::projectile::ShotLook;
use mlua::{Lua, Table, Value as LuaValue};

use super::{Host, outcome};
use crate::convert::{name, number, vector};
use crate::ids::PlayerId;
use crate::weapon::{FireRequest, WeaponSpec};

/// Longest time between death and respawn, in seconds.
const RESPAWN_SECONDS_MAX: f64 = 60.0;

pub(super) fn add(host: &Rc<Host>, lua: &Lua, table: &Table) -> mlua::Result<()> {
    let this = Rc::clone(host);
    table.set(
        "defineWeapon",
        lua.create_function(move |_, (weapon, options): (LuaValue, Table)| {
            let checked = name(&weapon, "the weapon's name")
                .and_then(|weapon| Ok((weapon, weapon_spec(&options)?)));
            Ok(outcome(checked, |(weapon, spec)| {
                this.engine.borrow_mut().define_weapon(&weapon, &spec)
            }))
        })?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "arm",
        lua.create_function(move |_, (player, weapon): (PlayerId, LuaValue)| {
            let checked = match &weapon {
                LuaValue::Nil => Ok(None),
                other => name(other, "the weapon's name").map(Some),
            };
            Ok(outcome(checked, |weapon| {
                this.engine.borrow_mut().arm(player, weapon.as_deref())
            }))
        })?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "weaponOf",
        lua.create_function(move |_, player: PlayerId| Ok(this.engine.borrow().weapon_of(player)))?,
    )?;
    add_shots(host, lua, table)?;
    add_lives(host, lua, table)
}

fn add_shots(host: &Rc<Host>, lua: &Lua, table: &Table) -> mlua::Result<()> {
    let this = Rc::clone(host);
    table.set(
        "fire",
        lua.create_function(move |_, (options, shooter): (Table, Option<PlayerId>)| {
            let fired = fire_request(&options, shooter).and_then(|request| {
                let mut engine = this.engine.borrow_mut();
                engine.fire(&request).map_err(|error| error.to_string())
            });
            Ok(match fired {
                Ok(id) => (Some(id), None),
                Err(text) => (None, Some(text)),
            })
        })?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "removeProjectile",
        lua.create_function(move |_, id: LuaValue| {
            let id = number(&id, "the shot's number", 0.0..=f64::from(u32::MAX));
            Ok(match id {
                Ok(id) => (this.engine.borrow_mut().remove_projectile(id as u32), None),
                Err(text) => (false, Some(text)),
            })
        })?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "projectiles",
        lua.create_function(move |_, ()| Ok(this.engine.borrow().projectiles() as f64))?,
    )
}

fn add_lives(host: &Rc<Host>, lua: &Lua, table: &Table) -> mlua::Result<()> {
    let this = Rc::clone(host);
    table.set(
        "isAlive",
        lua.create_function(move |_, player: PlayerId| Ok(this.engine.borrow().is_alive(player)))?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "respawnSeconds",
        lua.create_function(move |_, ()| Ok(this.engine.borrow().respawn_seconds()))?,
    )?;
    let this = Rc::clone(host);
    table.set(
        "setRespawnSeconds",
        lua.create_function(move |_, value: LuaValue| {
            let checked = number(&value, "RespawnSeconds", 0.0..=RESPAWN_SECONDS_MAX);
            Ok(outcome(checked, |seconds| {
                this.engine.borrow_mut().set_respawn_seconds(seconds)
            }))
        })?,
    )
}

/// Reads the options one by one, raw; missing ones have their defaults.
fn weapon_spec(options: &Table) -> Result<WeaponSpec, String> {
    let mut spec = WeaponSpec::default();
    for pair in options.pairs::<LuaValue, LuaValue>() {
        let (key, value) = pair.map_err(|error| error.to_string())?;
        let key = name(&key, "an option's name")?;
        let within = |what, least: f64, most: f64| number(&value, what, least..=most);
        match key.as_str() {
            "Speed" => spec.speed = within("Speed", 0.1, 2_000.0)? as f32,
            "Gravity" => spec.gravity = within("Gravity", -100.0, 100.0)? as f32,
            "Radius" => spec.radius = within("Radius", 0.0, 2.0)? as f32,
            "Bounce" => spec.bounce = within("Bounce", 0.0, 1.0)? as f32,
            "Ricochets" => spec.ricochets = within("Ricochets", 0.0, 16.0)? as u8,
            "LifeSeconds" => spec.life_s = within("LifeSeconds", 0.05, 30.0)? as f32,
            "Damage" => spec.damage = within("Damage", 0.0, 1.0e9)?,
            "FireRate" => spec.fire_rate = within("FireRate", 0.1, 60.0)? as f32,
            "FriendlyFire" => {
                let LuaValue::Boolean(on) = value else {
                    return Err("FriendlyFire is true or false".to_owned());
                };
                spec.friendly_fire = on;
            }
            "Color" => spec.color = color(&name(&value, "Color")?)?,
            "Look" => spec.look = look(&name(&value, "Look")?)?,
            "Sound" => {
                let LuaValue::String(text) = &value else {
                    return Err("Sound is the name of one of the engine's sounds".to_owned());
                };
                let text = text.to_string_lossy();
                if text.len() > 64 {
                    return Err("Sound has at most 64 bytes".to_owned());
                }
                spec.sound = text;
            }
            other => return Err(format!("{other} is not an option of Projectile.Define")),
        }
    }
    Ok(spec)
}

fn look(text: &str) -> Result<ShotLook, String> {
    let known = ShotLook::NAMES.iter().find(|(name, _)| *name == text);
    let look = known.map(|(_, look)| *look);
    look.ok_or_else(|| "Look is \"Tracer\", \"Ball\" or \"None\"".to_owned())
}

fn color(text: &str) -> Result<[u8; 3], String> {
    let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6);
    let value = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
    let value = value.ok_or_else(|| "Color is a colour such as \"#ff8800\"".to_owned())?;
    let [_, r, g, b] = value.to_be_bytes();
    Ok([r, g, b])
}

fn fire_request(options: &Table, shooter: Option<PlayerId>) -> Result<FireRequest, String> {
    let get = |key: &str| {
        let value: mlua::Result<LuaValue> = options.raw_get(key);
        value.map_err(|error| error.to_string())
    };
    let weapon = name(&get("Weapon")?, "Weapon")?;
    let origin = vector(&get("From")?, "From")?;
    let direction = match (get("Direction")?, get("To")?) {
        (LuaValue::Nil, to) => {
            let to = vector(&to, "Direction or To")?;
            [to[0] - origin[0], to[1] - origin[1], to[2] - origin[2]]
        }
        (direction, _) => vector(&direction, "Direction")?,
    };
    let length = direction.iter().map(|x| x * x).sum::<f32>().sqrt();
    if length < 1e-6 {
        return Err("the shot has no direction: Direction is longer than nothing".to_owned());
    }
    let speed = match get("Speed")? {
        LuaValue::Nil => None,
        other => Some(number(&other, "Speed", 0.1..=2_000.0)? as f32),
    };
    Ok(FireRequest {
        weapon,
        origin,
        direction: direction.map(|x| x / length),
        speed,
        shooter,
    })
}
