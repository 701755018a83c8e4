//! One entity as clients know it: quantized, comparable, small.

use frolic_motion::{Motion, Rotation, Vec3};

use crate::npc::Mood;
use crate::quantize;

/// The kind of an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntityKind {
    /// A player's character, or an NPC: owner 0 and a [`Mood`].
    Character,
    /// Anything else.
    Thing,
}

/// Bits of [`EntityState::flags`].
pub mod flags {
    /// A character that stands on something.
    pub const GROUNDED: u8 = 1;
    /// An entity of the scene that was destroyed: clients remove it.
    pub const DESTROYED: u8 = 2;
    /// A character that is dead: it lies where it fell.
    pub const DEAD: u8 = 4;
    /// An entity of the scene that is replicated outside the cell in which the
    /// scene file has it, where only nearby entities are replicated.
    pub const AWAY: u8 = 8;
    /// Two bits that count teleports: when they change, no motion is interpolated.
    pub const JUMPS: u8 = 0b1100_0000;

    /// The bits of [`JUMPS`] for a count.
    pub fn jumps(count: u8) -> u8 {
        count << 6
    }
}

/// The definition number of entities that come from the scene file.
pub const SCENE_DEFINITION: u16 = 0;

/// Everything a client knows of an entity. Quantized, so that equality means that
/// there is nothing to send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EntityState {
    /// Its network id.
    pub id: u32,
    /// Its kind.
    pub kind: EntityKind,
    /// Its appearance: [`SCENE_DEFINITION`], or a definition of the world (prefabs
    /// in the order of their names, counted from 1, then others).
    pub definition: u16,
    /// The player it belongs to, or 0.
    pub owner: u32,
    /// See [`quantize::position`].
    pub position: [i32; 3],
    /// See [`quantize::rotation`].
    pub rotation: u32,
    /// See [`quantize::velocity`].
    pub velocity: [i16; 3],
    /// Where a character looks: yaw and pitch in 1/65536 of a turn.
    pub look: [u16; 2],
    /// See [`flags`].
    pub flags: u8,
    /// Counts changes of its [`crate::details::Details`]; 0 while they are
    /// as its definition says.
    pub details: u16,
    /// The path it follows, exact, while it follows one.
    pub motion: Option<Motion>,
    /// The mood of an NPC; the default for anything else.
    pub mood: Mood,
}

impl EntityState {
    /// Whether it follows a path that ends after a tick.
    pub fn is_on_the_way(&self, tick: u32) -> bool {
        self.motion.is_some_and(|motion| motion.end_tick > tick)
    }

    /// An entity that rests at the origin.
    pub fn new(id: u32, kind: EntityKind) -> Self {
        Self {
            id,
            kind,
            definition: SCENE_DEFINITION,
            owner: 0,
            position: [0; 3],
            rotation: quantize::ROTATION_NONE,
            velocity: [0; 3],
            look: [0; 2],
            flags: 0,
            details: 0,
            motion: None,
            mood: Mood::default(),
        }
    }

    /// The placeholder of an entity of the scene in the cell in which the file has
    /// it, while it is in another: it says that the entity is not there, and
    /// nothing else.
    pub fn elsewhere(id: u32) -> Self {
        Self {
            flags: flags::DESTROYED | flags::AWAY,
            ..Self::new(id, EntityKind::Thing)
        }
    }

    /// Whether it is only a placeholder. The state in another cell is valid beside
    /// it.
    pub fn is_elsewhere(&self) -> bool {
        self.has(flags::DESTROYED) && self.has(flags::AWAY)
    }

    /// Where it is.
    pub fn place(&self) -> Vec3 {
        quantize::position_back(self.position)
    }

    /// How it is turned.
    pub fn turn(&self) -> Rotation {
        quantize::rotation_back(self.rotation)
    }

    /// How fast it moves.
    pub fn speed(&self) -> Vec3 {
        quantize::velocity_back(self.velocity)
    }

    /// Whether a flag is set.
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// How one entity differs between two sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Difference<'a> {
    /// It was not there before.
    Created(&'a EntityState),
    /// It was there, and something changed.
    Changed(&'a EntityState, &'a EntityState),
    /// It is there no more.
    Removed(u32),
}

/// The changes between two sets, both in order of ids.
pub fn differences<'a>(
    old: &'a [EntityState],
    new: &'a [EntityState],
) -> impl Iterator<Item = Difference<'a>> {
    let (mut old, mut new) = (old.iter().peekable(), new.iter().peekable());
    std::iter::from_fn(move || {
        loop {
            match (old.peek(), new.peek()) {
                (None, None) => return None,
                (Some(before), Some(after)) if before.id == after.id => {
                    let (before, after) = (old.next()?, new.next()?);
                    if before != after {
                        return Some(Difference::Changed(before, after));
                    }
                }
                (Some(before), after) if after.is_none_or(|after| before.id < after.id) => {
                    return old.next().map(|gone| Difference::Removed(gone.id));
                }
                _ => return new.next().map(Difference::Created),
            }
        }
    })
}
