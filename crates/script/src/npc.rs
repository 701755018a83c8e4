//! Types of the interface between scripts and NPCs.

pub use frolic_protocol::npc::NpcState;

use crate::ids::EntityId;

/// The state of an NPC as scripts read it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NpcFacts {
    /// Its state.
    pub state: NpcState,
    /// The character it pays attention to.
    pub target: Option<EntityId>,
    /// From 0 to 1.
    pub suspicion: f32,
    /// Whether a script has taken over.
    pub overridden: bool,
}

/// A place on a patrol.
#[derive(Clone, Debug, PartialEq)]
pub enum NpcPlace {
    /// A fixed place.
    At([f32; 3]),
    /// The place of the first entity with this name or tag.
    Named(String),
}

/// An order of a script to an NPC.
#[derive(Clone, Debug, PartialEq)]
pub enum NpcOrder {
    /// Go to a place; like `Stop`, overrides its own behaviour.
    MoveTo {
        /// The destination.
        to: [f32; 3],
        /// Whether it runs.
        run: bool,
    },
    /// Stand still.
    Stop,
    /// Look at a place; none restores its own gaze.
    LookAt(Option<[f32; 3]>),
    /// Enter a state, and stay in it.
    SetState(NpcState),
    /// Walk between these places from now on.
    Patrol(Vec<NpcPlace>),
    /// Return to its own behaviour.
    Release,
    /// Drop its target, and go back.
    Forget,
}

/// An event of an NPC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NpcHappening {
    /// Its state changed.
    StateChanged {
        /// The new state.
        state: NpcState,
        /// The previous state.
        before: NpcState,
    },
    /// A character came into its sight.
    Saw {
        /// The character.
        other: EntityId,
    },
    /// A character left its sight.
    Lost {
        /// The character.
        other: EntityId,
    },
    /// It caught the character that it chased.
    Caught {
        /// The character.
        other: EntityId,
    },
    /// Its journey ended.
    Arrived {
        /// Whether it arrived; otherwise it gave up.
        reached: bool,
    },
}
