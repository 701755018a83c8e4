//! Commands: what a JSON client sends.

use std::borrow::Cow;

use frolic_motion::{Angle, Buttons, CharacterInput};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use super::payload::*;
use crate::inputs::NumberedInput;
use crate::message::{ClientMessage, ConnectionReport, PROTOCOL_VERSION};
use crate::terrain::TerrainOp;
use crate::value::{Args, Value, ValueLimits};
use crate::whole::{Whole, whole_number};

/// A valid command.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// The client's count of commands; every answer names it. Without it, only
    /// errors are reported.
    pub seq: Option<u32>,
    /// The message.
    pub message: ClientMessage,
    /// The value that its answer repeats unchanged, where that is no number of
    /// ours: the `t` of a ping, the `id` of a call.
    pub echo: Option<Box<Json>>,
}

/// An invalid command.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct CommandError {
    /// Its number, where that could be read.
    pub seq: Option<u32>,
    /// A machine-readable code.
    pub code: &'static str,
    /// A human-readable message.
    pub message: String,
    /// Whether it counts as received all the same: the client has counted it when
    /// it sent it, and must not send it again.
    pub counts: bool,
}

/// The envelope of a message that is not decoded completely.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Glance {
    /// Its number.
    pub seq: Option<u32>,
    /// Whether it is a reliable message.
    pub counts: bool,
}

/// Most inputs in one batch: a second's worth at the highest rate.
const BATCH_INPUTS_MAX: usize = 128;
/// Longest text that is echoed.
const ECHO_BYTES_MAX: usize = 64;
/// Characters of a parser's error that are passed on; it quotes the client.
const CAUSE_CHARS_MAX: usize = 160;

/// Reads one command.
///
/// # Errors
/// The error, with the `seq` of the command where it could be read.
pub fn parse(text: &str) -> Result<Command, CommandError> {
    let envelope: serde_json::Map<String, Json> = serde_json::from_str(text).map_err(|cause| {
        let Glance { seq, counts } = glance(text);
        CommandError {
            seq,
            code: "bad_json",
            message: format!("the message is not a JSON command: {cause}"),
            counts,
        }
    })?;
    // The number first: whatever else is wrong, the answer names it.
    let given_seq = envelope.get("seq").filter(|seq| !seq.is_null());
    let seq: Option<u32> = given_seq.and_then(whole_number);
    let fail = |code, message: String| CommandError {
        seq,
        code,
        message,
        counts: false,
    };
    let text_of = |key: &str| envelope.get(key).and_then(Json::as_str);
    // The version may be left out: a command without one has the current version.
    let version = envelope.get("v").map(whole_number::<u16>);
    if version.is_some_and(|version| version != Some(PROTOCOL_VERSION)) {
        let message = format!("this server speaks version {PROTOCOL_VERSION}: send \"v\":2");
        return Err(fail("unsupported_version", message));
    }
    if text_of("kind") != Some("command") {
        return Err(fail("bad_kind", "clients send \"kind\":\"command\"".into()));
    }
    if given_seq.is_some() && seq.is_none() {
        let message = "seq is a whole number below 2^32, or left out";
        return Err(fail("bad_command", message.into()));
    }
    let (Some(feature), Some(action)) = (text_of("feature"), text_of("action")) else {
        let message = "a command needs feature and action";
        return Err(fail("bad_command", message.into()));
    };
    let payload = envelope.get("payload").cloned().unwrap_or_default();
    match said(feature, action, payload) {
        Some(Ok((message, echo))) => Ok(Command { seq, message, echo }),
        Some(Err(cause)) => {
            let cause = cut(&cause, CAUSE_CHARS_MAX);
            let message = format!("the payload of {feature}.{action} is wrong: {cause}");
            Err(CommandError {
                counts: counts(feature, action),
                ..fail("bad_payload", message)
            })
        }
        None => Err(fail(
            "unknown_command",
            format!(
                "there is no command {}.{}",
                cut(feature, 40),
                cut(action, 40)
            ),
        )),
    }
}

type Said = (ClientMessage, Option<Box<Json>>);

