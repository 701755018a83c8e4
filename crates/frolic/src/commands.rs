//! The subcommands, one file each: `…Args` and `run`.

pub mod serve;
