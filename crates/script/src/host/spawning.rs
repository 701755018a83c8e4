//! Spawn limits: entities per tick and concurrent entities, counted for each
//! script. Only counts decide, so a replay refuses the same.

use std::collections::BTreeMap;

use crate::ids::EntityId;
use crate::limits::VmLimits;

/// Entities spawned by scripts, by the number of the script.
#[derive(Default)]
pub(crate) struct Spawning {
    in_tick: u32,
    in_tick_by: BTreeMap<u32, u32>,
    alive_by: BTreeMap<u32, u32>,
    made_by: BTreeMap<EntityId, u32>,
}

/// Why a script may not spawn an entity.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpawnRefusal {
    /// Not a matter of limits.
    #[error("{0}")]
    Invalid(String),
    /// All scripts together spawned too many in this tick.
    #[error("the scripts of a world may spawn {0} entities per tick; spread them over several")]
    WorldTick(u32),
    /// This script spawned too many in this tick.
    #[error("a script may spawn {0} entities per tick; spread them over several")]
    ScriptTick(u32),
    /// The entities of this script use up its quota of the world.
    #[error("a script may have {0} entities that it spawned at a time; destroy some first")]
    ScriptEntities(u32),
}

impl SpawnRefusal {
    /// Whether the script itself exceeded a limit.
    pub fn is_offence(&self) -> bool {
        matches!(self, Self::ScriptTick(_) | Self::ScriptEntities(_))
    }
}

impl From<String> for SpawnRefusal {
    fn from(text: String) -> Self {
        Self::Invalid(text)
    }
}

impl Spawning {
    pub fn begin_tick(&mut self) {
        self.in_tick = 0;
        self.in_tick_by.clear();
    }

    /// Charges one entity to a script's limits.
    pub fn charge(&mut self, script: u32, limits: &VmLimits) -> Result<(), SpawnRefusal> {
        let in_tick = self.in_tick_by.entry(script).or_default();
        if *in_tick >= limits.spawns_per_script_tick {
            return Err(SpawnRefusal::ScriptTick(limits.spawns_per_script_tick));
        }
        let alive = self.alive_by.get(&script).copied().unwrap_or(0);
        if alive >= limits.entities_per_script {
            return Err(SpawnRefusal::ScriptEntities(limits.entities_per_script));
        }
        if self.in_tick >= limits.spawns_per_tick {
            return Err(SpawnRefusal::WorldTick(limits.spawns_per_tick));
        }
        *in_tick += 1;
        self.in_tick += 1;
        Ok(())
    }

    /// Records an entity that a script spawned.
    pub fn made(&mut self, entity: EntityId, script: u32) {
        self.made_by.insert(entity, script);
        *self.alive_by.entry(script).or_default() += 1;
    }

    /// Records that an entity was removed.
    pub fn gone(&mut self, entity: EntityId) {
        let script = self.made_by.remove(&entity);
        if let Some(alive) = script.and_then(|script| self.alive_by.get_mut(&script)) {
            *alive = alive.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_script_has_a_share_and_gets_it_back_when_entities_go() {
        let limits = VmLimits {
            spawns_per_tick: 5,
            spawns_per_script_tick: 3,
            entities_per_script: 4,
            ..VmLimits::default()
        };
        let mut spawning = Spawning::default();
        let spawn = |spawning: &mut Spawning, script: u32, entity: u32| {
            let charged = spawning.charge(script, &limits);
            if charged.is_ok() {
                spawning.made(entity, script);
            }
            charged.map_err(|refusal| refusal.is_offence())
        };
        let made: Vec<_> = (1..=4).map(|e| spawn(&mut spawning, 1, e)).collect();
        assert_eq!(made, [Ok(()), Ok(()), Ok(()), Err(true)]);
        let others: Vec<_> = (11..=13).map(|e| spawn(&mut spawning, 2, e)).collect();
        assert_eq!(
            others,
            [Ok(()), Ok(()), Err(false)],
            "the world's share is used up"
        );
        spawning.begin_tick();
        assert_eq!(spawn(&mut spawning, 1, 4), Ok(()));
        assert_eq!(spawn(&mut spawning, 1, 5), Err(true), "four at a time");
        spawning.gone(2);
        spawning.gone(2);
        assert_eq!(spawn(&mut spawning, 1, 5), Ok(()));
        assert_eq!(spawn(&mut spawning, 1, 6), Err(true));
    }
}
