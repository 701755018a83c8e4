//! Compiles source text to bytecode, the only way into a VM.
//!
//! Luau does not verify bytecode, so a [`CompiledScript`] can be created only
//! here: its bytes are private and come from our own compiler.

use std::sync::Arc;

use frolic_protocol::script::RunContext;
use mlua::chunk::Compiler;
use sha2::{Digest, Sha256};

use crate::limits::SOURCE_BYTES_MAX;
use crate::service::{Service, context_directive, context_of_name, narrow};

/// A script that compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledScript {
    /// Path below `scripts/`, for example `Workspace/KillBrick.luau`; the
    /// engine's own begin with `@builtin/`.
    pub path: String,
    /// Its service folder; `None` for the engine's own.
    pub service: Option<Service>,
    /// Where it runs.
    pub context: RunContext,
    /// Runs when it is required, not when the world starts.
    pub is_module: bool,
    /// SHA-256 of the bytecode, in hex.
    pub sha256_hex: String,
    bytecode: Vec<u8>,
    source: Arc<str>,
}

impl CompiledScript {
    /// The bytecode for a VM.
    pub fn bytecode(&self) -> &[u8] {
        &self.bytecode
    }

    /// Its source text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// One line of the source, from 1, for error messages.
    pub fn source_line(&self, line: u32) -> Option<&str> {
        let index = usize::try_from(line).ok()?.checked_sub(1)?;
        self.source.lines().nth(index)
    }

    /// Whether server VMs run it.
    pub fn runs_on_server(&self) -> bool {
        self.context != RunContext::Client
    }

    /// Whether clients receive it.
    pub fn runs_on_client(&self) -> bool {
        self.context != RunContext::Server
    }
}

/// Why a source file was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}:{line}: {message}")]
pub struct CompileError {
    /// The file.
    pub path: String,
    /// The line, from 1.
    pub line: u32,
    /// The error.
    pub message: String,
}

/// Compiles one source file of a package.
///
/// # Errors
/// If the text is not Luau, is too large, contains control characters, is
/// outside a service folder or asks for a context its service does not allow.
pub fn compile(path: &str, source: &str) -> Result<CompiledScript, CompileError> {
    let refuse = |line: u32, message: String| CompileError {
        path: path.to_owned(),
        line,
        message,
    };
    let service = Service::of_path(path).ok_or_else(|| {
        let names = Service::ALL.map(Service::name).join(", ");
        refuse(1, format!("scripts live in one of {names}"))
    })?;
    let named = context_of_name(path);
    let context = match context_directive(source).or(named.map(Ok)) {
        None => service.context(),
        Some(wanted) => wanted
            .and_then(|wanted| narrow(service, wanted))
            .map_err(|message| refuse(1, message))?,
    };
    let mut script = compile_as(path, source, Some(service), context)?;
    script.is_module =
        service.holds_modules() || (named.is_none() && returns_a_value(script.source()));
    Ok(script)
}

/// Whether a text that compiles ends with `return` and a value, which makes it
/// a module, because a script has no caller to return to. Uses the compiler:
/// nothing may follow a `return`, and only a value may follow one that has
/// none.
fn returns_a_value(source: &str) -> bool {
    if !source.contains("return") {
        return false;
    }
    let mut text = source.as_bytes().to_vec();
    blank_directives(&mut text);
    let compiles_with = |more: &str| {
        let longer = [text.as_slice(), b"\n", more.as_bytes(), b"\n"].concat();
        compiler().compile(longer).is_ok()
    };
    !compiles_with("local _") && !compiles_with("nil")
}

/// Compiles the engine's own Luau, which belongs to no service.
pub(crate) fn compile_builtin(
    path: &str,
    source: &str,
    context: RunContext,
) -> Result<CompiledScript, CompileError> {
    compile_as(path, source, None, context)
}

