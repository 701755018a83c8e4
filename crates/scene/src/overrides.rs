//! Fields of a prefab's components that an entity sets to other values.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{ComponentKind, Components, Merge};

/// The fields of one component, by name.
pub type Fields = BTreeMap<String, Value>;

/// Two ways to write one thing: setting either replaces both.
const ALTERNATIVES: [[&str; 2]; 1] = [["rotation", "rotation_degrees"]];

/// Fields of its prefab's components that an entity overrides. All other fields remain those of
/// the prefab, so that later changes of the prefab take effect.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides(BTreeMap<ComponentKind, Fields>);

impl Overrides {
    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The changed fields of a component.
    pub fn get(&self, kind: ComponentKind) -> Option<&Fields> {
        self.0.get(&kind)
    }

    /// The same, to change them. [`Overrides::apply`] leaves out a component whose fields do not
    /// make a valid one.
    pub fn get_mut(&mut self, kind: ComponentKind) -> Option<&mut Fields> {
        self.0.get_mut(&kind)
    }

    /// Replaces the changed fields of a component; none at all restores the prefab's.
    pub fn set(&mut self, kind: ComponentKind, fields: Fields) {
        if fields.is_empty() {
            self.0.remove(&kind);
        } else {
            self.0.insert(kind, fields);
        }
    }

    /// Every component with changed fields.
    pub fn iter(&self) -> impl Iterator<Item = (ComponentKind, &Fields)> {
        self.0.iter().map(|(kind, fields)| (*kind, fields))
    }

    /// Lays the changed fields over components.
    pub fn apply(&self, components: &mut Components) {
        for (kind, fields) in self.iter() {
            // The reader of scenes has tried this; a failure leaves the prefab's component.
            let _ = components.apply(kind, fields);
        }
    }
}

impl Components {
    /// Whether an entity changes a component of these field by field, when these are its prefab's.
    pub(crate) fn merges_fields_of(&self, kind: ComponentKind) -> bool {
        kind.merge() == Merge::Fields && self.has(kind)
    }

    /// Sets fields of a component.
    ///
    /// # Errors
    /// When the result is not a component of that kind; it is then unchanged.
    pub fn apply(&mut self, kind: ComponentKind, fields: &Fields) -> serde_json::Result<()> {
        let mut merged = match self.value(kind) {
            Some(Value::Object(merged)) => merged,
            _ => serde_json::Map::new(),
        };
        // Another type of shape has other fields.
        if fields
            .get("type")
            .is_some_and(|kind| merged.get("type") != Some(kind))
        {
            merged.clear();
        }
        for [a, b] in ALTERNATIVES {
            if fields.contains_key(a) || fields.contains_key(b) {
                merged.remove(a);
                merged.remove(b);
            }
        }
        merged.extend(fields.clone());
        self.read(kind, &Value::Object(merged).to_string())
    }
}
