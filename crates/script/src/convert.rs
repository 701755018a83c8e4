//! Converts Luau values to wire values and back, with limits on the way out.
//!
//! Tables are read raw: no metamethod of a script runs while the host reads its
//! data, and both depth and the number of parts are charged.

use std::collections::BTreeMap;

use frolic_protocol::{Value, ValueError, ValueLimits};
use mlua::{Function, Lua, Table, Value as LuaValue};

use crate::ids::EntityId;
use crate::limits::{COORDINATE_MAX, NAME_BYTES_MAX};

/// Entities in Luau: one frozen table per id, all with one metatable.
pub struct Entities {
    /// id → handle, for handles that exist already.
    pub handles: Table,
    /// Creates a handle.
    pub make: Function,
    /// The metatable that distinguishes a handle from any other table.
    pub meta: Table,
}

impl Entities {
    /// The handle of an id.
    ///
    /// # Errors
    /// When the VM is out of memory.
    pub fn handle(&self, id: EntityId) -> mlua::Result<LuaValue> {
        match self.handles.raw_get(id)? {
            LuaValue::Nil => self.make.call(id),
            known => Ok(known),
        }
    }

    /// The id of a handle; `None` for anything else.
    pub fn id(&self, value: &LuaValue) -> Option<EntityId> {
        let LuaValue::Table(table) = value else {
            return None;
        };
        let meta = table.metatable()?;
        (meta.to_pointer() == self.meta.to_pointer())
            .then(|| table.raw_get("Id").ok())
            .flatten()
    }
}

/// Turns a wire value into a Luau value.
///
/// # Errors
/// When the VM is out of memory.
pub fn to_luau(lua: &Lua, entities: &Entities, value: &Value) -> mlua::Result<LuaValue> {
    Ok(match value {
        Value::Nil => LuaValue::Nil,
        Value::Bool(b) => LuaValue::Boolean(*b),
        Value::Number(n) => LuaValue::Number(*n),
        Value::String(text) => LuaValue::String(lua.create_string(text)?),
        Value::Vector(v) => LuaValue::Vector(mlua::Vector::new(v[0], v[1], v[2])),
        Value::Entity(id) => entities.handle(*id)?,
        Value::Buffer(bytes) => LuaValue::Buffer(lua.create_buffer(bytes)?),
        Value::List(items) => {
            let table = lua.create_table_with_capacity(items.len(), 0)?;
            for (index, item) in items.iter().enumerate() {
                table.raw_seti(index + 1, to_luau(lua, entities, item)?)?;
            }
            LuaValue::Table(table)
        }
        Value::Map(map) => {
            let table = lua.create_table_with_capacity(0, map.len())?;
            for (key, item) in map {
                table.raw_set(key.as_str(), to_luau(lua, entities, item)?)?;
            }
            LuaValue::Table(table)
        }
    })
}

/// Reads Luau values within one budget.
pub struct Reader<'a> {
    entities: &'a Entities,
    limits: ValueLimits,
    nodes: usize,
    bytes: usize,
}

impl<'a> Reader<'a> {
    /// A reader with the default limits of remote events.
    pub fn new(entities: &'a Entities) -> Self {
        Self {
            entities,
            limits: ValueLimits::default(),
            nodes: 0,
            bytes: 0,
        }
    }

    /// Approximate size on the wire of the values read so far.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Converts a Luau value to a wire value.
    ///
    /// # Errors
    /// A message for the creator if the value cannot be sent.
    pub fn read(&mut self, value: &LuaValue) -> Result<Value, String> {
        self.read_at(value, self.limits.depth_max)
    }

    fn read_at(&mut self, value: &LuaValue, depth: usize) -> Result<Value, String> {
        self.nodes += 1;
        self.bytes += 9;
        if self.nodes > self.limits.nodes_max {
            return Err(ValueError::TooMany(self.limits.nodes_max).to_string());
        }
        Ok(match value {
            LuaValue::Nil => Value::Nil,
            LuaValue::Boolean(b) => Value::Bool(*b),
            LuaValue::Integer(n) => Value::Number(*n as f64),
            LuaValue::Number(n) => Value::Number(*n),
            LuaValue::String(text) => Value::String(self.text(text)?),
            LuaValue::Vector(v) => Value::Vector(finite_vector([v.x(), v.y(), v.z()])?),
            LuaValue::Buffer(buffer) => Value::Buffer(self.buffer(buffer)?),
            LuaValue::Table(table) => match self.entities.id(value) {
                Some(id) => Value::Entity(id),
                None => self.table(table, depth)?,
            },
            other => return Err(format!("a {} cannot be sent", kind_of(other))),
        })
    }

    fn text(&mut self, text: &mlua::LuaString) -> Result<String, String> {
        let bytes = text.as_bytes();
        if bytes.len() > self.limits.string_bytes_max {
            return Err(ValueError::StringTooLong(self.limits.string_bytes_max).to_string());
        }
        self.bytes += bytes.len();
        String::from_utf8(bytes.to_vec()).map_err(|_| "a string is not UTF-8".to_owned())
    }