/// The message of a command, and what its answer repeats; none when there is no
/// such command.
fn said(feature: &str, action: &str, payload: Json) -> Option<Result<Said, String>> {
    match (feature, action) {
        ("session", "ping") => Some(body(payload).and_then(ping)),
        ("network", "invoke") => Some(body(payload).and_then(invoke)),
        _ => {
            let said = message(feature, action, payload)?;
            Some(said.map(|message| (message, None)))
        }
    }
}

/// The message of most commands, whose answers repeat nothing.
fn message(feature: &str, action: &str, payload: Json) -> Option<Result<ClientMessage, String>> {
    Some(match (feature, action) {
        ("session", "handshake") => {
            body(payload).map(|p: HandshakePayload| ClientMessage::Handshake {
                version: PROTOCOL_VERSION,
                ticket: p.ticket,
                resume_token: p.resume_token,
                name: p.name,
                received: p.received.map(|Whole(received)| received),
            })
        }
        ("session", "ack") => {
            body(payload).map(|p: AckPayload| ClientMessage::SnapshotAck { tick: p.tick.0 })
        }
        ("session", "figures") => Ok(ClientMessage::AskFigures),
        ("session", "scene") => Ok(ClientMessage::AskScene),
        ("session", "report") => body(payload).map(report),
        ("scripts", "log") => body(payload).map(ClientMessage::Log),
        ("session", "leave") => Ok(ClientMessage::Leave),
        ("session", "reset") => Ok(ClientMessage::Reset),
        ("movement", "input_batch") => body(payload).and_then(inputs),
        ("network", "event") => body(payload).map(|p: EventPayload| ClientMessage::Event {
            name: p.name,
            args: p.args,
        }),
        ("chat", "say") => body(payload).map(|p: ChatPayload| ClientMessage::Chat { text: p.text }),
        ("chat", "hide") => body(payload).map(|p: HidePayload| ClientMessage::Hide {
            player_id: p.player_id,
            hidden: p.hidden,
        }),
        ("scripts", "request") => {
            body(payload).map(|p: ScriptsPayload| ClientMessage::ScriptRequest {
                paths: p.paths,
                from: p.from.0,
            })
        }
        ("scripts", "verify") => {
            body(payload).map(|p: ScriptVerifyPayload| ClientMessage::ScriptVerify {
                path: p.path,
                hash: p.hash,
                success: p.success,
            })
        }
        ("terrain", "op") => body(payload).and_then(terrain_op),
        ("terrain", "chunk") => {
            body(payload).map(|p: TerrainChunkPayload| ClientMessage::ChunkRequest {
                chunk: [p.x.0, p.y.0, p.z.0],
            })
        }
        ("spell", "cast") => body(payload).and_then(spell_cast),
        _ => return None,
    })
}

/// Whether commands of this name are reliable: the same as
/// [`ClientMessage::is_counted`].
fn counts(feature: &str, action: &str) -> bool {
    matches!(
        (feature, action),
        ("network", "event" | "invoke") | ("chat", "say")
    )
}

/// Reads the envelope of a message and skips the rest: for one that is dropped, or
/// that is not a valid command (with a number out of range, say, or a payload
/// nested without end). Allocates nothing.
pub fn glance(text: &str) -> Glance {
    #[derive(Deserialize)]
    struct Envelope<'text> {
        v: Option<Whole<u16>>,
        seq: Option<Whole<u32>>,
        #[serde(borrow)]
        kind: Option<Cow<'text, str>>,
        #[serde(borrow)]
        feature: Option<Cow<'text, str>>,
        #[serde(borrow)]
        action: Option<Cow<'text, str>>,
    }
    let Ok(envelope) = serde_json::from_str::<Envelope>(text) else {
        return Glance::default();
    };
    let is_command = envelope.kind.as_deref() == Some("command")
        && envelope
            .v
            .is_none_or(|version| version.0 == PROTOCOL_VERSION);
    let name = envelope.feature.as_deref().zip(envelope.action.as_deref());
    Glance {
        seq: envelope.seq.map(|Whole(seq)| seq),
        counts: is_command && name.is_some_and(|(feature, action)| counts(feature, action)),
    }
}

/// The text of a client, shortened for an error message.
fn cut(text: &str, chars_max: usize) -> String {
    text.chars().take(chars_max).collect()
}

