//! Zip, reduced to what packages need, and written so that equal files give equal bytes.
//!
//! Zip readers disagree on what an odd archive contains: the last of two equal names, the local
//! or the central header, what follows a comment. A package is its hash, so it must mean one
//! thing only. This reader therefore takes nothing odd: the archive starts with its first entry,
//! entries follow each other without gap or overlap, then the central directory, then the end
//! record, and each local header, extra field and descriptor agrees with the central header. The writer has no time, no owner
//! and no extra field to vary.

mod read;
mod write;

pub(super) use read::{check, read, read_one};
pub use write::{PackError, pack};

const LOCAL_SIGNATURE: u32 = 0x0403_4b50;
const CENTRAL_SIGNATURE: u32 = 0x0201_4b50;
const END_SIGNATURE: u32 = 0x0605_4b50;
const DESCRIPTOR_SIGNATURE: u32 = 0x0807_4b50;
const LOCAL_BYTES: usize = 30;
const CENTRAL_BYTES: usize = 46;
const END_BYTES: usize = 22;

const METHOD_STORED: u16 = 0;
const METHOD_DEFLATE: u16 = 8;
const METHOD_ZSTD: u16 = 93;

/// Sizes and checksum follow the data instead of standing before it.
const FLAG_DESCRIPTOR: u16 = 1 << 3;
/// Encryption of the data (bits 0 and 6), of the directory (13); compressed patches (5).
const FLAGS_REFUSED: u16 = 1 | 1 << 5 | 1 << 6 | 1 << 13;
