//! Values that scripts pass over the network, and their two encodings.
//!
//! The binary decoder is written by hand instead of derived because a derived
//! one recurses as deep as the sender likes: every step here is charged to
//! [`ValueLimits`], so a hostile packet costs what its size justifies.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use frolic_scene::Attribute;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::whole::whole_number;

/// One argument of a remote event, as Luau sees it.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Value {
    /// Luau `nil`.
    #[default]
    Nil,
    /// A boolean.
    Bool(bool),
    /// Any Luau number.
    Number(f64),
    /// A UTF-8 string.
    String(String),
    /// Luau's native vector.
    Vector([f32; 3]),
    /// An entity, by its network id.
    Entity(u32),
    /// The bytes of a Luau buffer.
    Buffer(Vec<u8>),
    /// A table with the keys 1…n.
    List(Vec<Value>),
    /// A table with string keys; ordered, so that encoding is reproducible.
    Map(BTreeMap<String, Value>),
}

/// An attribute of a scene, as scripts read it.
impl From<&Attribute> for Value {
    fn from(attribute: &Attribute) -> Self {
        match attribute {
            Attribute::Bool(value) => Value::Bool(*value),
            Attribute::Number(value) => Value::Number(*value),
            Attribute::String(value) => Value::String(value.clone()),
            Attribute::Vector(value) => Value::Vector(*value),
        }
    }
}

/// How large a group of values may be. Exceeding any of these is an error.
#[derive(Clone, Copy, Debug)]
pub struct ValueLimits {
    /// Nesting of lists and maps.
    pub depth_max: usize,
    /// Values in all, containers included.
    pub nodes_max: usize,
    /// Bytes of one string, key or buffer.
    pub string_bytes_max: usize,
}

impl Default for ValueLimits {
    fn default() -> Self {
        Self {
            depth_max: 32,
            nodes_max: 4096,
            string_bytes_max: 16 * 1024,
        }
    }
}

/// Why a value was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// Tables inside tables inside tables…
    #[error("value is nested deeper than {0} levels")]
    TooDeep(usize),
    /// Too many values in one message.
    #[error("value has more than {0} parts")]
    TooMany(usize),
    /// One string is too long.
    #[error("a string is longer than {0} bytes")]
    StringTooLong(usize),
    /// One buffer is too long.
    #[error("a buffer is longer than {0} bytes")]
    BufferTooLong(usize),
    /// Numbers must be finite in vectors; NaN would poison the simulation.
    #[error("a vector has a component that is not finite")]
    NotFinite,
    /// The bytes end early or name an unknown type.
    #[error("value bytes are malformed")]
    Malformed,
}

/// The arguments of one remote event or call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Args(pub Vec<Value>);

impl Args {
    /// Checks every value against `limits`.
    ///
    /// # Errors
    /// The first limit that is exceeded.
    pub fn check(&self, limits: &ValueLimits) -> Result<(), ValueError> {
        let mut nodes = 0;
        self.0
            .iter()
            .try_for_each(|value| check(value, limits, limits.depth_max, &mut nodes))
    }

    /// The compact binary form.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(16);
        write_length(&mut out, self.0.len());
        for value in &self.0 {
            write_value(&mut out, value);
        }
        out
    }

    /// Reads the binary form.
    ///
    /// # Errors
    /// When the bytes are malformed or exceed `limits`.
    pub fn from_bytes(bytes: &[u8], limits: &ValueLimits) -> Result<Self, ValueError> {
        let mut reader = Reader {
            bytes,
            limits,
            nodes: 0,
        };
        let count = reader.length()?;
        let mut values = Vec::with_capacity(count.min(bytes.len()));
        for _ in 0..count {
            values.push(reader.value(limits.depth_max)?);
        }
        if reader.bytes.is_empty() {
            Ok(Self(values))
        } else {
            Err(ValueError::Malformed)
        }
    }
}

impl Value {
    /// The same with nil for the entities that are not like that.
    #[must_use]
    pub fn with_entities(self, are: &impl Fn(u32) -> bool) -> Self {
        match self {
            Value::Entity(id) if !are(id) => Value::Nil,
            Value::List(items) => {
                let items = items.into_iter().map(|item| item.with_entities(are));
                Value::List(items.collect())
            }
            Value::Map(map) => {
                let items = map.into_iter();
                Value::Map(
                    items
                        .map(|(key, item)| (key, item.with_entities(are)))
                        .collect(),
                )
            }
            other => other,
        }
    }

