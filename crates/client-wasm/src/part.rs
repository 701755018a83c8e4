//! Parts as JSON for the page: what it draws, and what client scripts read. Fields
//! that most parts lack are left out.

use std::collections::BTreeMap;

use frolic_client as client;
use frolic_scene::{Color, Label, Light, LightKind, Material, Npc, Pattern, Shape, Transform};
use serde::Serialize;
use wasm_bindgen::prelude::*;

use crate::event::parts::{WireValue, wire_map};
use crate::{ClientCore, to_json};

#[wasm_bindgen]
impl ClientCore {
    /// The parts that appeared, changed or disappeared since the last call, as the
    /// JSON of `PartChanges`; none when there were no changes. The first call after
    /// the `scene` event returns all parts.
    pub fn take_part_changes(&mut self) -> Option<String> {
        let changes = self.client.take_part_changes();
        if changes == client::PartChanges::default() {
            return None;
        }
        Some(to_json(&PartChanges::from(changes)))
    }

    /// Settings of the terrain as JSON, for [`crate::terrain::TerrainMesher`]; none
    /// without a terrain.
    pub fn terrain_settings(&self) -> Option<String> {
        self.client.replica().terrain_settings().map(to_json)
    }
}

/// The parts of a scene without a world, as the JSON of a list of `Part`.
#[wasm_bindgen]
pub fn parts_of_scene(scene_json: &str) -> Result<String, JsError> {
    let parts = client::parts_of_scene(scene_json.as_bytes());
    let parts = parts.map_err(|cause| JsError::new(&cause))?;
    let parts: Vec<Part> = parts.into_iter().map(Part::from).collect();
    Ok(to_json(&parts))
}

/// What happened to the parts since the page asked last.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
struct PartChanges {
    /// Parts that appeared or changed.
    changed: Vec<Part>,
    /// Ids of parts that disappeared.
    removed: Vec<u32>,
}

/// An entity with everything resolved: prefab, parents, scale, and what scripts
/// changed. Characters of players are not parts.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
#[serde(rename_all = "camelCase")]
struct Part {
    id: u32,
    name: String,
    /// In the world. What moves is elsewhere in each frame.
    position: [f32; 3],
    /// A quaternion: x, y, z, w.
    rotation: [f32; 4],
    /// With the scale applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    shape: Option<PartShape>,
    material: PartMaterial,
    /// Its colour as scripts read it; missing when nothing gives it one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    color: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    light: Option<PartLight>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    label: Option<PartLabel>,
    /// Whether it has a body that is not static.
    moves: bool,
    /// Whether its shape is a sensor and not solid.
    trigger: bool,
    /// Whether characters appear here.
    spawn_point: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    npc: Option<PartNpc>,
    tags: Vec<String>,
    attributes: BTreeMap<String, WireValue>,
}

/// A shape with the scale applied, in metres, its centre at the part's position.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
#[serde(tag = "type", rename_all = "snake_case")]
enum PartShape {
    Box { size: [f32; 3] },
    Wedge { size: [f32; 3] },
    Sphere { radius: f32 },
    Capsule { radius: f32, height: f32 },
    Cylinder { radius: f32, height: f32 },
    Mesh { asset: String, scale: [f32; 3] },
}

/// A surface, with every default filled in.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
struct PartMaterial {
    color: String,
    roughness: f32,
    metalness: f32,
    emissive: Option<String>,
    opacity: f32,
    pattern: PartPattern,
}

/// What is drawn on a surface on top of its colour.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
#[serde(rename_all = "snake_case")]
enum PartPattern {
    Plain,
    Studs,
    Checker,
    Grass,
    Planks,
}

/// A source of light, with every default filled in.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
struct PartLight {
    #[serde(rename = "type")]
    kind: PartLightKind,
    color: String,
    intensity: f32,
    /// Metres.
    range: f32,
}

/// How light spreads.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
#[serde(rename_all = "snake_case")]
enum PartLightKind {
    Point,
    Spot,
    Sun,
}

/// Text in the world, with every default filled in.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
struct PartLabel {
    /// Lines are separated by line breaks.
    text: String,
    color: String,
    /// Height of a line in metres.
    size: f32,
    /// Metres between the part's position and the lowest line.
    height: f32,
    /// Metres from which it can be read.
    distance: f32,
}

/// What is drawn of an NPC; a missing colour depends on its id.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
#[serde(rename_all = "camelCase")]
struct PartNpc {
    /// Metres.
    sight_distance: f32,
    /// Degrees.
    field_of_view: f32,
    /// Whether its field of view is drawn on the ground.
    vision_cone: bool,
    shirt: Option<String>,
    trousers: Option<String>,
    skin: Option<String>,
    hair: Option<String>,
}

impl From<client::PartChanges> for PartChanges {
    fn from(changes: client::PartChanges) -> Self {
        Self {
            changed: changes.changed.into_iter().map(Part::from).collect(),
            removed: changes.removed,
        }
    }
}

