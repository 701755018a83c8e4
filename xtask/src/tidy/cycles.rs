//! Import cycles between the top-level modules of a crate. Modules of a cycle
//! can only be read, tested and changed together.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::{Item, UseTree};

use super::sources::{Source, is_test_condition};

/// Which top-level module imports from which.
#[derive(Debug, Default)]
pub struct Graph {
    edges: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    /// Reads the imports of a crate's sources.
    pub fn of(sources: &[Source]) -> Self {
        let modules = sources
            .iter()
            .filter_map(|source| source.path.first().cloned());
        let mut graph = Self {
            edges: modules.map(|module| (module, BTreeSet::new())).collect(),
        };
        let root = sources.iter().find(|source| source.path.is_empty());
        let exports = root.map(exports).unwrap_or_default();
        for source in sources {
            let Some(module) = source.path.first() else {
                continue;
            };
            let mut names = BTreeSet::new();
            paths(&source.tokens, source.path.len(), &mut names);
            for name in names {
                // A name that the root exports belongs to the module that defines it.
                let target = if graph.edges.contains_key(&name) {
                    Some(&name)
                } else {
                    exports
                        .get(&name)
                        .filter(|target| graph.edges.contains_key(*target))
                };
                if let Some(target) = target.filter(|target| *target != module) {
                    let target = target.clone();
                    graph
                        .edges
                        .entry(module.clone())
                        .or_default()
                        .insert(target);
                }
            }
        }
        graph
    }

    /// The groups of modules that reach each other, the strongly connected
    /// components of more than one module.
    pub fn cycles(&self) -> Vec<Vec<&str>> {
        let reach: BTreeMap<&str, BTreeSet<&str>> = self
            .edges
            .keys()
            .map(|module| (module.as_str(), self.reach(module)))
            .collect();
        let mut cycles = Vec::new();
        let mut placed = BTreeSet::new();
        for (module, reached) in &reach {
            let others = reached.iter().filter(|other| *other != module);
            let others = others.filter(|other| reach[*other].contains(module));
            let mut group: Vec<&str> = others.copied().collect();
            if !group.is_empty() && !placed.contains(module) {
                group.push(module);
                group.sort_unstable();
                placed.extend(group.iter().copied());
                cycles.push(group);
            }
        }
        cycles
    }

    /// All modules that `module` imports, directly or through others.
    fn reach(&self, module: &str) -> BTreeSet<&str> {
        let mut reached = BTreeSet::new();
        let mut waiting = vec![module];
        while let Some(next) = waiting.pop() {
            for target in self.edges.get(next).into_iter().flatten() {
                if reached.insert(target.as_str()) {
                    waiting.push(target);
                }
            }
        }
        reached
    }
}

/// The names that the root imports or exports, with the module they are from.
fn exports(root: &Source) -> BTreeMap<String, String> {
    let mut exports = BTreeMap::new();
    for item in &root.tree.items {
        if let Item::Use(import) = item {
            leaves(&import.tree, None, &mut exports);
        }
    }
    exports
}

fn leaves(tree: &UseTree, first: Option<&str>, exports: &mut BTreeMap<String, String>) {
    match tree {
        UseTree::Path(path) => {
            let name = path.ident.to_string();
            let is_root = matches!(name.as_str(), "crate" | "self");
            let own = (!is_root).then_some(name);
            leaves(&path.tree, first.or(own.as_deref()), exports);
        }
        UseTree::Group(group) => {
            for tree in &group.items {
                leaves(tree, first, exports);
            }
        }
        UseTree::Name(name) => {
            if let Some(first) = first {
                exports.insert(name.ident.to_string(), first.to_owned());
            }
        }
        UseTree::Rename(rename) => {
            let first = first.map_or_else(|| rename.ident.to_string(), str::to_owned);
            exports.insert(rename.rename.to_string(), first);
        }
        _ => {}
    }
}

/// Collects the names that stand right below the crate's root in `crate::name`,
/// and in `super::name` as far up. `depth` is that of the module around.
fn paths(tokens: &TokenStream, depth: usize, names: &mut BTreeSet<String>) {
    let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        if is_test_attribute(&tokens[at..]) {
            at = after_item(&tokens, at + 2);
            continue;
        }
        match &tokens[at] {
            TokenTree::Ident(ident) if ident == "crate" && is_separator(&tokens, at + 1) => {
                first_names(&tokens[at + 3..], names);
            }
            TokenTree::Ident(ident) if ident == "super" => {
                let mut ups = 1;
                while is_separator(&tokens, at + 1) && is_ident(tokens.get(at + 3), "super") {
                    ups += 1;
                    at += 3;
                }
                if ups == depth && is_separator(&tokens, at + 1) {
                    first_names(&tokens[at + 3..], names);
                }
            }
            TokenTree::Group(group) => {
                let is_module = at >= 2
                    && is_ident(tokens.get(at - 2), "mod")
                    && group.delimiter() == Delimiter::Brace;
                paths(&group.stream(), depth + usize::from(is_module), names);
            }
            _ => {}
        }
        at += 1;
    }
}

