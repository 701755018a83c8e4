//! Persistent data of games: requests of scripts to the store, what they may store
//! there, and how a game server forwards them (`POST /internal/worlds/{id}/store`).

use serde::{Deserialize, Serialize};

use crate::ops::LoggedOp;
use crate::persist::base64_bytes;
use frolic_protocol::value::{Args, Value, ValueError, ValueLimits};

/// Bytes of a key, a ranking's name or an owner's id.
pub const KEY_BYTES_MAX: usize = 128;
/// Bytes of one value, as JSON.
pub const VALUE_BYTES_MAX: usize = 64 * 1024;
/// Keys or ranks in one answer.
pub const PAGE_MAX: u32 = 100;
/// Requests in one batch: all that scripts make in one tick, within reason.
pub const BATCH_REQUESTS_MAX: usize = 1024;
/// Bytes of values after which a batch takes no more.
pub const BATCH_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Numbers beyond this lose whole units, so a count could not be exact.
pub const NUMBER_MAX: f64 = 9_007_199_254_740_992.0;

/// Requests that the scripts of a world may make per minute, by players in it.
pub fn requests_per_minute(players: usize) -> u32 {
    let players = u32::try_from(players).unwrap_or(u32::MAX);
    players.saturating_mul(60).saturating_add(300)
}

/// One key of a game, or of one of its players.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StoreKey {
    /// Persistent id of the player whose data it is; none for the game's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub player: Option<String>,
    /// The key.
    pub key: String,
}

/// Which end of a ranking comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Best {
    /// Points.
    #[default]
    Highest,
    /// Times.
    Lowest,
}

/// A script's request. Each names in parentheses the content of a successful
/// answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoreAction {
    /// Reads a key (value or nil, version; 0 for a key that is not there).
    Get(StoreKey),
    /// Writes a key (nothing).
    Set {
        /// Which.
        at: StoreKey,
        /// One value.
        value: Args,
    },
    /// Writes a key, unless it has changed since `version` (true; or false
    /// with the value and version that it has now).
    Swap {
        /// Which.
        at: StoreKey,
        /// One value.
        value: Args,
        /// The version that was read.
        version: u64,
    },
    /// Adds to a number; a missing one is 0 (the sum).
    Increment {
        /// Which.
        at: StoreKey,
        /// How much.
        by: f64,
    },
    /// Deletes a key (whether it was there).
    Remove(StoreKey),
    /// Lists keys in order (a list, and the last key where there are more).
    List {
        /// The owner, and the prefix of the keys.
        prefix: StoreKey,
        /// Only those after this one.
        after: Option<String>,
    },
    /// Sets a score (nothing).
    RankSet {
        /// The owner of the data.
        at: RankKey,
        /// The score.
        score: f64,
    },
    /// Adds to a score; a missing one is 0 (the sum).
    RankIncrement {
        /// The owner of the data.
        at: RankKey,
        /// How much.
        by: f64,
    },
    /// Removes an entry from a ranking (whether it was there).
    RankRemove(RankKey),
    /// The top ranks (a list of maps with Rank, Key, Name, Score).
    RankTop {
        /// Which ranking.
        ranking: String,
        /// Which end.
        best: Best,
        /// How many.
        count: u32,
    },
    /// A rank (rank and score; nil when not in it).
    RankOf {
        /// The owner of the data.
        at: RankKey,
        /// Which end.
        best: Best,
    },
}

/// One entry of a ranking.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankKey {
    /// Which ranking.
    pub ranking: String,
    /// A player's persistent id, or any other key.
    pub key: String,
    /// The name to show, when it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// One request, with the number that its answer repeats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoreRequest {
    /// Counted by the world.
    pub id: u32,
    /// The request.
    pub action: StoreAction,
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoreAnswer {
    /// Number of the request.
    pub id: u32,
    /// The result, or an error message for the creator.
    pub result: Result<Args, String>,
}

/// `POST …/store`. The sender sends the next one only after the answer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StoreBatch {
    /// Idempotency key: the same for a retry, and never for another batch, so that
    /// nothing is applied twice.
    pub batch: String,
    /// The process generation of the world; a replaced process writes nothing.
    pub epoch: u64,
    /// In the order in which scripts asked.
    pub requests: Vec<StoreRequest>,
    /// Counts of handled messages per player at the last write. Stored in the same
    /// transaction: neither is stored without the other, so that the world's next
    /// process does not handle again what this one has done.
    #[serde(default, rename = "heard", skip_serializing_if = "Vec::is_empty")]
    pub handled: Vec<HandledCount>,
    /// Operations up to then that were not stored: the same messages may have
    /// caused them as well. Known ones are not applied again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ops: Vec<LoggedOp>,
    /// See [`PersistBatch`](crate::persist::PersistBatch).
    #[serde(default)]
    pub near_only: bool,
}

