//! The game a benchmark runs, as a file that goes away with the run.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::meadow;

/// A game on disk, which goes away with this value if it was made for the run.
pub enum Game {
    /// The path of an existing `.game` file.
    Given(PathBuf),
    /// Ours.
    Made(PathBuf),
}

impl Game {
    /// The one at `package`, else a meadow of `area_m` metres a side, else the
    /// first sample game.
    pub fn new(package: Option<&Path>, area_m: Option<f32>) -> Result<Self> {
        if let Some(path) = package {
            return Ok(Game::Given(path.to_owned()));
        }
        let archive = match area_m {
            Some(area_m) => meadow::pack(area_m)?,
            None => {
                let samples = frolic_assets::sample_games();
                let (_, first) = samples.first().context("this build has no sample games")?;
                frolic_package::pack(first).map_err(|error| anyhow::anyhow!("{error}"))?
            }
        };
        let path = std::env::temp_dir().join(format!("frolic-bench-{}.game", std::process::id()));
        std::fs::write(&path, archive).with_context(|| format!("writing {}", path.display()))?;
        Ok(Game::Made(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        match self {
            Game::Given(path) | Game::Made(path) => path,
        }
    }
}

impl Drop for Game {
    fn drop(&mut self) {
        if let Game::Made(path) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}
