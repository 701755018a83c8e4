//! A small disk of its own for another program, which a test can fill and empty: a
//! tmpfs in a mount namespace, which is gone with whoever started it.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

/// Keeps the namespace as long as the other end of stdin is there.
const HOLD: &str = r#"mount -t tmpfs -o "$1" tmpfs "$2" && echo mounted && cat >/dev/null"#;

/// A mounted disk. Dropping it takes it away, once nobody uses it.
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
        let mut said = String::new();
        let stdout = holder.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut said).unwrap();
        assert_eq!(said, "mounted\n", "a tmpfs must be mountable here");
        let inside = folder.strip_prefix("/").expect("an absolute path");
        let seen = Path::new("/proc").join(holder.id().to_string());
        Self {
            folder: seen.join("root").join(inside),
            holder,
        }
    }

    /// A command that runs what its arguments say beside this disk, as that user.
    pub fn enter(&self, (uid, gid): (u32, u32)) -> Command {
        let mut command = Command::new("nsenter");
        command.arg("--mount");
        command.arg(format!("--target={}", self.holder.id()));
        command.arg(format!("--setuid={uid}"));
        command.arg(format!("--setgid={gid}"));
        command
    }

    /// Fills it, and keeps it full until the result is dropped.
    pub fn fill(&self) -> Full {
        let path = self.folder.join("filler");
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let mut file = file.unwrap();
        write_all_there_is(&mut file);
        let over = Arc::new(AtomicBool::new(false));
        let is_over = over.clone();
        let keeper = std::thread::spawn(move || {
            while !is_over.load(Relaxed) {
                write_all_there_is(&mut file);
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

/// A disk without room. Dropping it makes room again.
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

fn write_all_there_is(file: &mut File) {
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
