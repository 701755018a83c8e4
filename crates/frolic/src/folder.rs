//! Reads the folder of a game into memory, for `pack`, `check` and callers that
//! seed games.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, bail};
use frolic_package::Limits;
use frolic_package::layout::{Layout, PROJECT_FILE, Placement};
use indicatif::{ProgressBar, ProgressStyle};

/// Small folders are read before a progress bar could be seen.
const QUIET_TIME: Duration = Duration::from_millis(400);

/// The files of a game's folder by their path in the package.
///
/// Names that start with a dot are left out, and so are files of editors and tools, scripts aside
/// that a Rojo project puts into a service ([`Layout`]), and `.game` files beside game.toml, which
/// are what `pack` made before. Symbolic links are refused: a package must not depend on what
/// lies outside its folder.
///
/// # Errors
/// When the folder cannot be read, holds a link, or is bigger than the limits allow.
pub fn read(folder: &Path, limits: &Limits) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
    let paths = list(folder, limits)?;
    let progress = Progress::new(paths.len() as u64);
    let mut files = BTreeMap::new();
    let mut total_bytes = 0_u64;
    for (name, path) in paths {
        let size = fs::metadata(&path)
            .with_context(|| format!("cannot read {}", path.display()))?
            .len();
        total_bytes = total_bytes.saturating_add(size);
        if total_bytes > limits.unpacked_bytes_max {
            bail!(
                "{} is too big: a game has at most {} bytes in all",
                folder.display(),
                limits.unpacked_bytes_max
            );
        }
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        progress.advance(&name);
        files.insert(name, bytes);
    }
    Ok(files)
}

/// The sizes and times of a folder's files: when two are equal, nothing was
/// saved between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderState(Vec<(String, u64, Option<SystemTime>)>);

impl FolderState {
    /// Looks at every file that [`read`] would read.
    ///
    /// # Errors
    /// As [`read`].
    pub fn at(folder: &Path, limits: &Limits) -> anyhow::Result<Self> {
        let mut files = Vec::new();
        for (name, path) in list(folder, limits)? {
            let about =
                fs::metadata(&path).with_context(|| format!("cannot read {}", path.display()))?;
            files.push((name, about.len(), about.modified().ok()));
        }
        Ok(Self(files))
    }
}

/// The files of a game's folder: path in the package and path on disk, sorted.
///
/// # Errors
/// As [`read`].
pub fn list(folder: &Path, limits: &Limits) -> anyhow::Result<Vec<(String, PathBuf)>> {
    Ok(sorted_out(folder, limits)?.0)
}

/// Files in the folder that look like a part of the game and are not packed.
///
/// # Errors
/// As [`read`].
pub fn left_out(folder: &Path, limits: &Limits) -> anyhow::Result<Vec<String>> {
    Ok(sorted_out(folder, limits)?.1)
}

/// The game's files, and the names of what is left out of it.
type SortedOut = (Vec<(String, PathBuf)>, Vec<String>);

fn sorted_out(folder: &Path, limits: &Limits) -> anyhow::Result<SortedOut> {
    let mut layout = Layout::new(fs::read(folder.join(PROJECT_FILE)).ok().as_deref());
    let mut left_out = Vec::new();
    let mut found = walk_some(folder, limits, &|name, is_folder| match is_folder {
        true => layout.has_folder(name),
        false => !name.ends_with(".game"),
    })?;
    for (name, path) in &found {
        if let Some(package) = name.strip_suffix(&format!("/{PROJECT_FILE}")) {
            layout.add_project(package, &fs::read(path).unwrap_or_default());
        }
    }
    found.sort();
    let mut files = Vec::new();
    for (name, path) in found {
        match layout.place(&name) {
            Placement::Part(place) => files.push((place, path)),
            Placement::Tool => {}
            Placement::LeftOut => left_out.push(name),
        }
    }
    files.sort();
    if let Some(pair) = files.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        bail!(
            "{} and {} are both {} of the game; keep one of them",
            pair[0].1.display(),
            pair[1].1.display(),
            pair[0].0
        );
    }
    Ok((files, left_out))
}

/// All files below a folder, hidden ones aside: path below it and path on disk, sorted.
///
/// # Errors
/// As [`read`].
pub fn walk(folder: &Path, limits: &Limits) -> anyhow::Result<Vec<(String, PathBuf)>> {
    walk_some(folder, limits, &|_, _| true)
}