/// The name at the start of a path, or the first names in a group of imports.
fn first_names(tokens: &[TokenTree], names: &mut BTreeSet<String>) {
    match tokens.first() {
        Some(TokenTree::Ident(ident)) => {
            names.insert(ident.to_string());
        }
        Some(TokenTree::Group(group)) => {
            let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
            for part in tokens.split(|token| is_punct(Some(token), ',')) {
                first_names(part, names);
            }
        }
        _ => {}
    }
}

/// Whether `#[cfg(test)]` begins here.
fn is_test_attribute(tokens: &[TokenTree]) -> bool {
    let Some(TokenTree::Group(group)) = tokens.get(1).filter(|_| is_punct(tokens.first(), '#'))
    else {
        return false;
    };
    let mut inside = group.stream().into_iter();
    is_ident(inside.next().as_ref(), "cfg")
        && inside
            .next()
            .is_some_and(|condition| is_test_condition(&condition.to_string()))
}

/// The index after an item, which ends with a semicolon or a block.
fn after_item(tokens: &[TokenTree], mut at: usize) -> usize {
    while at < tokens.len() {
        let ends = match &tokens[at] {
            TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
            token => is_punct(Some(token), ';'),
        };
        at += 1;
        if ends {
            break;
        }
    }
    at
}

fn is_separator(tokens: &[TokenTree], at: usize) -> bool {
    is_punct(tokens.get(at), ':') && is_punct(tokens.get(at + 1), ':')
}

fn is_punct(token: Option<&TokenTree>, expected: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == expected)
}

fn is_ident(token: Option<&TokenTree>, expected: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(ident)) if ident == expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycles(sources: &[(&[&str], &str)]) -> Vec<Vec<String>> {
        let sources = sources
            .iter()
            .map(|(path, text)| Source::parse(path, text).unwrap());
        let graph = Graph::of(&sources.collect::<Vec<_>>());
        let cycles = graph.cycles().into_iter();
        cycles
            .map(|group| group.into_iter().map(str::to_owned).collect())
            .collect()
    }

    #[test]
    fn a_chain_has_no_cycle() {
        let found = cycles(&[
            (&["a"], "use crate::b::B;"),
            (&["b"], "use crate::{c::C};"),
            (&["c"], "fn c() { self::d(); super::c::d() }"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn each_kind_of_path_can_close_a_cycle() {
        for back in [
            "use crate::a::A;",
            "use crate::{d::D, a::{A, E}};",
            "pub(crate) use super::a::A;",
            "fn b() -> crate::a::A { todo() }",
            "fn b() { println!(\"{}\", crate::a::A); }",
            "mod inner { use super::super::a::A; }",
            "use crate::A;",
            "use crate::Renamed;",
        ] {
            let found = cycles(&[
                (
                    &[],
                    "mod a; mod b; mod d; pub use a::A; pub use self::a::{B as Renamed};",
                ),
                (&["a"], ""),
                (&["a", "deep"], "use super::super::b::B;"),
                (&["b"], back),
                (&["d"], "use crate::a::A;"),
            ]);
            let with_d = back.contains("d::D");
            let expected: &[&str] = if with_d {
                &["a", "b", "d"]
            } else {
                &["a", "b"]
            };
            assert_eq!(found, [expected], "{back}");
        }
    }

    #[test]
    fn tests_and_other_words_close_none() {
        for back in [
            "#[cfg(test)] mod tests { use crate::a::A; }",
            "#[cfg(test)] use crate::a::A;",
            "use super::b::a::A;",
            "pub(crate) fn a() {}",
            "/// See crate::a::A.\nfn b() {}",
            "use other::a::A;",
        ] {
            let found = cycles(&[(&["a"], "use crate::b::B;"), (&["b"], back)]);
            assert!(found.is_empty(), "{back}");
        }
    }

    #[test]
    fn separate_cycles_are_separate_groups() {
        let found = cycles(&[
            (&["a"], "use crate::{b, c};"),
            (&["b"], "use crate::a;"),
            (&["c"], "use crate::d;"),
            (&["d"], "use crate::c;"),
        ]);
        assert_eq!(found, [["a", "b"], ["c", "d"]]);
    }
}
