//! Generates spells from text: the Luau compiler and the language model behind
//! the platform's interface.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use frolic_platform::spells::{SpellCompiler, WriteError};
use frolic_soul::{ModelError, SpellError, check_spell, write_spell};

use crate::language_model::model as configured_model;

/// How long the answer to "is there a model" counts: a key may be set while the platform runs.
const ANSWER_LIFE: Duration = Duration::from_secs(5);

/// The real compiler, and the model that the configuration names.
#[derive(Default)]
pub struct Workshop {
    /// When it was last asked for a model, and whether there was one.
    model: Mutex<Option<(Instant, bool)>>,
}

/// The implementation for the platform.
pub fn workshop() -> Arc<dyn SpellCompiler> {
    Arc::new(Workshop::default())
}

impl SpellCompiler for Workshop {
    fn check(&self, spell_id: &str, code: &str) -> Result<(), String> {
        check_spell(spell_id, code)
    }

    fn supports_prompts(&self) -> bool {
        let mut model = self.model.lock().unwrap_or_else(PoisonError::into_inner);
        match *model {
            Some((at, there)) if at.elapsed() < ANSWER_LIFE => there,
            _ => {
                let there = configured_model().is_ok();
                *model = Some((Instant::now(), there));
                there
            }
        }
    }

    fn write(
        &self,
        spell_id: &str,
        prompt: &str,
        code: Option<&str>,
    ) -> Result<String, WriteError> {
        // Asked for each time: a key may be set while the platform runs.
        let model =
            configured_model().map_err(|error| WriteError::Unavailable(format!("{error:#}")))?;
        write_spell(&model, spell_id, prompt, code).map_err(|error| {
            let message = error.to_string();
            match error {
                SpellError::Model(
                    ModelError::Busy { .. } | ModelError::Late(_) | ModelError::Unreachable { .. },
                ) => WriteError::Retryable(message),
                SpellError::Model(ModelError::CutOff | ModelError::TooLarge(_)) => {
                    WriteError::Rejected("The spell would be too long. Describe less.".to_owned())
                }
                SpellError::Model(_) => WriteError::Unavailable(message),
                _ => WriteError::Rejected(message),
            }
        })
    }
}
