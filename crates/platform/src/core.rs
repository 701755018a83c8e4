//! The lowest layer: database, blobs, clock, errors, authentication, and the parts that all HTTP
//! handlers share. Knows no games, worlds or spells.

pub mod auth;
pub mod blobs;
pub mod clock;
pub mod db;
pub mod encoding;
pub mod error;
pub mod extract;
pub mod ids;
pub mod limits;
pub mod metrics;
pub mod names;
pub mod paging;
pub mod settings;
pub mod signing;
pub mod texts;
pub mod tls;
pub mod trace;
