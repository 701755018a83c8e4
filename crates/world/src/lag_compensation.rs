//! Lag compensation: positions as a player saw them when they acted.
//!
//! A client shows other players in the past, by the latency of its connection
//! and a jitter buffer. A player who aims at what they see must hit it, so the
//! world stores the positions of characters and moving entities for the last
//! ticks, and [`World::as_seen_by`](crate::World::as_seen_by) queries that
//! moment instead of the present. The client reports which moment it shows
//! ([`input::Shown`](crate::input::Shown)); the report is trusted only within
//! [`REWIND_MAX_MS`], so a lie gains no more than a bad connection would. Distant entities are updated less often and drawn later
//! still, see [`crate::updates`].

mod seen;
mod target;

pub use crate::moment::REWIND_MAX_MS;
pub use seen::SeenCharacter;
pub(crate) use seen::{Ray, Seen, Viewer};
pub(crate) use target::{delay_left, extra_delay, stand_before, view_delay};
