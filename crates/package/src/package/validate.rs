//! Checks the files of a package against each other and reports every problem at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::assets;
use crate::limits::TEXT_BYTES_MAX;
use crate::names::{PathSet, check_path};
use crate::remotes::{self, Remote};
use crate::soul;
use crate::spells::{self, SpellSettings};
use crate::{Limits, Manifest, Problem, Report, Rule, Scene, Triangles};
use frolic_scene::text::{LineIndex, shown};
use frolic_terrain::Edits;

const SERVICES: [&str; 7] = [
    "ReplicatedFirst",
    "ReplicatedStorage",
    "ServerScriptService",
    "ServerStorage",
    "StarterGui",
    "StarterPlayer",
    "Workspace",
];
/// Files for people that may lie beside game.toml.
pub(crate) const DOCUMENTS: [&str; 5] = [
    "CHANGELOG.md",
    "LICENSE",
    "LICENSE.md",
    "LICENSE.txt",
    "README.md",
];
/// Stored chunks of the terrain.
pub(super) const TERRAIN_EDITS: &str = "terrain/edits.bin";
type Files = BTreeMap<String, Vec<u8>>;

/// Content of a package's files; the report holds warnings only.
pub(super) struct Checked {
    pub manifest: Manifest,
    pub scene: Scene,
    pub remotes: BTreeMap<String, Remote>,
    pub spells: BTreeMap<String, SpellSettings>,
    pub meshes: BTreeMap<String, Arc<Triangles>>,
    pub warnings: Report,
}

/// Reads manifest, scene and remotes and checks everything else.
pub(super) fn validate(files: &Files, limits: &Limits) -> Result<Checked, Report> {
    let mut report = Report::new(limits);
    let manifest = manifest(files, limits, &mut report);
    let scene = scene(files, limits, &mut report);
    let remotes = remotes::of_files(files, &mut report);
    let spells = spells::of_files(files, &mut report);
    let meshes = super::meshes::read(scene.as_ref(), files, &mut report);
    let mut paths = PathSet::default();
    for (path, bytes) in files {
        match check_path(path) {
            Ok(()) => paths.add(path, &mut report),
            Err(problem) => {
                report.push(problem);
                continue;
            }
        }
        if let Err(problem) = check_file(path, bytes, limits) {
            report.push(problem);
        }
        if let Some(problem) = stale_soul(path, bytes, files) {
            report.push(problem);
        }
    }
    report.sort();
    match (manifest, scene) {
        (Some(manifest), Some(scene)) if !report.has_errors() => Ok(Checked {
            manifest,
            scene,
            remotes,
            spells,
            meshes,
            warnings: report,
        }),
        _ => Err(report),
    }
}

fn manifest(files: &Files, limits: &Limits, report: &mut Report) -> Option<Manifest> {
    let Some(bytes) = files.get("game.toml") else {
        let message = "is missing: a package needs it at its top level";
        report.push(Problem::error(Rule::MissingFile, "game.toml", message));
        return None;
    };
    let (manifest, places) = match Manifest::parse_with_places(bytes, limits) {
        Ok((manifest, mut places)) => {
            report.append(std::mem::take(&mut places.warnings));
            (manifest, places)
        }
        Err(problems) => {
            report.append(problems);
            return None;
        }
    };
    let mut unknown = |message: String, place: Option<&(u32, u32)>| {
        let problem = Problem::error(Rule::UnknownReference, "game.toml", message);
        report.push(problem.at(place.copied().unwrap_or((1, 1))));
    };
    if let Some(path) = &manifest.game.thumbnail
        && !(files.contains_key(path) && assets::is_picture(path))
    {
        let message = format!("thumbnail: there is no picture {}", shown(path));
        unknown(message, places.thumbnail.as_ref());
    }
    for (name, scripts) in &manifest.bundles {
        let missing = |path: &&String| !files.contains_key(&format!("scripts/{path}"));
        for path in scripts.iter().filter(missing) {
            let message = format!("bundle {}: there is no script {}", shown(name), shown(path));
            unknown(message, places.bundles.get(name));
        }
    }
    Some(manifest)
}

fn scene(files: &Files, limits: &Limits, report: &mut Report) -> Option<Scene> {
    let Some(bytes) = files.get("scene.json") else {
        let message = "is missing: a package needs it at its top level";
        report.push(Problem::error(Rule::MissingFile, "scene.json", message));
        return None;
    };
    let edits = terrain_edits(files, report);
    match Scene::parse_in_package(bytes, limits, &|path| files.contains_key(path)) {
        Ok((mut scene, warnings)) => {
            report.append(warnings);
            add_edits(&mut scene, edits, report);
            Some(scene.expand())
        }
        Err(problems) => {
            report.append(problems);
            None
        }
    }
}

