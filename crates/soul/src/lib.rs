//! Scripts in plain language: a `.soul` is translated to Luau once, by a
//! language model, and the Luau is stored beside it.
//!
//! Start from [`compile()`]: it asks a [`Model`] for the code, compiles the
//! answer as any script is compiled, and returns compile errors to the model, a
//! bounded number of times. [`MessagesApi`] is a model behind HTTP; tests have
//! others. This runs where a game is packed, never in the process of a world: a
//! world runs only the stored Luau.
#![forbid(unsafe_code)]

mod answer;
mod api;
mod compile;
mod http;
mod prompt;
mod spell;

pub use compile::{Generated, ROUNDS_MAX, SOUL_BYTES_MAX, SoulError, compile};
pub use http::{ApiSettings, DEFAULT_MODEL, DEFAULT_URL, MessagesApi};
pub use prompt::PROMPT_VERSION;
pub use spell::{SpellError, check_spell, write_spell};

/// The author of a message in a conversation with a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// We.
    User,
    /// The model.
    Assistant,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The author.
    pub by: Speaker,
    /// The message.
    pub text: String,
}

/// Something that answers a conversation.
pub trait Model {
    /// The next message.
    ///
    /// # Errors
    /// When there is none; the text says what to do.
    fn answer(&self, system: &str, turns: &[Turn]) -> Result<String, ModelError>;
}

/// Why a model gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// No key is set.
    #[error(
        "a .soul needs a language model: set SOUL_API_KEY (in the environment, or soul_api_key in \
         frolic.toml) to a key of Anthropic's API, or of one that speaks the same and is named by \
         SOUL_API_URL; SOUL_MODEL chooses the model"
    )]
    NoKey,
    /// The address cannot be used.
    #[error("SOUL_API_URL must be https://…, or http:// on this machine, not {0}")]
    Address(String),
    /// 401, 403.
    #[error("the model's API did not accept SOUL_API_KEY ({status}): {message}")]
    WrongKey {
        /// The status of the response.
        status: u16,
        /// In its words.
        message: String,
    },
    /// 429 and 529 to the end.
    #[error("the model's API is busy ({status}) and stayed so; try again later")]
    Busy {
        /// The status of the last response.
        status: u16,
    },
    /// Any other status.
    #[error("the model's API refused ({status}): {message}")]
    Refused {
        /// The status of the response.
        status: u16,
        /// In its words.
        message: String,
    },
    /// No answer in time.
    #[error("the model's API did not answer within {0} s")]
    Late(u64),
    /// No connection.
    #[error("the model's API at {url} cannot be reached: {cause}")]
    Unreachable {
        /// Where.
        url: String,
        /// Why.
        cause: String,
    },
    /// Not what the API gives.
    #[error("the model's API answered with something else than a message: {0}")]
    Unreadable(String),
    /// More than a script can be.
    #[error("the model's answer is larger than {0} bytes")]
    TooLarge(u64),
    /// It ran out of its allowance in the middle.
    #[error("the model's answer was cut off; describe less in one .soul")]
    CutOff,
}
