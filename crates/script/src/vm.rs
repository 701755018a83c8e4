//! The server's VM: one per world, all server scripts in it.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use mlua::{Function, IntoLua, IntoLuaMulti, Lua, LuaOptions, MultiValue, StdLib, Table};

use crate::budget::{Budget, Verdict};
use crate::builtin::server_builtin;
use crate::compile::CompiledScript;
use crate::convert::{Entities, to_luau};
use crate::engine::Engine;
use crate::event::ScriptEvent;
use crate::guard::{Failure, Guard, Stop, StopReason, set_safety_flags};
use crate::host::{Host, load_chunk};
use crate::ids::EntityId;
use crate::limits::VmLimits;
use crate::npc::NpcHappening;
use crate::service::Service;

/// After this many stops in one call the world continues in the next tick.
const STOPS_PER_CALL_MAX: u32 = 64;
/// How many tick budgets the start of a world may use.
const START_BUDGETS_MAX: u32 = 4;

/// A script on an entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// The entity that the script sees as `entity`.
    pub entity: EntityId,
    /// The script's path, for example `Workspace/KillBrick.luau`.
    pub script: String,
}

/// Resource use of a world's scripts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Bytes of Luau memory.
    pub memory_bytes: usize,
    /// CPU time inside the VM since the tick before, including events.
    pub last_tick_us: u64,
    /// Script instances disabled after repeated offences.
    pub disabled_scripts: usize,
    /// How often a time or memory limit stopped or paused scripts since the
    /// start. Depends on a clock, so it is not reproducible in a replay.
    pub cuts: u64,
}

/// Costs of one script since the world started.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScriptCost {
    /// The script; `@builtin` is the engine's own part.
    pub path: String,
    /// SHA-256 of its bytecode, in hex.
    pub hash: String,
    /// Time inside its handlers.
    pub cpu_us: u64,
    /// Memory it holds now. The scripts beyond the 254th share one value.
    pub memory_bytes: usize,
    /// How many instances run: one, or one per entity it is attached to.
    pub instances: u32,
    /// Errors it raised.
    pub errors: u32,
    /// How often it was stopped for time or memory.
    pub stops: u32,
    /// Instances that were disabled.
    pub disabled: u32,
}

