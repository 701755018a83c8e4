//! Chat, blocking and invitations.

use frolic_fleet_api::filter;
use frolic_fleet_api::process::BLOCKS_MAX;
use frolic_protocol::avatar::AvatarLooks;
use frolic_world::input::{self, ChatRefusal};
use frolic_world::{PlayerNumber, World};

use super::message::Outcome;
use crate::admission::Identity;
use crate::player_sessions::{PlayerSession, PlayerSessions};
use crate::social::BlockListClient;

/// Longest id of a player.
const ID_BYTES_MAX: usize = 128;

/// What players have to do with each other.
pub(super) struct Social {
    /// Fetches the block lists of players.
    blocks: BlockListClient,
    /// Whether chat is filtered before any player reads it.
    filter_chat: bool,
    /// Players who joined by invitation since the last tick, and who invited them.
    arrivals: Vec<(PlayerNumber, String)>,
}

impl Social {
    /// No players yet.
    pub fn new(blocks: BlockListClient, filter_chat: bool) -> Self {
        Self {
            blocks,
            filter_chat,
            arrivals: Vec::new(),
        }
    }

    /// A player has joined, and not resumed.
    pub fn joined(&mut self, number: PlayerNumber, identity: &Identity) {
        self.blocks.ask(&identity.player_id);
        if let Some(friend) = &identity.beside {
            self.arrivals.push((number, friend.clone()));
        }
    }

    /// Places players who joined since the last tick beside their friends. After
    /// the step, so that scripts that place newcomers have done so.
    pub fn place_arrivals(&mut self, world: &mut World, players: &PlayerSessions) {
        for (number, friend_id) in self.arrivals.drain(..) {
            if let Some(friend) = players.of_player(&friend_id) {
                let placed = world.apply(input::Beside {
                    player: number,
                    friend,
                });
                tracing::debug!(number, friend, placed, "a player came by invitation");
            }
        }
    }

    /// Passes a chat message to the world.
    pub fn chat(&self, world: &mut World, number: PlayerNumber, text: &str) -> Outcome {
        let text = filter::plain_chat(text);
        let text = if self.filter_chat {
            filter::mask_chat(&text)
        } else {
            text
        };
        let player = number;
        world
            .apply(input::Chat { player, text })
            .map_err(|refusal| {
                let code = match refusal {
                    ChatRefusal::Length => "bad_chat",
                    ChatRefusal::TooFast => "chat_too_fast",
                    ChatRefusal::NotHere => "no_handshake",
                };
                (code, refusal.to_string())
            })
    }
}

/// Applies the appearance of a player who has just joined, or came back with
/// another one.
pub(super) fn dress(world: &mut World, number: PlayerNumber, identity: &Identity) {
    if let Some(character) = &identity.character {
        let looks = AvatarLooks::from_json(&character.looks);
        world.apply(input::Dress {
            player: number,
            looks,
        });
    }
}

/// Hides the chat between two players, or shows it again.
pub(super) fn hide(player_session: &mut PlayerSession, player_id: String, hidden: bool) -> Outcome {
    if !hidden {
        player_session.blocked.remove(&player_id);
        return Ok(());
    }
    if player_id.is_empty()
        || player_id.len() > ID_BYTES_MAX
        || player_id == player_session.identity.player_id
    {
        let advice = "give the id of another player".to_owned();
        return Err(("bad_player", advice));
    }
    if player_session.blocked.len() >= BLOCKS_MAX {
        let advice = format!("at most {BLOCKS_MAX} players can be hidden; show some again");
        return Err(("too_many", advice));
    }
    player_session.blocked.insert(player_id);
    Ok(())
}
