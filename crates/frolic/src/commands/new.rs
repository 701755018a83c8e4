//! `frolic new`: a folder with a game that runs, to begin with. It has an id, a
//! name and a README of its own, whichever template it comes from.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use frolic_package::{Limits, Manifest};
use toml::{Table, Value};

/// Make a new game in a folder of its own
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  frolic new sky-race                   the ground, three coins, and scripts of both sides
  frolic new sky-race --template obby   a copy of the sample game obby
")]
pub struct NewArgs {
    /// The folder to make; its name becomes the id of the game
    folder: PathBuf,
    /// Template: basic, or the name of a sample game
    #[arg(long, default_value = BASIC)]
    template: String,
}

/// The smallest game that shows where everything goes.
const BASIC: &str = "basic";

/// Files of the basic template; `{{id}}` and `{{name}}` stand for those of the game.
const BASIC_FILES: [(&str, &str); 6] = [
    ("game.toml", include_str!("../../templates/basic/game.toml")),
    (
        "scene.json",
        include_str!("../../templates/basic/scene.json"),
    ),
    ("README.md", include_str!("../../templates/basic/README.md")),
    (
        "scripts/ServerScriptService/Main.luau",
        include_str!("../../templates/basic/scripts/ServerScriptService/Main.luau"),
    ),
    (
        "scripts/Workspace/Coin.luau",
        include_str!("../../templates/basic/scripts/Workspace/Coin.luau"),
    ),
    (
        "scripts/StarterGui/Hud.luau",
        include_str!("../../templates/basic/scripts/StarterGui/Hud.luau"),
    ),
];

type Files = BTreeMap<String, Vec<u8>>;

/// Runs `frolic new`.
///
/// # Errors
/// When the folder is not empty or cannot be written, or its name gives no id.
pub fn run(args: NewArgs) -> Result<()> {
    let id = id_of(&args.folder)?;
    let files = files_of(&args.template, &id)?;
    check_empty(&args.folder)?;
    for (path, bytes) in &files {
        write(&args.folder.join(path), bytes)?;
    }
    println!(
        "Created {} in {}. Next:",
        title_of(&id),
        args.folder.display()
    );
    let folder = as_argument(&args.folder);
    println!("  frolic dev {folder}       play it; what you save is live at once");
    println!("  frolic check {folder}     find mistakes");
    println!("  frolic publish {folder}   share it");
    println!(
        "{} says what is where.",
        args.folder.join("README.md").display()
    );
    Ok(())
}

/// A path, quoted for a shell.
fn as_argument(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = |c: char| c.is_alphanumeric() || "-_./\\:".contains(c);
    match text.chars().all(is_plain) {
        true => text.into_owned(),
        false => format!("\"{text}\""),
    }
}

/// The id that the name of a folder gives: `My Game!` becomes `my-game`.
fn id_of(folder: &Path) -> Result<String> {
    let name = match folder.file_name() {
        Some(name) => name.to_string_lossy().into_owned(),
        // `.` and `..` have no name of their own.
        None => {
            let whole = folder.canonicalize().unwrap_or_default();
            let name = whole.file_name().unwrap_or_default();
            name.to_string_lossy().into_owned()
        }
    };
    let dashed: String = name
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let words: Vec<&str> = dashed.split('-').filter(|word| !word.is_empty()).collect();
    let id = words.join("-");
    let manifest = manifest_with(Table::new(), &id)?;
    if Manifest::parse(manifest.as_bytes(), &Limits::default()).is_err() {
        bail!(
            "\"{name}\" gives no id for a game; name the folder with letters and digits, like sky-race"
        );
    }
    Ok(id)
}

