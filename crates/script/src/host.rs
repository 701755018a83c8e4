//! The native functions below the server's Luau: the table `host`, which only
//! `builtin/` sees.
//!
//! None of them raises: they return an error text as their last result, and
//! the Luau above raises it at the line of the creator's call. Each borrows
//! the engine for one call and never while user code can run.

mod chat;
mod entity;
mod network;
mod npc;
mod player;
mod projectile;
mod sending;
mod spawning;
mod spells;
mod store;
mod structures;
mod terrain;
mod world;

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use frolic_protocol::Value;
use mlua::chunk::ChunkMode;
use mlua::{Lua, Table, Value as LuaValue};

use crate::compile::CompiledScript;
use crate::convert::{self, Entities};
use crate::engine::{Engine, EngineError};
use crate::guard::blame;
use crate::limits::{TEXT_BYTES_MAX, VmLimits};
use crate::log::{LogLevel, ScriptLog};

/// State shared by the natives.
pub(crate) struct Host {
    pub engine: Rc<RefCell<dyn Engine>>,
    /// Every script of the package that may run here, by path.
    pub scripts: RefCell<BTreeMap<String, CompiledScript>>,
    /// Loaded scripts, by hash.
    loaded: RefCell<BTreeMap<String, mlua::Function>>,
    /// Scripts that must not run in this world.
    pub disabled: RefCell<BTreeSet<String>>,
    /// Capabilities declared in `game.toml`.
    pub capabilities: RefCell<BTreeSet<String>>,
    pub limits: VmLimits,
    pub quota: RefCell<Quota>,
    /// Remaining quota of store requests.
    pub store_left: RefCell<store::Allowance>,
    /// Set once the Luau side has defined them.
    pub entities: OnceCell<Entities>,
}

/// Use of the quotas of this tick and this second by scripts.
#[derive(Default)]
pub(crate) struct Quota {
    pub spawning: spawning::Spawning,
    pub sending: sending::Sending,
    log_second: u64,
    /// By script, so that a verbose one does not silence the others.
    log_lines: BTreeMap<String, u32>,
}

impl Host {
    pub fn new(engine: Rc<RefCell<dyn Engine>>, limits: VmLimits) -> Rc<Host> {
        Rc::new(Host {
            engine,
            scripts: RefCell::default(),
            loaded: RefCell::default(),
            disabled: RefCell::default(),
            capabilities: RefCell::default(),
            limits,
            quota: RefCell::default(),
            store_left: RefCell::default(),
            entities: OnceCell::new(),
        })
    }

    /// The table `host`.
    pub fn table(self: &Rc<Self>, lua: &Lua) -> mlua::Result<Table> {
        let table = lua.create_table()?;
        self.add_basics(lua, &table)?;
        entity::add(self, lua, &table)?;
        world::add(self, lua, &table)?;
        player::add(self, lua, &table)?;
        network::add(self, lua, &table)?;
        store::add(self, lua, &table)?;
        npc::add(self, lua, &table)?;
        spells::add(self, lua, &table)?;
        structures::add(self, lua, &table)?;
        projectile::add(self, lua, &table)?;
        chat::add(self, lua, &table)?;
        terrain::add(self, lua, &table)?;
        Ok(table)
    }

    pub fn begin_tick(&self) {
        let players = self.engine.borrow().players().len();
        let mut quota = self.quota.borrow_mut();
        quota.spawning.begin_tick();
        quota.sending.begin_tick(players);
        drop(quota);
        self.begin_log_second();
    }

    /// An error of a script, with the line it happened at.
    pub fn report(&self, script: &str, message: &str, traceback: &str) {
        self.log(self.error(script, message, traceback));
    }

    /// Reports that a script was stopped or disabled. It does not count towards the
    /// quota of log lines: the errors that led to it have often used that up.
    pub fn report_stop(&self, script: &str, message: &str, traceback: &str) {
        let line = self.error(script, message, traceback);
        self.engine.borrow_mut().log(line);
    }

    fn error(&self, script: &str, message: &str, traceback: &str) -> ScriptLog {
        let traceback = readable_traceback(traceback);
        // Errors raised by natives carry no location, but the stack does.
        let stated = split_location(message);
        let text = stated.map_or(message, |(_, _, text)| text);
        let (at, line) = match stated.filter(|(path, ..)| !path.starts_with("@builtin")) {
            Some((path, line, _)) => (path.to_owned(), Some(line)),
            None => match first_location(&traceback) {
                Some((path, line)) => (path, Some(line)),
                None => (script.to_owned(), None),
            },
        };
        let source_line = line.and_then(|line| self.source_line(&at, line));
        ScriptLog {
            level: LogLevel::Error,
            script: at,
            line,
            message: cut(text),
            source_line,
            traceback,
            origin: None,
        }
    }

