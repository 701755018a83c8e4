//! Replay: records everything that enters a world from outside, so that the
//! same package reproduces the session.
//!
//! A world created with [`WorldOptions::record`](crate::WorldOptions::record)
//! records every [`Input`](crate::input::Input) that it is given, so a host
//! cannot forget one. The bytes accumulate in the world until
//! [`World::take_recording`](crate::World::take_recording); the host decides
//! where they go. [`Replay`] applies the same inputs and compares fingerprints
//! of the state ([`World::state_hash`](crate::World::state_hash)).
//!
//! What is not in a recording has no influence: scripts have no clock but the
//! world's, their randomness comes from the seed, and no order in this crate
//! depends on a hash map. Three things are not reproducible. A script that was
//! stopped by its time or memory limit was stopped by the clock of that
//! machine, and the recording marks where ([`Record::Cut`]). A script that
//! iterates a table whose keys are tables, functions or threads does so in the
//! order of their addresses, as in any Lua. And a script that writes `__mode`
//! into a metatable that is in use observes garbage collection; `setmetatable`
//! removes it, so the usual way to write it is harmless.

mod hash;
mod record;
mod recorder;
mod rerun;

pub use record::{Ending, Record, RecordReader, RecordingError, RecordingHeader, ScriptLimits};
pub(crate) use recorder::Recorder;
pub use recorder::{RecordOptions, this_build};
pub use rerun::{Difference, Replay, ReplayError, ReplayReport, replay};
