//! What a client has for its host: events, and messages to send. What a server would
//! reject is refused here, where a script can still get an error, and the rest is
//! queued.

use std::collections::VecDeque;

use frolic_protocol::packet::{self, CLIENT_MESSAGE_BYTES_MAX, DATAGRAM_BYTES_MAX};
use frolic_protocol::{Args, ClientMessage, ValueLimits};

use crate::event::ClientEvent;
use crate::outbox::{Outbox, fits};
use crate::reliable::ReliableChannel;
use crate::stats::Meter;

/// With this many unhandled events nothing more is received.
pub(crate) const EVENTS_MAX: usize = 4096;
/// With this many, transient events are dropped.
const EVENTS_IN_PASSING_MAX: usize = 1024;
/// Characters of a name that an error repeats.
const NAME_CHARS_SHOWN: usize = 64;

#[derive(Default)]
pub(crate) struct Output {
    events: VecDeque<ClientEvent>,
    pub channel: ReliableChannel,
    reliable: Outbox,
    datagrams: VecDeque<Vec<u8>>,
    pub sent: Meter,
}

impl Output {
    /// Resumes the session of a connection that is lost.
    pub fn take_over(&mut self, old: &mut Output) {
        self.channel = std::mem::take(&mut old.channel);
        self.channel.hang_up();
        // Counted as received, so they are not sent again.
        self.events.extend(old.events.drain(..).filter(is_counted));
    }

    /// Whether more may be received.
    pub fn has_room(&self) -> bool {
        self.events.len() < EVENTS_MAX
    }

    /// Queues an event that must reach the host: it is never dropped.
    pub fn emit(&mut self, event: ClientEvent) {
        self.events.push_back(event);
    }

    /// Queues a transient event, which is dropped when the host is behind.
    pub fn mention(&mut self, event: ClientEvent) {
        if self.events.len() < EVENTS_IN_PASSING_MAX {
            self.emit(event);
        }
    }

    /// Queues an error, which is dropped when the host is far behind.
    pub fn trouble(&mut self, code: &str, message: String) {
        if self.has_room() {
            self.emit(ClientEvent::Error {
                code: code.to_owned(),
                message,
            });
        }
    }

    pub fn take_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
    }

    /// Queues any message. A reliable one is stored until the server has it, across
    /// connections.
    pub fn send(&mut self, message: &ClientMessage) {
        let packet = packet::single(message);
        if let Err((code, text)) = check(message, packet.len()) {
            self.refuse(message, code, text);
        } else if !message.is_counted() {
            self.write(packet, message.is_unreliable());
        } else if self.channel.say(message.clone(), packet.len()) {
            self.flush();
        } else {
            let text = "too much waits for the server; an event was dropped".to_owned();
            self.refuse(message, "events_dropped", text);
        }
    }

    /// Queues an event as one datagram, which is dropped beyond the server's rate
    /// limit. What does not fit a datagram is sent reliably.
    pub fn send_unreliable(&mut self, name: String, args: Args) {
        let message = ClientMessage::UnreliableEvent { name, args };
        if packet::single(&message).len() <= DATAGRAM_BYTES_MAX {
            if self.channel.spend() {
                self.send(&message);
            }
        } else if let ClientMessage::UnreliableEvent { name, args } = message {
            self.send(&ClientMessage::Event { name, args });
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
    pub fn flush(&mut self) {
        while let Some(message) = self.channel.next() {
            let packet = packet::single(message);
            self.write(packet, false);
        }
    }

    fn write(&mut self, packet: Vec<u8>, unreliable: bool) {
        self.sent.add(packet.len());
        if unreliable {
            self.datagrams.push_back(packet);
        } else {
            self.reliable.push(packet);
        }
    }

    pub fn take_reliable(&mut self) -> Option<Vec<u8>> {
        self.reliable.take()
    }

    pub fn take_datagram(&mut self) -> Option<Vec<u8>> {
        self.datagrams.pop_front()
    }

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

/// Whether an event comes from a reliable message, which is sent only once.
fn is_counted(event: &ClientEvent) -> bool {
    matches!(
        event,
        ClientEvent::Remote { .. } | ClientEvent::InvokeResult { .. } | ClientEvent::Chat { .. }
    )
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