    /// The JSON form: plain JSON, with `{"$v":[x,y,z]}` for vectors,
    /// `{"$e":id}` for entities and `{"$b":"…"}` (base64) for buffers. Whole numbers are written without a point;
    /// numbers JSON cannot hold become null.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::{Value as Json, json};
        match self {
            Value::Nil => Json::Null,
            Value::Bool(b) => Json::Bool(*b),
            Value::Number(n) => number_to_json(*n),
            Value::String(s) => Json::String(s.clone()),
            Value::Vector(v) => json!({ "$v": v }),
            Value::Entity(id) => json!({ "$e": id }),
            Value::Buffer(bytes) => json!({ "$b": BASE64.encode(bytes) }),
            Value::List(items) => Json::Array(items.iter().map(Value::to_json).collect()),
            Value::Map(map) => Json::Object(
                map.iter()
                    .map(|(key, value)| (key.clone(), value.to_json()))
                    .collect(),
            ),
        }
    }

    /// Reads the JSON form, bounded by `limits`.
    ///
    /// # Errors
    /// When a limit is exceeded or a special form is malformed.
    pub fn from_json(json: &serde_json::Value, limits: &ValueLimits) -> Result<Self, ValueError> {
        let mut nodes = 0;
        from_json(json, limits, limits.depth_max, &mut nodes)
    }
}

/// A number of a script in JSON. A whole one is written as `3`, not `3.0`:
/// most languages tell the two apart and read only the first as an integer.
/// Beyond 2^53 not every whole number is one that a script can have.
fn number_to_json(number: f64) -> serde_json::Value {
    const EXACT_MAX: f64 = (1u64 << 53) as f64;
    let whole = number.abs() <= EXACT_MAX && number.trunc() == number;
    // An integer has no negative zero.
    if whole && (number != 0.0 || number.is_sign_positive()) {
        return serde_json::Value::from(number as i64);
    }
    serde_json::Number::from_f64(number).map_or(serde_json::Value::Null, serde_json::Value::Number)
}

/// Serialises a number as scripts' numbers are: for a field of a message.
pub(crate) fn serialize_number<S: Serializer>(
    number: &Option<f64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    if serializer.is_human_readable() {
        number.map(number_to_json).serialize(serializer)
    } else {
        number.serialize(serializer)
    }
}

fn charge(nodes: &mut usize, limits: &ValueLimits) -> Result<(), ValueError> {
    *nodes += 1;
    if *nodes > limits.nodes_max {
        return Err(ValueError::TooMany(limits.nodes_max));
    }
    Ok(())
}

fn deeper(depth: usize, limits: &ValueLimits) -> Result<usize, ValueError> {
    depth
        .checked_sub(1)
        .ok_or(ValueError::TooDeep(limits.depth_max))
}

fn check_string(text: &str, limits: &ValueLimits) -> Result<(), ValueError> {
    if text.len() > limits.string_bytes_max {
        return Err(ValueError::StringTooLong(limits.string_bytes_max));
    }
    Ok(())
}

fn check_buffer(length: usize, limits: &ValueLimits) -> Result<(), ValueError> {
    if length > limits.string_bytes_max {
        return Err(ValueError::BufferTooLong(limits.string_bytes_max));
    }
    Ok(())
}

fn check_vector(v: [f32; 3]) -> Result<[f32; 3], ValueError> {
    if v.iter().all(|c| c.is_finite()) {
        Ok(v)
    } else {
        Err(ValueError::NotFinite)
    }
}

fn check(
    value: &Value,
    limits: &ValueLimits,
    depth: usize,
    nodes: &mut usize,
) -> Result<(), ValueError> {
    charge(nodes, limits)?;
    match value {
        Value::Nil | Value::Bool(_) | Value::Number(_) | Value::Entity(_) => Ok(()),
        Value::String(text) => check_string(text, limits),
        Value::Buffer(bytes) => check_buffer(bytes.len(), limits),
        Value::Vector(v) => check_vector(*v).map(|_| ()),
        Value::List(items) => {
            let depth = deeper(depth, limits)?;
            items
                .iter()
                .try_for_each(|item| check(item, limits, depth, nodes))
        }
        Value::Map(map) => {
            let depth = deeper(depth, limits)?;
            map.iter().try_for_each(|(key, item)| {
                check_string(key, limits)?;
                check(item, limits, depth, nodes)
            })
        }
    }
}

