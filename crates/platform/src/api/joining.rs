//! Progress of a waiting join.

use serde::{Deserialize, Serialize};

/// Why a join waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JoinStage {
    /// Looking for a world.
    Looking,
    /// The world's server is starting.
    Starting,
    /// The world's server failed and restarts after a pause.
    Restarting,
    /// The world is closing and restarts afterwards.
    Closing,
    /// The world is full; the join is in its queue.
    Queued,
    /// The maximum number of worlds is running.
    MachineFull,
}

/// Response of `POST /join` with `Prefer: respond-async`, and of `GET /join/{id}`,
/// while the join waits.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct JoinProgress {
    /// For `GET /join/{id}`.
    pub join_id: String,
    /// Why it waits.
    pub stage: JoinStage,
    /// The stage as text for people.
    pub message: String,
    /// Position in the queue, from 1, if there is a queue.
    #[schema(required)]
    pub position: Option<u32>,
    /// Number of players in that queue.
    #[schema(required)]
    pub waiting: Option<u32>,
    /// Estimated remaining seconds, if known.
    #[schema(required)]
    pub expected_s: Option<f32>,
    /// Seconds since the join was requested.
    pub waited_s: f32,
    /// Progress counter; `GET /join/{id}?after=` waits until it exceeds `after`.
    pub step: u32,
}
