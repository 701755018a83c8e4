//! Checkpoints, and restoring from them. A world is its package, the newest
//! checkpoint and the operations since: two worlds made from the same of these
//! are the same.

use std::collections::BTreeMap;

use frolic_fleet_api::ops::{LoggedOp, Structure, WorldOp};
use frolic_fleet_api::persist::{
    Checkpoint, PlayerState, STAT_BYTES_MAX, STATS_MAX, STRUCTURES, STRUCTURES_VERSION, SavedWorld,
    Section, Stat, Structures,
};
use frolic_protocol::{Value, quantize};
use frolic_sim::{Angle, Buttons, CharacterInput, Vec3};

use crate::characters;
use crate::player::{Player, PlayerNumber};
use crate::space::Space;
use crate::terrain::{self, SavedGround};

/// No structure ever had a higher number: a checkpoint with one is damaged, and
/// would leave no numbers to continue with.
const NUMBER_MAX: u64 = u64::MAX / 2;

/// Sections of a checkpoint by name, each with a number that changes with the
/// section.
pub type Marks = BTreeMap<String, u64>;

/// The marks of the checkpoint that a world was created from.
pub fn marks_of(checkpoint: &Checkpoint) -> Marks {
    let mark = |name: &str, section: &Section| match terrain::version_in(name, section) {
        Some(version) => u64::from(version),
        None => checkpoint.seq,
    };
    let sections = checkpoint.sections.iter();
    sections
        .map(|(name, section)| (name.clone(), mark(name, section)))
        .collect()
}

/// The remainder of a history without operations that cancel each other.
#[derive(Default)]
pub(crate) struct Squashed {
    pub next: u64,
    pub structures: BTreeMap<u64, Structure>,
    pub ground: SavedGround,
    /// What could not be read, for the creator's log.
    pub problems: Vec<String>,
}

impl Squashed {
    pub fn of(saved: &SavedWorld) -> Self {
        let mut squashed = Self::default();
        let sections = &saved.checkpoint.sections;
        if let Some(stored) = squashed.read::<Structures>(sections, STRUCTURES, STRUCTURES_VERSION)
        {
            squashed.next = Some(stored.next)
                .filter(|next| *next <= NUMBER_MAX)
                .unwrap_or_default();
            stored.all.into_iter().for_each(|one| squashed.stand(one));
        }
        squashed.ground.read(sections, &mut squashed.problems);
        for logged in &saved.ops {
            if logged.seq > saved.checkpoint.seq {
                squashed.take(logged);
            }
        }
        squashed
    }

    fn take(&mut self, logged: &LoggedOp) {
        match &logged.op {
            WorldOp::Terrain(op) => self.ground.ops.push(op.clone()),
            WorldOp::Build(structure) => self.stand(structure.clone()),
            WorldOp::Unbuild { structure } => {
                self.structures.remove(structure);
            }
            WorldOp::Clear => {
                self.structures.clear();
                self.ground.clear();
            }
        }
    }

    fn stand(&mut self, structure: Structure) {
        let number = structure.number;
        if number > NUMBER_MAX {
            let prefab = structure.prefab;
            self.problems
                .push(format!("what was built from \"{prefab}\" is damaged"));
            return;
        }
        self.next = self.next.max(number + 1);
        self.structures.insert(number, structure);
    }

    fn read<T: serde::de::DeserializeOwned>(
        &mut self,
        sections: &BTreeMap<String, Section>,
        name: &str,
        version: u32,
    ) -> Option<T> {
        let section = sections.get(name)?;
        if section.version != version {
            let found = section.version;
            self.problems.push(format!(
                "the part \"{name}\" of the checkpoint has version {found}, and this program reads {version}"
            ));
            return None;
        }
        let read = postcard::from_bytes(&section.bytes);
        read.map_err(|_| {
            self.problems
                .push(format!("the part \"{name}\" of the checkpoint is damaged"));
        })
        .ok()
    }
}

/// Moves a player to their saved place; false if that is not possible.
pub(crate) fn put_back(space: &mut Space, number: PlayerNumber, saved: &PlayerState) -> bool {
    let feet = Vec3::from(saved.feet);
    let inside = feet.abs().max_element() < quantize::POSITION_MAX && feet.y > space.kill_height;
    if !saved.is_sound() || !inside {
        return false;
    }
    characters::teleport(space, number, feet);
    let Some(player) = space.players.get_mut(&number) else {
        return false;
    };
    player.gait.velocity = Vec3::from(saved.velocity);
    // The view direction is restored; held keys are not.
    player.inputs.look_at(CharacterInput {
        yaw: Angle(saved.look[0]),
        pitch: Angle(saved.look[1]),
        ..CharacterInput::default()
    });
    player.input = player.inputs.current();
    let [health, health_max] = saved.health;
    player.vitality.health_max = health_max;
    player.vitality.health = if health > 0.0 {
        health.min(health_max)
    } else {
        health_max
    };
    player.style.team.clone_from(&saved.team);
    for (name, stat) in saved.stats.iter().take(STATS_MAX) {
        let value = match stat {
            Stat::Number(number) => Value::Number(*number),
            Stat::Text(text) => Value::String(text.clone()),
        };
        player.style.stats.insert(name, value);
    }
    let info = player.info();
    space.announce(info);
    true
}

impl Player {
    /// The state that another process needs to continue with this player.
    pub fn saved(&self, feet: Vec3) -> PlayerState {
        let stats = self.style.stats.iter().filter_map(|(name, value)| {
            let stat = match value {
                Value::Number(number) if number.is_finite() => Stat::Number(*number),
                Value::String(text) if text.len() <= STAT_BYTES_MAX => Stat::Text(text.clone()),
                _ => return None,
            };
            (name.len() <= STAT_BYTES_MAX).then(|| (name.to_owned(), stat))
        });
        let input = self.input;
        PlayerState {
            feet: feet.to_array(),
            velocity: self.gait.velocity.to_array(),
            look: [input.yaw.0, input.pitch.0],
            buttons: input.buttons.0 & Buttons::RUN.0,
            steer: [input.right, input.forward],
            health: [self.vitality.health, self.vitality.health_max],
            team: self.style.team.clone(),
            stats: stats.take(STATS_MAX).collect(),
        }
    }
}
