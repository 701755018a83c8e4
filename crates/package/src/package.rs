//! A whole package: its files, checked, with manifest and scene read.

mod assets;
mod meshes;
mod validate;

pub(crate) use validate::DOCUMENTS;
use validate::TERRAIN_EDITS;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::remotes::Remote;
use crate::soul;
use crate::spells::SpellSettings;
use crate::{Limits, Manifest, Problem, Report, Rule, Scene, Triangles, archive, pack};

/// One version of a game, ready to be run. It exists only when nothing in it is wrong.
#[derive(Clone, Debug)]
pub struct Package {
    /// game.toml.
    pub manifest: Manifest,
    /// scene.json with the children of prefabs as entities of their own; see [`Scene::expand`].
    pub scene: Scene,
    /// remotes.toml, by name.
    pub remotes: BTreeMap<String, Remote>,
    /// Spells that ship with the game, by id.
    pub spells: BTreeMap<String, SpellSettings>,
    /// Solid triangles of the assets that mesh shapes of the scene name, by path.
    pub meshes: BTreeMap<String, Arc<Triangles>>,
    /// All files by path, game.toml and scene.json among them.
    pub files: BTreeMap<String, Vec<u8>>,
    /// SHA-256 of the archive in hexadecimal: the identity of this version.
    pub revision: String,
    /// Warnings only: valid, but probably unintended.
    pub warnings: Report,
}

impl Package {
    /// Reads a `.game` archive (zip, .tar.gz or .tar.zst).
    ///
    /// # Errors
    /// All problems found; nothing of a refused package is kept.
    pub fn read(archive: &[u8], limits: &Limits) -> Result<Package, Report> {
        let files = archive::read(archive, limits)?;
        let revision = sha256_hex(archive);
        Package::checked(files, limits, revision)
    }

    /// Checks files (of a folder, say) as a package. Its revision is that of their archive.
    ///
    /// # Errors
    /// As [`Package::read`].
    pub fn from_files(
        files: BTreeMap<String, Vec<u8>>,
        limits: &Limits,
    ) -> Result<Package, Report> {
        Package::build(files, limits).map(|(package, _)| package)
    }

    /// Like [`Package::from_files`], together with the archive.
    ///
    /// # Errors
    /// As [`Package::read`].
    pub fn build(
        files: BTreeMap<String, Vec<u8>>,
        limits: &Limits,
    ) -> Result<(Package, Vec<u8>), Report> {
        check_sizes(&files, limits)?;
        // Checked before it is packed: problems of the files matter more than those of packing.
        let mut package = Package::checked(files, limits, String::new())?;
        let archive = pack(&package.files)?;
        // The archive must load again: the same limits apply, including the ratio.
        archive::check_packed(&archive, limits)?;
        package.revision = sha256_hex(&archive);
        Ok((package, archive))
    }

    /// The scripts that run: path below `scripts/`, such as `ServerScriptService/Main.luau`, and
    /// text; and `spells/…/spell.luau`. A `.soul` is not among them, but the Luau that was made
    /// of it is.
    pub fn scripts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().filter_map(|(path, bytes)| {
            let path = match path.strip_prefix("scripts/") {
                Some(path) if !path.ends_with(".soul") => path,
                None if path.starts_with("spells/") && path.ends_with(".luau") => path,
                _ => return None,
            };
            Some((path, std::str::from_utf8(bytes).ok()?))
        })
    }

    /// scene.json as clients get it, with the stored chunks of the terrain; see [`crate::Components::for_clients`].
    pub fn scene_for_clients(&self) -> Cow<'_, [u8]> {
        let scene = self.scene.for_clients();
        let has_edits = self.files.contains_key(TERRAIN_EDITS);
        if scene == self.scene && !has_edits {
            Cow::Borrowed(self.scene_json())
        } else {
            Cow::Owned(scene.to_canonical_json().into_bytes())
        }
    }

    /// The bytes of scene.json.
    pub fn scene_json(&self) -> &[u8] {
        self.files.get("scene.json").map_or(b"", Vec::as_slice)
    }

    /// The picture for the store: its path and bytes.
    pub fn thumbnail(&self) -> Option<(&str, &[u8])> {
        let path = self.manifest.game.thumbnail.as_deref()?;
        Some((path, self.files.get(path)?))
    }

    fn checked(
        files: BTreeMap<String, Vec<u8>>,
        limits: &Limits,
        revision: String,
    ) -> Result<Package, Report> {
        let mut checked = validate::validate(&files, limits)?;
        // The path of a `.soul` stands for the Luau that was made of it.
        checked.scene.map_script_paths(&soul::code_path);
        for path in checked.manifest.bundles.values_mut().flatten() {
            *path = soul::code_path(path);
        }
        Ok(Package {
            manifest: checked.manifest,
            scene: checked.scene,
            remotes: checked.remotes,
            spells: checked.spells,
            meshes: checked.meshes,
            files,
            revision,
            warnings: checked.warnings,
        })
    }
}

/// Reads only game.toml of a zip that was made by [`pack`].
///
/// # Errors
/// All problems of the archive or the manifest.
pub fn manifest_of(archive: &[u8], limits: &Limits) -> Result<Manifest, Report> {
    let bytes = archive::read_one(archive, "game.toml", limits)?;
    Manifest::parse(&bytes, limits)
}

/// The limits that an archive is held to while it is read, for files that come without one.
fn check_sizes(files: &BTreeMap<String, Vec<u8>>, limits: &Limits) -> Result<(), Report> {
    let mut report = Report::new(limits);
    if files.len() > limits.entries_max {
        let message = format!(
            "{} files; at most {} are allowed",
            files.len(),
            limits.entries_max
        );
        report.push(Problem::error(Rule::EntryCount, "", message));
    }
    let mut budget = archive::Budget::new(limits);
    for (path, bytes) in files {
        if let Err(problem) = budget.spend(path, bytes.len() as u64) {
            report.push(problem);
        }
    }
    match report.has_errors() {
        true => Err(report),
        false => Ok(()),
    }
}

fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
