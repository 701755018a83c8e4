//! Whom players have blocked: asked of the platform when they come in, without
//! the tick ever waiting.

use std::collections::BTreeSet;

use frolic_protocol::fleet::BLOCKS_MAX;
use tokio::sync::mpsc;

use crate::control_plane::ControlPlane;
use crate::link::Inbound;
use crate::retry::{self, Failure};

/// Players whose lists may wait to be asked for: more than come in at once.
const QUEUE_MAX: usize = 1024;
/// Tries per player, after the first.
const TRIES: usize = 4;

/// Where to ask; none where there is no platform, and nobody blocked anybody.
#[derive(Clone, Default)]
pub struct BlockListClient(Option<mpsc::Sender<String>>);

impl BlockListClient {
    /// Asks `control_plane`; answers come through `inbox`. The task ends when
    /// the door is dropped.
    pub fn platform(control_plane: ControlPlane, inbox: mpsc::Sender<Inbound>) -> Self {
        let (ask, asked) = mpsc::channel(QUEUE_MAX);
        tokio::spawn(answer(control_plane, asked, inbox));
        Self(Some(ask))
    }

    /// Asks whom a player has blocked.
    pub fn ask(&self, player_id: &str) {
        if let Some(ask) = &self.0
            && ask.try_send(player_id.to_owned()).is_err()
        {
            tracing::warn!(
                player_id,
                "too many lists of blocked players are waited for"
            );
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
