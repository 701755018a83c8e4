//! Commands of users who have no character in the world: spells that it learns
//! while it runs, casts, and terrain changes. The game's rules apply as far as
//! they need no character.

use std::collections::BTreeMap;

use frolic_fleet_api::remote_commands::{CastNews, LearnSpell, NEWS_MAX};
use frolic_protocol::Value;
use frolic_protocol::terrain::TerrainOp;

use crate::history::History;
use crate::player::{MANA_MAX, MANA_PER_S};
use crate::space::Space;
use crate::spells::{CastRefusal, Spells, named_target};
use crate::terrain::{Ground, TerraformError, check_brush, check_place};

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

    /// A cast by a user without a character.
    pub fn cast(
        &mut self,
        (space, spells): (&mut Space, &mut Spells),
        id: &str,
        spell: &str,
        revision: Option<&str>,
        params: Value,
    ) -> Result<(), CastRefusal> {
        let (settings, code) = spells.castable(space, spell, revision)?;
        let target = named_target(&params)?.unwrap_or_default();
        let (tick, tick_hz) = space.time();
        let visitor = self.visit(id, tick, tick_hz, 1.0);
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
        spells.begin(space, spell, code, (0, 0, id.to_owned()), target, params);
        Ok(())
    }

    /// A terrain change by a user without a character, in a game that allows
    /// commands from outside.
    pub fn terraform(
        &mut self,
        space: &mut Space,
        ground: &mut Ground,
        history: &mut History,
        id: &str,
        op: &TerrainOp,
    ) -> Result<Option<u64>, TerraformError> {
        let terrain = space.collision.terrain();
        let terrain = terrain.ok_or(TerraformError::NoTerrain)?;
        if !terrain.settings().editable {
            return Err(TerraformError::NotEditable);
        }
        let rate = terrain.settings().rate;
        let (tick, tick_hz) = space.time();
        let visitor = self.visit(id, tick, tick_hz, rate);
        if visitor.changes < 1.0 {
            return Err(TerraformError::TooFast(rate));
        }
        visitor.changes -= 1.0;
        let op = op.resolve()?;
        check_brush(space, &op)?;
        check_place(space, history, &op)?;
        Ok(ground.apply(space, history, None, Some(id.to_owned()), &op))
    }
}

/// Whether a spell may be learned.
pub(crate) fn check_spell(spells: &Spells, spell: &LearnSpell) -> Result<(), LearnRefusal> {
    if !spells.allowed {
        return Err(LearnRefusal::NotAllowed);
    }
    let id = spell.name.split('@').next().unwrap_or_default();
    if spells.is_of_game(id) {
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
