//! Child processes on a core of their own, and what they cost.

mod cpu;
pub mod pinning;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

pub use cpu::CpuTimes;

/// Environment variables that a child inherits: none of them is a setting, or a developer's
/// database would be measured.
const PASSED_ON: [&str; 6] = [
    "PATH",
    "HOME",
    "TMPDIR",
    "LANG",
    "RUST_BACKTRACE",
    "LD_LIBRARY_PATH",
];

fn clear_environment(command: &mut Command) -> &mut Command {
    let passed_on = |name: &&str| std::env::var_os(name).map(|value| (name.to_string(), value));
    command
        .env_clear()
        .envs(PASSED_ON.iter().filter_map(passed_on))
}

/// A child that is ended with us.
pub struct Process {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Process {
    /// Starts this program with other arguments, on the given core if the
    /// machine has it and `taskset` ([`pinning::doubts`] reports it).
    pub fn start(core: Option<usize>, args: &[String]) -> Result<Self> {
        let program = std::env::current_exe().context("finding this program")?;
        let mut command = match core.filter(|core| pinning::can_pin(*core)) {
            Some(core) => {
                let mut command = Command::new("taskset");
                command.arg("-c").arg(core.to_string()).arg(program);
                command
            }
            None => Command::new(program),
        };
        clear_environment(&mut command);
        Self::spawn(command, args)
    }

    /// Starts this very program in a folder, with no settings but those given.
    pub fn start_in(folder: &Path, env: &[(&str, &str)], args: &[String]) -> Result<Self> {
        let program = std::env::current_exe().context("finding this program")?;
        let mut command = Command::new(program);
        command.current_dir(folder);
        clear_environment(&mut command).envs(env.iter().copied());
        Self::spawn(command, args)
    }

    fn spawn(mut command: Command, args: &[String]) -> Result<Self> {
        let mut child = command
            .args(args)
            .env("RUST_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {args:?}"))?;
        let stdout = child.stdout.take().context("the child has no output")?;
        Ok(Self {
            child,
            lines: BufReader::new(stdout),
        })
    }

    /// The next line it prints.
    pub fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.lines.read_line(&mut line)? == 0 {
            let status = self.child.wait()?;
            bail!("a benchmark process ended early ({status})");
        }
        Ok(line.trim().to_owned())
    }

    /// Asks it to end in its own way, and waits for that as long as `patience`.
    /// Returns whether it did; otherwise it is killed when this is dropped.
    pub fn ask_to_end(&mut self, patience: Duration) -> bool {
        let asked = i32::try_from(self.child.id())
            .ok()
            .and_then(Pid::from_raw)
            .is_some_and(|pid| kill_process(pid, Signal::TERM).is_ok());
        let asked_at = Instant::now();
        while asked && asked_at.elapsed() < patience {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    }

    /// Stops it where it stands.
    pub fn pause(&self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    /// Lets it go on after [`pause`](Self::pause).
    pub fn resume(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.context("a process id")?;
        kill_process(pid, signal).context("a benchmark process is gone")
    }

    /// Processor time that its threads have used so far.
    pub fn cpu(&self) -> Result<CpuTimes> {
        // taskset replaces itself by the program, so the pid is right.
        CpuTimes::of(self.child.id())
    }

    /// Memory it holds, in MiB.
    pub fn rss_mb(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        Ok(kib.context("VmRSS")? / 1024.0)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Time that a host took from one of its guest's cores since the start, in
/// seconds; none where the kernel does not report it.
pub fn stolen_s(core: usize) -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    stolen_of(&stat, core).unwrap_or(0.0)
}

fn stolen_of(stat: &str, core: usize) -> Option<f64> {
    let name = format!("cpu{core}");
    let mut rows = stat.lines().map(str::split_whitespace);
    let mut row = rows.find_map(|mut row| (row.next()? == name).then_some(row))?;
    // user, nice, system, idle, iowait, irq, softirq, steal
    Some(row.nth(7)?.parse::<f64>().ok()? / 100.0)
}

/// One small request; the benchmark itself runs on no runtime.
pub fn http_get(url: &str) -> Result<String> {
    let rest = url.strip_prefix("http://").context("an http address")?;
    let (host, path) = rest.split_once('/').context("a path")?;
    let mut stream = std::net::TcpStream::connect(host)?;
    write!(
        stream,
        "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (_, body) = answer.split_once("\r\n\r\n").context("an answer")?;
    Ok(body.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_stolen_of_one_core_is_read() {
        let stat = "cpu  9 9 9 9 9 9 9 700 0 0\ncpu0 1 2 3 4 5 6 7 150 0 0\ncpu1 1 2 3 4 5 6 7 550 0 0\nctxt 5\n";
        assert_eq!(stolen_of(stat, 0), Some(1.5));
        assert_eq!(stolen_of(stat, 1), Some(5.5));
        assert_eq!(stolen_of(stat, 2), None);
        assert_eq!(stolen_of("cpu0 1 2", 0), None);
    }
}
