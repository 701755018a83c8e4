//! What scripts and NPCs have to tell each other.

pub use frolic_protocol::npc::NpcState;

use crate::engine::EntityId;

/// What scripts read of an NPC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NpcFacts {
    /// What it is about.
    pub state: NpcState,
    /// The character it minds.
    pub target: Option<EntityId>,
    /// From 0 to 1.
    pub suspicion: f32,
    /// Whether a script has taken over.
    pub overridden: bool,
}

/// A place on a patrol.
#[derive(Clone, Debug, PartialEq)]
pub enum NpcPlace {
    /// There.
    At([f32; 3]),
    /// Where the first entity of this name or tag is.
    Named(String),
}

/// What scripts tell an NPC to do.
#[derive(Clone, Debug, PartialEq)]
pub enum NpcOrder {
    /// Go there; beats its own mind, as the next one.
    MoveTo {
        /// Where.
        to: [f32; 3],
        /// At a run.
        run: bool,
    },
    /// Stand still.
    Stop,
    /// Look at a place; none lets it look as it likes.
    LookAt(Option<[f32; 3]>),
    /// Be about something, and stay so.
    SetState(NpcState),
    /// Walk between these places from now on.
    Patrol(Vec<NpcPlace>),
    /// Do as you like again.
    Release,
    /// Forget whom you mind, and go back.
    Forget,
}

/// What happened to an NPC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NpcHappening {
    /// It is about something else.
    StateChanged {
        /// Now.
        state: NpcState,
        /// Before.
        before: NpcState,
    },
    /// Somebody came into its sight.
    Saw {
        /// Their character.
        other: EntityId,
    },
    /// They are out of it.
    Lost {
        /// Their character.
        other: EntityId,
    },
    /// It chased somebody and is upon them.
    Caught {
        /// Their character.
        other: EntityId,
    },
    /// It is where it was going.
    Arrived {
        /// Or it could not get there.
        reached: bool,
    },
}