/// The stored chunks of the terrain, if the package has valid ones.
fn terrain_edits(files: &Files, report: &mut Report) -> Option<Edits> {
    let bytes = files.get(TERRAIN_EDITS)?;
    match Edits::from_bytes(bytes) {
        Ok(edits) => Some(edits),
        Err(error) => {
            let message = error.to_string();
            report.push(Problem::error(Rule::InvalidValue, TERRAIN_EDITS, message));
            None
        }
    }
}

/// Takes stored chunks into the scene that they belong to.
fn add_edits(scene: &mut Scene, edits: Option<Edits>, report: &mut Report) {
    let stored_in_scene = |terrain: &frolic_scene::Terrain| !terrain.edits.is_empty();
    if scene.terrain.as_ref().is_some_and(stored_in_scene) {
        let message = format!("terrain: edits: chunks are stored in {TERRAIN_EDITS}");
        report.push(Problem::error(Rule::UnknownKey, "scene.json", message));
    }
    let Some(edits) = edits else { return };
    let format = scene.format;
    let Some(terrain) = scene.terrain.as_mut().filter(|_| format >= 2) else {
        let message = "stored chunks need a scene of format 2 with \"terrain\"";
        report.push(Problem::error(Rule::UnexpectedFile, TERRAIN_EDITS, message));
        return;
    };
    terrain.edits = edits;
    for found in terrain.check() {
        if found.key == "edits" {
            report.push(Problem::error(
                Rule::InvalidValue,
                TERRAIN_EDITS,
                found.message,
            ));
        }
    }
}

/// Whether the file belongs where it is and is what its name says.
fn check_file(path: &str, bytes: &[u8], limits: &Limits) -> Result<(), Problem> {
    let (folder, rest) = path.split_once('/').unwrap_or(("", path));
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
    match folder {
        "" if matches!(path, "game.toml" | "scene.json") => Ok(()),
        "" if path == "remotes.toml" => check_text(path, bytes, limits.manifest_bytes_max),
        "" if DOCUMENTS.contains(&path) => check_text(path, bytes, TEXT_BYTES_MAX),
        "scripts" => check_script(path, rest, extension, bytes, limits),
        "assets" => assets::check(path, extension, bytes),
        "terrain" if path == TERRAIN_EDITS => Ok(()),
        "spells" => {
            let name = rest.split_once('/').map(|(_, name)| name);
            match name {
                Some("spell.luau") => check_text(path, bytes, limits.script_bytes_max),
                Some("spell.toml") => check_text(path, bytes, limits.manifest_bytes_max),
                _ => unexpected(
                    path,
                    "a spell is spells/<spell_id>/spell.luau and spell.toml",
                ),
            }
        }
        _ => unexpected(
            path,
            "a package holds game.toml, scene.json, remotes.toml, scripts/, assets/, spells/ and terrain/edits.bin",
        ),
    }
}

fn check_script(
    path: &str,
    rest: &str,
    extension: &str,
    bytes: &[u8],
    limits: &Limits,
) -> Result<(), Problem> {
    let service = rest.split_once('/').map(|(service, _)| service);
    if !service.is_some_and(|service| SERVICES.contains(&service)) {
        let message = format!("scripts are in scripts/ and one of {}", SERVICES.join(", "));
        return unexpected(path, &message);
    }
    if !matches!(extension, "luau" | "lua" | "soul") {
        return unexpected(path, "scripts end in .luau, .lua or .soul");
    }
    check_text(path, bytes, limits.script_bytes_max)
}

/// A world runs Luau: what a `.soul` says must have been written out.
fn stale_soul(path: &str, bytes: &[u8], files: &Files) -> Option<Problem> {
    let target = soul::generated_path(path).filter(|_| path.starts_with("scripts/"))?;
    let advice = "run `frolic pack` or `frolic soul` with SOUL_API_KEY set";
    let message = match files.get(&target) {
        None => format!("there is no {target} made from it; {advice}"),
        Some(made) if !soul::is_current(bytes, made) => {
            format!("was changed since {target} was made from it; {advice}")
        }
        Some(_) => return None,
    };
    Some(Problem::error(Rule::StaleScript, path, message))
}

fn unexpected(path: &str, message: &str) -> Result<(), Problem> {
    Err(Problem::error(Rule::UnexpectedFile, path, message))
}

/// UTF-8 without control characters. A script that starts with one would be bytecode.
fn check_text(path: &str, bytes: &[u8], bytes_max: usize) -> Result<(), Problem> {
    if bytes.len() > bytes_max {
        let message = format!("{} bytes; at most {bytes_max} are allowed", bytes.len());
        return Err(Problem::error(Rule::FileSize, path, message));
    }
    let valid = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    };
    let is_bad = |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r');
    let control_at = valid.find(is_bad);
    let bad_at = control_at.or((valid.len() < bytes.len()).then_some(valid.len()));
    let Some(at) = bad_at else { return Ok(()) };
    let message = match control_at {
        Some(_) => "holds a control character",
        None => "is not UTF-8 from here on",
    };
    let place = LineIndex::new(valid).place(at);
    Err(Problem::error(Rule::InvalidText, path, message).at(place))
}
