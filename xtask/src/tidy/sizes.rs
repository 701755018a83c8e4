//! Sizes of types: the fields of a struct, and the inherent methods of a type
//! over all its `impl` blocks. A type past the limits has several tasks.

use std::collections::BTreeMap;

use syn::{ImplItem, Item, Type};

use super::sources::{Source, is_test};

/// Most fields of a struct.
pub const FIELDS_MAX: usize = 20;
/// Most inherent methods of a type.
pub const METHODS_MAX: usize = 60;

/// The size of one type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    pub fields: usize,
    pub methods: usize,
}

/// The sizes of a crate's types, by `module::Type`.
pub fn measure(sources: &[Source]) -> BTreeMap<String, Size> {
    let mut found = Found::default();
    for source in sources {
        found.items(&source.tree.items, &source.path);
    }
    for (path, name, methods) in &found.impls {
        // A type may have an `impl` in any module; of types with the same name,
        // it is the one with the longest common path.
        let candidates = found
            .types
            .iter_mut()
            .filter(|((_, known), _)| known == name);
        let nearest = candidates.max_by_key(|((module, _), _)| common(module, path));
        if let Some((_, size)) = nearest {
            size.methods += methods;
        }
    }
    let types = found.types.into_iter();
    types
        .map(|((path, name), size)| ([path, vec![name]].concat().join("::"), size))
        .collect()
}

#[derive(Default)]
struct Found {
    types: BTreeMap<(Vec<String>, String), Size>,
    /// Module, type and number of methods of each inherent `impl`.
    impls: Vec<(Vec<String>, String, usize)>,
}

impl Found {
    fn items(&mut self, items: &[Item], path: &[String]) {
        for item in items {
            match item {
                Item::Struct(item) if !is_test(&item.attrs) => {
                    let fields = item.fields.iter().filter(|field| !is_test(&field.attrs));
                    self.define(path, item.ident.to_string(), fields.count());
                }
                Item::Enum(item) if !is_test(&item.attrs) => {
                    self.define(path, item.ident.to_string(), 0);
                }
                Item::Impl(item) if item.trait_.is_none() && !is_test(&item.attrs) => {
                    let Type::Path(of) = &*item.self_ty else {
                        continue;
                    };
                    let methods = item.items.iter().filter(
                        |item| matches!(item, ImplItem::Fn(method) if !is_test(&method.attrs)),
                    );
                    if let Some(name) = of.path.segments.last() {
                        let name = name.ident.to_string();
                        self.impls.push((path.to_vec(), name, methods.count()));
                    }
                }
                Item::Mod(item) if !is_test(&item.attrs) => {
                    if let Some((_, items)) = &item.content {
                        let path = [path, &[item.ident.to_string()]].concat();
                        self.items(items, &path);
                    }
                }
                _ => {}
            }
        }
    }

    fn define(&mut self, path: &[String], name: String, fields: usize) {
        let size = self.types.entry((path.to_vec(), name)).or_default();
        size.fields = fields;
    }
}

/// How many modules two paths have in common from the root.
fn common(one: &[String], other: &[String]) -> usize {
    one.iter()
        .zip(other)
        .take_while(|(one, other)| one == other)
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(sources: &[(&[&str], &str)], name: &str) -> Size {
        let sources = sources
            .iter()
            .map(|(path, text)| Source::parse(path, text).unwrap());
        measure(&sources.collect::<Vec<_>>())[name]
    }

    #[test]
    fn fields_and_methods_are_counted_over_all_files() {
        let sources: &[(&[&str], &str)] = &[
            (
                &["a"],
                "struct A { b: u8, c: u8 } impl A { fn one() {} fn two(&self) {} const C: u8 = 1; }",
            ),
            (&["a", "more"], "impl super::A { fn three() {} }"),
            (&["b"], "impl<T> crate::a::A where T: Copy { fn four() {} }"),
        ];
        let expected = Size {
            fields: 2,
            methods: 4,
        };
        assert_eq!(measured(sources, "a::A"), expected);
    }

    #[test]
    fn traits_and_tests_do_not_count() {
        let text = "struct A(u8, #[cfg(test)] u8);
            impl Clone for A { fn clone(&self) -> A { A(0) } }
            #[cfg(test)] impl A { fn one() {} }
            impl A { #[cfg(test)] fn two() {} }
            #[cfg(test)] mod tests { impl super::A { fn three() {} } }";
        let expected = Size {
            fields: 1,
            methods: 0,
        };
        assert_eq!(measured(&[(&["a"], text)], "a::A"), expected);
    }

    #[test]
    fn types_with_the_same_name_are_distinguished_by_module() {
        let sources: &[(&[&str], &str)] = &[
            (&["a"], "enum Kind { One }"),
            (&["b"], "enum Kind { One }"),
            (&["b", "more"], "impl Kind { fn one() {} }"),
        ];
        assert_eq!(measured(sources, "b::Kind").methods, 1);
        assert_eq!(measured(sources, "a::Kind").methods, 0);
    }
}
