//! Commands of users who have no character in the world: spells that it learns
//! while it runs, casts, and terrain changes. The game's rules apply as far as
//! they need no character.

use std::borrow::Cow;
use std::collections::BTreeMap;

use frolic_fleet_api::ops::WorldOp;
use frolic_fleet_api::remote_commands::{CastNews, LEARNED_MAX, LearnSpell, NEWS_MAX};
use frolic_package::spells::{SpellSettings, script_path};
use frolic_protocol::ServerMessage;
use frolic_protocol::terrain::{ChunkVersion, TerrainOp};
use frolic_protocol::{Args, Value};
use frolic_script::{CompileError, ScriptEvent};

use crate::player::{MANA_MAX, MANA_PER_S};
use crate::reload::{Changes, Reloaded};
use crate::replay::Record;
use crate::spells::CastRefusal;
use crate::state::WorldState;
use crate::terrain::TerraformError;
use crate::world::World;

/// Visitors whose mana and cooldowns are stored; the least recent one is
/// replaced.
const VISITORS_MAX: usize = 256;

/// Why a spell was not learned. The text is shown to its author.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LearnRefusal {
    /// `game.toml` does not allow spells.
    #[error("spells are not allowed in this world: its game.toml has no spells = true")]
    NotAllowed,
    /// The game has a spell with that id.
    #[error("the game of this world has its own spell {0}")]
    OfTheGame(String),
    /// Its settings are not valid numbers.
    #[error("{0} has settings that are not numbers")]
    BadSettings(String),
    /// It does not compile.
    #[error("{0}")]
    Broken(String),
}

impl LearnRefusal {
    /// A machine-readable code.
    pub fn code(&self) -> &'static str {
        match self {
            LearnRefusal::NotAllowed => "spells_not_allowed",
            LearnRefusal::OfTheGame(_) => "spell_of_the_game",
            LearnRefusal::BadSettings(_) | LearnRefusal::Broken(_) => "spell_broken",
        }
    }
}

/// A user who casts without a character.
#[derive(Clone, Debug)]
pub(crate) struct Visitor {
    mana: f32,
    /// Tick of the last command.
    seen: u32,
    ready: BTreeMap<String, u32>,
    /// Terrain changes that they have left.
    changes: f32,
}

/// Visitors by their persistent ids.
#[derive(Default)]
pub(crate) struct Visitors {
    all: BTreeMap<String, Visitor>,
    /// Casts that the host has not taken yet.
    pub casts: Vec<CastNews>,
}

impl Visitors {
    /// A visitor, with mana regenerated since the last command.
    fn visit(&mut self, id: &str, tick: u32, tick_hz: u32, changes_per_s: f32) -> &mut Visitor {
        if !self.all.contains_key(id) && self.all.len() >= VISITORS_MAX {
            let oldest = self.all.iter().min_by_key(|(_, visitor)| visitor.seen);
            if let Some(oldest) = oldest.map(|(id, _)| id.clone()) {
                self.all.remove(&oldest);
            }
        }
        let most = changes_per_s.max(1.0);
        let fresh = Visitor {
            mana: MANA_MAX,
            seen: tick,
            ready: BTreeMap::new(),
            changes: most,
        };
        let visitor = self.all.entry(id.to_owned()).or_insert(fresh);
        let seconds = tick.saturating_sub(visitor.seen) as f32 / tick_hz.max(1) as f32;
        visitor.seen = tick;
        visitor.mana = (visitor.mana + MANA_PER_S * seconds).min(MANA_MAX);
        visitor.changes = (visitor.changes + changes_per_s * seconds).min(most);
        visitor.ready.retain(|_, ready| *ready > tick);
        visitor
    }

    /// Queues a cast for observers outside the world.
    pub fn report(&mut self, cast: CastNews) {
        if self.casts.len() < NEWS_MAX {
            self.casts.push(cast);
        }
    }
}

impl WorldState {
    fn may_learn(&self, spell: &LearnSpell) -> Result<(), LearnRefusal> {
        if !self.spells.allowed {
            return Err(LearnRefusal::NotAllowed);
        }
        let id = spell.name.split('@').next().unwrap_or_default();
        if self.spells.is_of_game(id) {
            return Err(LearnRefusal::OfTheGame(id.to_owned()));
        }
        let numbers = [spell.cooldown_s, spell.cost, spell.range_m];
        if numbers
            .iter()
            .any(|number| !(0.0..=3600.0).contains(number))
        {
            return Err(LearnRefusal::BadSettings(id.to_owned()));
        }
        Ok(())
    }