fn from_json(
    json: &serde_json::Value,
    limits: &ValueLimits,
    depth: usize,
    nodes: &mut usize,
) -> Result<Value, ValueError> {
    use serde_json::Value as Json;
    charge(nodes, limits)?;
    Ok(match json {
        Json::Null => Value::Nil,
        Json::Bool(b) => Value::Bool(*b),
        Json::Number(n) => Value::Number(n.as_f64().ok_or(ValueError::Malformed)?),
        Json::String(text) => {
            check_string(text, limits)?;
            Value::String(text.clone())
        }
        Json::Array(items) => {
            let depth = deeper(depth, limits)?;
            Value::List(
                items
                    .iter()
                    .map(|item| from_json(item, limits, depth, nodes))
                    .collect::<Result<_, _>>()?,
            )
        }
        Json::Object(map) => {
            if let Some(special) = special_form(map, limits)? {
                return Ok(special);
            }
            let depth = deeper(depth, limits)?;
            let mut out = BTreeMap::new();
            for (key, item) in map {
                check_string(key, limits)?;
                out.insert(key.clone(), from_json(item, limits, depth, nodes)?);
            }
            Value::Map(out)
        }
    })
}

fn special_form(
    map: &serde_json::Map<String, serde_json::Value>,
    limits: &ValueLimits,
) -> Result<Option<Value>, ValueError> {
    if map.len() != 1 {
        return Ok(None);
    }
    if let Some(vector) = map.get("$v") {
        let v: [f32; 3] =
            serde_json::from_value(vector.clone()).map_err(|_| ValueError::Malformed)?;
        return Ok(Some(Value::Vector(check_vector(v)?)));
    }
    if let Some(entity) = map.get("$e") {
        let id = whole_number(entity).ok_or(ValueError::Malformed)?;
        return Ok(Some(Value::Entity(id)));
    }
    if let Some(buffer) = map.get("$b") {
        let text = buffer.as_str().ok_or(ValueError::Malformed)?;
        // Four characters hold three bytes.
        check_buffer((text.len() / 4 * 3).saturating_sub(padding(text)), limits)?;
        let bytes = BASE64.decode(text).map_err(|_| ValueError::Malformed)?;
        return Ok(Some(Value::Buffer(bytes)));
    }
    Ok(None)
}

/// Characters at the end of a base64 text that stand for no bytes.
fn padding(text: &str) -> usize {
    text.bytes()
        .rev()
        .take(2)
        .take_while(|b| *b == b'=')
        .count()
}

const TAG_NIL: u8 = 0;
const TAG_FALSE: u8 = 1;
const TAG_TRUE: u8 = 2;
const TAG_NUMBER: u8 = 3;
const TAG_INTEGER: u8 = 4;
const TAG_STRING: u8 = 5;
const TAG_VECTOR: u8 = 6;
const TAG_ENTITY: u8 = 7;
const TAG_LIST: u8 = 8;
const TAG_MAP: u8 = 9;
const TAG_BUFFER: u8 = 10;

