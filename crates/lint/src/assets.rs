//! Assets that a script names: files that the game does not have, and
//! components of `World.Spawn` that do nothing yet.

use std::collections::BTreeSet;

use frolic_scene::{Problem, Rule};
use full_moon::ast::{
    Ast, BinOp, Call, Expression, Field, FunctionArgs, FunctionCall, Index, Prefix, Suffix,
    TableConstructor,
};
use full_moon::tokenizer::TokenReference;
use full_moon::visitors::Visitor;

use crate::Files;
use crate::uses::{Place, Uses, name_of, place_of, text_of};

/// The folder that assets are in.
const FOLDER: &str = "assets/";

/// Certain mistakes in a script's use of assets.
pub fn judge(file: &str, ast: &Ast, uses: &Uses, files: &Files) -> Vec<Problem> {
    let mut found = Found::default();
    found.visit_ast(ast);
    let warning = |rule, place: Place, message| {
        let problem = Problem::error(rule, file, message);
        problem.at(place).as_warning()
    };
    let mut reported = BTreeSet::new();
    let missing = found.texts.into_iter().filter_map(|(path, place)| {
        let is_missing = is_file_path(&path) && !files.contains_key(&path);
        let message = format!("there is no file {path} in this game");
        let is_new = is_missing && reported.insert(path);
        is_new.then(|| warning(Rule::UnknownReference, place, message))
    });
    let mut problems: Vec<Problem> = missing.collect();
    let mut reads = uses.reads.iter();
    let is_engine_s =
        reads.any(|read| read.name == "World" && read.member.as_deref() == Some("Spawn"));
    if is_engine_s {
        let idle = found.components.into_iter().filter_map(|(name, place)| {
            let why = frolic_scene::without_effect(&name)?;
            Some(warning(Rule::NoEffect, place, why.to_owned()))
        });
        problems.extend(idle);
    }
    problems
}

/// Whether a text is the whole path of one file, and no pattern or beginning.
fn is_file_path(text: &str) -> bool {
    let Some(rest) = text.strip_prefix(FOLDER) else {
        return false;
    };
    let extension = rest.rsplit_once('.').map(|(_, extension)| extension);
    let has_extension = extension.is_some_and(|extension| {
        (2..=5).contains(&extension.len()) && extension.bytes().all(|b| b.is_ascii_alphanumeric())
    });
    has_extension && !rest.contains(['%', '*', '\\', '{'])
}

/// The asset's entry in the tree.
#[derive(Default)]
struct Found {
    texts: Vec<(String, Place)>,
    /// Names in the table that `World.Spawn` is given.
    components: Vec<(String, Place)>,
    /// Texts that are only a part of a longer one.
    parts: BTreeSet<Place>,
}

impl Found {
    fn text(&mut self, token: &TokenReference) {
        let place = place_of(token);
        if let Some(text) = text_of(token).filter(|_| !self.parts.contains(&place)) {
            self.texts.push((text, place));
        }
    }

    fn spawned(&mut self, table: &TableConstructor) {
        for field in table.fields() {
            if let Field::NameKey { key, .. } = field
                && let Some(name) = name_of(key)
            {
                self.components.push((name, place_of(key)));
            }
        }
    }
}

impl Visitor for Found {
    fn visit_expression(&mut self, expression: &Expression) {
        match expression {
            // Visited before its operands.
            Expression::BinaryOperator {
                lhs,
                binop: BinOp::TwoDots(_),
                rhs,
            } => {
                for side in [lhs, rhs] {
                    if let Expression::String(token) = side.as_ref() {
                        self.parts.insert(place_of(token));
                    }
                }
            }
            Expression::String(token) => self.text(token),
            _ => {}
        }
    }

    fn visit_function_args(&mut self, arguments: &FunctionArgs) {
        if let FunctionArgs::String(token) = arguments {
            self.text(token);
        }
    }

    fn visit_function_call(&mut self, call: &FunctionCall) {
        let Prefix::Name(library) = call.prefix() else {
            return;
        };
        let mut suffixes = call.suffixes();
        let (member, arguments) = match (suffixes.next(), suffixes.next()) {
            (
                Some(Suffix::Index(Index::Dot { name, .. })),
                Some(Suffix::Call(Call::AnonymousCall(arguments))),
            ) => (name, arguments.as_ref()),
            (Some(Suffix::Call(Call::MethodCall(method))), _) => (method.name(), method.args()),
            _ => return,
        };
        if name_of(library).as_deref() != Some("World")
            || name_of(member).as_deref() != Some("Spawn")
        {
            return;
        }
        match arguments {
            FunctionArgs::TableConstructor(table) => self.spawned(table),
            FunctionArgs::Parentheses { arguments, .. } => {
                if let Some(Expression::TableConstructor(table)) = arguments.iter().next() {
                    self.spawned(table);
                }
            }
            _ => {}
        }
    }
}
