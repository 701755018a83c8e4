//! Chat messages of scripts to players.

use frolic_protocol::ServerMessage;
use frolic_script::{EngineError, PlayerId, Recipient};

use crate::state::{Outgoing, WorldState};

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
