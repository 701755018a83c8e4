//! Handles messages of admitted players.

use frolic_protocol::message::{BINARY_VERSION, ConnectionReport, PROTOCOL_VERSION};
use frolic_protocol::terrain::TerrainOp;
use frolic_protocol::{ClientMessage, ServerMessage};
use frolic_world::PlayerNumber;
use frolic_world::input::{self, Actor};

use super::commits::Requester;
use super::handshake::Introduction;
use super::{Host, social, terrain};
use crate::connection::{CloseCode, ConnectionId};
use crate::decoder::Encoding;
use crate::metrics::{KickCause, Metrics};
use crate::player_sessions::{Held, PlayerSession, Turn};
use crate::session::{Reported, Session, SessionPlayer, View};

/// Inputs that may find the queue full before the sender is warned, and kicked.
const REFUSED_INPUTS_WARN: usize = 240;
const REFUSED_INPUTS_KICK: usize = 1200;

/// What a command is answered with: an error has a code and a text.
pub(super) type Outcome = Result<(), (&'static str, String)>;

/// A message of an admitted player.
struct Request {
    connection_id: ConnectionId,
    number: PlayerNumber,
    /// Number of the JSON command, to answer it.
    seq: Option<u32>,
    /// What the answer repeats.
    echo: Option<Box<serde_json::Value>>,
}

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
        let Some(session) = self.sessions.get_quietly(connection_id) else {
            return;
        };
        if let ClientMessage::Handshake {
            version,
            ticket,
            resume_token,
            name,
            received,
        } = message
        {
            if speaks(session, seq, version) {
                let introduction = Introduction {
                    ticket,
                    resume_token,
                    name,
                    received,
                };
                self.handshake(connection_id, seq, introduction);
            }
            return;
        }
        let Some(player) = &mut session.player else {
            let advice = "send session.handshake with a ticket first".to_owned();
            session.answer(seq, Err(("no_handshake", advice)));
            return;
        };
        let number = player.number;
        if !std::mem::replace(&mut player.has_received, true)
            && let Some(player_session) = self.players.get_mut(number)
        {
            player_session.note_received();
        }
        let request = Request {
            connection_id,
            number,
            seq,
            echo,
        };
        if let Some(outcome) = self.perform(request, message)
            && let Some(session) = self.sessions.get_quietly(connection_id)
        {
            session.answer(seq, outcome);
        }
    }

    /// Does what a player asks for. None: the answer comes later, or there is none.
    fn perform(&mut self, request: Request, message: ClientMessage) -> Option<Outcome> {
        let Request {
            connection_id,
            number,
            seq,
            ..
        } = request;
        let session = self.sessions.get_quietly(connection_id)?;
        Some(match message {
            ClientMessage::Event { .. }
            | ClientMessage::Invoke { .. }
            | ClientMessage::Chat { .. } => return self.reliable(request, message),
            ClientMessage::UnreliableEvent { name, args } => {
                // Not acknowledged.
                let _ = self.pass_on(number, None, ClientMessage::Event { name, args });
                return None;
            }
            ClientMessage::Inputs { ack, shown, inputs } => {
                let refused = self.world.apply(input::Controls {
                    player: number,
                    inputs,
                });
                if let Some(shown) = shown {
                    self.world.apply(input::Shown {
                        player: number,
                        tick: shown.tick,
                        fraction: shown.fraction,
                    });
                }
                let player = session.player.as_mut()?;
                if let Some(ack) = ack
                    && let View::Binary(view) = &mut player.view
                {
                    let lost = view.acknowledge(ack) as u64;
                    let metrics = self.telemetry.metrics();
                    metrics.packets_lost.add(lost);
                }
                // A server that drops ticks has capacity for fewer inputs than an
                // honest client sends: that is not the client's fault.
                let keeps_up = self.telemetry.pressure() == 0;
                note_refused(session, if keeps_up { refused } else { 0 })
                    .and_then(|()| dropped_inputs(session.encoding, refused))
            }
            ClientMessage::SnapshotAck { tick } => {
                let player = session.player.as_mut()?;
                if let View::Json(view) = &mut player.view {
                    view.acknowledge(tick);
                    let confirmed = player.counted.before(tick);
                    if let Some((confirmed, player_session)) =
                        confirmed.zip(self.players.get_mut(number))
                    {
                        player_session.confirm(confirmed);
                    }
                }
                Ok(())
            }
            ClientMessage::Ping { t, received } => {
                let persists = self.persister.persists();
                let player_session = self.players.get_mut(number);
                let pong = ServerMessage::Pong {
                    t,
                    server_time: self.telemetry.server_time_ms(),
                    tick: self.world.tick(),
                    received: player_session.map_or(0, |player_session| {
                        player_session.acknowledge(received, persists)
                    }),
                };
                session.send_echoing(&pong, request.echo.as_deref());
                Ok(())
            }
            ClientMessage::Report(report) => {
                let now = (self.world.tick(), self.world.tick_hz());
                let player = session.player.as_mut()?;
                note_report(player, &report, now, self.telemetry.metrics());
                Ok(())
            }
            ClientMessage::AskFigures => {
                session.send(&ServerMessage::Figures(self.telemetry.figures()));
                Ok(())
            }
            ClientMessage::Reset => {
                let is_reset = self.world.apply(input::Reset { player: number });
                let text = || "your character has only just spawned".to_owned();
                is_reset.then_some(()).ok_or_else(|| ("too_soon", text()))
            }
            ClientMessage::Leave => {
                session.answer(seq, Ok(()));
                session.player = None;
                session.kick(KickCause::Left, "goodbye");
                self.remove_player(number);
                return None;
            }
            ClientMessage::ScriptRequest { paths, from } => {
                self.scripts.send(session, &paths, from)
            }
            ClientMessage::ScriptVerify {
                path,
                hash,
                success,
            } => self.scripts.verified(session, path, &hash, success),
            ClientMessage::CastSpell {
                spell_id,
                revision_id,
                params,
            } => self
                .world
                .apply(input::Cast {
                    by: Actor::Player(number),
                    spell: spell_id,
                    revision: revision_id,
                    params,
                })
                .map_err(|refusal| (refusal.code(), refusal.to_string())),
            ClientMessage::Hide { player_id, hidden } => {
                social::hide(self.players.get_mut(number)?, player_id, hidden)
            }
            ClientMessage::Terraform(op) => return self.terraform(request, op),
            ClientMessage::ChunkRequest { chunk } => {
                terrain::request_chunk(&self.world, session, chunk)
            }
            ClientMessage::AskScene => {
                let now = (self.world.tick(), self.world.tick_hz());
                self.scene.request(connection_id, session, now)
            }
            ClientMessage::Log(log) => {
                let id = &self.players.get(number)?.identity.player_id;
                let revision = self.world.revision();
                self.reports
                    .client_output(number, id, log, &self.scripts, revision);
                Ok(())
            }
            // Handled before.
            ClientMessage::Handshake { .. } => Ok(()),
        })
    }

    /// Counts an event, a call or a chat message, and handles it now or, when many
    /// arrive at once, in a later tick.
    fn reliable(&mut self, request: Request, mut message: ClientMessage) -> Option<Outcome> {
        let number = request.number;
        let player_session = self.players.get_mut(number)?;
        if let ClientMessage::Invoke { id, .. } = &mut message
            && let Some(label) = request.echo
        {
            // A call with an id of the client's own gets a number for the world.
            *id = player_session.calls.label(label);
        }
        let which = Some(player_session.count_received());
        let held = Held {
            connection_id: request.connection_id,
            number: which,
            seq: request.seq,
            message,
        };
        match self.players.take_turn(number, held)? {
            Turn::Now(message) => Some(self.pass_on(number, which, message)),
            Turn::Later => None,
            Turn::Never => Some(accepted(false)),
        }
    }

    /// A message that was dropped counts as received, or the client would send it
    /// again after a lost connection.
    pub(super) fn count_dropped(&mut self, connection_id: ConnectionId) {
        let session = self.sessions.get(connection_id);
        let player = session.and_then(|session| session.player.as_ref());
        if let Some(player_session) = player.and_then(|player| self.players.get_mut(player.number))
        {
            player_session.count_received();
        }
    }

    /// Handles messages held since an earlier tick, also of players who have
    /// disconnected since.
    pub(super) fn take_held(&mut self) {
        let mut waiting = Vec::new();
        self.players.begin_tick(&mut waiting);
        for number in waiting {
            while let Some(held) = self
                .players
                .get_mut(number)
                .and_then(PlayerSession::next_held)
            {
                let outcome = self.pass_on(number, held.number, held.message);
                if let Some(session) = self.sessions.get_mut(held.connection_id) {
                    session.answer(held.seq, outcome);
                }
            }
        }
    }

    /// Passes a message to the world; `which` is its number among the reliable
    /// messages.
    fn pass_on(
        &mut self,
        number: PlayerNumber,
        which: Option<u32>,
        message: ClientMessage,
    ) -> Outcome {
        match message {
            ClientMessage::Event { name, args } => {
                check_name(&name)?;
                let player = number;
                accepted(self.world.apply(input::Event { player, name, args }))
            }
            ClientMessage::Invoke { id, name, args } => {
                check_name(&name)?;
                let invoke = input::Invoke {
                    player: number,
                    id,
                    name,
                    args,
                };
                accepted(self.world.apply(invoke))?;
                if let Some(player_session) = self.players.get_mut(number) {
                    player_session.calls.taken(id, which);
                }
                Ok(())
            }
            ClientMessage::Chat { text } => self.social.chat(&mut self.world, number, &text),
            _ => Ok(()),
        }
    }

    /// TERRAFORM_REQUEST. A client that numbers its commands is answered when the
    /// change is persisted.
    fn terraform(&mut self, request: Request, op: TerrainOp) -> Option<Outcome> {
        let by = Actor::Player(request.number);
        let done = self.world.apply(input::Terraform { by, op });
        match (done, request.seq) {
            (Err(error), _) => Some(Err((error.code(), error.to_string()))),
            (Ok(_), None) => Some(Ok(())),
            (Ok(None), Some(_)) => {
                let message = "no block is different for it: there was nothing to change";
                Some(Err(("nothing_changed", message.into())))
            }
            (Ok(Some(op)), Some(seq)) => {
                let connection_id = request.connection_id;
                let requester = Requester::Client { connection_id, seq };
                self.persister.answer_after(op, requester);
                None
            }
        }
    }
}

