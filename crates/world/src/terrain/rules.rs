//! Who may change terrain where, and how much at once.

use frolic_protocol::terrain::{TerrainOp, TerrainOpError};
use frolic_sim::Vec3;
use frolic_terrain::{Action, Op, Terrain};

use super::Ground;
use crate::history::History;
use crate::player::{Player, PlayerNumber};
use crate::space::Space;

/// From the feet to the eyes, in metres.
const EYES_M: f32 = 1.6;
/// Tolerance: the client's position is ahead of the server's.
const LAG_M: f32 = 1.0;
/// Blocks that scripts may touch in one tick, and operations.
const SCRIPT_BLOCKS_PER_TICK: u64 = 4 << 20;
const SCRIPT_OPS_PER_TICK: u32 = 256;

/// Why terrain was not changed.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum TerraformError {
    /// There is no terrain.
    #[error("this world has no terrain that can be changed or asked for")]
    NoTerrain,
    /// The game does not let players change it.
    #[error("players cannot change the terrain of this game")]
    NotEditable,
    /// The operation is not valid.
    #[error(transparent)]
    Senseless(#[from] TerrainOpError),
    /// Not one of the game's materials.
    #[error("this game does not let players build with that material")]
    ForbiddenMaterial,
    /// More than a player may change at once.
    #[error("too large: at most {0} m from the middle in this game")]
    TooLarge(f32),
    /// Too far from the player.
    #[error("too far away: at most {0} m from your character in this game")]
    OutOfReach(f32),
    /// Inside an area that the game protects.
    #[error("this place is protected")]
    Protected,
    /// A character would be inside the new blocks.
    #[error("a character stands there")]
    Occupied,
    /// The player is dead.
    #[error("your character is not alive")]
    NotAlive,
    /// More often than the game allows.
    #[error("too fast: at most {0} changes per second in this game")]
    TooFast(f32),
    /// A user who is not in the world, in a game that does not allow that.
    #[error(
        "this game cannot be changed from outside (its game.toml has no spells = true); join it and play"
    )]
    NotFromOutside,
    /// Too many operations wait for storage.
    #[error("too many changes wait to be stored; try again")]
    Busy,
}

impl TerraformError {
    /// A machine-readable code.
    pub fn code(self) -> &'static str {
        match self {
            TerraformError::NoTerrain => "no_terrain",
            TerraformError::NotEditable => "not_editable",
            TerraformError::Senseless(TerrainOpError::UnknownMaterial) => "unknown_material",
            TerraformError::Senseless(_) => "bad_op",
            TerraformError::ForbiddenMaterial => "forbidden_material",
            TerraformError::TooLarge(_) => "too_large",
            TerraformError::OutOfReach(_) => "out_of_reach",
            TerraformError::Protected => "protected",
            TerraformError::Occupied => "occupied",
            TerraformError::NotAlive => "not_alive",
            TerraformError::TooFast(_) => "too_fast",
            TerraformError::NotFromOutside => "spells_not_allowed",
            TerraformError::Busy => "busy",
        }
    }
}

/// How many changes a player has left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    left: f32,
    tick: u32,
}

impl Allowance {
    pub fn word(&self) -> u64 {
        u64::from(self.left.to_bits()) << 32 | u64::from(self.tick)
    }
}

/// Use by scripts in one tick.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ScriptUse {
    tick: u32,
    blocks: u64,
    ops: u32,
}

impl Ground {
    /// Executes a player's operation, if it is allowed.
    pub fn terraform_by(
        &mut self,
        space: &mut Space,
        history: &mut History,
        number: PlayerNumber,
        wanted: &TerrainOp,
    ) -> Result<Option<u64>, TerraformError> {
        let terrain = space.collision.terrain().ok_or(TerraformError::NoTerrain)?;
        if !terrain.settings().editable {
            return Err(TerraformError::NotEditable);
        }
        let rate = terrain.settings().rate;
        // Counts as an attempt whatever the outcome.
        if !self.spend_attempt(space, number, rate) {
            return Err(TerraformError::TooFast(rate));
        }
        let op = wanted.resolve()?;
        check(space, history, number, &op)?;
        Ok(self.terraform(space, history, Some(number), &op))
    }