/// Why a VM could not be created.
#[derive(Debug, thiserror::Error)]
pub enum VmError {
    /// Luau was built without a flag that keeps it memory-safe.
    #[error("this Luau build lacks the safety flag {0}")]
    MissingFlag(&'static str),
    /// The engine's own Luau did not load.
    #[error("the built-in scripts did not load: {0}")]
    Builtin(#[from] mlua::Error),
}

/// Runs the server scripts of one world.
pub struct Vm {
    // Before `lua`: its drop ends the watchdog while the state is alive.
    guard: Guard,
    pub(crate) entry: Entry,
    pub(crate) host: Rc<Host>,
    pub(crate) attach_only: BTreeSet<String>,
    disabled_scripts: usize,
    cuts: u64,
    last_tick_us: u64,
    budget: Budget,
    pub(crate) lua: Lua,
}

/// The functions of `builtin/server/lifecycle.luau` that the host calls.
pub(crate) struct Entry {
    tick: Function,
    drain: Function,
    resume_start: Function,
    stopped: Function,
    end_category: Function,
    costs: Function,
    pause_worst: Function,
    resume_all: Function,
    closing_left: Function,
    end_close: Function,
    declare: Function,
    launch: Function,
    attach: Function,
    pub(crate) reload: Function,
    dispatch: Function,
    members: Function,
}

impl Vm {
    /// Creates a VM for the world behind `engine`. `seed` determines `Random`.
    ///
    /// # Errors
    /// If Luau or the built-in scripts are not what this crate was made for.
    pub fn new(
        engine: Rc<RefCell<dyn Engine>>,
        limits: VmLimits,
        seed: u64,
    ) -> Result<Vm, VmError> {
        set_safety_flags().map_err(VmError::MissingFlag)?;
        // `catch_rust_panics(false)` would install mlua's own `pcall`, which
        // resumes panics of natives but cannot yield. The default is fine,
        // because natives do not panic.
        let lua = Lua::new_with(StdLib::ALL_SAFE, LuaOptions::new())?;
        let collector = mlua::state::GcIncParams::default()
            .goal(115)
            .step_multiplier(400);
        lua.gc_set_mode(mlua::state::GcMode::Incremental(collector));
        let guard = Guard::new(&lua, &limits)?;
        let host = Host::new(engine, limits);
        let entry = load_builtin(&lua, &host, &guard, seed)?;
        Ok(Vm {
            guard,
            entry,
            host,
            attach_only: BTreeSet::new(),
            disabled_scripts: 0,
            cuts: 0,
            last_tick_us: 0,
            budget: Budget::default(),
            lua,
        })
    }

    /// Disables scripts; call it before [`Vm::start`].
    pub fn disable(&mut self, paths: impl IntoIterator<Item = String>) {
        self.host.disabled.borrow_mut().extend(paths);
    }

    /// Grants the capabilities that `game.toml` declares; call it before
    /// [`Vm::start`].
    pub fn grant(&mut self, capabilities: impl IntoIterator<Item = String>) {
        self.host.capabilities.borrow_mut().extend(capabilities);
    }

    /// Declares what clients may send under a name, like `Network.Declare`;
    /// call it before [`Vm::start`].
    pub fn declare(&mut self, name: &str, args: &[String], rate: Option<f64>, burst: Option<f64>) {
        let made = || {
            let options = self.lua.create_table()?;
            options.raw_set("rate", rate)?;
            options.raw_set("burst", burst)?;
            (name, args.to_vec(), options).into_lua_multi(&self.lua)
        };
        match made() {
            Ok(arguments) => self.call(&self.entry.declare.clone(), arguments),
            Err(error) => self.host.report("@builtin", &error.to_string(), ""),
        }
    }

    /// Marks scripts that run only for entities, because a prefab refers to
    /// them; call it before [`Vm::start`]. Others of `Workspace` also run
    /// alone.
    pub fn attach_only(&mut self, paths: impl IntoIterator<Item = String>) {
        self.attach_only.extend(paths);
    }

    /// Loads `scripts` (client scripts are ignored), runs those that are
    /// neither modules nor attached, and starts the attached ones.
    pub fn start(&mut self, scripts: Vec<CompiledScript>, attachments: &[Attachment]) {
        self.attach_only
            .extend(attachments.iter().map(|a| a.script.clone()));
        let mut alone: Vec<(Option<Service>, String)> = Vec::new();
        for script in scripts.into_iter().filter(CompiledScript::runs_on_server) {
            if !script.is_module && !self.attach_only.contains(&script.path) {
                alone.push((script.service, script.path.clone()));
            }
            let path = script.path.clone();
            self.host.scripts.borrow_mut().insert(path, script);
        }
        // The game's own rules first, so that they receive all later events.
        alone.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        for (_, path) in alone {
            self.call(&self.entry.launch.clone(), path);
        }
        for attachment in attachments {
            self.attach(attachment.entity, &attachment.script);
        }
        self.call(&self.entry.drain.clone(), ());
        // Scripts run before the first tick, even if one of them used up the
        // budget: a tick that a script was not there for cannot be repeated.
        for _ in 1..START_BUDGETS_MAX {
            if !self.guard.was_paused() {
                break;
            }
            self.guard.begin_tick();
            self.call(&self.entry.resume_start.clone(), ());
        }
        // Starting is not charged to the budget.
        self.guard.begin_tick();
    }

    /// Starts a script for an entity that was spawned later; it runs with the
    /// next event or tick.
    pub fn attach(&mut self, entity: EntityId, path: &str) {
        self.call(&self.entry.attach.clone(), (entity, path));
    }

    /// Runs what is due: waiting tasks, then `OnTick(dt)` handlers.
    pub fn tick(&mut self, dt: f64) {
        self.last_tick_us = self.guard.tick_used_us();
        self.enforce_budget();
        self.guard.begin_tick();
        self.host.begin_tick();
        self.call(&self.entry.tick.clone(), dt);
    }

    /// Charges the previous tick to the budget, and pauses the heaviest script
    /// when the world has used up its savings.
    fn enforce_budget(&mut self) {
        let limits = &self.host.limits;
        let spent = Duration::from_micros(self.last_tick_us);
        match self.budget.charge(spent, limits.average, limits.savings) {
            Verdict::GoOn => {}
            Verdict::Resume => {
                let resumed = self.guard.run(|| self.entry.resume_all.call::<()>(()));
                if let Err(failure) = resumed {
                    tracing::error!(?failure, "paused scripts were not resumed");
                }
            }
            Verdict::Pause => self.pause_worst(),
        }
    }

    fn pause_worst(&mut self) {
        let limits = &self.host.limits;
        let args = (
            limits.pauses_max,
            limits.forgive.as_secs_f64(),
            limits.average.as_secs_f64(),
        );
        let paused = self.guard.run(|| self.entry.pause_worst.call(args));
        let paused: (Option<String>, bool) = paused.unwrap_or_default();
        let (Some(path), disabled) = paused else {
            return;
        };
        self.cuts += 1;
        let average = limits.average.as_millis();
        let what = match disabled {
            false => "it waits a moment",
            true => "it is disabled after repeated offences",
        };
        self.disabled_scripts += usize::from(disabled);
        self.host.report_stop(
            &path,
            &format!(
                "used more time than the {average} ms per tick that this world's scripts have on \
                 average: {what}; spread its work over several ticks"
            ),
            "",
        );
    }

    /// Delivers an event to scripts.
    pub fn dispatch(&mut self, event: ScriptEvent) {
        if let ScriptEvent::EntityDestroyed { entity } = event {
            self.host.quota.borrow_mut().spawning.gone(entity);
        }
        match self.event_args(event) {
            Ok(args) => self.call(&self.entry.dispatch.clone(), args),
            Err(error) => self.host.report("@builtin", &error.to_string(), ""),
        }
    }

    /// The number of unfinished handlers of `PlayerRemoving` and
    /// `World.OnClose`, plus threads that wait for the store.
    pub fn closing_left(&self) -> u32 {
        let left = self.guard.run(|| self.entry.closing_left.call(()));
        left.unwrap_or_else(|failure| {
            tracing::error!(
                ?failure,
                "failed to count the unfinished handlers of a closing world"
            );
            0
        })
    }

    /// Ends closing after the time limit: stops the handlers that have not
    /// finished and logs them for the creator.
    pub fn end_close(&mut self, seconds: u32) {
        self.call(&self.entry.end_close.clone(), seconds);
    }

    /// The members of the API, as `World.Find` or `print`, in no order; tests
    /// compare them with its definition ([`crate::api`]).
    ///
    /// # Errors
    /// If the built-in scripts are broken.
    pub fn members(&self) -> Result<Vec<String>, VmError> {
        Ok(self.entry.members.call(())?)
    }

    /// Current resource use of the scripts.
    pub fn usage(&self) -> Usage {
        Usage {
            memory_bytes: self.lua.used_memory(),
            last_tick_us: self.last_tick_us,
            disabled_scripts: self.disabled_scripts,
            cuts: self.cuts,
        }
    }

    /// The cost of each script so far; intended for once a second, not every
    /// tick.
    pub fn costs(&self) -> Vec<ScriptCost> {
        let listed: mlua::Result<Vec<Table>> = self.entry.costs.call(());
        let accounts = listed.unwrap_or_else(|error| {
            tracing::warn!(%error, "failed to read the cost of scripts");
            Vec::new()
        });
        accounts
            .iter()
            .filter_map(|account| self.cost(account).ok())
            .collect()
    }

    fn cost(&self, account: &Table) -> mlua::Result<ScriptCost> {
        let path: String = account.raw_get("path")?;
        let seconds: f64 = account.raw_get("cpu")?;
        let scripts = self.host.scripts.borrow();
        Ok(ScriptCost {
            hash: scripts
                .get(&path)
                .map(|script| script.sha256_hex.clone())
                .unwrap_or_default(),
            cpu_us: (seconds * 1e6) as u64,
            memory_bytes: self.guard.memory_of(account.raw_get("category")?),
            instances: account.raw_get("instances")?,
            errors: account.raw_get("errors")?,
            stops: account.raw_get("stops")?,
            disabled: account.raw_get("disabled")?,
            path,
        })
    }

    /// Calls into the VM, and after a stop continues with the remaining work.
    pub(crate) fn call(&mut self, function: &Function, args: impl IntoLuaMulti) {
        let mut result = self.guard.run(|| function.call::<()>(args));
        for _ in 0..STOPS_PER_CALL_MAX {
            let hoarder = self.guard.take_hoarder();
            let cut = result.is_err() || hoarder.is_some() || self.guard.was_paused();
            self.cuts += u64::from(cut);
            if let Some(category) = hoarder {
                self.end_hoarder(category);
            }
            match result {
                Ok(()) if hoarder.is_none() => break,
                Ok(()) => {}
                Err(Failure::Stopped(stop)) => self.after_stop(&stop),
                Err(Failure::Error(error)) => self.after_error(&error),
            }
            result = self.guard.run(|| self.entry.drain.call::<()>(()));
        }
    }

    /// Counts the offence, notifies the creator, and frees what can be freed.
    fn after_stop(&mut self, stop: &Stop) {
        let limits = &self.host.limits;
        let mut offences_max = limits.offences_max;
        // Its garbage must not be charged to the next script.
        if self.lua.used_memory() > limits.memory_bytes / 2 {
            self.collect();
        }
        let held = self.lua.used_memory();
        if stop.reason == StopReason::Memory && held > limits.memory_bytes / 4 * 3 {
            // The remaining memory is still referenced, most likely by this
            // script; freeing a few bytes would not keep it from starving the
            // others.
            offences_max = 1;
        }
        let verdict = self
            .guard
            .run(|| self.entry.stopped.call((stop.instance, offences_max)));
        let (path, disabled): (String, bool) =
            verdict.unwrap_or_else(|_| ("@builtin".to_owned(), false));
        let what = match stop.reason {
            StopReason::Time => format!(
                "stopped after {} ms without a pause; use task.wait in long loops",
                self.host.limits.slice.as_millis()
            ),
            StopReason::Memory => format!(
                "stopped because the scripts of this world use more than {} MiB",
                self.host.limits.memory_bytes >> 20
            ),
        };
        self.host.report_stop(&path, &what, &stop.traceback);
        if disabled {
            self.disabled_scripts += 1;
            let disabled = "disabled after repeated offences; the world goes on without it";
            self.host.report_stop(&path, disabled, "");
            if stop.reason == StopReason::Memory {
                self.collect();
            }
        }
    }

    /// Disables the script that held most of the memory when it got short.
    fn end_hoarder(&mut self, category: u32) {
        let ended = self.guard.run(|| self.entry.end_category.call(category));
        let ended: Option<(String, usize)> = ended.ok();
        self.collect();
        let Some((path, count)) = ended.filter(|(_, count)| *count > 0) else {
            return;
        };
        self.disabled_scripts += count;
        let megabytes = self.host.limits.memory_bytes >> 20;
        self.host.report_stop(
            &path,
            &format!("disabled: it holds most of the {megabytes} MiB of this world's scripts"),
            "",
        );
    }

    /// Handles an error outside of any handler: out of memory, or a bug of
    /// ours.
    fn after_error(&mut self, error: &mlua::Error) {
        tracing::error!(%error, "the script scheduler failed");
        self.host.report("@builtin", &error.to_string(), "");
        self.collect();
        let reset = self
            .guard
            .run(|| self.entry.stopped.call::<()>((0, u32::MAX)));
        if let Err(failure) = reset {
            tracing::error!(?failure, "the script scheduler did not recover");
        }
    }

    fn collect(&self) {
        if let Err(error) = self.lua.gc_collect() {
            tracing::warn!(%error, "collection of script memory failed");
        }
    }

    /// The arguments of `dispatch`: the event's name and its data.
    fn event_args(&self, event: ScriptEvent) -> mlua::Result<MultiValue> {
        let lua = &self.lua;
        Ok(match event {
            ScriptEvent::PlayerJoined { player } => ("PlayerJoined", player).into_lua_multi(lua)?,
            ScriptEvent::PlayerLeft { player } => ("PlayerLeft", player).into_lua_multi(lua)?,
            ScriptEvent::Closing => "Closing".into_lua_multi(lua)?,
            ScriptEvent::PlayerResumed { player } => {
                ("PlayerResumed", player).into_lua_multi(lua)?
            }
            ScriptEvent::CharacterSpawned { player } => {
                ("CharacterSpawned", player).into_lua_multi(lua)?
            }
            ScriptEvent::TriggerEnter { entity, other } => {
                ("TriggerEnter", entity, other).into_lua_multi(lua)?
            }
            ScriptEvent::TerrainChanged { min, max, player } => {
                let corner = |at: [f32; 3]| mlua::Vector::new(at[0], at[1], at[2]);
                ("TerrainChanged", corner(min), corner(max), player).into_lua_multi(lua)?
            }
            ScriptEvent::TriggerExit { entity, other } => {
                ("TriggerExit", entity, other).into_lua_multi(lua)?
            }
            ScriptEvent::Touched { entity, other } => {
                ("Touched", entity, other).into_lua_multi(lua)?
            }
            ScriptEvent::Interact { entity, player } => {
                ("Interact", entity, player).into_lua_multi(lua)?
            }
            ScriptEvent::EntityDestroyed { entity } => {
                ("EntityDestroyed", entity).into_lua_multi(lua)?
            }
            ScriptEvent::OpsKept { up_to } => ("OpsKept", up_to as f64).into_lua_multi(lua)?,
            ScriptEvent::ProjectileHit(hit) => hit.into_arguments(lua)?,
            ScriptEvent::PlayerDied {
                player,
                killer,
                weapon,
            } => ("PlayerDied", player, killer, weapon).into_lua_multi(lua)?,
            ScriptEvent::Chat { player, text } => ("Chat", player, text).into_lua_multi(lua)?,
            ScriptEvent::Npc { entity, what } => npc_args(lua, entity, what)?,
            ScriptEvent::StoreAnswer { id, result } => {
                let (ok, values) = match result {
                    Ok(values) => (true, values),
                    Err(text) => (false, vec![frolic_protocol::Value::String(text)]),
                };
                let head = [id.into_lua(lua)?, ok.into_lua(lua)?];
                self.remote_args("StoreAnswer", head.into(), &values)?
            }
            ScriptEvent::Cast {
                cast,
                path,
                spell,
                seed,
                player,
                target,
                params,
            } => {
                let head = [
                    cast.into_lua(lua)?,
                    path.into_lua(lua)?,
                    spell.into_lua(lua)?,
                    (seed as f64).into_lua(lua)?,
                    player.into_lua(lua)?,
                ];
                let target = frolic_protocol::Value::Vector(target);
                self.remote_args("Cast", head.into(), &[target, params])?
            }
            ScriptEvent::ClientEvent { player, name, args } => {
                let head = [player.into_lua(lua)?, name.into_lua(lua)?];
                self.remote_args("ClientEvent", head.into(), &args)?
            }
            ScriptEvent::ClientInvoke {
                player,
                id,
                name,
                args,
            } => {
                let head = [
                    player.into_lua(lua)?,
                    id.into_lua(lua)?,
                    name.into_lua(lua)?,
                ];
                self.remote_args("ClientInvoke", head.into(), &args)?
            }
        })
    }

    fn remote_args(
        &self,
        event: &str,
        head: Vec<mlua::Value>,
        args: &[frolic_protocol::Value],
    ) -> mlua::Result<MultiValue> {
        let entities = self.host.entities()?;
        let mut all = vec![event.into_lua(&self.lua)?];
        all.extend(head);
        for arg in args {
            all.push(to_luau(&self.lua, entities, arg)?);
        }
        Ok(MultiValue::from_vec(all))
    }
}

fn npc_args(lua: &Lua, entity: EntityId, what: NpcHappening) -> mlua::Result<MultiValue> {
    match what {
        NpcHappening::StateChanged { state, before } => {
            let names = (state.name(), before.name());
            ("Npc", entity, "StateChanged", names.0, names.1).into_lua_multi(lua)
        }
        NpcHappening::Saw { other } => ("Npc", entity, "Saw", other).into_lua_multi(lua),
        NpcHappening::Lost { other } => ("Npc", entity, "Lost", other).into_lua_multi(lua),
        NpcHappening::Caught { other } => ("Npc", entity, "Caught", other).into_lua_multi(lua),
        NpcHappening::Arrived { reached } => {
            ("Npc", entity, "Arrived", reached).into_lua_multi(lua)
        }
    }
}

/// Runs `builtin/` and then restricts the globals.
fn load_builtin(lua: &Lua, host: &Rc<Host>, guard: &Guard, seed: u64) -> mlua::Result<Entry> {
    let globals = lua.globals();
    let engine = lua.create_table()?;
    engine.set("host", host.table(lua)?)?;
    engine.set("slot", guard.slot().clone())?;
    engine.set("api", lua.create_table()?)?;
    // Doubles hold 53 bits exactly.
    engine.set("seed", (seed >> 11) as f64)?;
    for script in server_builtin() {
        load_chunk(lua, script, globals.clone())?.call::<()>(&engine)?;
    }
    close_globals(lua, &globals, engine.get("api")?)?;
    let entry: Table = engine.get("entry")?;
    let entities = Entities {
        handles: entry.get("entities")?,
        make: entry.get("make_entity")?,
        meta: entry.get("entity_meta")?,
    };
    if host.entities.set(entities).is_err() {
        return Err(mlua::Error::runtime(
            "the built-in scripts were loaded twice",
        ));
    }
    Ok(Entry {
        tick: entry.get("tick")?,
        drain: entry.get("drain")?,
        resume_start: entry.get("resume_start")?,
        stopped: entry.get("stopped")?,
        end_category: entry.get("end_category")?,
        costs: entry.get("costs")?,
        pause_worst: entry.get("pause_worst")?,
        resume_all: entry.get("resume_all")?,
        closing_left: entry.get("closing_left")?,
        end_close: entry.get("end_close")?,
        declare: entry.get("declare")?,
        launch: entry.get("launch")?,
        attach: entry.get("attach")?,
        reload: entry.get("reload")?,
        dispatch: entry.get("dispatch")?,
        members: entry.get("members")?,
    })
}

/// Makes `api` the globals. Luau resolves `math.floor` and the like when a
/// chunk loads, in the globals of the thread that loads it and not in the
/// chunk's environment: so those must be the ones scripts may see.
fn close_globals(lua: &Lua, globals: &Table, api: Table) -> mlua::Result<()> {
    globals.set_readonly(true);
    globals.set_safeenv(true);
    api.set_safeenv(true);
    lua.set_globals(api)
}
