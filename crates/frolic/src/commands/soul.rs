//! `frolic soul`: writes scripts in plain language out as Luau, beside them.
//! `frolic pack` does the same for every `.soul` that changed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail, ensure};
use clap::Args;
use frolic_package::{Limits, soul};
use frolic_soul::{MessagesApi, SOUL_BYTES_MAX, SoulError, compile};

use crate::folder;
use crate::language_model::model;

/// Write .soul files (scripts in plain language) out as Luau
#[derive(Args, Debug)]
#[command(after_help = "Needs a language model behind Anthropic's Messages API:
  SOUL_API_KEY   the key
  SOUL_API_URL   where it is [default: https://api.anthropic.com]
  SOUL_MODEL     which model
or soul_api_key, soul_api_url and soul_model in frolic.toml.

Example:
  frolic soul games/mine/scripts/Workspace/Door.soul    (writes Door.soul.luau beside it)")]
pub struct SoulArgs {
    /// The .soul files, each in scripts/<Service>/ of its game
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Generate them again even where they have not changed
    #[arg(long)]
    pub force: bool,
}

/// Runs `frolic soul`.
///
/// # Errors
/// When one of them could not be written out; the others are.
pub fn run(args: &SoulArgs) -> anyhow::Result<()> {
    let mut writer = Writer::new(args.force);
    let mut failed = 0;
    for file in &args.files {
        match writer.write_out(file) {
            Ok(Outcome::Written { target, answers }) => print_result(&target, answers),
            Ok(Outcome::Current(target)) => println!("{} is up to date", target.display()),
            Err(error) => {
                eprintln!("error: {error:#}");
                failed += 1;
            }
        }
    }
    ensure!(
        failed == 0,
        "{failed} of {} were not written out",
        args.files.len()
    );
    Ok(())
}

/// Writes every `.soul` of a game's folder out that changed since. Without any
/// no key is needed.
///
/// # Errors
/// At the first one that could not be written out.
pub fn bring_up_to_date(game: &Path) -> anyhow::Result<()> {
    let scripts = game.join("scripts");
    if !scripts.is_dir() {
        return Ok(());
    }
    let mut writer = Writer::new(false);
    let files = folder::walk(&scripts, &Limits::default())?;
    for (_, file) in files.iter().filter(|(name, _)| name.ends_with(".soul")) {
        if let Outcome::Written { target, answers } = writer.write_out(file)? {
            print_result(&target, answers);
        }
    }
    Ok(())
}

fn print_result(target: &Path, answers: u32) {
    let tries = if answers == 1 {
        String::new()
    } else {
        format!(" at the {answers}. try")
    };
    println!(
        "wrote {}{tries}; read it before you publish",
        target.display()
    );
}

enum Outcome {
    Written { target: PathBuf, answers: u32 },
    Current(PathBuf),
}

struct Writer {
    /// Made when the first one is needed.
    model: Option<MessagesApi>,
    force: bool,
}

impl Writer {
    fn new(force: bool) -> Self {
        Self { model: None, force }
    }

    fn write_out(&mut self, file: &Path) -> anyhow::Result<Outcome> {
        let path = path_in_scripts(file)?;
        let size = fs::metadata(file)
            .with_context(|| format!("cannot read {}", file.display()))?
            .len();
        ensure!(
            size <= SOUL_BYTES_MAX as u64,
            "{} has {size} bytes; a .soul has at most {SOUL_BYTES_MAX}",
            file.display()
        );
        let text =
            fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let target = PathBuf::from(soul::code_path(&file.to_string_lossy()));
        match fs::read(&target) {
            Ok(made) if soul::is_current(text.as_bytes(), &made) && !self.force => {
                return Ok(Outcome::Current(target));
            }
            Ok(made) if !soul::is_generated(&made) => bail!(
                "{} was written by hand and would be lost; rename it or remove it",
                target.display()
            ),
            _ => {}
        }
        let model = match &mut self.model {
            Some(model) => model,
            none => none.insert(model().with_context(|| format!("cannot write {path} out"))?),
        };
        eprintln!("generating {path} …");
        let made = compile(model, &path, &text).map_err(|error| match error {
            SoulError::Broken { ref code, .. } => {
                anyhow!("{error}\nIts last try was:\n{code}")
            }
            error => error.into(),
        })?;
        let partial = target.with_extension("luau.partial");
        fs::write(&partial, made.luau)
            .and_then(|()| fs::rename(&partial, &target))
            .with_context(|| format!("cannot write {}", target.display()))?;
        let answers = made.rounds;
        Ok(Outcome::Written { target, answers })
    }
}

/// Where a file is below its game's `scripts/`.
fn path_in_scripts(file: &Path) -> anyhow::Result<String> {
    let whole = file
        .canonicalize()
        .with_context(|| format!("cannot read {}", file.display()))?;
    let parts: Vec<String> = whole
        .components()
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    let at = parts.iter().rposition(|part| part == "scripts");
    let below = at.map(|at| parts[at + 1..].join("/"));
    below
        .filter(|path| path.ends_with(".soul") && path.contains('/'))
        .with_context(|| {
            format!(
                "{} is not a .soul file in scripts/<Service>/ of a game",
                file.display()
            )
        })
}
