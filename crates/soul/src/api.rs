//! The script API, short enough for a prompt: from the same definitions as the
//! reference and the editors' types.

use std::fmt::Write as _;

use frolic_script::RunContext;
use rust_embed::RustEmbed;
use serde::Deserialize;

#[derive(RustEmbed)]
#[folder = "$CARGO_MANIFEST_DIR/../script/api"]
struct Definitions;

#[derive(Deserialize)]
struct Definition {
    name: String,
    kind: String,
    side: String,
    about: String,
    #[serde(default)]
    member: Vec<Member>,
}

#[derive(Deserialize)]
struct Member {
    name: String,
    kind: String,
    #[serde(default)]
    side: Option<String>,
    #[serde(default, rename = "type")]
    luau_type: String,
    about: String,
}

/// The API as a script of this context sees it, one line per member.
pub(crate) fn summary(context: RunContext) -> String {
    let mut text = String::new();
    for file in Definitions::iter().filter(|file| file.ends_with(".toml")) {
        let Some(data) = Definitions::get(&file) else {
            continue;
        };
        let source = String::from_utf8_lossy(&data.data);
        match toml::from_str::<Definition>(&source) {
            Ok(definition) => describe(&definition, context, &mut text),
            Err(error) => tracing::warn!(%file, %error, "an API definition cannot be read"),
        }
    }
    text
}

fn describe(definition: &Definition, context: RunContext, text: &mut String) {
    if !is_there(&definition.side, context) {
        return;
    }
    let _ = writeln!(
        text,
        "{} {} — {}",
        definition.kind,
        definition.name,
        one_line(&definition.about)
    );
    for member in &definition.member {
        let side = member.side.as_deref().unwrap_or(&definition.side);
        if is_there(side, context) {
            let _ = writeln!(
                text,
                "  {} {}.{}: {} — {}",
                member.kind,
                definition.name,
                member.name,
                member.luau_type,
                one_line(&member.about)
            );
        }
    }
}

/// A script that runs on both sides may ask where it is, so it sees all.
fn is_there(side: &str, context: RunContext) -> bool {
    match context {
        RunContext::Both => true,
        RunContext::Server => side != "client",
        RunContext::Client => side != "server",
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_gets_its_own_api() {
        let server = summary(RunContext::Server);
        assert!(server.contains("Store.Increment: (key: string"), "{server}");
        assert!(!summary(RunContext::Client).contains("Store.Increment"));
    }
}