/// How many messages of a player have been handled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandledCount {
    /// Their persistent id.
    pub player_id: String,
    /// The session that counts them.
    pub session: String,
    /// How many.
    pub received: u32,
    /// Number of the newest message to them by then; see
    /// [`SavedPlayer`](crate::persist::SavedPlayer).
    #[serde(default)]
    pub sent: u32,
    /// The unacknowledged ones of those, answers to handled calls included.
    #[serde(
        default,
        rename = "told",
        with = "base64_bytes",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub undelivered: Vec<u8>,
    /// Where that is too large to be sent with a write: only the unanswered calls,
    /// in the same form. They are appended to what is stored.
    #[serde(default, with = "base64_bytes", skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<u8>,
}

/// Answer to a batch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoreAnswers {
    /// One per request.
    pub answers: Vec<StoreAnswer>,
    /// Number of the newest stored operation, where counts were stored: none for
    /// reads, nor where a world makes too many requests.
    #[serde(default)]
    pub kept: Option<u64>,
}

/// Why something cannot be stored; the text is shown to the creator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreRefusal {
    /// Empty or too long.
    #[error("{what} has 1 to {KEY_BYTES_MAX} bytes, not {bytes}")]
    KeyLength {
        /// A key, a name…
        what: &'static str,
        /// The actual length.
        bytes: usize,
    },
    /// Line feeds and the like.
    #[error("{0} must be printable text")]
    KeyText(&'static str),
    /// Over [`VALUE_BYTES_MAX`].
    #[error("one key holds at most {VALUE_BYTES_MAX} bytes, and this value has {0}; split it up")]
    ValueTooLarge(usize),
    /// It is meaningless outside of its world.
    #[error("an entity cannot be stored, it ends with its world; store its name or what it is")]
    Entity,
    /// JSON has none of these.
    #[error("a number that is nan or infinite cannot be stored")]
    NotFinite,
    /// `$v` is how vectors are written.
    #[error("a table key that starts with $ cannot be stored")]
    ReservedKey,
    /// Too deep, too many parts.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// Not one value.
    #[error("a key holds one value")]
    NotOne,
    /// [`NUMBER_MAX`].
    #[error("a stored count must stay within 2^53")]
    NumberTooLarge,
}

/// Checks a key or name that a script chose.
///
/// # Errors
/// When it is empty, too long or not printable.
pub fn check_key(what: &'static str, key: &str) -> Result<(), StoreRefusal> {
    let bytes = key.len();
    if bytes == 0 || bytes > KEY_BYTES_MAX {
        return Err(StoreRefusal::KeyLength { what, bytes });
    }
    if key.chars().any(char::is_control) {
        return Err(StoreRefusal::KeyText(what));
    }
    Ok(())
}

/// The text that a value is stored as.
///
/// # Errors
/// When it cannot be stored.
pub fn value_text(value: &Args) -> Result<String, StoreRefusal> {
    let [one] = value.0.as_slice() else {
        return Err(StoreRefusal::NotOne);
    };
    // Less than an answer may hold, which has the version beside the value.
    let limits = ValueLimits {
        nodes_max: 4000,
        ..ValueLimits::default()
    };
    value.check(&limits)?;
    storable(one)?;
    let text = one.to_json().to_string();
    if text.len() > VALUE_BYTES_MAX {
        return Err(StoreRefusal::ValueTooLarge(text.len()));
    }
    Ok(text)
}

/// Reads what [`value_text`] wrote; nil when it is damaged.
pub fn value_of_text(text: &str) -> Value {
    serde_json::from_str(text)
        .ok()
        .and_then(|json| Value::from_json(&json, &ValueLimits::default()).ok())
        .unwrap_or_default()
}

/// Checks a score, a step or the sum of both.
///
/// # Errors
/// When it is not finite, or so large that adding 1 would not change it.
pub fn check_number(number: f64) -> Result<f64, StoreRefusal> {
    if !number.is_finite() {
        return Err(StoreRefusal::NotFinite);
    }
    if number.abs() > NUMBER_MAX {
        return Err(StoreRefusal::NumberTooLarge);
    }
    Ok(number)
}

fn storable(value: &Value) -> Result<(), StoreRefusal> {
    match value {
        Value::Entity(_) => Err(StoreRefusal::Entity),
        Value::Number(number) if !number.is_finite() => Err(StoreRefusal::NotFinite),
        Value::List(items) => items.iter().try_for_each(storable),
        Value::Map(map) => map.iter().try_for_each(|(key, item)| {
            if key.starts_with('$') {
                return Err(StoreRefusal::ReservedKey);
            }
            storable(item)
        }),
        _ => Ok(()),
    }
}

impl StoreAction {
    /// Whether it changes anything.
    pub fn writes(&self) -> bool {
        !matches!(
            self,
            StoreAction::Get(_)
                | StoreAction::List { .. }
                | StoreAction::RankTop { .. }
                | StoreAction::RankOf { .. }
        )
    }

