//! Block lists of players: fetched from the platform when they join, without
//! blocking the tick.

use std::collections::BTreeSet;

use frolic_fleet_api::process::BLOCKS_MAX;
use tokio::sync::mpsc;

use crate::control_plane::ControlPlane;
use crate::inbox::Inbound;
use crate::retry::{self, Failure};

/// Capacity of the request queue: more players than join at once.
const QUEUE_MAX: usize = 1024;
/// Retries per player, after the first attempt.
const TRIES: usize = 4;

/// The request queue; none without a platform, where no player has blocked another.
#[derive(Clone, Default)]
pub struct BlockListClient(Option<mpsc::Sender<String>>);

impl BlockListClient {
    /// Fetches from `control_plane`; answers arrive through `inbox`. The task ends
    /// when this client is dropped.
    pub fn platform(control_plane: ControlPlane, inbox: mpsc::Sender<Inbound>) -> Self {
        let (ask, asked) = mpsc::channel(QUEUE_MAX);
        tokio::spawn(answer(control_plane, asked, inbox));
        Self(Some(ask))
    }

    /// Requests the block list of a player.
    pub fn ask(&self, player_id: &str) {
        if let Some(ask) = &self.0
            && ask.try_send(player_id.to_owned()).is_err()
        {
            tracing::warn!(player_id, "too many block lists are requested");
        }
    }
}

async fn answer(
    control_plane: ControlPlane,
    mut asked: mpsc::Receiver<String>,
    inbox: mpsc::Sender<Inbound>,
) {
    while let Some(player_id) = asked.recv().await {
        let rests = retry::for_ever().take(TRIES);
        let ask = retry::ask("the blocked players", rests, || {
            control_plane.blocks(&player_id)
        });
        let blocked = match ask.await {
            Ok(blocks) => blocks.player_ids,
            Err(Failure::Refused(_) | Failure::Unreachable) => continue,
        };
        let blocked: BTreeSet<String> = blocked.into_iter().take(BLOCKS_MAX).collect();
        let blocks = Inbound::Blocks { player_id, blocked };
        if inbox.send(blocks).await.is_err() {
            return;
        }
    }
}
