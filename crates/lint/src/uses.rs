//! Which globals a script reads, by following its scopes.

use std::collections::BTreeSet;

use full_moon::LuaVersion;
use full_moon::ast::{
    Ast, BinOp, Block, Call, Expression, Field, FunctionArgs, FunctionBody, FunctionCall, Index,
    LastStmt, Parameter, Prefix, Stmt, Suffix, UnOp, Var, VarExpression,
};
use full_moon::tokenizer::{TokenReference, TokenType};

/// Line and column, from 1.
pub type Place = (u32, u32);

/// Everything about a script that names things outside of it.
#[derive(Default)]
pub struct Uses {
    /// Reads of globals, in the order of the text.
    pub reads: Vec<Read>,
    /// Globals that the script makes itself.
    pub assigned: BTreeSet<String>,
    /// `Name` and `Library.Member` that the script asks for before it uses them.
    pub guarded: BTreeSet<String>,
    /// Names of members anywhere, such as `IsServer`.
    pub members: BTreeSet<String>,
    /// The required module: the last name of the path, or the text as it is.
    pub required: Vec<(Required, Place)>,
}

/// A read of a global.
pub struct Read {
    /// Which.
    pub name: String,
    /// The member, as in `World.Find` and `World:Find`.
    pub member: Option<String>,
    /// Where.
    pub place: Place,
    /// It runs as soon as the script does, whatever happens.
    pub certain: bool,
}

/// The argument of `require`.
pub enum Required {
    /// `require("Util")`.
    Text(String),
    /// `require(script.Parent.Util)`: the last name.
    Item(String),
}

/// Reads a script; none when this parser cannot.
pub fn parse(source: &str) -> Option<Ast> {
    let text = source.strip_prefix('\u{feff}').unwrap_or(source);
    full_moon::parse_fallible(text, LuaVersion::luau())
        .into_result()
        .ok()
}

/// The names that a script uses.
pub fn of(ast: &Ast) -> Uses {
    let mut walk = Walk::default();
    walk.block(ast.nodes());
    walk.uses
}

#[derive(Default)]
struct Walk {
    uses: Uses,
    scopes: Vec<BTreeSet<String>>,
    /// Functions and branches around what is looked at: it may never run.
    uncertain: u32,
}

impl Walk {
    fn block(&mut self, block: &Block) {
        self.scopes.push(BTreeSet::new());
        self.statements(block);
        self.scopes.pop();
    }

    fn statements(&mut self, block: &Block) {
        for statement in block.stmts() {
            self.statement(statement);
        }
        if let Some(LastStmt::Return(returned)) = block.last_stmt() {
            for expression in returned.returns() {
                self.expression(expression);
            }
        }
    }

    /// A block that may not run, or run later.
    fn branch(&mut self, block: &Block) {
        self.uncertain += 1;
        self.block(block);
        self.uncertain -= 1;
    }

    fn statement(&mut self, statement: &Stmt) {
        match statement {
            Stmt::Assignment(assignment) => {
                for expression in assignment.expressions() {
                    self.expression(expression);
                }
                for variable in assignment.variables() {
                    match variable {
                        Var::Name(token) => self.assign(token),
                        other => self.variable(other),
                    }
                }
            }
            Stmt::CompoundAssignment(assignment) => {
                self.expression(assignment.rhs());
                self.variable(assignment.lhs());
            }
            Stmt::Do(group) => self.block(group.block()),
            Stmt::FunctionCall(call) => self.call(call),
            Stmt::FunctionDeclaration(function) => {
                let name = function.name();
                let first = name.names().iter().next();
                let is_plain = name.names().len() == 1 && name.method_name().is_none();
                match first {
                    Some(token) if is_plain => self.assign(token),
                    Some(token) => self.read(token, None, token),
                    None => {}
                }
                self.function(function.body(), name.method_name().is_some());
            }
            Stmt::LocalAssignment(local) => {
                for expression in local.expressions() {
                    self.expression(expression);
                }
                local.names().iter().for_each(|name| self.declare(name));
            }
            Stmt::ConstAssignment(local) => {
                for expression in local.expressions() {
                    self.expression(expression);
                }
                local.names().iter().for_each(|name| self.declare(name));
            }
            Stmt::LocalFunction(function) => {
                self.declare(function.name());
                self.function(function.body(), false);
            }
            Stmt::ConstFunction(function) => {
                self.declare(function.name());
                self.function(function.body(), false);
            }
            Stmt::GenericFor(each) => {
                for expression in each.expressions() {
                    self.expression(expression);
                }
                self.scopes.push(BTreeSet::new());
                each.names().iter().for_each(|name| self.declare(name));
                self.branch(each.block());
                self.scopes.pop();
            }
            Stmt::NumericFor(each) => {
                self.expression(each.start());
                self.expression(each.end());
                if let Some(step) = each.step() {
                    self.expression(step);
                }
                self.scopes.push(BTreeSet::new());
                self.declare(each.index_variable());
                self.branch(each.block());
                self.scopes.pop();
            }
            Stmt::If(choice) => {
                let name = choice.binding().map(|binding| binding.name());
                self.case(choice.condition(), name, choice.block());
                for other in choice.else_if().into_iter().flatten() {
                    let name = other.binding().map(|binding| binding.name());
                    self.case(other.condition(), name, other.block());
                }
                if let Some(block) = choice.else_block() {
                    self.branch(block);
                }
            }
            Stmt::While(repeated) => {
                self.condition(repeated.condition());
                self.branch(repeated.block());
            }
            Stmt::Repeat(repeated) => {
                // The condition sees the locals of the block.
                self.scopes.push(BTreeSet::new());
                self.statements(repeated.block());
                self.condition(repeated.until());
                self.scopes.pop();
            }
            // Types, and what this parser may learn later.
            _ => {}
        }
    }