fn body<T: DeserializeOwned>(payload: Json) -> Result<T, String> {
    let payload = match payload {
        // Commands whose fields are all optional may leave the payload out.
        Json::Null => Json::Object(serde_json::Map::new()),
        Json::Object(fields) => Json::Object(fields),
        // A list would be read as the fields in their order, by accident.
        _ => return Err("it is not an object".into()),
    };
    serde_json::from_value(payload).map_err(|cause| cause.to_string())
}

fn ping(ping: PingPayload) -> Result<Said, String> {
    let message = ClientMessage::Ping {
        t: ping.t.as_f64().unwrap_or(0.0),
        received: ping.received.0,
    };
    Ok((message, Some(echo("t", ping.t)?)))
}

fn report(payload: ReportPayload) -> ClientMessage {
    ClientMessage::Report(ConnectionReport {
        input_seq: payload.input_seq.0,
        pending_inputs: payload.pending_inputs.0,
        corrections: payload.corrections.0,
        snapshot_age_ms: payload.snapshot_age_ms,
        jitter_ms: payload.jitter_ms,
    })
}

fn invoke(call: InvokePayload) -> Result<Said, String> {
    let id = call.id.as_u64().and_then(|id| u32::try_from(id).ok());
    let label = match id {
        Some(_) => None,
        None if call.id.is_null() => return Err("missing field `id`".into()),
        None => Some(echo("id", call.id)?),
    };
    let message = ClientMessage::Invoke {
        id: id.unwrap_or(0),
        name: call.name,
        args: call.args,
    };
    Ok((message, label))
}

/// A value that a client gets back unchanged.
fn echo(field: &str, value: Json) -> Result<Box<Json>, String> {
    let fits = match &value {
        Json::Null | Json::Number(_) => true,
        Json::String(text) => text.len() <= ECHO_BYTES_MAX,
        _ => false,
    };
    fits.then(|| Box::new(value)).ok_or_else(|| {
        format!("`{field}` is a number, or a text of at most {ECHO_BYTES_MAX} bytes")
    })
}

fn terrain_op(op: TerrainOpPayload) -> Result<ClientMessage, String> {
    TerrainOp::new(op.op, op.center, op.radius, op.size, op.material)
        .map(ClientMessage::Terraform)
        .map_err(|cause| cause.to_string())
}

fn spell_cast(cast: SpellCastPayload) -> Result<ClientMessage, String> {
    let params = Value::from_json(&cast.params, &ValueLimits::default());
    Ok(ClientMessage::CastSpell {
        spell_id: cast.spell_id,
        revision_id: cast.revision_id,
        params: Args(vec![params.map_err(|cause| cause.to_string())?]),
    })
}

fn inputs(batch: InputBatch) -> Result<ClientMessage, String> {
    if batch.inputs.len() > BATCH_INPUTS_MAX {
        return Err(format!("more than {BATCH_INPUTS_MAX} inputs in one batch"));
    }
    let inputs: Result<_, String> = batch.inputs.iter().map(numbered).collect();
    Ok(ClientMessage::Inputs {
        ack: None,
        shown: None,
        inputs: inputs?,
    })
}

fn numbered(input: &JsonInput) -> Result<NumberedInput, String> {
    // A number too large for 32 bits has become infinite.
    if !input.yaw.is_finite() || !input.pitch.is_finite() {
        return Err(format!(
            "yaw or pitch of input {} is not an angle",
            input.seq.0
        ));
    }
    Ok(NumberedInput {
        seq: input.seq.0,
        input: input.to_character_input(),
    })
}

impl JsonInput {
    fn to_character_input(&self) -> CharacterInput {
        let axis = |positive: bool, negative: bool| 127 * (i8::from(positive) - i8::from(negative));
        let held = [
            (self.jump, Buttons::JUMP),
            (self.run, Buttons::RUN),
            (self.fire, Buttons::FIRE),
            (self.interact, Buttons::INTERACT),
        ];
        CharacterInput {
            right: axis(self.right, self.left),
            forward: axis(self.up, self.down),
            yaw: Angle::from_radians(self.yaw),
            pitch: Angle::from_radians(self.pitch),
            buttons: held
                .iter()
                .filter(|(down, _)| *down)
                .fold(Buttons::default(), |all, (_, button)| all.with(*button)),
        }
    }
}
