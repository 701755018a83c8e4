//! The control plane: login, store, joining, and the fleet of game servers.
//!
//! [`Platform::open`] creates a platform, [`bind`] opens its port and [`Platform::serve`] runs it.
//! [`routes`] lists its HTTP routes. [`fleet`] starts and supervises game servers through a
//! [`fleet::Launcher`] that the binary provides. Nothing here simulates: a world is a database row,
//! a process and a ticket.
//!
//! A module imports only from layers below its own. The lowest first: `core` (database, clock,
//! limits), `community` (people), `fleet` (processes), `catalog` (games), `worlds`, `spells`; above
//! them what concerns several layers: moderation, administration, Socket.IO. The services of a layer
//! are one struct, which is the state of its routes; [`platform`] creates and connects them.
#![forbid(unsafe_code)]

mod account_deletion;
mod admin;
pub mod api;
mod catalog;
mod cleanup;
mod community;
mod core;
mod draft;
pub mod fleet;
mod health;
mod moderation;
mod openapi;
mod platform;
mod routes;
mod server;
mod site;
mod socketio;
pub mod spells;
mod worlds;

pub use crate::core::blobs::{BlobLocation, BlobUrlError, S3Location};
pub use crate::core::clock::{self, Clock};
pub use crate::core::db::{Kind as DatabaseKind, OpenDatabaseError};
pub use crate::core::settings::{FleetSettings, IdentitySettings, LimitSettings, Settings};
pub use crate::core::{ids, signing, tls};
pub use catalog::publish::{PublishError, ScriptChecker};
pub use fleet::address;
pub use platform::{OpenError, Parts, Platform};
pub use server::{BindError, bind};
pub use site::SiteFiles;