    fn case(&mut self, condition: &Expression, bound: Option<&TokenReference>, block: &Block) {
        self.condition(condition);
        self.scopes.push(BTreeSet::new());
        if let Some(name) = bound {
            self.declare(name);
        }
        self.branch(block);
        self.scopes.pop();
    }

    fn function(&mut self, body: &FunctionBody, is_method: bool) {
        let mut scope = BTreeSet::new();
        if is_method {
            scope.insert("self".to_owned());
        }
        for parameter in body.parameters() {
            if let Parameter::Name(token) = parameter {
                scope.extend(name_of(token));
            }
        }
        self.scopes.push(scope);
        self.branch(body.block());
        self.scopes.pop();
    }

    /// An expression of which only the truth counts: asking is no use.
    fn condition(&mut self, expression: &Expression) {
        match expression {
            Expression::Parentheses { expression, .. } => self.condition(expression),
            Expression::UnaryOperator {
                unop: UnOp::Not(_),
                expression,
            } => self.condition(expression),
            Expression::BinaryOperator { lhs, binop, rhs } => match binop {
                BinOp::And(_) | BinOp::Or(_) => {
                    self.condition(lhs);
                    self.uncertain += 1;
                    self.condition(rhs);
                    self.uncertain -= 1;
                }
                BinOp::TwoEqual(_) | BinOp::TildeEqual(_) if is_nil(lhs) || is_nil(rhs) => {
                    self.condition(lhs);
                    self.condition(rhs);
                }
                _ => {
                    self.expression(lhs);
                    self.expression(rhs);
                }
            },
            Expression::Var(variable) => self.guard(variable),
            other => self.expression(other),
        }
    }

    fn guard(&mut self, variable: &Var) {
        match variable {
            Var::Name(token) => self.uses.guarded.extend(name_of(token)),
            Var::Expression(expression) => {
                if let Some((name, member)) = library_member(expression) {
                    self.uses.guarded.insert(format!("{name}.{member}"));
                    self.uses.guarded.insert(name);
                }
                self.variable(variable);
            }
            other => self.variable(other),
        }
    }

    fn expression(&mut self, expression: &Expression) {
        match expression {
            Expression::BinaryOperator { lhs, binop, rhs } => match binop {
                // `a or b` is how a script asks for what may not be there.
                BinOp::And(_) | BinOp::Or(_) => self.condition(expression),
                BinOp::TwoEqual(_) | BinOp::TildeEqual(_) if is_nil(lhs) || is_nil(rhs) => {
                    self.condition(expression);
                }
                _ => {
                    self.expression(lhs);
                    self.expression(rhs);
                }
            },
            Expression::UnaryOperator { unop, expression } => match unop {
                UnOp::Not(_) => self.condition(expression),
                _ => self.expression(expression),
            },
            Expression::Parentheses { expression, .. }
            | Expression::TypeAssertion { expression, .. } => self.expression(expression),
            Expression::Function(function) => self.function(function.body(), false),
            Expression::FunctionCall(call) => self.call(call),
            Expression::IfExpression(choice) => {
                self.condition(choice.condition());
                self.uncertain += 1;
                self.bound(choice.binding().map(|b| b.name()), choice.if_expression());
                for other in choice.else_if_expressions().into_iter().flatten() {
                    self.condition(other.condition());
                    self.bound(other.binding().map(|b| b.name()), other.expression());
                }
                self.expression(choice.else_expression());
                self.uncertain -= 1;
            }
            Expression::InterpolatedString(text) => {
                text.expressions().for_each(|inner| self.expression(inner));
            }
            Expression::TableConstructor(table) => {
                for field in table.fields() {
                    match field {
                        Field::ExpressionKey { key, value, .. } => {
                            self.expression(key);
                            self.expression(value);
                        }
                        Field::NameKey { value, .. } => self.expression(value),
                        Field::NoKey(value) => self.expression(value),
                        _ => {}
                    }
                }
            }
            Expression::Var(variable) => self.variable(variable),
            _ => {}
        }
    }

    fn bound(&mut self, name: Option<&TokenReference>, expression: &Expression) {
        self.scopes.push(BTreeSet::new());
        if let Some(name) = name {
            self.declare(name);
        }
        self.expression(expression);
        self.scopes.pop();
    }

