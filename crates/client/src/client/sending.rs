//! Outgoing messages: what a server would reject is refused here, where a script
//! can still get an error, and the rest is queued.

use frolic_protocol::client_log::ClientLog;
use frolic_protocol::message::ConnectionReport;
use frolic_protocol::packet::{self, CLIENT_MESSAGE_BYTES_MAX, DATAGRAM_BYTES_MAX};
use frolic_protocol::{Args, ClientMessage, ValueLimits};

use super::Client;
use crate::event::ClientEvent;
use crate::outbox::fits;

/// Characters of a name that an error repeats.
const NAME_CHARS_SHOWN: usize = 64;

impl Client {
    /// Queues any message. A reliable one is stored until the server has it, across
    /// connections. One that no server accepts is refused with an error event: it
    /// would close the connection, and again after every reconnect.
    pub fn send(&mut self, message: &ClientMessage) {
        let packet = packet::single(message);
        if let Err((code, text)) = check(message, packet.len()) {
            self.refuse(message, code, text);
        } else if !message.is_counted() {
            self.write(packet, message.is_unreliable());
        } else if self.channel.say(message.clone(), packet.len()) {
            self.talk_on();
        } else {
            let text = "too much waits for the server; an event was dropped".to_owned();
            self.refuse(message, "events_dropped", text);
        }
    }

    fn refuse(&mut self, message: &ClientMessage, code: &str, text: String) {
        if let ClientMessage::Invoke { id, .. } = message {
            // The caller waits for an answer, and no other will come.
            self.emit(ClientEvent::InvokeResult {
                id: *id,
                result: Err(text.clone()),
            });
        }
        self.trouble(code, text);
    }

    /// Writes the reliable messages that may be sent now.
    pub(super) fn talk_on(&mut self) {
        while let Some(message) = self.channel.next() {
            let packet = packet::single(message);
            self.write(packet, false);
        }
    }

    fn write(&mut self, packet: Vec<u8>, unreliable: bool) {
        self.traffic.sent.add(packet.len());
        if unreliable {
            self.datagrams.push_back(packet);
        } else {
            self.reliable.push(packet);
        }
    }

    /// Queues `Network.FireServer`.
    pub fn fire_server(&mut self, name: String, args: Args) {
        self.send(&ClientMessage::Event { name, args });
    }

    /// Queues output and errors of scripts, for the game's creator.
    pub fn send_log(&mut self, log: ClientLog) {
        self.send(&ClientMessage::Log(log));
    }

    /// Requests the server's tick timings, for a debug overlay.
    pub fn ask_figures(&mut self) {
        self.send(&ClientMessage::AskFigures);
    }

    /// Reports the overlay's connection statistics to the operator of the world.
    pub(super) fn report(&mut self, now_ms: f64) {
        let stats = self.stats(now_ms);
        self.send(&ClientMessage::Report(ConnectionReport {
            input_seq: stats.input_seq,
            pending_inputs: stats.pending_inputs as u32,
            corrections: stats.corrections,
            snapshot_age_ms: stats.snapshot_age_ms.unwrap_or_default() as f32,
            jitter_ms: stats.jitter_ms as f32,
        }));
    }

    /// Queues a cast of a spell; `params` is one value.
    pub fn cast_spell(&mut self, spell_id: String, params: Args) {
        self.send(&ClientMessage::CastSpell {
            spell_id,
            revision_id: None,
            params,
        });
    }

    /// Queues `Network.FireServerUnreliable`: one datagram, which is dropped here
    /// beyond the server's rate limit. What does not fit a datagram is sent
    /// reliably.
    pub fn fire_server_unreliable(&mut self, name: String, args: Args) {
        let message = ClientMessage::UnreliableEvent { name, args };
        if packet::single(&message).len() <= DATAGRAM_BYTES_MAX {
            if self.channel.spend() {
                self.send(&message);
            }
        } else if let ClientMessage::UnreliableEvent { name, args } = message {
            self.fire_server(name, args);
        }
    }

    /// Bytes for the reliable stream, or one WebSocket message. There may be more:
    /// call it until it returns none.
    pub fn take_reliable(&mut self) -> Option<Vec<u8>> {
        self.reliable.take()
    }

    /// One datagram, or one WebSocket message.
    pub fn take_datagram(&mut self) -> Option<Vec<u8>> {
        self.datagrams.pop_front()
    }

    /// For hosts with only a WebSocket: its next message, with as much of what is
    /// queued, reliable or not, as fits. There may be more: call it until it
    /// returns none.
    pub fn take_packet(&mut self) -> Option<Vec<u8>> {
        let mut packet = self.reliable.take().unwrap_or_default();
        while let Some(datagram) = self.datagrams.front()
            && fits(&packet, datagram)
        {
            packet.extend_from_slice(datagram);
            self.datagrams.pop_front();
        }
        (!packet.is_empty()).then_some(packet)
    }
}

/// Whether a server accepts this message, whose packet has `bytes` bytes. A
/// WebSocket is stricter: there the length prefix counts as well.
fn check(message: &ClientMessage, bytes: usize) -> Result<(), (&'static str, String)> {
    if let Some(args) = args_of(message)
        && let Err(cause) = args.check(&ValueLimits::default())
    {
        return Err(("bad_args", cause.to_string()));
    }
    if bytes <= CLIENT_MESSAGE_BYTES_MAX {
        return Ok(());
    }
    // The name itself may be too long.
    let brief = |name: &str| name.chars().take(NAME_CHARS_SHOWN).collect::<String>();
    let (what, code) = match message {
        ClientMessage::Event { name, .. } => {
            (format!("the event {}", brief(name)), "event_too_large")
        }
        ClientMessage::Invoke { name, .. } => {
            (format!("the call of {}", brief(name)), "event_too_large")
        }
        ClientMessage::CastSpell { .. } => ("a spell's parameters".to_owned(), "spell_too_large"),
        ClientMessage::Chat { .. } => ("the text".to_owned(), "bad_chat"),
        _ => ("a message".to_owned(), "message_too_large"),
    };
    Err((
        code,
        format!(
            "{what} takes {bytes} bytes, {CLIENT_MESSAGE_BYTES_MAX} are the most at once; send less, or in parts"
        ),
    ))
}

fn args_of(message: &ClientMessage) -> Option<&Args> {
    match message {
        ClientMessage::Event { args, .. }
        | ClientMessage::Invoke { args, .. }
        | ClientMessage::UnreliableEvent { args, .. }
        | ClientMessage::CastSpell { params: args, .. } => Some(args),
        _ => None,
    }
}
