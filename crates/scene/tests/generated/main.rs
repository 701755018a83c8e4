//! Output that is generated from the declarations of components: the JSON Schema, the TypeScript types
//! and the creators' reference page. `cargo xtask codegen` runs the test that exports them.

mod page;
mod typescript;

use std::fs;
use std::path::PathBuf;

use frolic_scene::{ComponentKind, Components, scene_schema};
use serde_json::{Map, Value, json};

/// The text of a description on one line.
fn one_line(schema: &Value) -> String {
    let text = schema.get("description").and_then(Value::as_str);
    text.unwrap_or_default().replace('\n', " ")
}

/// The name of the definition that a schema refers to.
fn referred(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix("#/$defs/")
}

fn properties(schema: &Value) -> Map<String, Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.cloned().unwrap_or_default()
}

fn is_required(schema: &Value, name: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|names| names.iter().any(|required| required == name))
}

/// The variants of a choice.
fn variants(schema: &Value) -> Option<&Vec<Value>> {
    ["oneOf", "anyOf"]
        .iter()
        .find_map(|key| schema.get(key)?.as_array())
}

#[test]
fn export_bindings_scene() {
    let schema = scene_schema();
    if let Some(folder) = std::env::var_os("TS_RS_EXPORT_DIR").map(PathBuf::from) {
        fs::create_dir_all(&folder).expect("the folder can be made");
        let text = serde_json::to_string_pretty(&schema).expect("a schema is plain data");
        fs::write(folder.join("scene-schema.json"), text + "\n").expect("the file can be written");
        let types = typescript::write(&schema);
        fs::write(folder.join("scene.ts"), types).expect("the file can be written");
    }
    if let Some(folder) = std::env::var_os("DOCS_EXPORT_DIR").map(PathBuf::from) {
        let folder = folder.join("create");
        fs::create_dir_all(&folder).expect("the folder can be made");
        let page = page::write(&schema);
        fs::write(folder.join("components.md"), page).expect("the file can be written");
    }
}

#[test]
fn every_component_and_declared_field_is_in_the_schema() {
    let schema = scene_schema();
    let components = properties(&schema["$defs"]["Components"]);
    for kind in ComponentKind::ALL {
        let Some(component) = components.get(kind.name()) else {
            assert!(kind.unused().is_some(), "{} is missing", kind.name());
            continue;
        };
        assert!(kind.unused().is_none(), "{} has no effect", kind.name());
        assert_ne!(component["x-read-by"], json!([]), "{}", kind.name());
        let Some(name) = referred(component) else {
            continue;
        };
        let text = schema["$defs"][name].to_string();
        for field in kind.fields() {
            let named = format!("\"{}\":", field.name);
            assert!(text.contains(&named), "{}.{}", kind.name(), field.name);
            assert_eq!(
                text.contains("\"maximum\""),
                kind.fields().iter().any(|field| field.range.is_some()),
                "{}",
                kind.name()
            );
        }
    }
}

/// serde renames the fields of [`Components`]; the table names the components.
#[test]
fn the_names_of_components_are_those_that_serde_reads() {
    let json = json!({"Trigger": {}, "Tag": [], "Attributes": {}, "SpawnPoint": {}, "Npc": {},
        "Transform": {}, "Material": {}, "NetworkIdentity": {},
        "Shape": {"type": "sphere", "radius": 1}, "Body": {"type": "static"},
        "Joint": {"type": "ball"}, "Light": {"type": "sun"}, "Label": {"text": "a"}, "Script": {"path": "a"},
        "Model": {"asset": "a"}, "Sound": {"asset": "a"}});
    let components: Components = serde_json::from_value(json.clone()).unwrap();
    for kind in ComponentKind::ALL {
        assert!(components.has(*kind), "{}", kind.name());
        assert_eq!(ComponentKind::from_name(kind.name()), Some(*kind));
    }
    assert_eq!(json.as_object().unwrap().len(), ComponentKind::ALL.len());
}
