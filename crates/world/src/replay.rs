//! Replay: everything that enters a world from outside, so that the same
//! package gives the same session again.
//!
//! A world made with [`WorldOptions::record`](crate::WorldOptions::record)
//! writes down what is done to it by itself: each public method that changes
//! it notes its call, so a host cannot forget one. The bytes gather in the
//! world until [`World::take_recording`](crate::World::take_recording); where
//! they go is the host's business. [`Replay`] does it all again and compares
//! fingerprints of the state ([`World::state_hash`](crate::World::state_hash)).
//!
//! What is not in a recording decides nothing: scripts have no clock but the
//! world's, their randomness comes from the seed, and no order in this crate
//! depends on a hash map. Three things do not repeat. A script that was stopped
//! for its use of time or memory was stopped by the clock of that machine, and
//! the recording says where ([`Record::Cut`]). A script that goes through a table
//! whose keys are tables, functions or threads does so in the order of their
//! addresses, as in any Lua. And a script that writes `__mode` into a metatable
//! that is in use sees what the collector took; `setmetatable` takes it out, so
//! that the usual way to write it is harmless.

mod hash;
mod record;
mod recorder;
mod rerun;

pub(crate) use hash::Fingerprint;
pub use record::{Ending, Record, RecordReader, RecordingError, RecordingHeader, ScriptLimits};
pub(crate) use recorder::Recorder;
pub use recorder::{RecordOptions, this_build};
pub use rerun::{Difference, Replay, ReplayError, ReplayReport, replay};
