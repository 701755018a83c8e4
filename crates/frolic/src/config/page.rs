//! The page of settings for operators, generated from the comments of [`Layer`].

use std::fs;
use std::path::PathBuf;

use clap::CommandFactory;

use super::Layer;

const INTRO: &str = "\
# Settings of `frolic serve`

A flag takes precedence over the environment, which takes precedence over `frolic.toml`. A flag is the name in lower case with hyphens
(`--data-dir`), a key in `frolic.toml` the name in lower case (`data_dir`). `frolic serve --help` lists them all. Secrets belong in the environment or
the file, because other users of a machine can see flags.

This page is generated from `crates/frolic/src/config.rs`.

| setting | default | meaning |
|---|---|---|
";

#[derive(clap::Parser)]
struct Flags {
    #[command(flatten)]
    _layer: Layer,
}

/// `cargo xtask codegen` runs this test together with the others that export.
#[test]
fn export_bindings_settings() {
    let page = page();
    assert!(
        page.contains("| `SOUL_MODEL` | none | Name of that model |"),
        "{page}"
    );
    let Some(folder) = std::env::var_os("DOCS_EXPORT_DIR").map(PathBuf::from) else {
        return;
    };
    let folder = folder.join("operate");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("settings.md"), page).unwrap();
}

fn page() -> String {
    let schema = schemars::schema_for!(Layer).to_value();
    let rows = names().into_iter().map(|name| {
        let text = schema["properties"][&name]["description"].as_str();
        let text = text.unwrap_or_default().replace('\n', " ");
        let (meaning, default) = text.rsplit_once(" [default: ").unwrap_or((&text, "none]"));
        let meaning: Vec<String> = meaning.split(' ').map(linked).collect();
        let default = default.trim_end_matches(']');
        format!(
            "| `{}` | {default} | {} |\n",
            name.to_uppercase(),
            meaning.join(" ")
        )
    });
    INTRO.to_owned() + &rows.collect::<String>()
}

/// Flags in the order of their declaration, then what is never a flag.
fn names() -> Vec<String> {
    let command = Flags::command();
    let flags = command.get_arguments().map(|arg| arg.get_id().to_string());
    let mut names: Vec<String> = flags.collect();
    let others: Vec<String> = Layer::names()
        .filter(|name| !names.contains(name))
        .collect();
    names.extend(others);
    names
}

/// A word that names a page of docs/ becomes a link from docs/operate.
fn linked(word: &str) -> String {
    let Some((page, rest)) = word
        .strip_prefix("docs/")
        .and_then(|path| path.split_once(".md"))
    else {
        return word.to_owned();
    };
    match page.strip_prefix("operate/") {
        Some(page) => format!("[{page}.md]({page}.md){rest}"),
        None => format!("[{page}.md](../{page}.md){rest}"),
    }
}
