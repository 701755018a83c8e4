//! What the crate promises about whole packages: hostile ones, packing, and the sample games.

mod fixtures;
mod games;
mod hostile;
mod packing;
