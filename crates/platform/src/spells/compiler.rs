//! What turns words into spells: given by the binary, which knows the Luau
//! compiler and the language model. The control plane knows neither.

/// Compiles spells and has them written. Both calls may block.
pub trait SpellCompiler: Send + Sync {
    /// Compiles the code of a spell as a world will.
    ///
    /// # Errors
    /// What is wrong with it, with the line.
    fn check(&self, spell_id: &str, code: &str) -> Result<(), String>;

    /// Writes the code of a spell from a description, or changes `code` by it.
    ///
    /// # Errors
    /// [`WriteError`].
    fn write(&self, spell_id: &str, prompt: &str, code: Option<&str>)
    -> Result<String, WriteError>;
}

/// Why no code was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// It may work later.
    #[error("{0}")]
    Later(String),
    /// It will not work as it is.
    #[error("{0}")]
    Never(String),
}
