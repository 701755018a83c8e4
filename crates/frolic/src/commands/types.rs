//! `frolic types`: type definitions of the script API, for editors.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

/// Write Luau type definitions of the script API, for luau-lsp
#[derive(Args, Debug)]
pub struct TypesArgs {
    /// Where to write them; without it they go to standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub fn run(args: TypesArgs) -> anyhow::Result<()> {
    let text = frolic_script::api::typedefs::definitions();
    match args.output {
        None => print!("{text}"),
        Some(file) => {
            std::fs::write(&file, text)
                .with_context(|| format!("cannot write {}", file.display()))?;
            eprintln!(
                "wrote {}; name it in luau-lsp.types.definitionFiles of your editor",
                file.display()
            );
        }
    }
    Ok(())
}
