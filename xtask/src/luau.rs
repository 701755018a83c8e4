//! `cargo xtask luau`: the browser's Luau VM. The sources are those of the
//! luau0-src crate that the server's VM is built from, so the bytecode always
//! matches; the compiler is zig, which pip installs anywhere without root.
//! Why these flags: web/luau/README.md.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::progress::{Progress, Step};
use crate::stamp::{self};
use crate::tools::PYTHON_MIN;
use crate::tools::python::{self, Package, Python};
use crate::workspace::Workspace;

/// Pinned: zig ships the C library and the wasm exception support we rely on.
const ZIG: Package = Package {
    requirement: "ziglang==0.17.0",
    imports: "ziglang",
    alone: true,
    python_min: PYTHON_MIN,
};

const FLAGS: [&str; 16] = [
    "-target",
    "wasm32-wasi",
    "-mexec-model=reactor",
    "-O2",
    "-s",
    "-std=c++17",
    "-fno-exceptions",
    "-fno-rtti",
    "-DNDEBUG",
    // Luau raises errors with longjmp, which becomes a wasm exception.
    "-DLUA_USE_LONGJMP=1",
    "-mexception-handling",
    "-DLUA_API=extern \"C\"",
    "-DLUA_VECTOR_SIZE=3",
    "-DLUAI_MAXCSTACK=1000000",
    "-D_WASI_EMULATED_PROCESS_CLOCKS",
    "-lwasi-emulated-process-clocks",
];

/// Flags of two words, and the stack: the default would start at 16 MiB.
const PAIRED_FLAGS: [&str; 3] = ["-mllvm", "-wasm-enable-sjlj", "-Wl,-z,stack-size=1048576"];

/// Builds the VM into `web/src/wasm/luau.wasm`.
pub fn run(workspace: &Workspace, progress: &Progress) -> Result<()> {
    progress.step("Luau VM (wasm)", |step| build(workspace, step))
}

fn build(workspace: &Workspace, step: &Step) -> Result<()> {
    let shim = workspace.web().join("luau");
    ensure!(
        shim.join("shim.cpp").is_file(),
        "web/luau/shim.cpp is missing: the checkout is incomplete"
    );
    let luau = workspace.dependency_sources("luau0-src")?;
    let luau = luau_folder(&luau)?;
    let inputs = [
        shim.clone(),
        luau.join("VM"),
        luau.join("Common"),
        luau.join("Bytecode"),
    ];
    let mut facts = vec![ZIG.requirement];
    facts.extend(FLAGS);
    facts.extend(PAIRED_FLAGS);
    let hash = stamp::hash(&inputs, &facts)?;

    // Cached by hash among the tools: a fresh clone with a warm cache, or a
    // change of branch, costs a copy.
    let cached = workspace.tools().join("luau").join(format!("{hash}.wasm"));
    if cached.is_file() {
        step.note("unchanged");
    } else {
        let python = python::install(workspace, step, &ZIG)?;
        compile(workspace, step, &python, &shim, &luau, &cached)?;
        let size = fs::metadata(&cached).map_or(0, |file| file.len());
        step.note(format!("{} KB", size / 1000));
    }
    copy_if_changed(&cached, &workspace.web_wasm().join("luau.wasm"))
}

/// luau0-src has Luau in a subfolder of the crate.
fn luau_folder(package: &Path) -> Result<PathBuf> {
    [package.join("luau"), package.to_path_buf()]
        .into_iter()
        .find(|folder| folder.join("VM/src").is_dir())
        .with_context(|| format!("no VM/src under {}", package.display()))
}

fn compile(
    workspace: &Workspace,
    step: &Step,
    python: &Python,
    shim: &Path,
    luau: &Path,
    cached: &Path,
) -> Result<()> {
    let mut sources = Vec::new();
    for folder in [
        shim.to_path_buf(),
        luau.join("VM/src"),
        luau.join("Common/src"),
    ] {
        sources.extend(files_with_extension(&folder, &["cpp", "s"])?);
    }
    let folder = cached.parent().context("the tools folder has no parent")?;
    fs::create_dir_all(folder)?;
    let partial = cached.with_extension("partial");
    let cache = workspace.tools().join("zig-cache");
    let mut zig = python.command();
    // One command: zig compiles the files in parallel and caches each object.
    zig.args(["-m", "ziglang", "c++"])
        .args(FLAGS)
        .args(PAIRED_FLAGS)
        .args(sources)
        .arg("-o")
        .arg(&partial)
        .env("ZIG_GLOBAL_CACHE_DIR", &cache)
        .env("ZIG_LOCAL_CACHE_DIR", &cache)
        .current_dir(shim);
    for include in ["Common/include", "VM/include", "VM/src", "Bytecode/include"] {
        zig.arg("-I").arg(luau.join(include));
    }
    step.say("zig c++");
    step.run(&mut zig)?;
    fs::rename(&partial, cached).context("zig wrote no module")
}

fn files_with_extension(folder: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if extension.is_some_and(|extension| extensions.contains(&extension)) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn copy_if_changed(from: &Path, to: &Path) -> Result<()> {
    let bytes = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    if fs::read(to).is_ok_and(|current| current == bytes) {
        return Ok(());
    }
    let folder = to.parent().context("the module has no folder")?;
    fs::create_dir_all(folder)?;
    fs::write(to, bytes).with_context(|| format!("cannot write {}", to.display()))
}
