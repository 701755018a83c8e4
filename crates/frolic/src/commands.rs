//! The subcommands, one file each: `…Args` and `run`.

pub mod bench;
pub mod check;
pub mod dev;
pub mod gameserver;
pub mod health;
pub mod login;
pub mod new;
pub mod pack;
pub mod publish;
pub mod replay;
pub mod serve;
pub mod soul;
pub mod types;
