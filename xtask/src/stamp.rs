//! Content hashes that let a step be skipped when neither what it reads nor
//! what it wrote has changed. Time stamps would not do: a fresh clone has new
//! times and the same content.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::workspace::Workspace;

/// Folders that are never an input: too big, and described by other inputs.
const SKIPPED_FOLDERS: [&str; 2] = ["node_modules", "dist"];

/// The hash of files, folders (all files in them) and loose facts such as a
/// compiler's flags. A path that does not exist counts as empty.
pub fn hash(paths: &[PathBuf], facts: &[&str]) -> Result<String> {
    let mut hasher = Sha256::new();
    for fact in facts {
        update(&mut hasher, fact.as_bytes());
    }
    for path in paths {
        let mut files = Vec::new();
        collect(path, &mut files)?;
        files.sort();
        for file in files {
            let name = file.strip_prefix(path).unwrap_or(&file);
            let bytes =
                fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
            update(&mut hasher, name.to_string_lossy().as_bytes());
            update(&mut hasher, &bytes);
        }
        update(&mut hasher, b"end of path");
    }
    Ok(hex::encode(hasher.finalize()))
}

/// Remembers that `outputs` were made from inputs with a given hash.
pub struct Stamp {
    file: PathBuf,
    outputs: Vec<PathBuf>,
}

impl Stamp {
    /// A stamp of this checkout (the target directory may serve several).
    pub fn new(workspace: &Workspace, name: &str, outputs: Vec<PathBuf>) -> Result<Self> {
        let checkout = hash(&[], &[&workspace.root.to_string_lossy()])?;
        let file = workspace
            .tools()
            .join("stamps")
            .join(&checkout[..16])
            .join(name);
        Ok(Self { file, outputs })
    }

    /// Whether the outputs are those made from these inputs, untouched since.
    pub fn is_current(&self, inputs: &str) -> bool {
        let recorded = fs::read_to_string(&self.file).unwrap_or_default();
        self.outputs.iter().all(|output| output.exists())
            && self.content(inputs).is_ok_and(|now| now == recorded)
    }

    /// Records the outputs as they are now.
    pub fn set(&self, inputs: &str) -> Result<()> {
        let content = self.content(inputs)?;
        let folder = self.file.parent().context("a stamp has no folder")?;
        fs::create_dir_all(folder)?;
        fs::write(&self.file, content)
            .with_context(|| format!("cannot write {}", self.file.display()))
    }

    fn content(&self, inputs: &str) -> Result<String> {
        Ok(format!("{inputs} {}\n", hash(&self.outputs, &[])?))
    }
}

fn update(hasher: &mut Sha256, bytes: &[u8]) {
    // The length distinguishes "ab"+"c" from "a"+"bc".
    hasher.update((bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    if path.is_file() {
        files.push(path.to_path_buf());
    }
    if !path.is_dir() {
        return Ok(());
    }
    let entries = fs::read_dir(path).with_context(|| format!("cannot list {}", path.display()))?;
    for entry in entries {
        let entry = entry?;
        if !SKIPPED_FOLDERS
            .iter()
            .any(|name| entry.file_name() == *name)
        {
            collect(&entry.path(), files)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_changes_with_content_names_and_facts() {
        let folder = std::env::temp_dir().join(format!("frolic-stamp-{}", std::process::id()));
        fs::create_dir_all(folder.join("inner")).unwrap();
        let paths = [folder.clone()];
        fs::write(folder.join("inner/a"), "1").unwrap();
        let first = hash(&paths, &["flags"]).unwrap();
        assert_eq!(first, hash(&paths, &["flags"]).unwrap());
        assert_ne!(first, hash(&paths, &["other flags"]).unwrap());
        fs::write(folder.join("inner/a"), "2").unwrap();
        let second = hash(&paths, &["flags"]).unwrap();
        assert_ne!(first, second);
        fs::rename(folder.join("inner/a"), folder.join("inner/b")).unwrap();
        assert_ne!(second, hash(&paths, &["flags"]).unwrap());
        fs::remove_dir_all(folder).unwrap();
    }
}
