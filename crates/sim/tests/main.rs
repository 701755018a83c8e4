//! Movement and collision against whole scenes. One program, so that it is
//! linked once.

mod blocks;
mod cache;
mod character;
mod stepping;
mod swimming;
