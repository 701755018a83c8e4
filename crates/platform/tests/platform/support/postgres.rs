//! A private Postgres server from Debian's packages with its own folder and its own socket or port.
//! It stops with the process that started it.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use frolic_platform::ids;

use super::database;
use super::small_disk::SmallDisk;

/// Folder of the programs if they are not in a usual place. Set by `cargo xtask test`.
const PROGRAMS: &str = "FROLIC_POSTGRES_BIN";
/// Maximum start time with other tests running in parallel.
const START_MAX: Duration = Duration::from_secs(60);
/// Owner of the databases.
const OWNER: &str = "frolic";

/// Starts the server and waits: when the other end of stdin is closed for any reason, the server is
/// stopped.
const WATCH: &str = r#"
    "$@" >>"$LOG" 2>&1 &
    server=$!
    cat >/dev/null
    kill -"$SIGNAL" $server
    wait $server
    if [ -n "$REMOVE" ]; then cd /; rm -rf "$REMOVE"; fi
"#;

/// A server. Dropping it stops it and deletes its data.
pub struct PrivatePostgres {
    folder: PathBuf,
    programs: PathBuf,
    /// TCP port, or 0 for a socket in the folder.
    port: u16,
    user: Option<(u32, u32)>,
    /// The shell that watches the server; `None` while it is stopped.
    watcher: Option<Child>,
    /// Whether the watcher deletes the folder, because the server is never dropped.
    shared: bool,
    /// Disk of its data, if it is not an ordinary folder.
    disk: Option<SmallDisk>,
}

impl PrivatePostgres {
    /// Starts a server for all tests of this process, with a socket.
    pub fn start_shared() -> Self {
        let mut server = Self::prepare(0);
        server.shared = true;
        server.start_again();
        server
    }

    /// Starts a server for one test that stops it in between, with a port.
    pub fn start_alone() -> Self {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let mut server = Self::prepare(port);
        server.start_again();
        server
    }

    /// Starts a server for one test that fills its disk, with a port. Needs root, because only root
    /// may mount a disk for another user.
    pub fn start_on_small_disk(size: &str) -> Self {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let mut server = Self::prepare_on(port, Some(size));
        server.start_again();
        server
    }

    /// The disk that contains its data.
    pub fn disk(&self) -> &SmallDisk {
        self.disk
            .as_ref()
            .expect("the server was started on a small disk")
    }

    /// Whether it accepts queries.
    pub fn is_up(&self) -> bool {
        database::run(&self.url("postgres"), "SELECT 1").is_ok()
    }

    fn prepare(port: u16) -> Self {
        Self::prepare_on(port, None)
    }

