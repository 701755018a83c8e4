//! The part of the API that is written in Luau, from `builtin/`.

use crate::compile::CompiledScript;

/// The engine's own scripts for the browser's VM, in the order to run them.
pub fn client_builtin() -> Vec<CompiledScript> {
    Vec::new()
}