    /// Passes a line to the engine, within the quota.
    pub fn log(&self, line: ScriptLog) {
        self.begin_log_second();
        let mut quota = self.quota.borrow_mut();
        let lines = quota.log_lines.entry(line.script.clone()).or_default();
        *lines = lines.saturating_add(1);
        let over = *lines > self.limits.log_lines_per_second;
        drop(quota);
        if !over {
            self.engine.borrow_mut().log(line);
        }
    }

    /// Resets the log quota of every script when a new second has begun, and
    /// reports which of them lost lines in the one before.
    fn begin_log_second(&self) {
        let second = self.engine.borrow().time() as u64;
        let mut quota = self.quota.borrow_mut();
        if quota.log_second == second {
            return;
        }
        quota.log_second = second;
        let finished = std::mem::take(&mut quota.log_lines);
        drop(quota);
        let lines_max = self.limits.log_lines_per_second;
        let mut engine = self.engine.borrow_mut();
        for (script, lines) in finished.into_iter().filter(|(_, n)| *n > lines_max) {
            engine.log(ScriptLog {
                level: LogLevel::Warn,
                script,
                line: None,
                message: format!(
                    "{} more lines were not shown: a script may write {lines_max} in a second",
                    lines - lines_max
                ),
                source_line: None,
                traceback: String::new(),
                origin: None,
            });
        }
    }

    /// The entity handles; natives run only after the Luau side is complete.
    pub fn entities(&self) -> mlua::Result<&Entities> {
        self.entities
            .get()
            .ok_or_else(|| mlua::Error::runtime("the built-in scripts are still loading"))
    }

    /// A value or an error text, as the two results of a native.
    fn answer(
        &self,
        lua: &Lua,
        result: Result<Value, EngineError>,
    ) -> mlua::Result<(LuaValue, Option<String>)> {
        match result {
            Ok(value) => Ok((convert::to_luau(lua, self.entities()?, &value)?, None)),
            Err(error) => Ok((LuaValue::Nil, Some(error.to_string()))),
        }
    }

    fn source_line(&self, script: &str, line: u32) -> Option<String> {
        let scripts = self.scripts.borrow();
        let text = scripts.get(script)?.source_line(line)?;
        Some(cut(text.trim()))
    }

    fn add_basics(self: &Rc<Self>, lua: &Lua, table: &Table) -> mlua::Result<()> {
        let host = Rc::clone(self);
        table.set(
            "load",
            lua.create_function(move |lua, (path, env): (String, Table)| {
                host.load(lua, &path, env)
            })?,
        )?;
        let host = Rc::clone(self);
        table.set(
            "scriptCount",
            lua.create_function(move |_, ()| Ok(host.scripts.borrow().len()))?,
        )?;
        let host = Rc::clone(self);
        table.set(
            "scriptPaths",
            lua.create_function(move |_, ()| {
                let scripts = host.scripts.borrow();
                let (modules, others): (Vec<_>, Vec<_>) =
                    scripts.values().partition(|script| script.is_module);
                let paths = |list: Vec<&CompiledScript>| -> Vec<String> {
                    list.into_iter().map(|script| script.path.clone()).collect()
                };
                Ok((paths(modules), paths(others)))
            })?,
        )?;
        let report: fn(&Self, &str, &str, &str) = Self::report;
        for (name, report) in [("report", report), ("reportStop", Self::report_stop)] {
            let host = Rc::clone(self);
            let function = lua.create_function(
                move |_, (path, message, traceback): (String, mlua::LuaString, mlua::LuaString)| {
                    let (message, traceback) =
                        (message.to_string_lossy(), traceback.to_string_lossy());
                    report(&host, &path, &message, &traceback);
                    Ok(())
                },
            )?;
            table.set(name, function)?;
        }
        let host = Rc::clone(self);
        table.set(
            "log",
            lua.create_function(
                move |_, (level, script, line, text): (u8, String, u32, mlua::LuaString)| {
                    host.log(ScriptLog {
                        level: if level == 0 {
                            LogLevel::Info
                        } else {
                            LogLevel::Warn
                        },
                        script,
                        line: Some(line).filter(|&line| line > 0),
                        message: cut(&text.to_string_lossy()),
                        source_line: None,
                        traceback: String::new(),
                        origin: None,
                    });
                    Ok(())
                },
            )?,
        )?;
        let host = Rc::clone(self);
        table.set(
            "allowed",
            lua.create_function(move |_, capability: String| {
                Ok(host.capabilities.borrow().contains(&capability))
            })?,
        )?;
        table.set("offencesMax", self.limits.offences_max)?;
        table.set(
            "nameScript",
            lua.create_function(|_, (number, path): (u32, String)| {
                blame::name(number, &path);
                Ok(())
            })?,
        )?;
        table.set(
            "freeze",
            lua.create_function(|_, table: Table| {
                table.set_readonly(true);
                Ok(table)
            })?,
        )?;
        table.set(
            "setVectorMetatable",
            lua.create_function(|lua, meta: Table| {
                lua.set_type_metatable::<mlua::Vector>(Some(meta));
                Ok(())
            })?,
        )
    }

