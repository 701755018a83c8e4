//! What turns words into spells: given by the binary, which knows the Luau
//! compiler and the language model. The control plane knows neither.

/// Compiles spells and has them written. Both calls may block.
pub trait SpellCompiler: Send + Sync {
    /// Compiles the code of a spell as a world will.
    ///
    /// # Errors
    /// What is wrong with it, with the line.
    fn check(&self, spell_id: &str, code: &str) -> Result<(), String>;

    /// Whether spells can be written from a description here; cheap, and asked for each page.
    fn writes(&self) -> bool;

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
    /// It may work later. The text is for the operator.
    #[error("{0}")]
    Later(String),
    /// It will not work as it is. The text is for whoever asked.
    #[error("{0}")]
    Never(String),
    /// The operator has to do something first; players are told no more than that it does not work.
    #[error("{0}")]
    Unavailable(String),
}
