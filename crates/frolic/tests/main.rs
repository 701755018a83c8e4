//! The binary as a process of its own, with real game servers and real sockets.
//! One program, so that it is linked once.

mod bare_start;
mod closing;
mod command_line;
mod console;
#[cfg(target_os = "linux")]
mod deploy;
mod durability;
mod environment;
mod full_disk;
mod killed_server;
mod killed_store;
#[cfg(target_os = "linux")]
mod migrating;
#[cfg(target_os = "linux")]
mod open_files;
mod replay;
mod rooms;
mod soak;
mod store;
mod stuck_script;
mod support;
mod tls;
mod upgrade;
