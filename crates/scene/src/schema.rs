//! The JSON Schema of scene.json, derived from the declarations of components.
//!
//! Types, descriptions and defaults come from the Rust types; ranges, units and editors from
//! [`Field`]s. Keys with `x-` are ours: `x-unit`, `x-widget`, `x-merge` and `x-read-by`.

use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use crate::{ComponentKind, Field, Merge, SCENE_FORMAT};

/// The schema of scene.json in its newest format.
pub fn scene_schema() -> Value {
    let mut generator = SchemaGenerator::default();
    let kinds = ComponentKind::ALL.iter().copied();
    let components: Map<String, Value> = kinds
        .filter(|kind| kind.unused().is_none())
        .map(|kind| (kind.name().to_owned(), component(kind, &mut generator)))
        .collect();
    let mut definitions = generator.take_definitions(true);
    for kind in ComponentKind::ALL {
        if let Some(schema) = definitions.get_mut(type_name(*kind)) {
            kind.fields()
                .iter()
                .for_each(|field| annotate(schema, field));
        }
    }
    definitions.insert(
        "Components".to_owned(),
        json!({
            "type": "object",
            "description": "Everything an entity can have: each component at most once.",
            "properties": components,
            "additionalProperties": false,
        }),
    );
    definitions.values_mut().for_each(shorten_defaults);
    definitions.insert("ComponentChanges".to_owned(), changes(&definitions));
    structure(&mut definitions);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Frolic scene",
        "type": "object",
        "properties": {
            "format": { "enum": [1, SCENE_FORMAT] },
            "prefabs": {
                "type": "object",
                "description": "What scripts can spawn and entities can start from, by name.",
                "additionalProperties": { "$ref": "#/$defs/Prefab" },
            },
            "entities": {
                "type": "array",
                "description": "What is in the world at its start.",
                "items": { "$ref": "#/$defs/Entity" },
            },
            "terrain": {
                "type": "object",
                "description": "The terrain of blocks.",
            },
        },
        "required": ["format"],
        "additionalProperties": false,
        "$defs": definitions,
    })
}

/// A reference to the component's type, with what the table of components declares.
fn component(kind: ComponentKind, generator: &mut SchemaGenerator) -> Value {
    let mut schema = kind.subschema(generator).to_value();
    if let Value::Object(schema) = &mut schema {
        schema.insert("description".to_owned(), json!(kind.doc()));
        let merge = match kind.merge() {
            Merge::Fields => "fields",
            Merge::Union => "union",
            Merge::Names => "names",
        };
        schema.insert("x-merge".to_owned(), json!(merge));
        let readers = kind.read_by().iter().map(|reader| reader.name());
        schema.insert("x-read-by".to_owned(), readers.collect());
    }
    schema
}

/// The components of something that may start from a prefab. Required fields are the prefab's when
/// they are left out, which a schema cannot decide, so each component is any object.
fn changes(definitions: &Map<String, Value>) -> Value {
    let mut schema = definitions.get("Components").cloned().unwrap_or_default();
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for component in properties.values_mut() {
            if component["x-merge"] == "fields" {
                *component = json!({
                    "type": "object",
                    "description": component["description"],
                    "x-changes": component["$ref"],
                });
            }
        }
    }
    schema["description"] =
        json!("Components, or the fields of the prefab's components that differ from the prefab.");
    schema
}

/// The name of the component's type among the definitions.
fn type_name(kind: ComponentKind) -> &'static str {
    match kind {
        ComponentKind::Script => "ScriptRef",
        kind => kind.name(),
    }
}

