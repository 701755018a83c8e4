//! Casts, terrain changes and spells: by players, and by users who have no
//! character in the world. The game's rules apply to those as far as they need
//! no character.

use frolic_fleet_api::remote_commands::{LEARNED_MAX, LearnSpell};
use frolic_package::spells::{SpellSettings, script_path};
use frolic_protocol::terrain::TerrainOp;
use frolic_protocol::{Args, Value};
use frolic_script::CompileError;
use serde::{Deserialize, Serialize};

use super::{Effect, Input, Reload, World};
use crate::player::PlayerNumber;
use crate::reload::{Changes, Reloaded};
use crate::remote_commands::{LearnRefusal, check_spell};
use crate::spells::CastRefusal;
use crate::state::WorldState;
use crate::terrain::TerraformError;

/// The user or player that acts on a world.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Actor {
    /// A player, with their character.
    Player(PlayerNumber),
    /// A user without a character, by persistent id.
    Visitor(String),
}

impl From<PlayerNumber> for Actor {
    fn from(player: PlayerNumber) -> Self {
        Self::Player(player)
    }
}

impl From<&str> for Actor {
    fn from(id: &str) -> Self {
        Self::Visitor(id.to_owned())
    }
}

impl Actor {
    fn player(&self) -> Option<PlayerNumber> {
        match self {
            Self::Player(number) => Some(*number),
            Self::Visitor(_) => None,
        }
    }
}

/// Casts a spell; it runs in the next step, and then clients are notified.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cast {
    /// The caster.
    pub by: Actor,
    /// The spell.
    pub spell: String,
    /// Requested revision, if any.
    pub revision: Option<String>,
    /// One value.
    pub params: Args,
}

impl Effect for Cast {
    type Outcome = Result<(), CastRefusal>;

    fn player(&self) -> Option<PlayerNumber> {
        self.by.player()
    }

    fn run(self, world: &mut World) -> Result<(), CastRefusal> {
        let params = world.known_entities(self.params.0).into_iter().next();
        let params = params.unwrap_or(Value::Nil);
        let (spell, revision) = (self.spell.as_str(), self.revision.as_deref());
        let mut state = world.state.borrow_mut();
        let WorldState {
            space,
            spells,
            visitors,
            ..
        } = &mut *state;
        match self.by {
            Actor::Player(number) => spells.cast(space, number, spell, revision, params),
            Actor::Visitor(id) => visitors.cast((space, spells), &id, spell, revision, params),
        }
    }
}

/// Changes terrain. The outcome is the number of the operation; none if it
/// changed nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Terraform {
    /// The user or player that changes it.
    pub by: Actor,
    /// The operation.
    pub op: TerrainOp,
}

impl Effect for Terraform {
    type Outcome = Result<Option<u64>, TerraformError>;

    fn player(&self) -> Option<PlayerNumber> {
        self.by.player()
    }

    fn run(self, world: &mut World) -> Result<Option<u64>, TerraformError> {
        let mut state = world.state.borrow_mut();
        let WorldState {
            space,
            ground,
            history,
            spells,
            visitors,
            ..
        } = &mut *state;
        match self.by {
            Actor::Player(number) if !space.players.contains_key(&number) => {
                Err(TerraformError::NoTerrain)
            }
            Actor::Player(number) => ground.terraform_by(space, history, number, &self.op),
            Actor::Visitor(_) if !spells.allowed => Err(TerraformError::NotFromOutside),
            Actor::Visitor(id) => visitors.terraform(space, ground, history, &id, &self.op),
        }
    }
}

/// Reverts all changes ever made to the world. The outcome is the number of the
/// operation, or an error if too many operations wait to be stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clear {
    /// Persistent id of the user.
    pub by: String,
}

impl Effect for Clear {
    type Outcome = Result<u64, TerraformError>;

    fn run(self, world: &mut World) -> Result<u64, TerraformError> {
        world.state.borrow_mut().clear(&self.by)
    }
}

/// Learns a spell, or another revision of one; it can be cast from the next step
/// on. The outcome is none if it was known already.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Learn(pub LearnSpell);

impl Effect for Learn {
    type Outcome = Result<Option<Reloaded>, LearnRefusal>;

    fn run(self, world: &mut World) -> Result<Option<Reloaded>, LearnRefusal> {
        let spell = self.0;
        check_spell(&world.state.borrow().spells, &spell)?;
        let mut changes = Changes::new();
        changes.insert(script_path(&spell.name), Some(spell.code));
        let forgotten = world
            .state
            .borrow()
            .spells
            .to_forget(&spell.name, LEARNED_MAX);
        if let Some(name) = &forgotten {
            changes.insert(script_path(name), None);
        }
        let done = world.change_scripts(changes).map_err(|errors| {
            let lines: Vec<String> = errors.iter().map(CompileError::to_string).collect();
            LearnRefusal::Broken(lines.join("; "))
        })?;
        let settings = SpellSettings {
            name: spell.display_name,
            description: String::new(),
            cooldown_s: spell.cooldown_s,
            cost: spell.cost,
            range_m: spell.range_m,
        };
        let mut state = world.state.borrow_mut();
        let tick = state.space.tick;
        let (name, revision) = (&spell.name, &spell.revision_id);
        state.spells.learn(name, revision, settings, tick);
        if let Some(name) = forgotten {
            state.spells.forget(&name);
        }
        Ok(done)
    }
}

/// Removes a learned spell. The outcome is none if it was not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forget {
    /// The name that it is cast by.
    pub name: String,
}

impl Effect for Forget {
    type Outcome = Option<Reloaded>;

    fn recorded(&self, world: &World) -> Option<Input> {
        let known = world.state.borrow().spells.has_learned(&self.name);
        known.then(|| self.clone().into())
    }

    fn run(self, world: &mut World) -> Option<Reloaded> {
        if !world.state.borrow().spells.has_learned(&self.name) {
            return None;
        }
        let changes = Changes::from([(script_path(&self.name), None)]);
        // Nothing is compiled, so this cannot fail.
        let done = world.change_scripts(changes).ok().flatten();
        world.state.borrow_mut().spells.forget(&self.name);
        done
    }
}

impl World {
    /// Changes scripts of the running revision.
    fn change_scripts(&mut self, changes: Changes) -> Result<Option<Reloaded>, Vec<CompileError>> {
        let revision = self.revision().to_owned();
        Reload { revision, changes }.run(self)
    }
}