    /// A cast by a user without a character.
    fn cast_by_visitor(
        &mut self,
        id: &str,
        spell: &str,
        revision: Option<&str>,
        params: Value,
    ) -> Result<(), CastRefusal> {
        let (settings, code) = self.castable(spell, revision)?;
        let target = self.named_target(&params)?.unwrap_or_default();
        let (tick, tick_hz) = (self.tick, self.tick_hz);
        let visitor = self.visitors.visit(id, tick, tick_hz, 1.0);
        if let Some(ready) = visitor.ready.get(spell) {
            let seconds = ready.saturating_sub(tick) as f32 / tick_hz.max(1) as f32;
            let spell = spell.to_owned();
            return Err(CastRefusal::Cooldown { spell, seconds });
        }
        if visitor.mana < settings.cost {
            return Err(CastRefusal::Cost {
                spell: spell.to_owned(),
                cost: settings.cost,
                mana: visitor.mana,
            });
        }
        visitor.mana -= settings.cost;
        let wait = (settings.cooldown_s * tick_hz as f32) as u32;
        visitor.ready.insert(spell.to_owned(), tick + wait);
        self.begin_cast(spell, code, (0, 0, id.to_owned()), target, params);
        Ok(())
    }

    fn terraform_by_visitor(&mut self, id: &str, op: &TerrainOp) -> Result<(), TerraformError> {
        if !self.spells.allowed {
            return Err(TerraformError::NotFromOutside);
        }
        let terrain = self.collision.terrain().ok_or(TerraformError::NoTerrain)?;
        if !terrain.settings().editable {
            return Err(TerraformError::NotEditable);
        }
        let rate = terrain.settings().rate;
        let (tick, tick_hz) = (self.tick, self.tick_hz);
        let visitor = self.visitors.visit(id, tick, tick_hz, rate);
        if visitor.changes < 1.0 {
            return Err(TerraformError::TooFast(rate));
        }
        visitor.changes -= 1.0;
        let op = op.resolve()?;
        self.check_brush(&op)?;
        self.check_place(&op)?;
        self.terraform_for(None, Some(id.to_owned()), &op);
        Ok(())
    }

    /// Reverts all changes ever made to this world, as one operation.
    fn clear(&mut self, by: &str) -> Result<(), TerraformError> {
        if !self.history.has_room() {
            return Err(TerraformError::Busy);
        }
        let entities = self.structures.forget_all();
        let chunks = self.clear_ground();
        let seq = self.log_op(Some(by.to_owned()), WorldOp::Clear, |_| Vec::new());
        for entity in entities {
            self.hide_structure(seq, entity);
            self.destroy(entity);
        }
        self.ground_cleared(seq, chunks);
        Ok(())
    }

    /// Resets every changed chunk to its generated state, in a version of its
    /// own: clients with another version receive the whole chunk.
    fn clear_ground(&mut self) -> Vec<ChunkVersion> {
        let cleared = self.collision.replace_terrain(|terrain| {
            let edited: Vec<ChunkVersion> = terrain.edited().collect();
            terrain.reset();
            let again = edited.into_iter().filter_map(|at| {
                let chunk = terrain.chunk(at.chunk)?.clone();
                let next = ChunkVersion {
                    chunk: at.chunk,
                    version: at.version + 1,
                };
                terrain.install(next, chunk).then_some(next)
            });
            again.collect()
        });
        cleared.unwrap_or_default()
    }
}

impl World {
    /// Learns a spell, or another revision of one; it can be cast from the next
    /// step on. None: it was known already.
    ///
    /// # Errors
    /// Why not; the world continues unchanged.
    pub fn learn(&mut self, spell: &LearnSpell) -> Result<Option<Reloaded>, LearnRefusal> {
        self.borrow_state().may_learn(spell)?;
        let mut changes = Changes::new();
        changes.insert(script_path(&spell.name), Some(spell.code.clone()));
        let forgotten = self
            .borrow_state()
            .spells
            .to_forget(&spell.name, LEARNED_MAX);
        if let Some(name) = &forgotten {
            changes.insert(script_path(name), None);
        }
        let revision = self.revision().to_owned();
        let done = self.apply(&revision, changes).map_err(|errors| {
            let lines: Vec<String> = errors.iter().map(CompileError::to_string).collect();
            LearnRefusal::Broken(lines.join("; "))
        })?;
        let settings = SpellSettings {
            name: spell.display_name.clone(),
            description: String::new(),
            cooldown_s: spell.cooldown_s,
            cost: spell.cost,
            range_m: spell.range_m,
        };
        self.learned(&spell.name, &spell.revision_id, settings, forgotten);
        Ok(done)
    }

