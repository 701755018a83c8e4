//! Everything that enters a world.
//!
//! [`World::apply`] is the only way in, for the game server, recordings, replay,
//! fuzzing and tests alike. Each kind of input is a type of its own, which
//! states the outcome; [`Input`] is any of them, and what a recording consists
//! of.

mod commands;
mod lifecycle;
mod messages;
mod players;
mod scripts;
mod storage;

use serde::{Deserialize, Serialize};

use super::World;
use super::replay::Record;
use crate::player::PlayerNumber;

pub use commands::{Actor, Cast, Clear, Forget, Learn, Terraform};
pub use lifecycle::{Close, EndClose, Step, StepReport, WallClock};
pub use messages::{Chat, ChatRefusal, Event, Invoke};
pub use players::{
    Beside, Connected, Controls, Dress, Join, Leave, Reconnect, Reset, RoundTrip, Shown, Teleport,
};
pub use scripts::{Reload, SwapBack};
pub use storage::{OpsPersisted, StoreAnswered};

mod sealed {
    use super::{Input, PlayerNumber, World};

    /// Something that enters a world. Only [`World::apply`] may call
    /// [`Effect::run`], because it records what it runs.
    pub trait Effect: Clone + Into<Input> {
        /// What the caller learns.
        type Outcome;

        /// The player that it is about. It has no effect, and is not recorded,
        /// when they are not in the world.
        fn player(&self) -> Option<PlayerNumber> {
            None
        }

        /// What a recording needs of it: nothing, if it changes nothing.
        fn recorded(&self, _world: &World) -> Option<Input> {
            Some(self.clone().into())
        }

        /// Changes the world.
        fn run(self, world: &mut World) -> Self::Outcome;
    }
}

pub(crate) use sealed::Effect;

/// Declares [`Input`]: one variant per type of input, with its conversion.
macro_rules! inputs {
    ($($name:ident,)*) => {
        /// Any input of a world.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        pub enum Input {
            $(
                #[doc = concat!("See [`", stringify!($name), "`].")]
                $name($name),
            )*
        }

        $(
            impl From<$name> for Input {
                fn from(input: $name) -> Self {
                    Self::$name(input)
                }
            }
        )*

        impl Effect for Input {
            type Outcome = ();

            fn player(&self) -> Option<PlayerNumber> {
                match self {
                    $(Self::$name(input) => input.player(),)*
                }
            }

            fn recorded(&self, world: &World) -> Option<Input> {
                match self {
                    $(Self::$name(input) => input.recorded(world),)*
                }
            }

            fn run(self, world: &mut World) {
                match self {
                    $(Self::$name(input) => drop(input.run(world)),)*
                }
            }
        }
    };
}

// The order is part of the format of recordings.
inputs! {
    Step,
    Controls,
    Join,
    Leave,
    Reconnect,
    Connected,
    Event,
    Invoke,
    Chat,
    Shown,
    RoundTrip,
    Dress,
    Beside,
    Teleport,
    Cast,
    Terraform,
    Clear,
    Learn,
    Forget,
    Reload,
    SwapBack,
    StoreAnswered,
    OpsPersisted,
    WallClock,
    Close,
    EndClose,
    Reset,
}

impl World {
    /// Applies an input, and records it if the world is recorded.
    pub fn apply<I: Effect>(&mut self, input: I) -> I::Outcome {
        if self.recorder.is_some() {
            let absent = |player| self.entity_of(player).is_none();
            let recorded = match input.player() {
                Some(player) if absent(player) => None,
                _ => input.recorded(self),
            };
            if let (Some(recorder), Some(input)) = (&mut self.recorder, recorded) {
                recorder.note(Record::Input(input));
            }
        }
        input.run(self)
    }
}
