//! What a join says while it waits.

use serde::{Deserialize, Serialize};

/// Why a join waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
#[serde(rename_all = "snake_case")]
pub enum JoinStage {
    /// A world is being looked for.
    Looking,
    /// The world's server starts.
    Starting,
    /// The world failed and starts again after a pause.
    Restarting,
    /// The world closes; it starts again once it has.
    Closing,
    /// The world is full.
    Queued,
    /// The machine runs as many worlds as it can.
    MachineFull,
}

/// Answer of `POST /join` with `Prefer: respond-async`, and of
/// `GET /join/{id}`, while there is no place yet.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct JoinProgress {
    /// For `GET /join/{id}`.
    pub join_id: String,
    /// Why it waits.
    pub stage: JoinStage,
    /// The same for people.
    pub message: String,
    /// Place in the queue, from 1, where there is a queue.
    pub position: Option<u32>,
    /// People in that queue.
    pub waiting: Option<u32>,
    /// Seconds that it may still take, where that can be said.
    pub expected_s: Option<f32>,
    /// Seconds since the join was asked for.
    pub waited_s: f32,
    /// Counts what was said; `GET /join/{id}?after=` answers when there is more.
    pub step: u32,
}
