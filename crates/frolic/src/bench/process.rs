//! Child processes on a core of their own, and what they cost.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};

/// A child that is ended with us.
pub struct Process {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Process {
    /// Starts this very program with other arguments, on one core if the
    /// machine has two and `taskset`.
    pub fn start(core: usize, args: &[String]) -> Result<Self> {
        let program = std::env::current_exe().context("finding this program")?;
        let pinned = std::thread::available_parallelism().map_or(1, usize::from) > core
            && Command::new("taskset").arg("--version").output().is_ok();
        let mut command = if pinned {
            let mut command = Command::new("taskset");
            command.arg("-c").arg(core.to_string()).arg(program);
            command
        } else {
            Command::new(program)
        };
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

    /// Processor time it has used, in seconds, all threads together.
    pub fn cpu_s(&self) -> Result<f64> {
        // taskset replaces itself by the program, so the pid is right.
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let fields: Vec<&str> = stat
            .rsplit_once(')')
            .map(|(_, rest)| rest.split_whitespace().collect())
            .unwrap_or_default();
        let ticks = |at: usize| fields.get(at).and_then(|f| f.parse::<f64>().ok());
        let (user, system) = (ticks(11).context("utime")?, ticks(12).context("stime")?);
        // USER_HZ has been 100 on Linux for every architecture we build for.
        Ok((user + system) / 100.0)
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
