//! The control plane: login, store, joining, and the fleet of game servers.
//!
//! [`Platform::open`] creates a platform, [`bind`] opens its port and [`Platform::serve`] runs it.
//! [`routes`] lists its HTTP routes. [`fleet`] starts and supervises game servers through a
//! [`fleet::Launcher`] that the binary provides. Nothing here simulates: a world is a database row,
//! a process and a ticket.
#![forbid(unsafe_code)]

mod accounts;
pub mod address;
mod admin;
pub mod api;
mod auth;
mod blobs;
mod catalog;
mod cleanup;
pub mod clock;
mod console;
mod datastore;
mod db;
mod derived;
mod draft;
mod encoding;
mod error;
mod extract;
pub mod fleet;
mod health;
pub mod ids;
mod internal;
mod join;
mod limits;
mod metrics;
mod moderation;
mod names;
mod openapi;
mod paging;
mod platform;
mod profiles;
mod remote_commands;
mod rooms;
mod routes;
mod scripts;
mod server;
mod settings;
pub mod signing;
mod site;
mod social;
mod socketio;
pub mod spells;
mod texts;
pub mod tls;
mod trace;
mod world_lease;
mod world_log;
mod worlds;

pub use blobs::{BlobLocation, BlobUrlError, S3Location};
pub use catalog::publish::{PublishError, ScriptChecker};
use catalog::{games, publish};
pub use clock::Clock;
pub use db::{Kind as DatabaseKind, OpenDatabaseError};
pub use platform::{OpenError, Parts, Platform};
pub use server::{BindError, bind};
pub use settings::{FleetSettings, IdentitySettings, LimitSettings, Settings};
pub use site::SiteFiles;
