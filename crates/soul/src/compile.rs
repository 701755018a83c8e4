//! Asks, compiles, asks again.

use frolic_package::soul::{context_line, generated_path, with_heading};
use frolic_script::{CompileError, Service};

use crate::answer::code_of;
use crate::prompt::{self, PROMPT_VERSION};
use crate::{Model, ModelError, Speaker, Turn};

/// Bytes of one description: several pages.
pub const SOUL_BYTES_MAX: usize = 32 * 1024;
/// Answers that are tried.
pub const ROUNDS_MAX: u32 = 3;
/// Bytes of an answer that go back to the model.
const ANSWER_BYTES_MAX: usize = 128 * 1024;

/// The Luau generated from a `.soul`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// Path below `scripts/`, such as `Workspace/Door.soul.luau`.
    pub path: String,
    /// The whole file.
    pub luau: String,
    /// How many answers it took.
    pub rounds: u32,
}

/// Why there is no Luau.
#[derive(Debug, thiserror::Error)]
pub enum SoulError {
    /// Nothing to go by.
    #[error("{0} is empty: describe what the script is to do")]
    Empty(String),
    /// Too long.
    #[error("{path} has {bytes} bytes; a .soul has at most {SOUL_BYTES_MAX}")]
    TooLarge {
        /// Which.
        path: String,
        /// As it is.
        bytes: usize,
    },
    /// Not where scripts are.
    #[error("{0} is not a .soul file in scripts/<Service>/")]
    Misplaced(String),
    /// Its first line is a directive that its service does not allow.
    #[error(transparent)]
    Directive(CompileError),
    /// The model gave no answer.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// It never gave code.
    #[error(
        "the model gave no Luau for {path} in {ROUNDS_MAX} answers; say more plainly what it is to do"
    )]
    NoCode {
        /// Which.
        path: String,
    },
    /// Its code never compiled.
    #[error("the model's Luau for {path} did not compile in {ROUNDS_MAX} answers; last: {error}")]
    Broken {
        /// Which.
        path: String,
        /// The last error.
        error: CompileError,
        /// The last code.
        code: String,
    },
}

/// Has a `.soul` written out. `path` is below `scripts/`, such as
/// `Workspace/Door.soul`.
///
/// # Errors
/// [`SoulError`].
pub fn compile(model: &dyn Model, path: &str, soul: &str) -> Result<Generated, SoulError> {
    let misplaced = || SoulError::Misplaced(path.to_owned());
    let service = Service::of_path(path).ok_or_else(misplaced)?;
    let target = generated_path(path).ok_or_else(misplaced)?;
    if soul.len() > SOUL_BYTES_MAX {
        return Err(SoulError::TooLarge {
            path: path.to_owned(),
            bytes: soul.len(),
        });
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    let whole = |code: &str| with_heading(name, soul, PROMPT_VERSION, code);
    let request = prompt::request(path, soul);
    let described = soul.lines().skip(usize::from(context_line(soul).is_some()));
    if described.collect::<String>().trim().is_empty() {
        return Err(SoulError::Empty(path.to_owned()));
    }
    // Says where the script runs, and that its directive may stand there,
    // before a model is asked.
    let context = frolic_script::compile(&target, &whole(""))
        .map_err(SoulError::Directive)?
        .context;
    let system = prompt::system(service, context);
    let mut turns = vec![Turn {
        by: Speaker::User,
        text: request,
    }];
    let mut last = None;
    for round in 1..=ROUNDS_MAX {
        let answer = model.answer(&system, &turns)?;
        let complaint = match code_of(&answer) {
            None => prompt::no_code(),
            Some(code) => {
                let luau = whole(&code);
                match frolic_script::compile(&target, &luau) {
                    Ok(_) => {
                        return Ok(Generated {
                            path: target,
                            luau,
                            rounds: round,
                        });
                    }
                    Err(error) => {
                        let complaint = prompt::does_not_compile(&error);
                        last = Some((error, code));
                        complaint
                    }
                }
            }
        };
        tracing::info!(path, round, complaint, "the model's answer was not used");
        let answer = shortened(answer);
        turns.push(Turn {
            by: Speaker::Assistant,
            text: answer,
        });
        turns.push(Turn {
            by: Speaker::User,
            text: complaint,
        });
    }
    let path = path.to_owned();
    Err(match last {
        Some((error, code)) => SoulError::Broken { path, error, code },
        None => SoulError::NoCode { path },
    })
}

/// An answer that may go back: APIs refuse empty messages, and nothing grows
/// without end.
pub(crate) fn shortened(mut answer: String) -> String {
    if answer.trim().is_empty() {
        return "(nothing)".to_owned();
    }
    if answer.len() > ANSWER_BYTES_MAX {
        let end = (0..=ANSWER_BYTES_MAX)
            .rev()
            .find(|&end| answer.is_char_boundary(end));
        answer.truncate(end.unwrap_or(0));
    }
    answer
}
