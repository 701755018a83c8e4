//! Interface to the Luau compiler and the language model. The binary implements it,
//! because this crate depends on neither.

/// Compiles spells and writes them from descriptions. Both calls may block.
pub trait SpellCompiler: Send + Sync {
    /// Compiles the code of a spell as a world would.
    ///
    /// # Errors
    /// What is wrong with it, with the line.
    fn check(&self, spell_id: &str, code: &str) -> Result<(), String>;

    /// Whether a language model is configured. Must be cheap: it is called for each
    /// page.
    fn supports_prompts(&self) -> bool;

    /// Writes the code of a spell from a description, or changes `code` accordingly.
    ///
    /// # Errors
    /// [`WriteError`].
    fn write(&self, spell_id: &str, prompt: &str, code: Option<&str>)
    -> Result<String, WriteError>;
}

/// Why no code was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// A retry may succeed. The text is for the operator.
    #[error("{0}")]
    Retryable(String),
    /// A retry would fail too. The text is for the user.
    #[error("{0}")]
    Rejected(String),
    /// The operator must fix the configuration. The text is for the operator; players
    /// only learn that the feature is unavailable.
    #[error("{0}")]
    Unavailable(String),
}