/// As [`walk`], for the files and folders directly in it that are wanted, and all below those.
fn walk_some(
    folder: &Path,
    limits: &Limits,
    wanted: &dyn Fn(&str, bool) -> bool,
) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let mut files = vec![];
    let mut open = vec![(String::new(), folder.to_owned())];
    while let Some((prefix, folder)) = open.pop() {
        let entries = fs::read_dir(&folder)
            .with_context(|| format!("cannot read the folder {}", folder.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot read {}", folder.display()))?;
            let path = entry.path();
            let Ok(name) = entry.file_name().into_string() else {
                bail!("{} has a name that is not text", path.display());
            };
            let kind = entry
                .file_type()
                .with_context(|| format!("cannot read {}", path.display()))?;
            if name.starts_with('.') || (prefix.is_empty() && !wanted(&name, kind.is_dir())) {
                continue;
            }
            let name = format!("{prefix}{name}");
            if kind.is_dir() {
                open.push((format!("{name}/"), path));
            } else if kind.is_file() {
                files.push((name, path));
            } else {
                bail!(
                    "{} is a link or a special file; a game holds plain files only",
                    path.display()
                );
            }
            if files.len() > limits.entries_max || open.len() > limits.entries_max {
                bail!(
                    "{} holds more than {} files; is it the folder of a game?",
                    folder.display(),
                    limits.entries_max
                );
            }
        }
    }
    files.sort();
    Ok(files)
}

/// A bar that appears when reading takes long enough to wonder.
struct Progress {
    bar: ProgressBar,
    start: Instant,
}

impl Progress {
    fn new(count: u64) -> Self {
        let style = ProgressStyle::with_template("reading {pos}/{len} {wide_bar} {msg}");
        let bar = ProgressBar::hidden();
        bar.set_length(count);
        if let Ok(style) = style {
            bar.set_style(style);
        }
        Progress {
            bar,
            start: Instant::now(),
        }
    }

    fn advance(&self, name: &str) {
        if self.bar.is_hidden() && self.start.elapsed() > QUIET_TIME {
            self.bar
                .set_draw_target(indicatif::ProgressDrawTarget::stderr());
        }
        self.bar.set_message(name.to_owned());
        self.bar.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of its own for each test, gone at its end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("frolic-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(path.join("scripts/Workspace/.git")).unwrap();
            fs::write(path.join("game.toml"), "x").unwrap();
            fs::write(path.join("old.game"), "x").unwrap();
            fs::write(path.join(".hidden"), "x").unwrap();
            fs::write(path.join("scripts/Workspace/A.luau"), "y").unwrap();
            fs::write(path.join("scripts/Workspace/.git/config"), "x").unwrap();
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn hidden_files_and_old_packages_are_left_out() {
        let folder = Folder::new("read");
        let files = read(&folder.0, &Limits::default()).unwrap();
        let names: Vec<&str> = files.keys().map(String::as_str).collect();
        assert_eq!(names, ["game.toml", "scripts/Workspace/A.luau"]);
        assert_eq!(files["scripts/Workspace/A.luau"], b"y");
    }

    #[test]
    fn a_rojo_project_with_packages_and_backups_is_a_game() {
        let folder = Folder::new("rojo");
        let write = |path: &str, text: &str| {
            let path = folder.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let project = r#"{"tree":{"ServerScriptService":{"Server":{"$path":"src/server"}}}}"#;
        write("default.project.json", project);
        write("wally.toml", "x");
        write("notes.txt", "x");
        write("node_modules/a/b.js", "x");
        write("scripts/Workspace/A.luau~", "x");
        write("src/server/init.server.luau", "x");
        write("src/server/README.md", "x");
        write("Packages/Promise.lua", "x");
        let package = "Packages/_Index/evaera_promise@4.0.0/promise";
        write(&format!("{package}/lib/init.lua"), "x");
        write(&format!("{package}/wally.toml"), "x");
        write(
            &format!("{package}/default.project.json"),
            r#"{"tree":{"$path":"lib"}}"#,
        );
        let files = read(&folder.0, &Limits::default()).unwrap();
        let names: Vec<&str> = files.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "game.toml",
                "scripts/ReplicatedStorage/Packages/Promise.lua",
                "scripts/ReplicatedStorage/Packages/_Index/evaera_promise@4.0.0/promise/init.lua",
                "scripts/ServerScriptService/Server/init.server.luau",
                "scripts/Workspace/A.luau",
            ]
        );
        let beside = left_out(&folder.0, &Limits::default()).unwrap();
        assert_eq!(beside, ["notes.txt", "src/server/README.md"]);
    }

    #[test]
    fn too_much_is_refused() {
        let folder = Folder::new("limits");
        let few = Limits {
            entries_max: 1,
            ..Limits::default()
        };
        let error = read(&folder.0, &few).unwrap_err().to_string();
        assert!(error.contains("more than 1 files"), "{error}");
        let small = Limits {
            unpacked_bytes_max: 1,
            ..Limits::default()
        };
        let error = read(&folder.0, &small).unwrap_err().to_string();
        assert!(error.contains("too big"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn links_are_refused_by_name() {
        let folder = Folder::new("links");
        std::os::unix::fs::symlink("game.toml", folder.0.join("link.toml")).unwrap();
        let error = read(&folder.0, &Limits::default()).unwrap_err().to_string();
        assert!(error.contains("link.toml is a link"), "{error}");
    }
}