    fn variable(&mut self, variable: &Var) {
        match variable {
            Var::Name(token) => self.read(token, None, token),
            Var::Expression(expression) => {
                let suffixes: Vec<&Suffix> = expression.suffixes().collect();
                self.chain(expression.prefix(), &suffixes);
            }
            _ => {}
        }
    }

    fn call(&mut self, call: &FunctionCall) {
        let suffixes: Vec<&Suffix> = call.suffixes().collect();
        if let Prefix::Name(token) = call.prefix()
            && let Some(name) = name_of(token)
            && !self.is_local(&name)
            && let [Suffix::Call(Call::AnonymousCall(arguments)), ..] = suffixes.as_slice()
        {
            match name.as_str() {
                "require" => {
                    if let Some(required) = required(arguments) {
                        self.uses.required.push((required, place_of(token)));
                    }
                }
                // Asking what something is: nothing may be an answer.
                "type" | "typeof" | "tostring" | "print" | "pcall" => {
                    if let FunctionArgs::Parentheses { arguments, .. } = arguments.as_ref()
                        && let Some(Expression::Var(variable)) = arguments.iter().next()
                    {
                        self.guard(variable);
                    }
                }
                _ => {}
            }
        }
        self.chain(call.prefix(), &suffixes);
    }

    fn chain(&mut self, prefix: &Prefix, suffixes: &[&Suffix]) {
        match prefix {
            Prefix::Name(token) => {
                let member = suffixes.first().and_then(|suffix| member_of(suffix));
                let at = member.unwrap_or(token);
                self.read(token, member.and_then(name_of), at);
            }
            Prefix::Expression(expression) => self.expression(expression),
            _ => {}
        }
        for suffix in suffixes {
            self.uses
                .members
                .extend(member_of(suffix).and_then(name_of));
            match suffix {
                Suffix::Call(Call::AnonymousCall(arguments)) => self.arguments(arguments),
                Suffix::Call(Call::MethodCall(call)) => self.arguments(call.args()),
                Suffix::Index(Index::Brackets { expression, .. }) => self.expression(expression),
                _ => {}
            }
        }
    }

    fn arguments(&mut self, arguments: &FunctionArgs) {
        match arguments {
            FunctionArgs::Parentheses { arguments, .. } => {
                for argument in arguments {
                    self.expression(argument);
                }
            }
            FunctionArgs::TableConstructor(table) => {
                self.expression(&Expression::TableConstructor(table.clone()));
            }
            _ => {}
        }
    }

    fn read(&mut self, name: &TokenReference, member: Option<String>, at: &TokenReference) {
        let Some(name) = name_of(name) else { return };
        if self.is_local(&name) {
            return;
        }
        self.uses.reads.push(Read {
            name,
            member,
            place: place_of(at),
            certain: self.uncertain == 0,
        });
    }

    fn assign(&mut self, token: &TokenReference) {
        if let Some(name) = name_of(token)
            && !self.is_local(&name)
        {
            self.uses.assigned.insert(name);
        }
    }

    fn declare(&mut self, token: &TokenReference) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.extend(name_of(token));
        }
    }

    fn is_local(&self, name: &str) -> bool {
        self.scopes.iter().any(|scope| scope.contains(name))
    }
}

/// The name that a token is.
pub fn name_of(token: &TokenReference) -> Option<String> {
    match token.token().token_type() {
        TokenType::Identifier { identifier } => Some(identifier.to_string()),
        _ => None,
    }
}

/// Where a token begins.
pub fn place_of(token: &TokenReference) -> Place {
    let at = token.token().start_position();
    let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    (number(at.line()), number(at.character()))
}

fn member_of<'s>(suffix: &&'s Suffix) -> Option<&'s TokenReference> {
    match suffix {
        Suffix::Index(Index::Dot { name, .. }) => Some(name),
        Suffix::Call(Call::MethodCall(call)) => Some(call.name()),
        _ => None,
    }
}

fn library_member(expression: &VarExpression) -> Option<(String, String)> {
    let Prefix::Name(name) = expression.prefix() else {
        return None;
    };
    let first = expression.suffixes().next()?;
    Some((name_of(name)?, name_of(member_of(&first)?)?))
}

fn is_nil(expression: &Expression) -> bool {
    matches!(expression, Expression::Symbol(token) if token.token().to_string() == "nil")
}

/// The text that a token is.
pub fn text_of(token: &TokenReference) -> Option<String> {
    match token.token().token_type() {
        TokenType::StringLiteral { literal, .. } => Some(literal.to_string()),
        _ => None,
    }
}

fn required(arguments: &FunctionArgs) -> Option<Required> {
    match arguments {
        FunctionArgs::String(token) => text_of(token).map(Required::Text),
        FunctionArgs::Parentheses { arguments, .. } => match arguments.iter().next()? {
            Expression::String(token) => text_of(token).map(Required::Text),
            Expression::Var(Var::Expression(chain)) => {
                let last = chain.suffixes().last()?;
                match last {
                    Suffix::Index(Index::Dot { name, .. }) => name_of(name).map(Required::Item),
                    _ => None,
                }
            }
            _ => None,
        },
        _ => None,
    }
}