    fn buffer(&mut self, buffer: &mlua::Buffer) -> Result<Vec<u8>, String> {
        if buffer.len() > self.limits.string_bytes_max {
            return Err(ValueError::BufferTooLong(self.limits.string_bytes_max).to_string());
        }
        self.bytes += buffer.len();
        Ok(buffer.to_vec())
    }

    fn table(&mut self, table: &Table, depth: usize) -> Result<Value, String> {
        let depth = depth
            .checked_sub(1)
            .ok_or_else(|| ValueError::TooDeep(self.limits.depth_max).to_string())?;
        if table.metatable().is_some() {
            return Err(
                "a table with a metatable cannot be sent (for a player, send player.UserId)"
                    .to_owned(),
            );
        }
        let length = table.raw_len();
        if length > 0 {
            return self.list(table, length, depth);
        }
        let mut map = BTreeMap::new();
        for pair in table.pairs::<LuaValue, LuaValue>() {
            let (key, item) = pair.map_err(|error| error.to_string())?;
            let LuaValue::String(key) = &key else {
                return Err(format!(
                    "a table key is a {}; use a list or text keys",
                    kind_of(&key)
                ));
            };
            let key = self.text(key)?;
            let item = self.read_at(&item, depth)?;
            map.insert(key, item);
        }
        Ok(Value::Map(map))
    }

    fn list(&mut self, table: &Table, length: usize, depth: usize) -> Result<Value, String> {
        if length > self.limits.nodes_max {
            return Err(ValueError::TooMany(self.limits.nodes_max).to_string());
        }
        let mut items = Vec::with_capacity(length);
        let mut seen = 0;
        for pair in table.pairs::<LuaValue, LuaValue>() {
            let (key, _) = pair.map_err(|error| error.to_string())?;
            seen += 1;
            let in_list = matches!(key, LuaValue::Integer(i) if i >= 1 && i as usize <= length)
                || matches!(key, LuaValue::Number(n) if n >= 1.0 && n <= length as f64 && n.fract() == 0.0);
            if !in_list || seen > length {
                return Err("a table mixes list items and keys; send two tables".to_owned());
            }
        }
        for index in 1..=length {
            let item: LuaValue = table.raw_get(index).map_err(|error| error.to_string())?;
            items.push(self.read_at(&item, depth)?);
        }
        Ok(Value::List(items))
    }
}

/// Luau's name of a value's type; mlua distinguishes integers.
pub(crate) fn kind_of(value: &LuaValue) -> &'static str {
    match value {
        LuaValue::Integer(_) => "number",
        LuaValue::Vector(_) => "Vector3",
        other => other.type_name(),
    }
}

/// A name that scripts chose: entity, tag, attribute, event, prefab.
pub(crate) fn name(value: &LuaValue, what: &'static str) -> Result<String, String> {
    let LuaValue::String(text) = value else {
        return Err(format!("{what} must be a string, not a {}", kind_of(value)));
    };
    let bytes = text.as_bytes();
    if bytes.is_empty() || bytes.len() > NAME_BYTES_MAX {
        return Err(format!("{what} must have 1 to {NAME_BYTES_MAX} bytes"));
    }
    match std::str::from_utf8(&bytes) {
        Ok(text) if !text.chars().any(char::is_control) => Ok(text.to_owned()),
        _ => Err(format!("{what} must be printable UTF-8")),
    }
}

/// A point, speed or direction in the range the world can hold.
pub(crate) fn vector(value: &LuaValue, what: &'static str) -> Result<[f32; 3], String> {
    let LuaValue::Vector(v) = value else {
        return Err(format!(
            "{what} must be a Vector3, not a {}",
            kind_of(value)
        ));
    };
    let v = [v.x(), v.y(), v.z()];
    if v.iter().all(|c| f64::from(c.abs()) <= COORDINATE_MAX) {
        return Ok(v);
    }
    Err(format!(
        "{what} must be finite and within {COORDINATE_MAX}, not {}, {}, {}",
        v[0], v[1], v[2]
    ))
}

/// A number in a range; NaN is in none.
pub(crate) fn number(
    value: &LuaValue,
    what: &'static str,
    range: std::ops::RangeInclusive<f64>,
) -> Result<f64, String> {
    let n = match value {
        LuaValue::Number(n) => *n,
        LuaValue::Integer(n) => *n as f64,
        other => {
            return Err(format!("{what} must be a number, not a {}", kind_of(other)));
        }
    };
    if range.contains(&n) {
        return Ok(n);
    }
    Err(format!(
        "{what} must be from {} to {}, not {n}",
        range.start(),
        range.end()
    ))
}

fn finite_vector(v: [f32; 3]) -> Result<[f32; 3], String> {
    if v.iter().all(|c| c.is_finite()) {
        Ok(v)
    } else {
        Err(ValueError::NotFinite.to_string())
    }
}
