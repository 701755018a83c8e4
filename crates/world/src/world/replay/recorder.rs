//! Writes a recording while the world runs.

use super::record::{self, Ending, Record, RecordingHeader};

/// Settings of a recording.
#[derive(Clone, Copy, Debug)]
pub struct RecordOptions {
    /// Ticks between two fingerprints of the state; none: one per second. Each
    /// costs an iteration over all entities.
    pub hash_every_ticks: Option<u32>,
    /// Bytes that may wait for
    /// [`World::take_recording`](crate::World::take_recording) before the
    /// recording ends.
    pub waiting_bytes_max: usize,
}

impl Default for RecordOptions {
    fn default() -> Self {
        Self {
            hash_every_ticks: None,
            waiting_bytes_max: 64 * 1024 * 1024,
        }
    }
}

/// The program as recordings identify it: its version, and its target as far as
/// that affects results.
pub fn this_build() -> String {
    const KIND: &str = match (cfg!(target_arch = "x86_64"), cfg!(target_arch = "aarch64")) {
        (true, _) => "x86_64",
        (_, true) => "aarch64",
        _ => "another processor",
    };
    const SYSTEM: &str = match (cfg!(target_os = "linux"), cfg!(target_os = "macos")) {
        (true, _) => "Linux",
        (_, true) => "macOS",
        _ => "another system",
    };
    format!("{} for {SYSTEM} on {KIND}", env!("CARGO_PKG_VERSION"))
}

/// Collects records until the host takes them.
pub(crate) struct Recorder {
    waiting: Vec<u8>,
    waiting_bytes_max: usize,
    hash_every_ticks: u32,
    /// The count of interrupted scripts that was last recorded.
    cuts: u64,
    ended: bool,
}

impl Recorder {
    pub fn new(header: &RecordingHeader, options: RecordOptions) -> Self {
        let mut waiting = Vec::new();
        record::write_header(&mut waiting, header);
        Self {
            waiting,
            waiting_bytes_max: options.waiting_bytes_max,
            hash_every_ticks: header.hash_every_ticks,
            cuts: 0,
            ended: false,
        }
    }

    pub fn note(&mut self, record: Record) {
        if self.ended {
            return;
        }
        if self.waiting.len() > self.waiting_bytes_max {
            let why = "the recorded data was not taken";
            self.end(Ending::Incomplete(why.to_owned()));
            return;
        }
        record::write(&mut self.waiting, &record);
    }

    /// Records that scripts were interrupted since the last call.
    pub fn note_cuts(&mut self, cuts: u64) {
        if cuts != self.cuts {
            self.cuts = cuts;
            self.note(Record::Cut);
        }
    }

    pub fn wants_hash(&self, tick: u32) -> bool {
        !self.ended && tick.is_multiple_of(self.hash_every_ticks)
    }

    pub fn end(&mut self, ending: Ending) {
        if !self.ended {
            self.ended = true;
            record::write(&mut self.waiting, &Record::End(ending));
        }
    }

    pub fn take(&mut self) -> Vec<u8> {
        let capacity = self.waiting.len();
        std::mem::replace(&mut self.waiting, Vec::with_capacity(capacity))
    }
}