    /// Checks everything that can be checked without the data.
    ///
    /// # Errors
    /// The first thing that cannot be stored.
    pub fn check(&self) -> Result<(), StoreRefusal> {
        match self {
            StoreAction::Get(at) | StoreAction::Remove(at) => at.check(),
            StoreAction::Set { at, value } | StoreAction::Swap { at, value, .. } => {
                at.check()?;
                value_text(value).map(|_| ())
            }
            StoreAction::Increment { at, by } => {
                at.check()?;
                check_number(*by).map(|_| ())
            }
            StoreAction::List { prefix, after } => {
                prefix.check_player()?;
                if !prefix.key.is_empty() {
                    check_key("a prefix", &prefix.key)?;
                }
                after
                    .as_deref()
                    .map_or(Ok(()), |after| check_key("a key", after))
            }
            StoreAction::RankSet { at, score: number }
            | StoreAction::RankIncrement { at, by: number } => {
                at.check()?;
                check_number(*number).map(|_| ())
            }
            StoreAction::RankRemove(at) | StoreAction::RankOf { at, .. } => at.check(),
            StoreAction::RankTop { ranking, .. } => check_key("a ranking's name", ranking),
        }
    }

    /// Its approximate size.
    pub fn bytes(&self) -> usize {
        match self {
            StoreAction::Set { value, .. } | StoreAction::Swap { value, .. } => {
                value_text(value).map_or(0, |text| text.len()) + 2 * KEY_BYTES_MAX
            }
            _ => 4 * KEY_BYTES_MAX,
        }
    }
}

impl StoreKey {
    fn check(&self) -> Result<(), StoreRefusal> {
        self.check_player()?;
        check_key("a key", &self.key)
    }

    fn check_player(&self) -> Result<(), StoreRefusal> {
        let player = self.player.as_deref();
        player.map_or(Ok(()), |player| check_key("a player's id", player))
    }
}

impl RankKey {
    fn check(&self) -> Result<(), StoreRefusal> {
        check_key("a ranking's name", &self.ranking)?;
        check_key("a key", &self.key)?;
        let name = self.name.as_deref();
        name.map_or(Ok(()), |name| check_key("a name", name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn one(value: Value) -> Args {
        Args(vec![value])
    }

    #[test]
    fn stored_values_are_read_back_unchanged() {
        let map = BTreeMap::from([
            ("at".to_owned(), Value::Vector([1.0, -2.5, 3.0])),
            ("items".to_owned(), Value::List(vec![Value::Bool(true)])),
            ("coins".to_owned(), Value::Number(12.5)),
        ]);
        for value in [Value::Map(map), Value::Nil, Value::String("é\n".into())] {
            let text = value_text(&one(value.clone())).unwrap();
            assert_eq!(value_of_text(&text), value);
        }
        assert_eq!(value_of_text("{half"), Value::Nil);
    }

    #[test]
    fn values_that_cannot_be_stored_are_refused_by_name() {
        let dollar = BTreeMap::from([("$v".to_owned(), Value::Nil)]);
        let long = Value::List(vec![Value::String("\"".repeat(16_000)); 4]);
        for (value, refusal) in [
            (Value::List(vec![Value::Entity(1)]), StoreRefusal::Entity),
            (Value::Number(f64::NAN), StoreRefusal::NotFinite),
            (Value::Map(dollar), StoreRefusal::ReservedKey),
            (long, StoreRefusal::ValueTooLarge(4 * 32_002 + 5)),
        ] {
            assert_eq!(value_text(&one(value)), Err(refusal));
        }
        assert_eq!(value_text(&Args(vec![])), Err(StoreRefusal::NotOne));
        let many = one(Value::List(vec![Value::Nil; 4090]));
        assert!(matches!(value_text(&many), Err(StoreRefusal::Value(_))));
        assert!(check_key("a key", "").is_err());
        assert!(check_key("a key", "a\nb").is_err());
        assert!(check_key("a key", &"k".repeat(129)).is_err());
        assert!(check_key("a key", &"k".repeat(128)).is_ok());
        assert_eq!(check_number(f64::INFINITY), Err(StoreRefusal::NotFinite));
        assert_eq!(check_number(1e300), Err(StoreRefusal::NumberTooLarge));
    }

    #[test]
    fn requests_and_answers_survive_their_way() {
        let request = StoreRequest {
            id: 7,
            action: StoreAction::Swap {
                at: StoreKey {
                    player: Some("user_1".into()),
                    key: "coins".into(),
                },
                value: one(Value::Number(3.0)),
                version: 9,
            },
        };
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(
            serde_json::from_str::<StoreRequest>(&text).unwrap(),
            request
        );
        for result in [Ok(one(Value::Number(1.0))), Err("no".to_owned())] {
            let answer = StoreAnswer { id: 7, result };
            let text = serde_json::to_string(&answer).unwrap();
            assert_eq!(serde_json::from_str::<StoreAnswer>(&text).unwrap(), answer);
        }
    }
}