fn compile_as(
    path: &str,
    source: &str,
    service: Option<Service>,
    context: RunContext,
) -> Result<CompiledScript, CompileError> {
    let text = source.strip_prefix('\u{feff}').unwrap_or(source);
    let checked = check_source(text).map_err(|(line, message)| CompileError {
        path: path.to_owned(),
        line,
        message,
    })?;
    let bytecode = compiler()
        .compile(&checked)
        .map_err(|error| syntax_error(path, &error))?;
    Ok(CompiledScript {
        path: path.to_owned(),
        service,
        context,
        is_module: false,
        sha256_hex: hex::encode(Sha256::digest(&bytecode)),
        bytecode,
        source: Arc::from(text),
    })
}

/// Rejects what no legitimate script contains, and returns the text to compile.
fn check_source(source: &str) -> Result<Vec<u8>, (u32, String)> {
    if source.len() > SOURCE_BYTES_MAX {
        let text = format!(
            "the file has {} bytes, more than {SOURCE_BYTES_MAX}; split it into modules",
            source.len()
        );
        return Err((1, text));
    }
    let control = |b: u8| b < 32 && !matches!(b, b'\n' | b'\r' | b'\t');
    if let Some(at) = source.bytes().position(control) {
        let line = 1 + source[..at].matches('\n').count();
        return Err((
            u32::try_from(line).unwrap_or(u32::MAX),
            "the file holds a control character; is it text?".to_owned(),
        ));
    }
    let mut text = source.as_bytes().to_vec();
    blank_directives(&mut text);
    Ok(text)
}

/// `--!optimize 2` and `--!native` would override the options below (35 KB of
/// source then compile for seconds), so the `!` of every directive is blanked.
/// Luau reads them only in the comments before the first token.
fn blank_directives(text: &mut [u8]) {
    let mut at = 0;
    loop {
        at += text[at..]
            .iter()
            .take_while(|b| b.is_ascii_whitespace())
            .count();
        if !text[at..].starts_with(b"--") {
            return;
        }
        at += 2;
        if let Some(end) = long_bracket_end(&text[at..]) {
            at += end;
            continue;
        }
        if text.get(at) == Some(&b'!') {
            text[at] = b' ';
        }
        at += text[at..].iter().take_while(|&&b| b != b'\n').count();
    }
}

/// The length of a `[[…]]` or `[=[…]=]` that starts here.
fn long_bracket_end(text: &[u8]) -> Option<usize> {
    let level = text
        .strip_prefix(b"[")?
        .iter()
        .take_while(|&&b| b == b'=')
        .count();
    if text.get(1 + level) != Some(&b'[') {
        return None;
    }
    let mut close = vec![b'='; level + 2];
    close[0] = b']';
    close[level + 1] = b']';
    let end = text
        .windows(close.len())
        .position(|w| w == close)
        .map_or(text.len(), |at| at + close.len());
    Some(end)
}

/// Functions that `builtin/common/caps.luau` and `globals.luau` replace and that
/// the compiler would otherwise turn into direct calls of the original.
const WRAPPED_FAST_CALLS: [&str; 6] = [
    "tonumber",
    "tostring",
    "table.unpack",
    "unpack",
    "typeof",
    "setmetatable",
];

/// Globals whose fields change while a script runs. The compiler resolves
/// `a.b` of every other global once, when the script loads.
const MUTABLE_GLOBALS: [&str; 17] = [
    "_G",
    "shared",
    "Chat",
    "Projectile",
    "entity",
    "script",
    "World",
    "Players",
    "Camera",
    "camera",
    "Input",
    "UI",
    "Sound",
    "Store",
    "game",
    "workspace",
    "Workspace",
];

/// -O1 keeps compile time linear; debug level 1 keeps line numbers and
/// function names for error messages.
fn compiler() -> Compiler {
    Compiler::new()
        .set_optimization_level(1)
        .set_debug_level(1)
        .set_vector_ctor("Vector3.new")
        .set_vector_type("Vector3")
        .set_mutable_globals(MUTABLE_GLOBALS)
        .set_disabled_builtins(WRAPPED_FAST_CALLS)
}