    /// The loaded script, of which every instance gets a copy: they share its
    /// instructions and constants.
    fn main_of(&self, lua: &Lua, script: &CompiledScript) -> mlua::Result<mlua::Function> {
        let mut loaded = self.loaded.borrow_mut();
        match loaded.get(&script.sha256_hex) {
            Some(main) => Ok(main.clone()),
            None => {
                let main = load_chunk(lua, script, lua.create_table()?)?;
                loaded.insert(script.sha256_hex.clone(), main.clone());
                Ok(main)
            }
        }
    }

    /// Loads a script of the package into an environment.
    fn load(
        &self,
        lua: &Lua,
        path: &str,
        env: Table,
    ) -> mlua::Result<(Option<mlua::Function>, Option<String>)> {
        if self.disabled.borrow().contains(path) {
            return Ok((None, None));
        }
        let scripts = self.scripts.borrow();
        let Some(script) = scripts.get(path) else {
            return Ok((
                None,
                Some(format!("there is no script {path} on the server")),
            ));
        };
        // Enables the compiler's direct calls of library functions; only the
        // script itself can reach this table. Not for spells, which see less
        // than the globals that direct calls resolve in.
        env.set_safeenv(!path.starts_with("spells/"));
        let main = self.main_of(lua, script)?.deep_clone()?;
        main.set_environment(env)?;
        Ok((Some(main), None))
    }
}

/// Loads bytecode that our own compiler made.
pub(crate) fn load_chunk(
    lua: &Lua,
    script: &CompiledScript,
    env: Table,
) -> mlua::Result<mlua::Function> {
    lua.load(script.bytecode())
        .set_name(format!("={}", script.path))
        .set_mode(ChunkMode::Binary)
        .set_environment(env)
        .into_function()
}

/// Runs a check and then an engine call; returns the error text, if any.
fn outcome<T>(
    checked: Result<T, String>,
    call: impl FnOnce(T) -> Result<(), EngineError>,
) -> Option<String> {
    match checked {
        Ok(value) => call(value).err().map(|error| error.to_string()),
        Err(text) => Some(text),
    }
}

/// Splits `path.luau:12: text`.
fn split_location(message: &str) -> Option<(&str, u32, &str)> {
    let (path, rest) = message.split_once(".luau:")?;
    let (line, text) = rest.split_once(": ")?;
    let path = &message[..path.len() + ".luau".len()];
    Some((path, line.parse().ok()?, text))
}

/// Where the topmost frame of a readable traceback is.
fn first_location(traceback: &str) -> Option<(String, u32)> {
    let (path, rest) = traceback.lines().next()?.split_once(".luau:")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some((format!("{path}.luau"), digits.parse().ok()?))
}

/// Only the creator's frames: the engine's own are not useful to them.
fn readable_traceback(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| {
            !line.is_empty() && !line.starts_with("@builtin") && !line.starts_with("[C]")
        })
        .take(16)
        .collect();
    cut(&lines.join("\n"))
}

fn cut(text: &str) -> String {
    if text.len() <= TEXT_BYTES_MAX {
        return text.to_owned();
    }
    let end = (0..=TEXT_BYTES_MAX)
        .rev()
        .find(|&end| text.is_char_boundary(end))
        .unwrap_or(0);
    format!("{}…", &text[..end])
}
