//! Sandboxes the process of a world.
//!
//! The VM isolates scripts. Should one ever escape it, it finds a process that can
//! open no file, start no program, reach no server but the control plane, and
//! signal no other process. [`confine`] applies to the whole process and is called
//! before its threads start; [`confine_world_thread`] restricts the thread that
//! runs scripts further, to the system calls it needs.
//!
//! Where the kernel lacks one of these, the others apply and a warning is logged:
//! the VM is the first line of defense everywhere.

use std::path::{Path, PathBuf};

/// The resources that a world's process needs.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    /// Folders and files it reads.
    pub reads: Vec<PathBuf>,
    /// Folders it writes new files into. It cannot read them: other worlds write
    /// there as well.
    pub writes: Vec<PathBuf>,
    /// TCP port of the control plane.
    pub control_plane_port: Option<u16>,
}

/// Why a sandbox layer is missing.
#[derive(Debug, thiserror::Error)]
pub enum LockdownError {
    /// Files and connections stay reachable.
    #[error("Landlock: {0}")]
    Landlock(String),
    /// System calls stay possible.
    #[error("seccomp: {0}")]
    Seccomp(String),
    /// This is not Linux.
    #[error("process sandboxing is not supported on this system")]
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
        tracing::warn!(%error, "this world runs without one of its sandboxes; the script sandbox still applies");
    }
}

/// Whether a rule can name a folder; it is created if missing.
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