/// Luau's message is `12: text` (mlua strips the leading `:`).
fn syntax_error(path: &str, error: &mlua::Error) -> CompileError {
    let text = match error {
        mlua::Error::SyntaxError { message, .. } => message.clone(),
        other => other.to_string(),
    };
    let (line, message) = match text.split_once(": ") {
        Some((line, message)) => (line.trim_start_matches(':').parse().ok(), message),
        None => (None, text.as_str()),
    };
    CompileError {
        path: path.to_owned(),
        line: line.unwrap_or(1),
        message: if line.is_some() { message } else { &text }.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_knows_where_it_runs() {
        let script = compile("StarterGui/Hud.luau", "print('hi')").unwrap();
        assert_eq!(script.context, RunContext::Client);
        assert_eq!(
            script.sha256_hex,
            hex::encode(Sha256::digest(script.bytecode()))
        );
        let narrowed = compile("Workspace/A.luau", "--@context server\n").unwrap();
        assert!(!narrowed.runs_on_client());
    }

    #[test]
    fn a_file_that_returns_a_value_is_a_module() {
        let is_module = |path: &str, source: &str| compile(path, source).unwrap().is_module;
        for (source, expected) in [
            ("return {}", true),
            (
                "local M = {} function M.f() return 1 end\nreturn M -- the end",
                true,
            ),
            (
                "return function() if a then return 1 end return if b then 1 else 2 end",
                true,
            ),
            ("print('return 1')", false),
            ("function OnTick() return 1 end", false),
            ("if x then return end\nprint(1)", false),
            ("print(1)\nreturn", false),
            ("do return 5 end", false),
            ("-- return {}", false),
        ] {
            for path in ["ServerScriptService/A.luau", "StarterPlayer/B/C.lua"] {
                assert_eq!(is_module(path, source), expected, "{source}");
            }
            assert!(is_module("ReplicatedStorage/A.luau", source));
            assert!(is_module("ServerStorage/A.luau", source));
            assert!(!is_module("ServerScriptService/A.server.luau", source));
        }
    }

    #[test]
    fn names_narrow_the_context_as_rojo_does() {
        let context = |path: &str| compile(path, "").map(|script| script.context);
        assert_eq!(context("Workspace/A.server.luau"), Ok(RunContext::Server));
        assert_eq!(context("Workspace/A.client.lua"), Ok(RunContext::Client));
        assert_eq!(context("Workspace/A.luau"), Ok(RunContext::Both));
        assert_eq!(context("ServerStorage/A.luau"), Ok(RunContext::Server));
        assert!(context("ServerScriptService/A.client.luau").is_err());
        assert!(context("StarterGui/A.server.luau").is_err());
    }

    #[test]
    fn a_syntax_error_names_file_and_line() {
        let error = compile("Workspace/A.luau", "local a = 1\nlocal = 2\n").unwrap_err();
        assert_eq!((error.path.as_str(), error.line), ("Workspace/A.luau", 2));
        assert!(error.message.contains("identifier"), "{}", error.message);
    }

    #[test]
    fn sources_that_are_not_scripts_are_refused() {
        for (path, source, part) in [
            ("Elsewhere/A.luau", "", "scripts live in"),
            ("Workspace/A.luau", "a\n\u{1}", "control character"),
            ("StarterGui/A.luau", "--@context both", "client only"),
        ] {
            let error = compile(path, source).unwrap_err();
            assert!(error.message.contains(part), "{}", error.message);
        }
        let long = " ".repeat(SOURCE_BYTES_MAX + 1);
        assert!(compile("Workspace/A.luau", &long).is_err());
    }

    #[test]
    fn directives_in_the_head_are_blanked_and_strings_are_not() {
        let mut text = b"--!optimize 2\n--[[ x ]] --!native\nprint('--!keep')".to_vec();
        blank_directives(&mut text);
        assert_eq!(
            text,
            b"-- optimize 2\n--[[ x ]] -- native\nprint('--!keep')"
        );
    }

    #[test]
    fn odd_heads_do_not_panic() {
        for text in ["", "--", "--[", "--[[", "--[==[ a ]] ", "\n\n--!", "--[=x"] {
            blank_directives(&mut text.as_bytes().to_vec());
        }
    }
}