/// Whether the client speaks our version of its encoding; refuses it otherwise.
fn speaks(session: &mut Session, seq: Option<u32>, version: u16) -> bool {
    let spoken = match session.encoding {
        Encoding::Json => PROTOCOL_VERSION,
        Encoding::Binary => BINARY_VERSION,
    };
    if version != spoken {
        let message = format!(
            "this server speaks version {spoken}, the client {version}; reload the page or update the client"
        );
        session.answer(seq, Err(("unsupported_version", message.clone())));
        session.kick(KickCause::Refused, &message);
    }
    version == spoken
}

/// Passes a client's report of its connection to the metrics: one per second, with
/// tolerance for one that arrives a little early.
fn note_report(
    player: &mut SessionPlayer,
    report: &ConnectionReport,
    (tick, tick_hz): (u32, u32),
    metrics: &Metrics,
) {
    if tick.saturating_sub(player.reported.tick) >= tick_hz / 2 {
        let before = player.reported.corrections;
        player.reported = Reported {
            tick,
            corrections: report.corrections,
        };
        metrics.client_reported(report, report.corrections.saturating_sub(before));
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
fn dropped_inputs(encoding: Encoding, refused: usize) -> Outcome {
    if encoding == Encoding::Json && refused > 0 {
        let message = format!("{refused} inputs were dropped: too many wait already");
        return Err(("inputs_dropped", message));
    }
    Ok(())
}

fn accepted(accepted: bool) -> Outcome {
    if accepted {
        return Ok(());
    }
    let message = "too many events at once; spread them over more ticks".into();
    Err(("events_dropped", message))
}

fn check_name(name: &str) -> Outcome {
    frolic_scene::check_name(name).map_err(|why| ("bad_name", format!("an event's name {why}")))
}