    /// Creates the folder and the first databases.
    fn prepare_on(port: u16, disk_size: Option<&str>) -> Self {
        let programs = find_programs();
        // A short path, because the path of a socket is limited to about a hundred characters.
        let folder = std::env::temp_dir().join(ids::new_id("pg"));
        fs::create_dir(&folder).unwrap();
        // Postgres refuses to run as root.
        let user = (fs::metadata(&folder).unwrap().uid() == 0).then(other_user);
        if let Some((uid, gid)) = user {
            std::os::unix::fs::chown(&folder, Some(uid), Some(gid)).unwrap();
        }
        let disk = disk_size.map(|size| {
            let user = user.expect("a small disk for Postgres needs root: run the tests as root");
            SmallDisk::mount(&folder.join("data"), size, user)
        });
        let server = Self {
            folder,
            programs,
            port,
            user,
            watcher: None,
            shared: false,
            disk,
        };
        let mut initdb = server.command(&server.programs.join("initdb"));
        initdb.args([
            "--pgdata=data",
            "--auth=trust",
            "--no-sync",
            "--encoding=UTF8",
        ]);
        if server.disk.is_some() {
            // Small log segments, so that it soon needs space for the next one.
            initdb.arg("--wal-segsize=1");
        }
        initdb.arg(format!("--username={OWNER}"));
        // Sorts by language, like most servers in production.
        initdb.args([
            "--locale=C.UTF-8",
            "--locale-provider=icu",
            "--icu-locale=en-US",
        ]);
        let output = initdb.output().expect("initdb starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "initdb: {stderr}");
        server
    }

    /// Starts the server on its existing data and waits until it accepts queries.
    pub fn start_again(&mut self) {
        let mut watcher = self.command(Path::new("/bin/sh"));
        watcher.args(["-c", WATCH, "sh"]);
        watcher.arg(self.programs.join("postgres"));
        watcher.args(["-D", "data", "-k"]).arg(&self.folder);
        let (addresses, port) = match self.port {
            0 => ("", 5432),
            port => ("127.0.0.1", port),
        };
        watcher.args(["-p", &port.to_string()]);
        for setting in [
            &format!("listen_addresses={addresses}"),
            "max_connections=400",
            "shared_buffers=32MB",
            "fsync=off",
            "full_page_writes=off",
        ] {
            watcher.args(["-c", setting]);
        }
        if self.disk.is_some() {
            watcher.args(["-c", "min_wal_size=2MB", "-c", "max_wal_size=4MB"]);
        }
        watcher.env("LOG", self.folder.join("log"));
        watcher.env("SIGNAL", if self.shared { "INT" } else { "QUIT" });
        if self.shared {
            watcher.env("REMOVE", &self.folder);
        }
        watcher.stdin(Stdio::piped());
        self.watcher = Some(watcher.spawn().expect("a shell starts"));
        let started = Instant::now();
        while let Err(error) = database::run(&self.url("postgres"), "SELECT 1") {
            let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            assert!(started.elapsed() < START_MAX, "{error}\n{log}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Stops the server at once, as a crash does.
    pub fn stop(&mut self) {
        if let Some(mut watcher) = self.watcher.take() {
            drop(watcher.stdin.take());
            watcher.wait().unwrap();
        }
    }

    /// URL of one of its databases.
    pub fn url(&self, name: &str) -> String {
        match self.port {
            0 => {
                let folder = self.folder.to_string_lossy();
                format!("postgres:///{name}?host={folder}&port=5432&user={OWNER}")
            }
            port => format!("postgres://{OWNER}@127.0.0.1:{port}/{name}?sslmode=disable"),
        }
    }

    fn command(&self, program: &Path) -> Command {
        if let (Some(disk), Some(user)) = (&self.disk, self.user) {
            let mut command = disk.enter(user);
            command.args(["sh", "-c", r#"cd "$1" && shift && exec "$@""#, "sh"]);
            command.arg(&self.folder).arg(program);
            return command;
        }
        let mut command = Command::new(program);
        command.current_dir(&self.folder);
        if let Some((uid, gid)) = self.user {
            command.uid(uid).gid(gid);
        }
        command
    }
}

impl Drop for PrivatePostgres {
    fn drop(&mut self) {
        self.stop();
        self.disk = None;
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The folder of `initdb` and `postgres`: Debian's newest version, or on the PATH.
fn find_programs() -> PathBuf {
    let chosen = std::env::var_os(PROGRAMS).map(PathBuf::from);
    let mut debian: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .collect();
    debian.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = chosen
        .into_iter()
        .chain(debian.into_iter().rev().map(|(_, folder)| folder))
        .chain(std::env::split_paths(&path))
        .find(|folder| folder.join("initdb").is_file() && folder.join("postgres").is_file());
    found.expect("Postgres is not installed: run `cargo xtask test`, or apt-get install postgresql")
}

/// A user other than root: Debian's postgres, or nobody.
fn other_user() -> (u32, u32) {
    let mut text = String::new();
    let mut file = fs::File::open("/etc/passwd").unwrap();
    file.read_to_string(&mut text).unwrap();
    let user = |name: &str| {
        let line = text
            .lines()
            .find(|line| line.split(':').next() == Some(name))?;
        let mut numbers = line.split(':').skip(2).map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    };
    user("postgres").or_else(|| user("nobody")).unwrap()
}