fn write_length(out: &mut Vec<u8>, mut n: usize) {
    while n >= 0x80 {
        out.push((n as u8) | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn write_string(out: &mut Vec<u8>, text: &str) {
    write_length(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

fn write_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Nil => out.push(TAG_NIL),
        Value::Bool(false) => out.push(TAG_FALSE),
        Value::Bool(true) => out.push(TAG_TRUE),
        Value::Number(n) => match whole_byte(*n) {
            Some(byte) => out.extend_from_slice(&[TAG_INTEGER, byte]),
            None => {
                out.push(TAG_NUMBER);
                out.extend_from_slice(&n.to_le_bytes());
            }
        },
        Value::String(text) => {
            out.push(TAG_STRING);
            write_string(out, text);
        }
        Value::Vector(v) => {
            out.push(TAG_VECTOR);
            v.iter()
                .for_each(|c| out.extend_from_slice(&c.to_le_bytes()));
        }
        Value::Entity(id) => {
            out.push(TAG_ENTITY);
            out.extend_from_slice(&id.to_le_bytes());
        }
        Value::Buffer(bytes) => {
            out.push(TAG_BUFFER);
            write_length(out, bytes.len());
            out.extend_from_slice(bytes);
        }
        Value::List(items) => {
            out.push(TAG_LIST);
            write_length(out, items.len());
            items.iter().for_each(|item| write_value(out, item));
        }
        Value::Map(map) => {
            out.push(TAG_MAP);
            write_length(out, map.len());
            for (key, item) in map {
                write_string(out, key);
                write_value(out, item);
            }
        }
    }
}

/// Counters and ids dominate script traffic; small whole numbers take 2 bytes.
fn whole_byte(n: f64) -> Option<u8> {
    let byte = n as u8;
    (f64::from(byte).to_bits() == n.to_bits()).then_some(byte)
}

struct Reader<'a> {
    bytes: &'a [u8],
    limits: &'a ValueLimits,
    nodes: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], ValueError> {
        let (head, tail) = self
            .bytes
            .split_at_checked(n)
            .ok_or(ValueError::Malformed)?;
        self.bytes = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ValueError> {
        self.take(N)?.try_into().map_err(|_| ValueError::Malformed)
    }

    /// A length never exceeds the bytes left: each element takes at least one.
    fn length(&mut self) -> Result<usize, ValueError> {
        let mut n = 0usize;
        for shift in [0, 7, 14, 21] {
            let [byte] = self.array()?;
            n |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return if n <= self.bytes.len() {
                    Ok(n)
                } else {
                    Err(ValueError::Malformed)
                };
            }
        }
        Err(ValueError::Malformed)
    }

    fn string(&mut self) -> Result<String, ValueError> {
        let length = self.length()?;
        let bytes = self.take(length)?;
        let text = std::str::from_utf8(bytes).map_err(|_| ValueError::Malformed)?;
        check_string(text, self.limits)?;
        Ok(text.to_owned())
    }

    fn value(&mut self, depth: usize) -> Result<Value, ValueError> {
        charge(&mut self.nodes, self.limits)?;
        let [tag] = self.array()?;
        Ok(match tag {
            TAG_NIL => Value::Nil,
            TAG_FALSE => Value::Bool(false),
            TAG_TRUE => Value::Bool(true),
            TAG_NUMBER => Value::Number(f64::from_le_bytes(self.array()?)),
            TAG_INTEGER => Value::Number(f64::from(self.array::<1>()?[0])),
            TAG_STRING => Value::String(self.string()?),
            TAG_VECTOR => Value::Vector(check_vector([
                f32::from_le_bytes(self.array()?),
                f32::from_le_bytes(self.array()?),
                f32::from_le_bytes(self.array()?),
            ])?),
            TAG_ENTITY => Value::Entity(u32::from_le_bytes(self.array()?)),
            TAG_BUFFER => {
                let length = self.length()?;
                check_buffer(length, self.limits)?;
                Value::Buffer(self.take(length)?.to_vec())
            }
            TAG_LIST => {
                let depth = deeper(depth, self.limits)?;
                let count = self.length()?;
                let mut items = Vec::with_capacity(count.min(64));
                for _ in 0..count {
                    items.push(self.value(depth)?);
                }
                Value::List(items)
            }
            TAG_MAP => {
                let depth = deeper(depth, self.limits)?;
                let mut map = BTreeMap::new();
                for _ in 0..self.length()? {
                    let key = self.string()?;
                    map.insert(key, self.value(depth)?);
                }
                Value::Map(map)
            }
            _ => return Err(ValueError::Malformed),
        })
    }
}

impl Serialize for Args {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_seq(self.0.iter().map(Value::to_json))
        } else {
            serializer.serialize_bytes(&self.to_bytes())
        }
    }
}

impl<'de> Deserialize<'de> for Args {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let limits = ValueLimits::default();
        if deserializer.is_human_readable() {
            let items = Vec::<serde_json::Value>::deserialize(deserializer)?;
            let mut nodes = 0;
            items
                .iter()
                .map(|item| from_json(item, &limits, limits.depth_max, &mut nodes))
                .collect::<Result<_, _>>()
                .map(Args)
                .map_err(D::Error::custom)
        } else {
            let bytes = <&[u8]>::deserialize(deserializer)?;
            Args::from_bytes(bytes, &limits).map_err(D::Error::custom)
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
