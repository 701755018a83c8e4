//! Writes a world's recording to a file, for `frolic replay`.
//!
//! The world's thread hands pieces to a writer thread and never waits for it: when
//! the disk does not keep up, the recording ends and the game continues. The file
//! is one zstd stream, flushed with every piece, so that after a `kill -9` all but
//! the last half second can be read.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use frolic_fleet_api::recording_name::RecordingName;
use frolic_world::World;
use frolic_world::replay::{Ending, Record};

/// Pieces per second.
const PIECES_PER_S: u32 = 2;
/// Pieces that may wait for the disk: half a minute.
const PIECES_WAITING_MAX: usize = 60;
/// Bytes that may wait for the disk.
const BYTES_WAITING_MAX: usize = 64 * 1024 * 1024;
/// Inputs are repetitive: the fastest level removes most of it.
const ZSTD_LEVEL: i32 = 1;

/// A recording that is being written. Dropping it waits for the disk.
pub struct Recording {
    path: PathBuf,
    pieces: Option<SyncSender<Piece>>,
    waiting: Arc<AtomicUsize>,
    writer: Option<JoinHandle<()>>,
}

enum Piece {
    More(Vec<u8>),
    Last(Vec<u8>),
}

impl Recording {
    /// Opens a new file in `folder`, which is made where it is missing.
    ///
    /// # Errors
    /// When the disk refuses, or no thread can be started.
    pub fn start(folder: &Path, world_id: &str) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let path = folder.join(file_name(world_id));
        // Write-only: a confined world may not read what others record.
        let file = File::options().write(true).create_new(true).open(&path)?;
        Self::write_to(file, path)
    }

    fn write_to(file: impl Write + Send + 'static, path: PathBuf) -> io::Result<Self> {
        let (pieces, receiver) = sync_channel(PIECES_WAITING_MAX);
        let waiting = Arc::new(AtomicUsize::new(0));
        let (written, shown) = (waiting.clone(), path.clone());
        let writer = std::thread::Builder::new()
            .name("recording".into())
            .spawn(move || {
                if let Err(error) = write_all(file, &receiver, &written) {
                    tracing::warn!(%error, file = %shown.display(), "the recording could not be written");
                }
            })?;
        Ok(Self {
            path,
            pieces: Some(pieces),
            waiting,
            writer: Some(writer),
        })
    }

    fn send(&mut self, piece: Piece, bytes: usize) {
        let Some(pieces) = &self.pieces else {
            return;
        };
        let waiting = self.waiting.fetch_add(bytes, Relaxed) + bytes;
        if waiting > BYTES_WAITING_MAX || pieces.try_send(piece).is_err() {
            self.pieces = None;
            tracing::warn!(
                file = %self.path.display(),
                "the disk did not keep up, so the recording ends here; the world continues"
            );
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.pieces = None;
        if let Some(writer) = self.writer.take() {
            // A panic of the writer needs no further handling.
            let _ = writer.join();
        }
    }
}

/// Starts a recording if requested. A world without one is better than no world, so
/// a failing disk is only logged.
pub fn start(folder: Option<&Path>, world_id: &str) -> Option<Recording> {
    let folder = folder?;
    match Recording::start(folder, world_id) {
        Ok(recording) => {
            tracing::info!(file = %recording.path.display(), "recording");
            Some(recording)
        }
        Err(error) => {
            tracing::warn!(%error, folder = %folder.display(), "nothing is recorded");
            None
        }
    }
}

/// Queues what the world recorded; call it once per tick.
pub fn record(recording: &mut Option<Recording>, world: &mut World) {
    let every = (world.tick_hz() / PIECES_PER_S).max(1);
    let Some(active) = recording else { return };
    if !world.tick().is_multiple_of(every) {
        return;
    }
    let bytes = world.take_recording();
    let size = bytes.len();
    active.send(Piece::More(bytes), size);
    if active.pieces.is_none() {
        world.end_recording(Ending::Incomplete("the disk did not keep up".into()));
    }
}

/// Writes the rest and closes the file; call it when the world stops.
pub fn finish(recording: &mut Option<Recording>, world: &mut World) {
    if let Some(mut active) = recording.take() {
        world.end_recording(Ending::Complete);
        let bytes = world.take_recording();
        let size = bytes.len();
        active.send(Piece::Last(bytes), size);
    }
}

fn file_name(world_id: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let millis = now.map_or(0, |since| since.as_millis() as u64);
    RecordingName::new(world_id, millis).to_string()
}

/// The writer's thread.
fn write_all(file: impl Write, pieces: &Receiver<Piece>, waiting: &AtomicUsize) -> io::Result<()> {
    let mut file = zstd::stream::write::Encoder::new(file, ZSTD_LEVEL)?;
    loop {
        match pieces.recv() {
            Ok(Piece::More(bytes)) => {
                file.write_all(&bytes)?;
                file.flush()?;
                waiting.fetch_sub(bytes.len(), Relaxed);
            }
            Ok(Piece::Last(bytes)) => {
                file.write_all(&bytes)?;
                return file.finish()?.flush();
            }
            // The host gave up, or its thread died.
            Err(_) => {
                let why = "the recording was stopped before the world".to_owned();
                file.write_all(&Record::End(Ending::Incomplete(why)).to_bytes())?;
                return file.finish()?.flush();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// A disk that blocks until it is released, then stores what it is given.
    #[derive(Clone, Default)]
    struct SlowDisk {
        gate: Arc<Mutex<()>>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for SlowDisk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _open = self.gate.lock().unwrap();
            self.written.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn written(disk: &SlowDisk) -> Vec<u8> {
        let bytes = disk.written.lock().unwrap().clone();
        zstd::stream::decode_all(bytes.as_slice()).unwrap()
    }

    #[test]
    fn a_disk_that_does_not_keep_up_ends_the_recording_and_nothing_else() {
        let disk = SlowDisk::default();
        let gate = disk.gate.clone();
        let shut = gate.lock().unwrap();
        let mut recording = Recording::write_to(disk.clone(), "slow".into()).unwrap();
        // Returns at once each time, although nothing is written.
        for number in 0..PIECES_WAITING_MAX as u8 + 10 {
            recording.send(Piece::More(vec![number]), 1);
        }
        assert!(recording.pieces.is_none(), "it gave up");
        drop(shut);
        drop(recording);
        let bytes = written(&disk);
        let count = bytes.iter().zip(0..).take_while(|(a, b)| **a == *b).count();
        assert!(count >= PIECES_WAITING_MAX, "{count} pieces");
        let why = "the recording was stopped before the world".to_owned();
        let end = Record::End(Ending::Incomplete(why)).to_bytes();
        assert_eq!(bytes[count..], end, "and the file says so");
    }

    #[test]
    fn the_last_piece_closes_the_file() {
        let disk = SlowDisk::default();
        let mut recording = Recording::write_to(disk.clone(), "whole".into()).unwrap();
        recording.send(Piece::More(b"more ".to_vec()), 5);
        recording.send(Piece::Last(b"last".to_vec()), 4);
        drop(recording);
        assert_eq!(written(&disk), b"more last");
    }
}
