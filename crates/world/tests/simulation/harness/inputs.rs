//! Inputs that several tests give to worlds.

use std::collections::BTreeMap;

use frolic_protocol::Args;
use frolic_script::CompileError;
use frolic_world::input::{self, Actor};
use frolic_world::{Reloaded, World};

pub fn cast(
    by: impl Into<Actor>,
    spell: &str,
    revision: Option<&str>,
    params: Args,
) -> input::Cast {
    input::Cast {
        by: by.into(),
        spell: spell.to_owned(),
        revision: revision.map(str::to_owned),
        params,
    }
}

/// Replaces the world's scripts by those of a package.
pub fn reload(
    world: &mut World,
    revision: &str,
    sources: &BTreeMap<String, String>,
) -> Result<Option<Reloaded>, Vec<CompileError>> {
    let changes = world.changes_to(sources);
    let revision = revision.to_owned();
    world.apply(input::Reload { revision, changes })
}
