//! Commands: what a JSON client sends.

use frolic_sim::{Angle, Buttons, CharacterInput};
use serde::Deserialize;
use serde_json::Value as Json;

use crate::message::{ClientMessage, NumberedInput, PROTOCOL_VERSION};
use crate::value::Args;

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

/// `session.handshake`
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, optional_fields = nullable))]
#[serde(rename_all = "camelCase", default)]
pub struct HandshakePayload {
    /// Signed by the control plane; may come in the URL instead.
    pub ticket: Option<String>,
    /// From an earlier welcome.
    pub resume_token: Option<String>,
    /// Where the server runs without tickets.
    pub name: Option<String>,
    /// With a resume token: the newest `n` that has come.
    pub received: Option<u32>,
}

/// `movement.input_batch`
#[derive(Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
pub struct InputBatch {
    /// In rising order of `seq`.
    pub inputs: Vec<JsonInput>,
}

/// One input; what is left out is not held.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
pub struct JsonInput {
    /// The client's count of inputs.
    pub seq: u32,
    /// Forward.
    #[serde(default)]
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    pub up: bool,
    /// Backward.
    #[serde(default)]
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    pub down: bool,
    /// Sideways.
    #[serde(default)]
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    pub left: bool,
    /// Sideways.
    #[serde(default)]
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    pub right: bool,
    /// Held as long as it is set.
    #[serde(default)]
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    pub jump: bool,
    /// Faster.
    #[serde(default)]
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    pub run: bool,
    /// Where forward is: radians, counter-clockwise from −z.
    #[serde(default)]
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    pub yaw: f32,
    /// Radians, upwards.
    #[serde(default)]
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    pub pitch: f32,
    /// Held as long as it is set.
    #[serde(default)]
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    pub fire: bool,
    /// Held as long as it is set.
    #[serde(default)]
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    pub interact: bool,
}

/// `session.ack`
#[derive(Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
pub struct AckPayload {
    /// Tick of the newest snapshot the client holds.
    pub tick: u32,
}

/// `session.ping`
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
#[serde(default)]
pub struct PingPayload {
    /// Comes back as it is.
    pub t: f64,
    /// The newest `n` that has come, which the server may then forget.
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    pub received: u32,
}

/// `network.event`
#[derive(Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
pub struct EventPayload {
    /// Which event.
    pub name: String,
    /// Its arguments.
    #[serde(default)]
    #[cfg_attr(test, ts(type = "unknown[]"))]
    pub args: Args,
}

/// `network.invoke`
#[derive(Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
pub struct InvokePayload {
    /// Comes back with the answer.
    pub id: u32,
    /// Which function.
    pub name: String,
    /// Its arguments.
    #[serde(default)]
    #[cfg_attr(test, ts(type = "unknown[]"))]
    pub args: Args,
}

/// `chat.say`
#[derive(Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
pub struct ChatPayload {
    /// The text.
    pub text: String,
}

/// `scripts.request`
#[derive(Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
pub struct ScriptsPayload {
    /// Paths from the manifest.
    pub paths: Vec<String>,
}

/// Most inputs in one batch: a second's worth at the highest rate.
const BATCH_INPUTS_MAX: usize = 128;

/// Reads one command.
///
/// # Errors
/// What is wrong with it, with its `seq` where that could be read.
pub fn parse(text: &str) -> Result<Command, CommandError> {
    let envelope: serde_json::Map<String, Json> =
        serde_json::from_str(text).map_err(|cause| CommandError {
            seq: None,
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
        let message = "a command needs seq, feature and action".into();
        return Err(fail("bad_command", message));
    };
    let payload = envelope.get("payload").cloned().unwrap_or_default();
    let message = match (feature, action) {
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
        ("scripts", "request") => {
            body(payload).map(|p: ScriptsPayload| ClientMessage::ScriptRequest { paths: p.paths })
        }
        (feature, action) => {
            let message = format!("there is no command {}.{}", short(feature), short(action));
            return Err(fail("unknown_command", message));
        }
    };
    match message {
        Ok(message) => Ok(Command { seq, message }),
        Err(cause) => Err(fail(
            "bad_payload",
            format!("the payload of {feature}.{action} is wrong: {cause}"),
        )),
    }
}

/// What a client sent, cut to what fits an error message.
fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

fn body<T: serde::de::DeserializeOwned + 'static>(payload: Json) -> Result<T, String> {
    // Commands whose fields are all optional may leave the payload out.
    let payload = if payload.is_null() {
        Json::Object(serde_json::Map::new())
    } else {
        payload
    };
    serde_json::from_value(payload).map_err(|cause| cause.to_string())
}

fn inputs(batch: InputBatch) -> Result<ClientMessage, String> {
    if batch.inputs.len() > BATCH_INPUTS_MAX {
        return Err(format!("more than {BATCH_INPUTS_MAX} inputs in one batch"));
    }
    Ok(ClientMessage::Inputs {
        snapshot_ack: 0,
        inputs: batch
            .inputs
            .iter()
            .map(|input| NumberedInput {
                seq: input.seq,
                input: input.to_character_input(),
            })
            .collect(),
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
