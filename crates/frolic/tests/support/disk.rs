//! A data folder on a small disk of its own, which a test can fill and empty
//! while the platform runs. The disk is a tmpfs in a mount namespace of the
//! platform's, so it is gone with the platform, however that ends.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{Platform, scratch, serve};

/// Room for the sample games, a world and a while of its log.
const DISK_MB: u32 = 192;

/// Mounts the disk over a folder and becomes the program behind it. Where a
/// mount is not permitted this fails, and with it the test.
const ON_DISK: &str =
    r#"mount -t tmpfs -o "size=$1" tmpfs "$2" && cd "$2" && shift 2 && exec "$@""#;

/// Runs `command` with a tmpfs over `folder` that only it can see.
pub fn on_small_disk(command: &Command, folder: &Path, size: &str) -> Command {
    let mut unshare = Command::new("unshare");
    unshare.arg("--mount");
    if !rustix::process::geteuid().is_root() {
        unshare.arg("--map-root-user");
    }
    unshare.args(["sh", "-c", ON_DISK, "sh", size]).arg(folder);
    unshare.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => unshare.env(name, value),
            None => unshare.env_remove(name),
        };
    }
    unshare
}

impl Platform {
    /// A platform whose data folder is a small disk.
    pub fn start_on_small_disk(name: &str) -> (Self, Disk) {
        Self::start_on_small_disk_with(name, |_| {})
    }

    /// The same, with other settings.
    pub fn start_on_small_disk_with(name: &str, change: impl FnOnce(&mut Command)) -> (Self, Disk) {
        let data = scratch(name);
        let mut command = serve(&data, "0");
        change(&mut command);
        let command = on_small_disk(&command, &data, &format!("{DISK_MB}m"));
        let platform = Self::start_as(command, data);
        let disk = Disk::of_process(platform.pid(), &platform.data);
        (platform, disk)
    }
}

/// The disk of a process, seen from outside of its namespace.
pub struct Disk {
    folder: PathBuf,
}

impl Disk {
    /// The disk that a process has mounted over `folder`.
    pub fn of_process(pid: u32, folder: &Path) -> Self {
        let inside = folder.strip_prefix("/").expect("an absolute path");
        let folder = PathBuf::from(format!("/proc/{pid}/root")).join(inside);
        Self { folder }
    }

    /// Where its files are, for this process.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Fills it, and keeps it full until the result is dropped, even when the
    /// platform frees space meanwhile.
    pub fn fill(&self) -> Full {
        let filler = self.folder.join("filler");
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&filler)
            .expect("a file on the disk");
        let over = Arc::new(AtomicBool::new(false));
        let is_over = over.clone();
        write_all_there_is(&mut file);
        let keeper = std::thread::spawn(move || {
            while !is_over.load(Relaxed) {
                write_all_there_is(&mut file);
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        Full {
            filler,
            over,
            keeper: Some(keeper),
        }
    }
}

fn write_all_there_is(file: &mut std::fs::File) {
    for size in [1 << 20, 4096, 1] {
        let bytes = vec![0x5a; size];
        loop {
            match file.write(&bytes) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => break,
                Err(error) => panic!("the disk cannot be filled: {error}"),
            }
        }
    }
}

/// A disk without room. Dropping it makes room again.
pub struct Full {
    filler: PathBuf,
    over: Arc<AtomicBool>,
    keeper: Option<JoinHandle<()>>,
}

impl Drop for Full {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
        let _ = std::fs::remove_file(&self.filler);
    }
}

/// Makes system calls of a platform on its data folder fail, as those of a broken
/// disk do.
pub struct Faults {
    switches: PathBuf,
}

/// The operations that can fail.
#[derive(Clone, Copy)]
pub enum Fault {
    /// Nothing reaches the disk, and fsync says so.
    Fsync,
    /// Nothing can be written, as after the system has remounted a disk read-only.
    ReadOnly,
}

impl Faults {
    /// Prepares a platform's command to have faults.
    pub fn prepare(command: &mut Command, name: &str, data: &Path) -> Self {
        let faults = Self::build(name);
        faults.preload(command, data);
        faults
    }

    /// Builds the library with the faults.
    pub fn build(name: &str) -> Self {
        let switches = scratch(&format!("{name}-faults"));
        let library = switches.join("faults.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/faults.c");
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(&library)
            .arg(source)
            .arg("-ldl")
            .status();
        assert!(built.expect("a C compiler").success(), "it compiles");
        Self { switches }
    }

    /// Lets a command have faults on files whose paths begin with `files`.
    pub fn preload(&self, command: &mut Command, files: &Path) {
        command.env("LD_PRELOAD", self.switches.join("faults.so"));
        command.env("FAULT_SWITCHES", &self.switches);
        command.env("FAULT_FOLDER", files);
    }

    /// Begins a fault, which ends when the result is dropped.
    pub fn begin(&self, fault: Fault) -> Failing {
        let switch = self.switches.join(match fault {
            Fault::Fsync => "fsync",
            Fault::ReadOnly => "read-only",
        });
        std::fs::write(&switch, "").expect("the folder is ours");
        Failing { switch }
    }
}

/// A fault that lasts.
pub struct Failing {
    switch: PathBuf,
}

impl Drop for Failing {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.switch);
    }
}
