//! A small disk for another program that a test can fill and empty: a tmpfs in a mount namespace,
//! which disappears with the process that started it.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

/// Keeps the namespace alive until the other end of stdin is closed.
const HOLD: &str = r#"mount -t tmpfs -o "$1" tmpfs "$2" && echo mounted && cat >/dev/null"#;

/// A mounted disk. Dropping it unmounts it when it is not in use.
pub struct SmallDisk {
    holder: Child,
    folder: PathBuf,
}

impl SmallDisk {
    /// Mounts a disk over a new folder, for this user and group.
    pub fn mount(folder: &Path, size: &str, (uid, gid): (u32, u32)) -> Self {
        fs::create_dir(folder).unwrap();
        let options = format!("size={size},uid={uid},gid={gid},mode=0700");
        let mut holder = Command::new("unshare")
            .args(["--mount", "sh", "-c", HOLD, "sh", &options])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("util-linux is installed");
        let mut output = String::new();
        let stdout = holder.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut output).unwrap();
        assert_eq!(output, "mounted\n", "a tmpfs must be mountable here");
        let inside = folder.strip_prefix("/").expect("an absolute path");
        let seen = Path::new("/proc").join(holder.id().to_string());
        Self {
            folder: seen.join("root").join(inside),
            holder,
        }
    }

    /// A command that runs its arguments in the namespace of this disk, as that user.
    pub fn enter(&self, (uid, gid): (u32, u32)) -> Command {
        let mut command = Command::new("nsenter");
        command.arg("--mount");
        command.arg(format!("--target={}", self.holder.id()));
        command.arg(format!("--setuid={uid}"));
        command.arg(format!("--setgid={gid}"));
        command
    }

    /// Fills the disk and keeps it full until the result is dropped.
    pub fn fill(&self) -> Full {
        let path = self.folder.join("filler");
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let mut file = file.unwrap();
        fill_up(&mut file);
        let over = Arc::new(AtomicBool::new(false));
        let is_over = over.clone();
        let keeper = std::thread::spawn(move || {
            while !is_over.load(Relaxed) {
                fill_up(&mut file);
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        Full {
            path,
            over,
            keeper: Some(keeper),
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

/// A full disk. Dropping it frees the space again.
pub struct Full {
    path: PathBuf,
    over: Arc<AtomicBool>,
    keeper: Option<JoinHandle<()>>,
}

impl Drop for Full {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
        let _ = fs::remove_file(&self.path);
    }
}

fn fill_up(file: &mut File) {
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