/// `sky-race` as people write it: `Sky Race`.
fn title_of(id: &str) -> String {
    let words = id.split('-').map(|word| {
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Everything that the new folder gets.
fn files_of(template: &str, id: &str) -> Result<Files> {
    let samples = frolic_assets::sample_games();
    if samples.iter().any(|(sample, _)| sample == id) {
        bail!("{id} is the id of a sample game; name the folder differently");
    }
    if template == BASIC {
        let filled = |text: &str| {
            let text = text.replace("{{id}}", id);
            text.replace("{{name}}", &title_of(id)).into_bytes()
        };
        let files = BASIC_FILES.map(|(path, text)| (path.to_owned(), filled(text)));
        return Ok(Files::from(files));
    }
    let names: Vec<_> = samples.iter().map(|(name, _)| name.clone()).collect();
    let Some((_, files)) = samples.into_iter().find(|(name, _)| name == template) else {
        bail!(
            "there is no template {template}; choose {BASIC} or a sample game: {}",
            names.join(", ")
        );
    };
    of_sample(files, template, id)
}

/// A sample with a name of its own. Its picture and its texts are about the
/// sample, so they stay behind.
fn of_sample(mut files: Files, sample: &str, id: &str) -> Result<Files> {
    let manifest = files.remove("game.toml").unwrap_or_default();
    let manifest: Table = toml::from_str(std::str::from_utf8(&manifest)?)?;
    let game = manifest.get("game").and_then(Value::as_table);
    let picture = game.and_then(|game| game.get("thumbnail")?.as_str());
    if let Some(picture) = picture {
        files.remove(picture);
    }
    files.insert(
        "game.toml".to_owned(),
        manifest_with(manifest, id)?.into_bytes(),
    );
    let readme = format!(
        "# {}\n\nBegan as a copy of the sample game {sample}.\n",
        title_of(id)
    );
    files.insert("README.md".to_owned(), readme.into_bytes());
    Ok(files)
}

/// A manifest with the id and name of the new game.
fn manifest_with(mut manifest: Table, id: &str) -> Result<String> {
    let game = manifest
        .entry("game")
        .or_insert_with(|| Value::Table(Table::new()));
    let game = game.as_table_mut().context("[game] is no section")?;
    for about_the_sample in ["description", "tags", "thumbnail"] {
        game.remove(about_the_sample);
    }
    for (key, value) in [("id", id), ("name", &title_of(id)), ("version", "0.1.0")] {
        game.insert(key.to_owned(), Value::String(value.to_owned()));
    }
    Ok(toml::to_string(&manifest)?)
}

/// Refuses a folder that has something in it; a repository may be there already.
fn check_empty(folder: &Path) -> Result<()> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read {}", folder.display()));
        }
    };
    for entry in entries {
        let name = entry?.file_name();
        if name != ".git" {
            bail!(
                "{} is not empty: it has {}; choose a folder that does not exist yet",
                folder.display(),
                name.to_string_lossy()
            );
        }
    }
    Ok(())
}

/// Writes a file that is not there yet.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(cannot)?;
    }
    let mut file = fs::File::create_new(path).with_context(cannot)?;
    file.write_all(bytes).with_context(cannot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_give_ids_and_names() {
        let id = |folder: &str| id_of(Path::new(folder)).ok();
        assert_eq!(id("games/Sky Race_2").as_deref(), Some("sky-race-2"));
        assert_eq!(id("--a--b--").as_deref(), Some("a-b"));
        assert_eq!(id("games/!!!"), None);
        assert_eq!(id(&"x".repeat(300)), None);
        assert_eq!(title_of("sky-race-2"), "Sky Race 2");
        assert_eq!(as_argument(Path::new("a/sky-race")), "a/sky-race");
        assert_eq!(as_argument(Path::new("Sky Race")), "\"Sky Race\"");
    }

    #[test]
    fn unknown_templates_and_ids_of_samples_are_refused() {
        let error = files_of("nope", "mine").unwrap_err().to_string();
        assert!(error.contains("basic or a sample game: obby"), "{error}");
        let error = files_of(BASIC, "obby").unwrap_err().to_string();
        assert!(error.contains("name the folder differently"), "{error}");
    }
}
