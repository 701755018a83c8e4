//! Chat: rate-limited, recorded, and passed to scripts before other players.

use std::borrow::Cow;

use frolic_protocol::ServerMessage;
use frolic_script::{EngineError, PlayerId, Recipient, ScriptEvent};

use super::World;
use crate::player::PlayerNumber;
use crate::replay::Record;
use crate::state::{Outgoing, WorldState};

/// Longest message, in bytes.
const LINE_BYTES_MAX: usize = 300;
/// Messages in a burst.
const BURST: u32 = 6;
/// Messages per two seconds after that.
const PER_TWO_SECONDS: u32 = 3;

/// Why a message was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChatRefusal {
    /// Empty, or too long.
    #[error("A chat message has 1 to {LINE_BYTES_MAX} bytes.")]
    Length,
    /// Too many in a short time.
    #[error("You're chatting too fast. Wait a moment.")]
    TooFast,
    /// The player has left.
    #[error("The player is no longer in this world.")]
    NotHere,
}

impl World {
    /// Receives a player's chat message; scripts may change or suppress it, and
    /// in the next step the result is sent to all players.
    ///
    /// # Errors
    /// If it is empty or too long, or the rate limit is exceeded.
    pub fn receive_chat(&mut self, player: PlayerNumber, text: &str) -> Result<(), ChatRefusal> {
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        let text = text.trim();
        if text.is_empty() || text.len() > LINE_BYTES_MAX {
            return Err(ChatRefusal::Length);
        }
        let (tick, tick_hz) = (self.tick(), self.tick_hz());
        let each = (tick_hz * 2 / PER_TWO_SECONDS).max(1);
        let mut known = false;
        let taken = self.with_player(player, |player| {
            known = true;
            let free = player.chat_used_until.max(tick);
            let room = free - tick <= each * (BURST - 1);
            if room {
                player.chat_used_until = free + each;
            }
            room
        });
        match (known, taken) {
            (false, _) => return Err(ChatRefusal::NotHere),
            (_, false) => return Err(ChatRefusal::TooFast),
            _ => {}
        }
        self.note(&Record::Chat {
            player,
            text: Cow::Borrowed(text),
        });
        self.inbox.push(ScriptEvent::Chat {
            player,
            text: text.to_owned(),
        });
        Ok(())
    }
}

impl WorldState {
    /// Sends a message to one player or to all.
    pub(crate) fn write_chat(
        &mut self,
        to: Recipient,
        from: Option<PlayerId>,
        text: &str,
    ) -> Result<(), EngineError> {
        let name = |number: PlayerId| {
            let player = self.players.get(&number);
            player.ok_or(EngineError::NoSuchPlayer(number))
        };
        let (from, player_id) = match from {
            Some(number) => {
                let player = name(number)?;
                (player.name.clone(), player.id.clone())
            }
            None => (String::new(), String::new()),
        };
        let to = match to {
            Recipient::All => None,
            Recipient::One(number) => Some(name(number)?.number),
        };
        self.outbox.push(Outgoing {
            to,
            message: ServerMessage::Chat {
                from,
                text: text.to_owned(),
                player_id,
            },
            reliable: true,
        });
        Ok(())
    }
}
