//! The declaration of a component: its fields' bounds, units and editors, how it combines with
//! that of a prefab, and what reads it.
//!
//! [`components!`] is the one table of components. The struct, the list of names, reading,
//! merging, checking, the JSON Schema, the TypeScript types and the creators' reference page come
//! from it and from the [`Component`] of each type.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::check::Checker;
use crate::field::Field;

/// How a component of an entity combines with the same component of its prefab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// Field by field: a field that the entity sets replaces the prefab's. In format 1, the
    /// component replaces the prefab's as a whole.
    Fields,
    /// The values of both.
    Union,
    /// Name by name: a value of the entity replaces the prefab's value of the same name.
    Names,
}

/// A part of Frolic that reads a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// The simulation on the server, and its prediction in clients.
    Simulation,
    /// The view of clients.
    Drawing,
    /// Scripts.
    Scripts,
}

impl Reader {
    /// A lower-case word for pages and schemas.
    pub fn name(self) -> &'static str {
        match self {
            Reader::Simulation => "simulation",
            Reader::Drawing => "drawing",
            Reader::Scripts => "scripts",
        }
    }
}

/// The type of a component.
pub trait Component: Serialize + DeserializeOwned {
    /// Fields with bounds, a unit or an editor of their own.
    const FIELDS: &'static [Field];

    /// Adds every value that is out of its range.
    fn check(&self, found: &mut Checker);

    /// Reads the component from JSON.
    ///
    /// # Errors
    /// When the text is not one.
    fn from_json(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }
}

/// Declares the fields of a component and checks those that have a range. `with` names a
/// function for what ranges cannot say.
macro_rules! fields {
    ($component:ty { $($name:ident: $field:expr),* $(,)? } $(with $more:path)?) => {
        impl $crate::component::Component for $component {
            const FIELDS: &'static [$crate::field::Field] =
                &[$($field.named(stringify!($name))),*];

            #[allow(unused_variables, reason = "a component without fields")]
            fn check(&self, found: &mut $crate::check::Checker) {
                $(found.numbers(&const { $field.named(stringify!($name)) }, &self.$name);)*
                $($more(self, found);)?
            }
        }
    };
}
pub(crate) use fields;

/// The component of an entity over that of its prefab.
macro_rules! combine {
    (Fields, $own:expr, $prefab:expr) => {
        $own.or_else(|| $prefab.clone())
    };
    (Union, $own:expr, $prefab:expr) => {
        $crate::component::union($own, $prefab)
    };
    (Names, $own:expr, $prefab:expr) => {
        $crate::component::by_name($own, $prefab)
    };
}
pub(crate) use combine;

/// The prefab's values, then those of the entity that it does not have.
pub(crate) fn union(own: Option<Vec<String>>, prefab: &Option<Vec<String>>) -> Option<Vec<String>> {
    let Some(own) = own else {
        return prefab.clone();
    };
    let mut all = prefab.clone().unwrap_or_default();
    for value in own {
        if !all.contains(&value) {
            all.push(value);
        }
    }
    Some(all)
}

/// The values of both by name, the entity's over the prefab's.
pub(crate) fn by_name<T: Clone>(
    own: Option<BTreeMap<String, T>>,
    prefab: &Option<BTreeMap<String, T>>,
) -> Option<BTreeMap<String, T>> {
    let Some(own) = own else {
        return prefab.clone();
    };
    let mut all = prefab.clone().unwrap_or_default();
    all.extend(own);
    Some(all)
}