    /// Records that the code of a spell was loaded.
    pub(crate) fn learned(
        &mut self,
        name: &str,
        revision: &str,
        settings: SpellSettings,
        forgotten: Option<String>,
    ) {
        self.note(&Record::Learn {
            name: Cow::Borrowed(name),
            revision: Cow::Borrowed(revision),
            settings: settings.clone(),
            forgotten: forgotten.clone(),
        });
        let mut state = self.state_mut();
        let tick = state.tick;
        state.spells.learn(name, revision, settings, tick);
        if let Some(name) = forgotten {
            state.spells.forget(&name);
        }
    }

    /// Removes a learned spell. None: it was not known.
    pub fn forget(&mut self, name: &str) -> Option<Reloaded> {
        if !self.borrow_state().spells.has_learned(name) {
            return None;
        }
        let revision = self.revision().to_owned();
        let changes = Changes::from([(script_path(name), None)]);
        // Nothing is compiled, so this cannot fail.
        let done = self.apply(&revision, changes).ok().flatten();
        self.forgotten(name);
        done
    }

    /// Records that the code of a spell was removed.
    pub(crate) fn forgotten(&mut self, name: &str) {
        self.note(&Record::Forget {
            name: Cow::Borrowed(name),
        });
        self.state_mut().spells.forget(name);
    }

    /// Casts a spell for a user without a character.
    ///
    /// # Errors
    /// Why they may not.
    pub fn cast_from_outside(
        &mut self,
        by: &str,
        spell: &str,
        revision: Option<&str>,
        params: Args,
    ) -> Result<(), CastRefusal> {
        self.note(&Record::CastFromOutside {
            by: Cow::Borrowed(by),
            spell: Cow::Borrowed(spell),
            revision: revision.map(Cow::Borrowed),
            params: Cow::Borrowed(&params),
        });
        let mut values = self.known_entities(params.0);
        let params = values.drain(..).next().unwrap_or(Value::Nil);
        let mut state = self.state_mut();
        state.cast_by_visitor(by, spell, revision, params)
    }

    /// Changes terrain for a user without a character.
    ///
    /// # Errors
    /// Why they may not.
    pub fn terraform_from_outside(
        &mut self,
        by: &str,
        op: &TerrainOp,
    ) -> Result<(), TerraformError> {
        self.note(&Record::TerraformFromOutside {
            by: Cow::Borrowed(by),
            op: Cow::Borrowed(op),
        });
        self.state_mut().terraform_by_visitor(by, op)
    }

    /// Reverts all changes ever made to this world.
    ///
    /// # Errors
    /// If too many operations wait to be stored.
    pub fn clear(&mut self, by: &str) -> Result<(), TerraformError> {
        self.note(&Record::Clear {
            by: Cow::Borrowed(by),
        });
        self.state_mut().clear(by)
    }

    /// Casts since the last call, for observers outside the world.
    pub fn take_casts(&mut self) -> Vec<CastNews> {
        std::mem::take(&mut self.state_mut().visitors.casts)
    }
}

/// A cast as sent to observers outside the world.
pub(crate) fn cast_report(
    by: String,
    revision_id: String,
    message: &ServerMessage,
) -> Option<CastNews> {
    let ServerMessage::Cast(cast) = message else {
        return None;
    };
    Some(CastNews {
        by,
        revision_id,
        cast: serde_json::to_value(cast).ok()?,
    })
}

/// The script event when all terrain is reset.
pub(crate) fn everywhere() -> ScriptEvent {
    ScriptEvent::TerrainChanged {
        min: [-EVERYWHERE_M; 3],
        max: [EVERYWHERE_M; 3],
        player: None,
    }
}

/// Larger than any terrain.
pub(crate) const EVERYWHERE_M: f32 = 100_000.0;