/// Adds bounds, unit and editor to a field, in each variant of an enum.
fn annotate(schema: &mut Value, field: &Field) {
    for variants in ["oneOf", "anyOf"] {
        if let Some(Value::Array(variants)) = schema.get_mut(variants) {
            variants
                .iter_mut()
                .for_each(|schema| annotate(schema, field));
        }
    }
    let Some(Value::Object(property)) = schema
        .get_mut("properties")
        .and_then(|properties| properties.get_mut(field.name))
    else {
        return;
    };
    if let Some((min, max)) = field.range {
        let numbers = match property.get_mut("items") {
            Some(Value::Object(items)) => items,
            _ => &mut *property,
        };
        numbers.insert("minimum".to_owned(), number(min));
        numbers.insert("maximum".to_owned(), number(max));
    }
    for (key, text) in [("x-unit", field.unit), ("x-widget", field.widget)] {
        if let Some(text) = text {
            property.insert(key.to_owned(), json!(text));
        }
    }
}

/// Writes the numbers of a default as [`number`] does.
fn shorten(value: &mut Value) {
    match value {
        Value::Number(found) => {
            if let Some(found) = found.as_f64() {
                *value = number(found as f32);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(shorten),
        Value::Object(values) => values.values_mut().for_each(shorten),
        _ => {}
    }
}

/// Finds the defaults in a schema.
fn shorten_defaults(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            for (key, member) in members {
                match key.as_str() {
                    "default" => shorten(member),
                    _ => shorten_defaults(member),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(shorten_defaults),
        _ => {}
    }
}

/// As a person would write it: `f32` 0.001 is not 0.0010000000474974513.
fn number(value: f32) -> Value {
    let text = value.to_string();
    match text.parse::<i64>() {
        Ok(whole) => json!(whole),
        Err(_) => json!(text.parse::<f64>().unwrap_or_default()),
    }
}

/// The parts of a scene around the components.
fn structure(definitions: &mut Map<String, Value>) {
    let components = json!({ "$ref": "#/$defs/Components" });
    // Where there is a prefab, a component holds only the fields that differ from it.
    let overrides = json!({ "$ref": "#/$defs/ComponentChanges" });
    let name = json!({ "type": "string", "minLength": 1, "maxLength": 64 });
    let prefab =
        json!({ "type": "string", "description": "Name of the prefab that it starts from." });
    let id = json!({
        "type": "integer",
        "minimum": 1,
        "maximum": crate::SceneEntity::ID_MAX,
        "description": "Unique in the scene; also the net id of the entity.",
    });
    definitions.insert(
        "Prefab".to_owned(),
        json!({
            "type": "object",
            "description": "A named tree of components to make entities from.",
            "properties": {
                "components": components,
                "children": {
                    "type": "array",
                    "description": "What is below each entity made from it.",
                    "items": { "$ref": "#/$defs/PrefabChild" },
                },
            },
            "additionalProperties": false,
        }),
    );
    definitions.insert(
        "PrefabChild".to_owned(),
        json!({
            "type": "object",
            "description": "A node below the root of a prefab.",
            "properties": {
                "name": name,
                "prefab": prefab,
                "components": overrides,
                "children": {
                    "type": "array",
                    "description": "What is below it.",
                    "items": { "$ref": "#/$defs/PrefabChild" },
                },
            },
            "required": ["name"],
            "additionalProperties": false,
        }),
    );
    definitions.insert(
        "InstanceChild".to_owned(),
        json!({
            "type": "object",
            "description": "What an entity records about a child of its prefab.",
            "properties": { "id": id, "components": overrides },
            "required": ["id"],
            "additionalProperties": false,
        }),
    );
    definitions.insert(
        "Entity".to_owned(),
        json!({
            "type": "object",
            "description": "One entity of the scene.",
            "properties": {
                "id": id,
                "name": name,
                "parent": {
                    "type": "integer",
                    "description": "Id of the entity whose Transform this one's is relative to.",
                    "x-widget": "entity",
                },
                "prefab": prefab,
                "components": overrides,
                "children": {
                    "type": "object",
                    "description": "What it records about the children of its prefab, by their path of names, such as `Crown/Lamp`.",
                    "additionalProperties": { "$ref": "#/$defs/InstanceChild" },
                },
            },
            "required": ["id", "name"],
            "additionalProperties": false,
        }),
    );
}
