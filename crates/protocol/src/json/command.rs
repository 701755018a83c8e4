//! Commands: what a JSON client sends.

use frolic_sim::{Angle, Buttons, CharacterInput};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use super::payload::*;
use crate::message::{ClientMessage, NumberedInput, PROTOCOL_VERSION};
use crate::terrain::TerrainOp;
use crate::value::{Args, Value, ValueLimits};

/// A command that was understood.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// The client's count of commands; every answer names it.
    pub seq: u32,
    /// What it asks for.
    pub message: ClientMessage,
}

/// A command that was not.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct CommandError {
    /// Its number, where that could be read.
    pub seq: Option<u32>,
    /// A word for programs.
    pub code: &'static str,
    /// A sentence for people.
    pub message: String,
}

/// Most inputs in one batch: a second's worth at the highest rate.
const BATCH_INPUTS_MAX: usize = 128;
/// Characters of a parser's complaint that are passed on; it quotes the client.
const CAUSE_CHARS_MAX: usize = 160;

/// Reads one command.
///
/// # Errors
/// What is wrong with it, with its `seq` where that could be read.
pub fn parse(text: &str) -> Result<Command, CommandError> {
    let envelope: serde_json::Map<String, Json> =
        serde_json::from_str(text).map_err(|cause| CommandError {
            seq: seq_of_unreadable(text),
            code: "bad_json",
            message: format!("the message is not a JSON command: {cause}"),
        })?;
    // The number first: whatever else is wrong, the answer names it.
    let seq = envelope.get("seq").and_then(Json::as_u64);
    let seq = seq.and_then(|seq| u32::try_from(seq).ok());
    let fail = |code, message: String| CommandError { seq, code, message };
    let text_of = |key: &str| envelope.get(key).and_then(Json::as_str);
    if envelope.get("v").and_then(Json::as_u64) != Some(u64::from(PROTOCOL_VERSION)) {
        let message = format!("this server speaks version {PROTOCOL_VERSION}: send \"v\":2");
        return Err(fail("unsupported_version", message));
    }
    if text_of("kind") != Some("command") {
        return Err(fail("bad_kind", "clients send \"kind\":\"command\"".into()));
    }
    let (Some(seq), Some(feature), Some(action)) = (seq, text_of("feature"), text_of("action"))
    else {
        let message = "a command needs seq (a whole number below 2^32), feature and action";
        return Err(fail("bad_command", message.into()));
    };
    let payload = envelope.get("payload").cloned().unwrap_or_default();
    match message(feature, action, payload) {
        Some(Ok(message)) => Ok(Command { seq, message }),
        Some(Err(cause)) => Err(fail(
            "bad_payload",
            format!(
                "the payload of {feature}.{action} is wrong: {}",
                cut(&cause, CAUSE_CHARS_MAX)
            ),
        )),
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

/// What a command says; none when there is no such command.
fn message(feature: &str, action: &str, payload: Json) -> Option<Result<ClientMessage, String>> {
    Some(match (feature, action) {
        ("session", "handshake") => {
            body(payload).map(|p: HandshakePayload| ClientMessage::Handshake {
                version: PROTOCOL_VERSION,
                ticket: p.ticket,
                resume_token: p.resume_token,
                name: p.name,
                received: p.received,
            })
        }
        ("session", "ack") => {
            body(payload).map(|p: AckPayload| ClientMessage::SnapshotAck { tick: p.tick })
        }
        ("session", "figures") => Ok(ClientMessage::AskFigures),
        ("session", "ping") => body(payload).map(|p: PingPayload| ClientMessage::Ping {
            t: p.t,
            received: p.received,
        }),
        ("session", "leave") => Ok(ClientMessage::Leave),
        ("movement", "input_batch") => body(payload).and_then(inputs),
        ("network", "event") => body(payload).map(|p: EventPayload| ClientMessage::Event {
            name: p.name,
            args: p.args,
        }),
        ("network", "invoke") => body(payload).map(|p: InvokePayload| ClientMessage::Invoke {
            id: p.id,
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
                from: p.from,
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
                chunk: [p.x, p.y, p.z],
            })
        }
        ("spell", "cast") => body(payload).and_then(spell_cast),
        _ => return None,
    })
}

/// The number of a message that is no command at all: a number too large for
/// any machine, say, or a payload nested without end. This reading skips what
/// it does not want, so it gets further.
fn seq_of_unreadable(text: &str) -> Option<u32> {
    #[derive(Deserialize)]
    struct Numbered {
        seq: u32,
    }
    let numbered: Numbered = serde_json::from_str(text).ok()?;
    Some(numbered.seq)
}

/// What a client sent, cut to what fits an error message.
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
            input.seq
        ));
    }
    Ok(NumberedInput {
        seq: input.seq,
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