    /// Uses one of a player's attempts; false if none is left.
    fn spend_attempt(&mut self, space: &Space, number: PlayerNumber, rate: f32) -> bool {
        let most = rate.max(1.0);
        let (tick, per_tick) = (space.tick, rate / space.tick_hz as f32);
        let players = &space.players;
        let allowances = &mut self.allowances;
        allowances.retain(|number, _| players.contains_key(number));
        let full = Allowance { left: most, tick };
        let allowance = allowances.entry(number).or_insert(full);
        let since = tick.saturating_sub(allowance.tick) as f32;
        allowance.left = (allowance.left + since * per_tick).min(most);
        allowance.tick = tick;
        let has_one = allowance.left >= 1.0;
        if has_one {
            allowance.left -= 1.0;
        }
        has_one
    }

    /// Counts a script's operation; returns a message if it exceeds the limit.
    pub(super) fn spend_script_use(
        &mut self,
        space: &Space,
        history: &History,
        op: &Op,
    ) -> Result<(), String> {
        let terrain = space.collision.terrain();
        let terrain = terrain.ok_or("this world has no terrain: give scene.json one")?;
        let blocks = op.blocks(terrain.grid()).volume();
        if !history.has_room() {
            return Err("too many changes wait to be stored".to_owned());
        }
        let tick = space.tick;
        let used = &mut self.script_use;
        if used.tick != tick {
            *used = ScriptUse {
                tick,
                ..ScriptUse::default()
            };
        }
        if used.ops >= SCRIPT_OPS_PER_TICK {
            return Err(format!(
                "scripts may change the terrain {SCRIPT_OPS_PER_TICK} times per tick; \
                 use Box or Sphere instead of many single blocks, or task.wait() in between"
            ));
        }
        if used.blocks.saturating_add(blocks) > SCRIPT_BLOCKS_PER_TICK {
            return Err(format!(
                "scripts may touch {SCRIPT_BLOCKS_PER_TICK} blocks of terrain per tick"
            ));
        }
        used.ops += 1;
        used.blocks += blocks;
        Ok(())
    }
}

fn check(
    space: &Space,
    history: &History,
    number: PlayerNumber,
    op: &Op,
) -> Result<(), TerraformError> {
    let terrain = space.collision.terrain().ok_or(TerraformError::NoTerrain)?;
    let settings = terrain.settings();
    let player = space.players.get(&number).ok_or(TerraformError::NotAlive)?;
    if player.vitality.health <= 0.0 || !player.online {
        return Err(TerraformError::NotAlive);
    }
    check_brush(space, op)?;
    let eyes = space.feet_of(player) + Vec3::Y * EYES_M;
    let away = (Vec3::from(op.center) - eyes).length();
    if away.is_nan() || away > settings.reach + LAG_M {
        return Err(TerraformError::OutOfReach(settings.reach));
    }
    check_place(space, history, op)
}

/// Checks material and size, for players and for users without a character.
pub(crate) fn check_brush(space: &Space, op: &Op) -> Result<(), TerraformError> {
    let terrain = space.collision.terrain().ok_or(TerraformError::NoTerrain)?;
    let settings = terrain.settings();
    let allowed = settings.materials.as_ref();
    if op.action != Action::Subtract && allowed.is_some_and(|list| !list.contains(&op.material)) {
        return Err(TerraformError::ForbiddenMaterial);
    }
    if op.half().iter().any(|half| *half > settings.brush) {
        return Err(TerraformError::TooLarge(settings.brush));
    }
    Ok(())
}

/// Checks the place, for players and for users without a character.
pub(crate) fn check_place(space: &Space, history: &History, op: &Op) -> Result<(), TerraformError> {
    let terrain = space.collision.terrain().ok_or(TerraformError::NoTerrain)?;
    let settings = terrain.settings();
    let protected = settings.protected.iter();
    if protected
        .clone()
        .any(|area| op.meets(terrain.grid(), area.min, area.max))
    {
        return Err(TerraformError::Protected);
    }
    if op.action == Action::Add && op.material.is_solid() && is_occupied(space, terrain, op) {
        return Err(TerraformError::Occupied);
    }
    if !history.has_room() {
        return Err(TerraformError::Busy);
    }
    Ok(())
}

/// Whether a character is where blocks would be added.
fn is_occupied(space: &Space, terrain: &Terrain, op: &Op) -> bool {
    // Touching is not inside.
    let hair = 0.05;
    let aside = Vec3::new(space.params.radius - hair, 0.0, space.params.radius - hair);
    let inside = |player: &Player| {
        let place = space.feet_of(player);
        let feet = place + Vec3::Y * hair;
        let head = place + Vec3::Y * (space.params.height - hair);
        op.meets(
            terrain.grid(),
            (feet - aside).to_array(),
            (head + aside).to_array(),
        )
    };
    space.online().any(inside)
}