/// Declares all components. Each is the name in scene.json, the field of [`crate::Components`] and
/// the type, how it merges, and what reads it; `unused` is why nothing does, for components that
/// only format 1 has.
macro_rules! components {
    ($(
        $(#[doc = $doc:literal])+
        $(#[serde($($serde:tt)+)])?
        $kind:ident => $field:ident: $component:ty,
        merge $merge:ident, read_by [$($reader:ident),*] $(, unused $why:literal)?;
    )*) => {
        /// Everything an entity can have: each component at most once.
        ///
        /// An entity with a [`Shape`](crate::Shape) and neither [`Body`](crate::Body) nor
        /// [`Trigger`](crate::Trigger) is solid and never moves by physics. `serde` reads and
        /// writes it as in scene.json and refuses unknown names; values from scripts must also
        /// pass [`Components::check`].
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "PascalCase", deny_unknown_fields, default)]
        pub struct Components {$(
            $(#[doc = $doc])+
            #[serde(skip_serializing_if = "Option::is_none" $(, $($serde)+)?)]
            pub $field: Option<$component>,
        )*}

        /// A component by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ComponentKind {$(
            $(#[doc = $doc])+
            $kind,
        )*}

        impl ComponentKind {
            /// All components, in the order in which scene.json is written.
            pub const ALL: &'static [ComponentKind] = &[$(ComponentKind::$kind),*];

            /// The name in scene.json.
            pub fn name(self) -> &'static str {
                match self {$(ComponentKind::$kind => stringify!($kind),)*}
            }

            /// The component of a name in scene.json.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|kind| kind.name() == name)
            }

            /// What the component does, for creators.
            pub fn doc(self) -> &'static str {
                match self {$(ComponentKind::$kind => concat!($($doc),+).trim_ascii(),)*}
            }

            /// How it combines with the prefab's.
            pub fn merge(self) -> $crate::component::Merge {
                match self {$(ComponentKind::$kind => $crate::component::Merge::$merge,)*}
            }

            /// The parts of Frolic that read it.
            pub fn read_by(self) -> &'static [$crate::component::Reader] {
                match self {
                    $(ComponentKind::$kind => &[$($crate::component::Reader::$reader),*],)*
                }
            }

            /// Why nothing reads it; none for a component that has an effect. Only format 1 has
            /// components without an effect, because it has always accepted them.
            pub fn unused(self) -> Option<&'static str> {
                match self {
                    $($(ComponentKind::$kind => Some($why),)?)*
                    _ => None,
                }
            }

            /// Bounds, units and editors of its fields.
            pub fn fields(self) -> &'static [$crate::field::Field] {
                use $crate::component::Component;
                match self {$(ComponentKind::$kind => <$component>::FIELDS,)*}
            }

            /// The JSON Schema of the component, without the bounds of its fields.
            #[cfg(feature = "schema")]
            pub(crate) fn subschema(
                self,
                generator: &mut schemars::SchemaGenerator,
            ) -> schemars::Schema {
                match self {
                    $(ComponentKind::$kind => generator.subschema_for::<$component>(),)*
                }
            }
        }

        impl Components {
            /// Whether it has a component.
            pub fn has(&self, kind: ComponentKind) -> bool {
                match kind {$(ComponentKind::$kind => self.$field.is_some(),)*}
            }

            /// These components laid over those of a prefab, as format 1 does it: a component
            /// replaces the prefab's as a whole, tags are those of both, and attributes combine
            /// by name. See [`crate::Scene::resolved`] for any format.
            #[must_use]
            pub fn over(self, prefab: &Components) -> Components {
                Components {$(
                    $field: $crate::component::combine!($merge, self.$field, &prefab.$field),
                )*}
            }

            /// Takes a component from JSON.
            pub(crate) fn read(&mut self, kind: ComponentKind, text: &str) -> serde_json::Result<()> {
                use $crate::component::Component;
                match kind {
                    $(ComponentKind::$kind => self.$field = Some(<$component>::from_json(text)?),)*
                }
                Ok(())
            }

            /// A component as JSON.
            pub(crate) fn value(&self, kind: ComponentKind) -> Option<serde_json::Value> {
                match kind {
                    $(ComponentKind::$kind => serde_json::to_value(self.$field.as_ref()?).ok(),)*
                }
            }

            /// A component as it is written to scene.json.
            pub(crate) fn line(&self, kind: ComponentKind) -> Option<String> {
                match kind {
                    $(ComponentKind::$kind => self.$field.as_ref().map($crate::canonical::line),)*
                }
            }

            /// Adds the values of each component that are out of their range.
            pub(crate) fn check_each(&self, found: &mut $crate::check::Checker) {
                use $crate::component::Component;
                $(if let Some(component) = &self.$field {
                    found.begin(stringify!($kind));
                    component.check(found);
                })*
            }
        }
    };
}
pub(crate) use components;