// Every field by name: a new one does not compile here until it is decided whether the
// page gets it.
impl From<client::Part> for Part {
    fn from(part: client::Part) -> Self {
        let client::Part {
            id,
            name,
            transform,
            shape,
            material,
            color,
            light,
            label,
            moves,
            trigger,
            spawn_point,
            npc,
            tags,
            attributes,
        } = part;
        let Transform {
            position,
            rotation,
            scale,
            ..
        } = transform;
        Self {
            id,
            name,
            position,
            rotation,
            shape: shape.map(|shape| PartShape::new(shape, scale)),
            material: material.into(),
            color: written(color),
            light: light.map(PartLight::from),
            label: label.map(PartLabel::from),
            moves,
            trigger,
            spawn_point,
            npc: npc.map(PartNpc::from),
            tags,
            attributes: wire_map(&attributes),
        }
    }
}

impl PartShape {
    fn new(shape: Shape, scale: [f32; 3]) -> Self {
        match shape {
            Shape::Box { size } => Self::Box { size },
            Shape::Wedge { size } => Self::Wedge { size },
            Shape::Sphere { radius } => Self::Sphere { radius },
            Shape::Capsule { radius, height } => Self::Capsule { radius, height },
            Shape::Cylinder { radius, height } => Self::Cylinder { radius, height },
            Shape::Mesh { asset } => Self::Mesh { asset, scale },
        }
    }
}

impl From<Material> for PartMaterial {
    fn from(material: Material) -> Self {
        Self {
            color: material.color.to_string(),
            roughness: material.roughness,
            metalness: material.metalness,
            emissive: written(material.emissive),
            opacity: material.opacity,
            pattern: match material.pattern {
                Pattern::Plain => PartPattern::Plain,
                Pattern::Studs => PartPattern::Studs,
                Pattern::Checker => PartPattern::Checker,
                Pattern::Grass => PartPattern::Grass,
                Pattern::Planks => PartPattern::Planks,
            },
        }
    }
}

impl From<Light> for PartLight {
    fn from(light: Light) -> Self {
        Self {
            kind: match light.kind {
                LightKind::Point => PartLightKind::Point,
                LightKind::Spot => PartLightKind::Spot,
                LightKind::Sun => PartLightKind::Sun,
            },
            color: light.color.to_string(),
            intensity: light.intensity,
            range: light.range,
        }
    }
}

impl From<Label> for PartLabel {
    fn from(label: Label) -> Self {
        Self {
            text: label.text,
            color: label.color.to_string(),
            size: label.size,
            height: label.height,
            distance: label.distance,
        }
    }
}

impl From<Npc> for PartNpc {
    fn from(npc: Npc) -> Self {
        Self {
            sight_distance: npc.sight_distance,
            field_of_view: npc.field_of_view,
            vision_cone: npc.vision_cone,
            shirt: written(npc.shirt),
            trousers: written(npc.trousers),
            skin: written(npc.skin),
            hair: written(npc.hair),
        }
    }
}

fn written(color: Option<Color>) -> Option<String> {
    color.map(|color| color.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_part_is_json_as_the_page_reads_it() {
        let scene = br##"{"format":1,
            "prefabs":{"Coin":{"components":{"Shape":{"type":"sphere","radius":0.5},"Tag":["coin"]}}},
            "entities":[{"id":7,"name":"Big","prefab":"Coin","components":{
                "Transform":{"position":[1,2,3],"scale":[2,2,2]},
                "Material":{"color":"#ff8800"},
                "Light":{"type":"point"},
                "Label":{"text":"Win here","size":1},
                "Attributes":{"Home":[1,2,3]}}}]}"##;
        let mut parts = client::parts_of_scene(scene).expect("a scene");
        let part = Part::from(parts.remove(0));
        assert_eq!(
            serde_json::to_value(&part).expect("JSON"),
            json!({
                "id": 7,
                "name": "Big",
                "position": [1.0, 2.0, 3.0],
                "rotation": [0.0, 0.0, 0.0, 1.0],
                "shape": { "type": "sphere", "radius": 1.0 },
                "material": {
                    "color": "#ff8800",
                    "roughness": 0.8_f32,
                    "metalness": 0.0,
                    "emissive": null,
                    "opacity": 1.0,
                    "pattern": "plain",
                },
                "color": "#ff8800",
                "light": { "type": "point", "color": "#ffffff", "intensity": 1.0, "range": 10.0 },
                "label": { "text": "Win here", "color": "#ffffff", "size": 1.0, "height": 0.0, "distance": 40.0 },
                "moves": false,
                "trigger": false,
                "spawnPoint": false,
                "tags": ["coin"],
                "attributes": { "Home": { "$v": [1.0, 2.0, 3.0] } },
            })
        );
    }
}
