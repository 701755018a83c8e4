//! What turns words into spells: the Luau compiler and the language model, as
//! the platform wants them.

use std::sync::Arc;

use frolic_platform::spells::{SpellCompiler, WriteError};
use frolic_soul::{ModelError, SpellError, check_spell, write_spell};

use crate::commands::soul;

/// The real compiler, and the model that the configuration names.
pub struct Workshop;

/// What the platform is given.
pub fn workshop() -> Arc<dyn SpellCompiler> {
    Arc::new(Workshop)
}

impl SpellCompiler for Workshop {
    fn check(&self, spell_id: &str, code: &str) -> Result<(), String> {
        check_spell(spell_id, code)
    }

    fn write(
        &self,
        spell_id: &str,
        prompt: &str,
        code: Option<&str>,
    ) -> Result<String, WriteError> {
        // Asked for each time: a key may be set while the platform runs.
        let model = soul::model().map_err(|error| WriteError::Never(format!("{error:#}")))?;
        write_spell(&model, spell_id, prompt, code).map_err(|error| {
            let message = error.to_string();
            match error {
                SpellError::Model(
                    ModelError::Busy { .. } | ModelError::Late(_) | ModelError::Unreachable { .. },
                ) => WriteError::Later(message),
                _ => WriteError::Never(message),
            }
        })
    }
}
