//! The assets of mesh shapes must be meshes: they are read when the package is.

use std::collections::BTreeMap;
use std::sync::Arc;

use frolic_scene::Shape;

use crate::{Problem, Report, Rule, Scene, Triangles, gltf};

/// Triangles of all mesh shapes together: every client gets them when it joins.
const ALL_TRIANGLES_MAX: usize = 200_000;

/// Reads every asset that a mesh shape names, each once.
pub(super) fn read(
    scene: Option<&Scene>,
    files: &BTreeMap<String, Vec<u8>>,
    report: &mut Report,
) -> BTreeMap<String, Arc<Triangles>> {
    let mut meshes = BTreeMap::new();
    let Some(scene) = scene else {
        return meshes;
    };
    let mut count = 0;
    for components in scene.all_components() {
        let Some(Shape::Mesh { asset }) = &components.shape else {
            continue;
        };
        // A file that is missing was reported where the scene names it.
        let Some(bytes) = files.get(asset).filter(|_| !meshes.contains_key(asset)) else {
            continue;
        };
        let mesh = gltf::read(bytes).unwrap_or_else(|cause| {
            report.push(Problem::error(Rule::InvalidValue, asset, cause.to_string()));
            Triangles::default()
        });
        count += mesh.triangles().len();
        meshes.insert(asset.clone(), Arc::new(mesh));
        if count > ALL_TRIANGLES_MAX {
            let message =
                format!("all mesh shapes together have more than {ALL_TRIANGLES_MAX} triangles");
            report.push(Problem::error(Rule::InvalidValue, asset, message));
            break;
        }
    }
    meshes
}
