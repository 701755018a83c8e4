//! Progress output of the build: one line per step with a spinner and the
//! newest line of the tool's output, or plain lines when the output goes to a
//! file or to CI. A tool's full output is shown only when it fails.

use std::env;
use std::io::{BufRead, BufReader, IsTerminal, Read};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, anyhow};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// How often a long step says in plain mode that it still works.
const HEARTBEAT: Duration = Duration::from_secs(20);

/// Lines of a failed tool's output that are worth showing: enough for every
/// error of a broken crate, not the hundreds of `Compiling …` before them.
const FAILURE_LINES_MAX: usize = 400;

/// All steps of one run.
pub struct Progress {
    bars: MultiProgress,
    plain: bool,
}

impl Progress {
    /// Spinners on a terminal, plain lines elsewhere.
    pub fn new() -> Self {
        let plain = !std::io::stderr().is_terminal() || env::var_os("CI").is_some();
        Self {
            bars: MultiProgress::new(),
            plain,
        }
    }

    /// Runs one named step and reports how it went and how long it took.
    pub fn step<T>(&self, name: &str, work: impl FnOnce(&Step) -> Result<T>) -> Result<T> {
        let step = Step {
            progress: self,
            name: name.to_owned(),
            started: Instant::now(),
            bar: (!self.plain).then(|| self.bars.add(spinner(name))),
            note: Mutex::new(String::new()),
            detail: Mutex::new(String::new()),
        };
        if self.plain {
            eprintln!("  …  {name}");
        }
        let result = work(&step);
        step.finish(result.is_ok());
        result
    }

    /// Prints a line above the spinners.
    pub fn say(&self, line: &str) {
        if self.plain || self.bars.println(line).is_err() {
            eprintln!("{line}");
        }
    }
}

/// One step that is under way.
pub struct Step<'progress> {
    progress: &'progress Progress,
    name: String,
    started: Instant,
    bar: Option<ProgressBar>,
    note: Mutex<String>,
    detail: Mutex<String>,
}

impl Step<'_> {
    /// Adds a remark to the line that reports the finished step.
    pub fn note(&self, note: impl Into<String>) {
        if let Ok(mut slot) = self.note.lock() {
            *slot = note.into();
        }
    }

    /// Says what the step does at the moment.
    pub fn say(&self, detail: &str) {
        let detail = detail.trim();
        // An object is for programs.
        if detail.is_empty() || detail.starts_with('{') {
            return;
        }
        if let Some(bar) = &self.bar {
            bar.set_message(detail.to_owned());
        }
        if let Ok(mut slot) = self.detail.lock() {
            detail.clone_into(&mut slot);
        }
    }

    /// Runs a tool to its end and returns everything it printed.
    ///
    /// # Errors
    /// When it cannot be started, or fails: the error carries its output.
    pub fn run(&self, command: &mut Command) -> Result<String> {
        let finished = self.run_unchecked(command)?;
        if finished.success {
            return Ok(finished.output);
        }
        Err(finished.into_error())
    }

    /// Like [`Step::run`], but a tool that fails is not an error: test runners
    /// fail and still have counts to read.
    pub fn run_unchecked(&self, command: &mut Command) -> Result<Finished> {
        let shown = shown(command);
        let mut child = command
            // Captured, cut and searched: colours would be in the way.
            .env("NO_COLOR", "1")
            .env_remove("FORCE_COLOR")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start `{shown}`"))?;
        let (lines, received) = mpsc::channel();
        for pipe in [
            child.stdout.take().map(boxed),
            child.stderr.take().map(boxed),
        ] {
            let pipe = pipe.context("a child's output was not piped")?;
            let lines = lines.clone();
            thread::spawn(move || forward_lines(pipe, &lines));
        }
        drop(lines);

        let mut output = String::new();
        let mut heartbeat = Instant::now();
        loop {
            match received.recv_timeout(Duration::from_secs(1)) {
                Ok(line) => {
                    self.say(&line);
                    output.push_str(&line);
                    output.push('\n');
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.bar.is_none() && heartbeat.elapsed() >= HEARTBEAT {
                heartbeat = Instant::now();
                let elapsed = self.started.elapsed().as_secs();
                let detail = self.detail.lock().map(|detail| detail.clone());
                let detail = detail.unwrap_or_default();
                eprintln!("  …  {} ({elapsed} s): {detail}", self.name);
            }
        }
        let status = child
            .wait()
            .with_context(|| format!("lost track of `{shown}`"))?;
        Ok(Finished {
            command: shown,
            success: status.success(),
            status: status.to_string(),
            output,
        })
    }

    fn finish(&self, success: bool) {
        let mark = if success { "✓" } else { "✗" };
        let elapsed = self.started.elapsed().as_secs_f32();
        let note = self.note.lock().map(|note| note.clone());
        let note = note.unwrap_or_default();
        let line = format!("  {mark}  {:<28} {elapsed:>6.1} s  {note}", self.name);
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        self.progress.say(line.trim_end());
    }
}

/// A tool that ran to its end.
pub struct Finished {
    command: String,
    /// Whether it ended with exit code 0.
    pub success: bool,
    status: String,
    /// Everything it printed, both streams in the order of arrival.
    pub output: String,
}

impl Finished {
    /// The failure as an error that shows the end of the output.
    pub fn into_error(self) -> Error {
        let lines = self.output.lines().filter(|line| is_telling(line));
        let lines: Vec<&str> = lines.collect();
        let shown = lines[lines.len().saturating_sub(FAILURE_LINES_MAX)..].join("\n");
        anyhow!("`{}` failed ({})\n{shown}", self.command, self.status)
    }
}

/// Whether a line of a failed run says more than "this part went well".
fn is_telling(line: &str) -> bool {
    let compiled = ["Compiling ", "Checking ", "Downloaded ", "Fresh "];
    let start = line.trim_start();
    let went_well = (line.starts_with("test ") && line.ends_with("... ok"))
        || line.starts_with("test result: ok.")
        || line.starts_with("ok ")
        || compiled.iter().any(|word| start.starts_with(word));
    !went_well
}

fn spinner(name: &str) -> ProgressBar {
    let style = ProgressStyle::with_template("  {spinner}  {prefix:<28} {elapsed:>8}  {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = ProgressBar::new_spinner()
        .with_style(style)
        .with_prefix(name.to_owned());
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

fn boxed(pipe: impl Read + Send + 'static) -> Box<dyn Read + Send> {
    Box::new(pipe)
}

fn forward_lines(pipe: Box<dyn Read + Send>, lines: &Sender<String>) {
    let mut reader = BufReader::new(pipe);
    let mut line = Vec::new();
    // Bytes, not text: a compiler may quote a source file that is not UTF-8.
    while matches!(reader.read_until(b'\n', &mut line), Ok(read) if read > 0) {
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        line.clear();
        if lines.send(text).is_err() {
            return;
        }
    }
}

fn shown(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let program = program.rsplit(['/', '\\']).next().unwrap_or_default();
    let mut words = vec![program.to_owned()];
    words.extend(
        command
            .get_args()
            .map(|arg| arg.to_string_lossy().into_owned()),
    );
    let mut text = words.join(" ");
    if text.len() > 200 {
        let cut = text.floor_char_boundary(200);
        text.truncate(cut);
        text.push('…');
    }
    text
}
