//! Whole packages: hostile ones, packing, and the sample games.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod fixtures;
mod games;
mod hostile;
mod packing;
mod terrain;
