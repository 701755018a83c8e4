//! Handles messages of admitted players.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;

use frolic_protocol::message::{BINARY_VERSION, PROTOCOL_VERSION};
use frolic_protocol::script::{MANIFEST_PATH, RunContext};
use frolic_protocol::{ClientMessage, ServerMessage, filter};

use frolic_world::{ChatRefusal, PlayerNumber};

use super::{Host, Introduction};
use crate::connection::CloseCode;
use crate::incoming::{ConnectionId, Encoding};
use crate::metrics::KickCause;
use crate::player_sessions::{Held, PlayerSession, Turn};
use crate::session::{Reported, Session, View};

/// Scripts that may be requested at once.
const SCRIPT_PATHS_MAX: usize = 1024;
/// Characters of a requested path that an error repeats.
const PATH_CHARS_MAX: usize = 80;
/// Inputs that may find the queue full before the sender is warned, and kicked.
const REFUSED_INPUTS_WARN: usize = 240;
const REFUSED_INPUTS_KICK: usize = 1200;

pub(super) type Outcome = Result<(), (&'static str, String)>;

impl Host {
    /// Handles one message; JSON commands are acknowledged or refused. `echo` is
    /// what their answer repeats. The caller must settle the session afterwards.
    pub(super) fn message(
        &mut self,
        connection_id: ConnectionId,
        seq: Option<u32>,
        message: ClientMessage,
        echo: Option<Box<serde_json::Value>>,
    ) {
        if let ClientMessage::Handshake {
            version,
            ticket,
            resume_token,
            name,
            received,
        } = message
        {
            let encoding = self
                .sessions
                .get_quietly(connection_id)
                .map(|session| session.encoding);
            let spoken = match encoding {
                Some(Encoding::Json) => PROTOCOL_VERSION,
                _ => BINARY_VERSION,
            };
            if version == spoken {
                let said = Introduction {
                    ticket,
                    resume_token,
                    name,
                    received,
                };
                self.handshake(connection_id, seq, said);
            } else if let Some(session) = self.sessions.get_mut(connection_id) {
                let message = format!(
                    "this server speaks version {spoken}, the client {version}; reload the page or update the client"
                );
                session.answer(seq, Err(("unsupported_version", message.clone())));
                session.kick(KickCause::Refused, &message);
            }
            return;
        }
        let Some(session) = self.sessions.get_quietly(connection_id) else {
            return;
        };
        let Some(player) = &mut session.player else {
            let advice = "send session.handshake with a ticket first".to_owned();
            session.answer(seq, Err(("no_handshake", advice)));
            return;
        };
        let number = player.number;
        if !std::mem::replace(&mut player.has_received, true)
            && let Some(player_session) = self.player_sessions.get_mut(number)
        {
            player_session.note_received();
        }
        let outcome: Outcome = match message {
            ClientMessage::Handshake { .. } => Ok(()),
            counted if counted.is_counted() => {
                let message = self.labelled(number, counted, echo);
                let held = Held {
                    connection_id,
                    number: None,
                    seq,
                    message,
                };
                let Some(outcome) = self.counted(number, held) else {
                    return;
                };
                outcome
            }
            ClientMessage::Inputs { ack, shown, inputs } => {
                let refused = self.world.receive_inputs(number, &inputs);
                if let Some(shown) = shown {
                    self.world.note_shown(number, shown.tick, shown.fraction);
                }
                if let Some(ack) = ack
                    && let Some(player) = &mut session.player
                    && let View::Binary(view) = &mut player.view
                {
                    let lost = view.acknowledge(ack);
                    self.metrics.packets_lost.fetch_add(lost as u64, Relaxed);
                }
                // A server that drops ticks has capacity for fewer inputs than an
                // honest client sends: that is not the client's fault.
                let to_blame = if self.pressure == 0 { refused } else { 0 };
                let is_json = session.encoding == Encoding::Json;
                note_refused(session, to_blame).and_then(|()| dropped_inputs(is_json, refused))
            }
            ClientMessage::SnapshotAck { tick } => {
                if let Some(player) = &mut session.player
                    && let View::Json(view) = &mut player.view
                {
                    view.acknowledge(tick);
                    let confirmed = player.counted.before(tick);
                    if let Some((confirmed, player_session)) =
                        confirmed.zip(self.player_sessions.get_mut(number))
                    {
                        player_session.confirm(confirmed);
                    }
                }
                Ok(())
            }
            ClientMessage::Ping { t, received } => {
                let player_session = self.player_sessions.get_mut(number);
                let persists = self.settings.persistence.persists();
                let pong = ServerMessage::Pong {
                    t,
                    server_time: self.started.elapsed().as_secs_f64() * 1000.0,
                    tick: self.world.tick(),
                    received: player_session.map_or(0, |player_session| {
                        player_session.log.confirm(received);
                        player_session.counts |= received > 0;
                        // The client discards what is acknowledged here, so it must
                        // be persisted first, where anything is.
                        if persists {
                            player_session.stored_received
                        } else {
                            player_session.received
                        }
                    }),
                };
                session.send_echoing(&pong, echo.as_deref());
                Ok(())
            }
            ClientMessage::Report(report) => {
                let (tick, tick_hz) = (self.world.tick(), self.world.tick_hz());
                if let Some(player) = &mut session.player
                    // One per second, with tolerance for one that arrives a little
                    // early.
                    && tick.saturating_sub(player.reported.tick) >= tick_hz / 2
                {
                    let before = player.reported.corrections;
                    let new = report.corrections.saturating_sub(before);
                    player.reported = Reported {
                        tick,
                        corrections: report.corrections,
                    };
                    self.metrics.client_reported(&report, new);
                }
                Ok(())
            }
            ClientMessage::AskFigures => {
                let figures = self.last_second.figures().clone();
                session.send(&ServerMessage::Figures(figures));
                Ok(())
            }
            ClientMessage::Leave => {
                session.answer(seq, Ok(()));
                session.player = None;
                session.kick(KickCause::Left, "goodbye");
                self.part(number);
                return;
            }
            ClientMessage::ScriptRequest { paths, from } => {
                self.send_scripts(connection_id, &paths, from)
            }
            ClientMessage::ScriptVerify {
                path,
                hash,
                success,
            } => self.script_verified(connection_id, path, &hash, success),
            ClientMessage::UnreliableEvent { name, args } => {
                // Unreliable events are not acknowledged.
                let _ = self.speak(number, None, ClientMessage::Event { name, args });
                return;
            }
            ClientMessage::Event { .. }
            | ClientMessage::Invoke { .. }
            | ClientMessage::Chat { .. } => Ok(()),
            ClientMessage::CastSpell {
                spell_id,
                revision_id,
                params,
            } => self
                .world
                .cast(number, &spell_id, revision_id.as_deref(), params)
                .map_err(|refusal| (refusal.code(), refusal.to_string())),
            ClientMessage::Hide { player_id, hidden } => self.hide(number, player_id, hidden),
            ClientMessage::Terraform(op) => {
                match self.terraform_and_answer(connection_id, seq, number, &op) {
                    Some(outcome) => outcome,
                    None => return,
                }
            }
            ClientMessage::ChunkRequest { chunk } => self.wish_chunk(connection_id, chunk),
            ClientMessage::AskScene => self.ask_scene(connection_id),
            ClientMessage::Log(log) => {
                self.take_client_log(number, log);
                Ok(())
            }
        };
        if let Some(session) = self.sessions.get_quietly(connection_id) {
            session.answer(seq, outcome);
        }
    }

    /// A call with an id of the client's own gets a number for the world.
    fn labelled(
        &mut self,
        number: PlayerNumber,
        mut message: ClientMessage,
        label: Option<Box<serde_json::Value>>,
    ) -> ClientMessage {
        if let ClientMessage::Invoke { id, .. } = &mut message
            && let Some(label) = label
            && let Some(player_session) = self.player_sessions.get_mut(number)
        {
            *id = player_session.calls.label(label);
        }
        message
    }

    /// Counts an event, a call or a chat message, and handles it now or, when many
    /// arrive at once, in a later tick. None: it is answered then.
    fn counted(&mut self, number: PlayerNumber, mut held: Held) -> Option<Outcome> {
        let player_session = self.player_sessions.get_mut(number)?;
        player_session.received = player_session.received.wrapping_add(1);
        held.number = Some(player_session.received);
        let which = held.number;
        match self.player_sessions.take_turn(number, held)? {
            Turn::Now(message) => Some(self.speak(number, which, message)),
            Turn::Later => None,
            Turn::Never => Some(taken(false)),
        }
    }

    /// A message that was dropped counts as received, or the client would send it
    /// again after a lost connection.
    pub(super) fn count_dropped(&mut self, connection_id: ConnectionId) {
        let player = self
            .sessions
            .get(connection_id)
            .and_then(|s| s.player.as_ref());
        let player_session = player.and_then(|player| self.player_sessions.get_mut(player.number));
        if let Some(player_session) = player_session {
            player_session.received = player_session.received.wrapping_add(1);
        }
    }

    /// Handles messages held since an earlier tick, also of players who have
    /// disconnected since.
    pub(super) fn take_held(&mut self) {
        let mut waiting = Vec::new();
        self.player_sessions.begin_tick(&mut waiting);
        for number in waiting {
            while let Some(held) = self
                .player_sessions
                .get_mut(number)
                .and_then(PlayerSession::next_held)
            {
                let outcome = self.speak(number, held.number, held.message);
                if let Some(session) = self.sessions.get_mut(held.connection_id) {
                    session.answer(held.seq, outcome);
                }
            }
        }
    }

    /// Passes a message to the world; `which` is its number among the reliable
    /// messages.
    fn speak(
        &mut self,
        number: PlayerNumber,
        which: Option<u32>,
        message: ClientMessage,
    ) -> Outcome {
        match message {
            ClientMessage::Event { name, args } => {
                check_name(&name)?;
                taken(self.world.receive_event(number, name, args))
            }
            ClientMessage::Invoke { id, name, args } => {
                check_name(&name)?;
                taken(self.world.receive_invoke(number, id, name, args))?;
                if let Some(player_session) = self.player_sessions.get_mut(number) {
                    player_session.calls.taken(id, which);
                }
                Ok(())
            }
            ClientMessage::Chat { text } => self.chat(number, &text),
            _ => Ok(()),
        }
    }

    fn send_scripts(
        &mut self,
        connection_id: ConnectionId,
        paths: &[String],
        from: u32,
    ) -> Outcome {
        if paths.len() > SCRIPT_PATHS_MAX {
            return Err((
                "too_many",
                format!("ask for at most {SCRIPT_PATHS_MAX} scripts"),
            ));
        }
        let Some(session) = self.sessions.get_mut(connection_id) else {
            return Ok(());
        };
        // Repeated requests for the same script count once.
        let mut sent = BTreeSet::new();
        for path in paths.iter().filter(|path| sent.insert(path.as_str())) {
            let Some(unit) = self.client_scripts.unit(path) else {
                return Err(no_such_script(path));
            };
            if session.is_clogged() {
                let advice = "too much waits for you already; read it and ask again".into();
                return Err(("slow_reader", advice));
            }
            match session.encoding {
                Encoding::Binary => {
                    for packet in unit.packets(from) {
                        session.send_packet(packet);
                    }
                }
                Encoding::Json => unit.messages(from).for_each(|piece| session.send(&piece)),
            }
        }
        Ok(())
    }

    /// Scripts run in the order of the manifest, each once all before it are there;
    /// or all at once, when a client reports that it has them all.
    fn script_verified(
        &mut self,
        connection_id: ConnectionId,
        path: String,
        hash: &str,
        success: bool,
    ) -> Outcome {
        let Some(session) = self.sessions.get_mut(connection_id) else {
            return Ok(());
        };
        let all = self.client_scripts.entries();
        if path != MANIFEST_PATH && !all.iter().any(|entry| entry.path == path) {
            return Err(no_such_script(&path));
        }
        if !success {
            // Once: repeated reports must not fill the log.
            if let Some(player) = &mut session.player
                && !std::mem::replace(&mut player.verify_failed, true)
            {
                tracing::warn!(%path, "a client could not verify a script");
            }
            return Ok(());
        }
        if path == MANIFEST_PATH {
            // For a manifest that has changed meanwhile: the next one is on its
            // way.
            if hash == self.client_scripts.hash() {
                let run_context = RunContext::Client;
                session.send(&ServerMessage::ExecuteScript { path, run_context });
            }
            return Ok(());
        }
        let scripts: Vec<_> = all.iter().filter(|entry| !entry.lazy).collect();
        let mut due = Vec::new();
        if let Some(player) = &mut session.player {
            player.verified.insert(path);
            while let Some(entry) = scripts.get(player.executed)
                && player.verified.contains(&entry.path)
            {
                player.executed += 1;
                due.push((entry.path.clone(), entry.run_context));
            }
        }
        for (path, run_context) in due {
            debug_assert_ne!(run_context, RunContext::Server);
            session.send(&ServerMessage::ExecuteScript { path, run_context });
        }
        Ok(())
    }

    fn chat(&mut self, number: PlayerNumber, text: &str) -> Outcome {
        let text = filter::plain_chat(text);
        let text = match self.settings.filter_chat {
            true => filter::mask_chat(&text),
            false => text,
        };
        self.world.receive_chat(number, &text).map_err(|refusal| {
            let code = match refusal {
                ChatRefusal::Length => "bad_chat",
                ChatRefusal::TooFast => "chat_too_fast",
                ChatRefusal::NotHere => "no_handshake",
            };
            (code, refusal.to_string())
        })
    }
}

/// Inputs beyond one per tick are refused; a client that continues is warned, then
/// kicked.
fn note_refused(session: &mut Session, refused: usize) -> Outcome {
    let Some(player) = &mut session.player else {
        return Ok(());
    };
    let before = player.refused_inputs;
    player.refused_inputs += refused;
    if refused == 0 {
        player.refused_inputs = before.saturating_sub(1);
    }
    let crossed = |limit: usize| before < limit && player.refused_inputs >= limit;
    if crossed(REFUSED_INPUTS_KICK) {
        let reason = "too many inputs: send one per tick";
        session.kick_with(CloseCode::Policy, KickCause::Flood, reason);
        return Ok(());
    }
    if crossed(REFUSED_INPUTS_WARN) {
        return Err(("flood", "too many inputs; send one per tick".into()));
    }
    Ok(())
}

/// JSON clients are notified of every batch that was not accepted completely.
fn dropped_inputs(is_json: bool, refused: usize) -> Outcome {
    if is_json && refused > 0 {
        let message = format!("{refused} inputs were dropped: too many wait already");
        return Err(("inputs_dropped", message));
    }
    Ok(())
}

fn taken(taken: bool) -> Outcome {
    if taken {
        return Ok(());
    }
    let message = "too many events at once; spread them over more ticks".into();
    Err(("events_dropped", message))
}

/// The path is untrusted: only as much is repeated as identifies it.
fn no_such_script(path: &str) -> (&'static str, String) {
    let path: String = path.chars().take(PATH_CHARS_MAX).collect();
    ("no_such_script", format!("{path} is not in the manifest"))
}

fn check_name(name: &str) -> Outcome {
    frolic_scene::check_name(name).map_err(|why| ("bad_name", format!("an event's name {why}")))
}
