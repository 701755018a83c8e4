//! What the process of a world may do at all, whatever runs in it.
//!
//! Scripts are kept inside by the VM. Should one ever get out of it, it finds a
//! process that can open no file, start no program, reach no server but the
//! control plane, and signal nobody. [`confine`] is for the whole process and
//! comes before its threads; [`confine_world_thread`] takes the thread that
//! runs scripts further down, to what it does all day.
//!
//! Where the kernel lacks one of these, the others hold and a warning says so:
//! the VM stays the first wall everywhere.

use std::path::{Path, PathBuf};

/// What a world's process needs of the machine.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    /// Folders and files it reads.
    pub reads: Vec<PathBuf>,
    /// Folders it writes new files into. It cannot read them: other worlds
    /// write there as well.
    pub writes: Vec<PathBuf>,
    /// TCP port of the control plane.
    pub control_plane_port: Option<u16>,
}

/// Why a wall is missing.
#[derive(Debug, thiserror::Error)]
pub enum LockdownError {
    /// Files and connections stay reachable.
    #[error("Landlock: {0}")]
    Landlock(String),
    /// System calls stay possible.
    #[error("seccomp: {0}")]
    Seccomp(String),
    /// This is not Linux.
    #[error("this system has no walls that we know")]
    Unsupported,
}

/// Confines this thread and all that it starts. Call it before anything else.
pub fn confine(needs: &Needs) {
    warn_of(imp::limit_resources());
    warn_of(imp::restrict_paths(needs));
    warn_of(imp::forbid_calls());
}

/// Confines the thread of the world, once it is loaded, to reading and writing
/// the sockets it is handed.
pub fn confine_world_thread() {
    warn_of(imp::allow_only_daily_calls());
}

fn warn_of(result: Result<(), LockdownError>) {
    if let Err(error) = result {
        tracing::warn!(%error, "this world runs with a wall less; the script sandbox holds");
    }
}

/// Whether a folder can be named in a rule; it is made where it is missing.
fn existing(folder: &Path) -> Option<&Path> {
    std::fs::create_dir_all(folder).ok()?;
    Some(folder)
}

#[cfg(not(target_os = "linux"))]
mod imp {
    use super::{LockdownError, Needs};

    pub fn limit_resources() -> Result<(), LockdownError> {
        Ok(())
    }
    pub fn restrict_paths(_: &Needs) -> Result<(), LockdownError> {
        Err(LockdownError::Unsupported)
    }
    pub fn forbid_calls() -> Result<(), LockdownError> {
        Ok(())
    }
    pub fn allow_only_daily_calls() -> Result<(), LockdownError> {
        Ok(())
    }
}

#[cfg(target_os = "linux")]
#[path = "lockdown/linux.rs"]
mod imp;
