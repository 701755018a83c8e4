//! The `terrain` of a scene: its size, its generator, and who may change it
//! where.

use serde::{Deserialize, Serialize};

use crate::edits::Edits;
use crate::grid::{CHUNK_SIDE, Grid};
use crate::material::Material;
use crate::op::Op;

/// Blocks along x and z.
const SIDE_MAX: u32 = 4096;
/// Blocks upwards.
const HEIGHT_MAX: u32 = 512;
/// Chunks of one terrain.
const CHUNKS_MAX: u32 = 65_536;
/// Distance from the origin in chunks.
const FAR_MAX: i32 = 1024;
/// Operations that a scene may start with.
const OPS_MAX: usize = 4096;
/// Blocks that they may change together: they are applied on first access.
const OPS_BLOCKS_MAX: u64 = 64 << 20;
const AREAS_MAX: usize = 256;

/// The terrain settings in scene.json.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Blocks along x, y and z; each a multiple of 32.
    pub size: [u32; 3],
    /// The lowest block; each a multiple of 32. By default x and z are centred
    /// on the origin, and y starts at 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<[i32; 3]>,
    /// Metres along a block: 0.25, 0.5, 1, 2 or 4.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub block: f32,
    /// The generator of the initial terrain.
    #[serde(default)]
    pub generator: Generator,
    /// Materials that players may build with; all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub materials: Option<Vec<Material>>,
    /// Areas in which players may change nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protected: Vec<Area>,
    /// Whether players may change it at all.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub editable: bool,
    /// How far from their eyes players may change it, in metres.
    #[serde(default = "default_reach", skip_serializing_if = "is_default_reach")]
    pub reach: f32,
    /// Largest radius, or half side, of a player's operation, in metres.
    #[serde(default = "default_brush", skip_serializing_if = "is_default_brush")]
    pub brush: f32,
    /// How many changes a player may make per second.
    #[serde(default = "default_rate", skip_serializing_if = "is_default_rate")]
    pub rate: f32,
    /// Initial changes, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ops: Vec<Op>,
    /// Chunks that replace those of `generator` and `ops`. A package has them in
    /// `terrain/edits.bin`; clients receive them here.
    #[serde(default, skip_serializing_if = "Edits::is_empty")]
    pub edits: Edits,
}

/// A box in metres.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Area {
    /// Its lowest corner.
    pub min: [f32; 3],
    /// Its highest corner.
    pub max: [f32; 3],
}

/// Generates the initial terrain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
pub enum Generator {
    /// No blocks.
    Empty,
    /// Level ground.
    Flat {
        /// Blocks from the bottom to the surface.
        height: u32,
        /// The highest layer.
        #[serde(default = "grass", skip_serializing_if = "is_grass")]
        surface: Material,
        /// The three layers below it.
        #[serde(default = "dirt", skip_serializing_if = "is_dirt")]
        soil: Material,
        /// Everything below.
        #[serde(default = "stone", skip_serializing_if = "is_stone")]
        rock: Material,
    },
    /// Hills, with lakes, beaches, snow on high peaks, and trees.
    Hills {
        /// Seed of the terrain.
        seed: u32,
        /// Blocks from the bottom to the average ground level.
        height: u32,
        /// How far hills rise and valleys fall from there, in blocks.
        amplitude: u32,
        /// How wide a hill is, in blocks.
        scale: u32,
        /// Blocks from the bottom to the surface of lakes; 0 for none.
        #[serde(default, skip_serializing_if = "is_zero")]
        water: u32,
        /// Blocks from the bottom to where snow begins; 0 for none.
        #[serde(default, skip_serializing_if = "is_zero")]
        snow: u32,
        /// Fraction of the land that is forest, 0 to 1.
        #[serde(default, skip_serializing_if = "is_none")]
        trees: f32,
        /// A level meadow without trees, to start from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        clearing: Option<Clearing>,
    },
}

/// Level ground among hills.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clearing {
    /// Its centre, in blocks along x and z.
    pub center: [i32; 2],
    /// Blocks from the centre to where hills begin.
    pub radius: u32,
    /// Blocks from the bottom to its surface.
    pub height: u32,
}

impl Default for Generator {
    fn default() -> Self {
        Generator::Flat {
            height: 8,
            surface: Material::GRASS,
            soil: Material::DIRT,
            rock: Material::STONE,
        }
    }
}

fn one() -> f32 {
    1.0
}
fn is_one(value: &f32) -> bool {
    *value == 1.0
}
fn yes() -> bool {
    true
}
fn is_yes(value: &bool) -> bool {
    *value
}
fn default_reach() -> f32 {
    8.0
}
fn is_default_reach(value: &f32) -> bool {
    *value == 8.0
}
fn default_brush() -> f32 {
    4.0
}
fn is_default_brush(value: &f32) -> bool {
    *value == 4.0
}
fn default_rate() -> f32 {
    10.0
}
fn is_default_rate(value: &f32) -> bool {
    *value == 10.0
}
fn grass() -> Material {
    Material::GRASS
}
fn is_grass(material: &Material) -> bool {
    *material == Material::GRASS
}
fn dirt() -> Material {
    Material::DIRT
}
fn is_dirt(material: &Material) -> bool {
    *material == Material::DIRT
}
fn stone() -> Material {
    Material::STONE
}
fn is_stone(material: &Material) -> bool {
    *material == Material::STONE
}
fn is_zero(value: &u32) -> bool {
    *value == 0
}
fn is_none(value: &f32) -> bool {
    *value == 0.0
}

/// A value out of range, and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsProblem {
    /// The key in the settings.
    pub key: &'static str,
    /// The error, and the valid values.
    pub message: String,
}

impl Settings {
    /// A terrain of that size, with defaults for everything else.
    pub fn new(size: [u32; 3], generator: Generator) -> Self {
        Self {
            size,
            origin: None,
            block: 1.0,
            generator,
            materials: None,
            protected: Vec::new(),
            editable: true,
            reach: default_reach(),
            brush: default_brush(),
            rate: default_rate(),
            ops: Vec::new(),
            edits: Edits::default(),
        }
    }

    /// Its extent. Sizes that do not pass [`Settings::check`] are clamped.
    pub fn grid(&self) -> Grid {
        let chunks = std::array::from_fn(|axis| {
            let most = if axis == 1 { HEIGHT_MAX } else { SIDE_MAX };
            (self.size[axis].min(most) as i32 / CHUNK_SIDE).max(1)
        });
        let first = match self.origin {
            Some(origin) => origin.map(|at| at.div_euclid(CHUNK_SIDE).clamp(-FAR_MAX, FAR_MAX)),
            None => std::array::from_fn(|axis| if axis == 1 { 0 } else { -(chunks[axis] / 2) }),
        };
        let block = if is_block_size(self.block) {
            self.block
        } else {
            1.0
        };
        Grid::new(block, first, chunks)
    }

    /// All values that are out of range.
    pub fn check(&self) -> Vec<SettingsProblem> {
        let mut found = Vec::new();
        let mut say = |key, message: String| found.push(SettingsProblem { key, message });
        let side = CHUNK_SIDE as u32;
        let [x, y, z] = self.size;
        if [x, y, z]
            .iter()
            .any(|blocks| *blocks == 0 || blocks % side != 0)
        {
            say(
                "size",
                format!("each side is a multiple of {side} blocks, such as [512, 128, 512]"),
            );
        } else if x > SIDE_MAX || z > SIDE_MAX || y > HEIGHT_MAX {
            say(
                "size",
                format!("at most [{SIDE_MAX}, {HEIGHT_MAX}, {SIDE_MAX}] blocks"),
            );
        } else if (x / side) * (y / side) * (z / side) > CHUNKS_MAX {
            let blocks = CHUNKS_MAX as u64 * crate::CHUNK_BLOCKS as u64 / 1_000_000;
            say("size", format!("at most {blocks} million blocks in all"));
        }
        if let Some(origin) = self.origin {
            let far = FAR_MAX * CHUNK_SIDE;
            if origin
                .iter()
                .any(|at| at % CHUNK_SIDE != 0 || !(-far..=far).contains(at))
            {
                say(
                    "origin",
                    format!("multiples of {side} blocks, from -{far} to {far}"),
                );
            }
        }
        if !is_block_size(self.block) {
            say("block", "0.25, 0.5, 1, 2 or 4 metres".to_owned());
        }
        for (key, value, least, most) in [
            ("reach", self.reach, 0.5, 1000.0),
            ("brush", self.brush, 0.125, 32.0),
            ("rate", self.rate, 0.1, 60.0),
        ] {
            if !(least..=most).contains(&value) {
                say(key, format!("from {least} to {most}, not {value}"));
            }
        }
        if self.protected.len() > AREAS_MAX {
            say("protected", format!("at most {AREAS_MAX} areas"));
        }
        let is_area = |area: &Area| {
            (0..3).all(|axis| {
                let (min, max) = (area.min[axis], area.max[axis]);
                min.is_finite() && max.is_finite() && min <= max
            })
        };
        if !self.protected.iter().all(is_area) {
            say(
                "protected",
                "min is the lowest corner of an area and max the highest".to_owned(),
            );
        }
        let is_air = |material: &Material| *material == Material::AIR;
        if self
            .materials
            .as_ref()
            .is_some_and(|list| list.is_empty() || list.iter().any(is_air))
        {
            say(
                "materials",
                "name at least one material, and not air".to_owned(),
            );
        }
        let grid = self.grid();
        let outside = |at: &crate::ChunkPos| grid.chunk_index(*at).is_none();
        if let Some(at) = self.edits.positions().find(outside) {
            say("edits", format!("chunk {at:?} is outside of the terrain"));
        }
        self.check_ops(&mut say);
        self.check_generator(&mut say);
        found
    }

    fn check_ops(&self, say: &mut impl FnMut(&'static str, String)) {
        if self.ops.len() > OPS_MAX {
            say("ops", format!("at most {OPS_MAX} operations"));
        }
        let grid = self.grid();
        let blocks = self
            .ops
            .iter()
            .take(OPS_MAX)
            .map(|op| op.blocks(&grid).volume());
        if blocks.sum::<u64>() > OPS_BLOCKS_MAX {
            say(
                "ops",
                format!("together they touch more than {OPS_BLOCKS_MAX} blocks"),
            );
        }
    }

    fn check_generator(&self, say: &mut impl FnMut(&'static str, String)) {
        let Generator::Hills {
            height,
            amplitude,
            scale,
            water,
            snow,
            trees,
            clearing,
            ..
        } = &self.generator
        else {
            if let Generator::Flat { height, .. } = &self.generator
                && *height > HEIGHT_MAX
            {
                say("generator", format!("height is at most {HEIGHT_MAX}"));
            }
            return;
        };
        if [*height, *amplitude, *water, *snow]
            .iter()
            .any(|blocks| *blocks > HEIGHT_MAX)
        {
            let message = format!("height, amplitude, water and snow are at most {HEIGHT_MAX}");
            say("generator", message);
        }
        if !(4..=4096).contains(scale) {
            say("generator", "scale is from 4 to 4096".to_owned());
        }
        if !(0.0..=1.0).contains(trees) {
            say("generator", "trees is from 0 to 1".to_owned());
        }
        if clearing.is_some_and(|c| c.radius > SIDE_MAX || c.height > HEIGHT_MAX) {
            say(
                "generator",
                "the clearing is larger than any terrain".to_owned(),
            );
        }
    }
}

/// Exact in binary, so that metres and blocks convert without rounding.
fn is_block_size(metres: f32) -> bool {
    [0.25, 0.5, 1.0, 2.0, 4.0].contains(&metres)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(settings: &Settings) -> Vec<&'static str> {
        settings.check().iter().map(|problem| problem.key).collect()
    }

    #[test]
    fn good_settings_pass_and_keep_their_defaults_out_of_the_file() {
        let text = r#"{"size":[512,128,512],"generator":{"type":"hills","seed":7,"height":40,"amplitude":20,"scale":90}}"#;
        let settings: Settings = serde_json::from_str(text).unwrap();
        assert_eq!(keys(&settings), Vec::<&str>::new());
        assert_eq!(serde_json::to_string(&settings).unwrap(), text);
        let grid = settings.grid();
        assert_eq!(grid.blocks().min, [-256, 0, -256]);
        assert_eq!(grid.blocks().max, [255, 127, 255]);
    }

    #[test]
    fn every_wrong_value_is_named() {
        let good = Settings::new([64, 64, 64], Generator::default());
        let wrong = |change: &dyn Fn(&mut Settings)| {
            let mut settings = good.clone();
            change(&mut settings);
            // Whatever the value, a terrain can be created from it.
            assert!(settings.grid().chunk_count() >= 1);
            keys(&settings)
        };
        assert_eq!(wrong(&|s| s.size = [0, 64, 64]), ["size"]);
        assert_eq!(wrong(&|s| s.size = [64, 64, 70]), ["size"]);
        assert_eq!(wrong(&|s| s.size = [1 << 30, 64, 64]), ["size"]);
        assert_eq!(wrong(&|s| s.size = [4096, 512, 4096]), ["size"]);
        assert_eq!(wrong(&|s| s.origin = Some([1, 0, 0])), ["origin"]);
        assert_eq!(wrong(&|s| s.origin = Some([i32::MIN, 0, 0])), ["origin"]);
        assert_eq!(wrong(&|s| s.block = 0.3), ["block"]);
        assert_eq!(wrong(&|s| s.block = f32::NAN), ["block"]);
        assert_eq!(wrong(&|s| s.reach = -1.0), ["reach"]);
        assert_eq!(wrong(&|s| s.brush = f32::INFINITY), ["brush"]);
        assert_eq!(wrong(&|s| s.rate = f32::NAN), ["rate"]);
        assert_eq!(wrong(&|s| s.materials = Some(vec![])), ["materials"]);
        let area = Area {
            min: [1.0; 3],
            max: [0.0; 3],
        };
        assert_eq!(wrong(&|s| s.protected = vec![area]), ["protected"]);
        let op = Op::fill([0.0; 3], [64.0; 3], Material::SAND);
        assert_eq!(wrong(&|s| s.ops = vec![op; 2000]), ["ops"]);
        let steep = Generator::Hills {
            seed: 1,
            height: 9999,
            amplitude: 1,
            scale: 1,
            water: 0,
            snow: 0,
            trees: 2.0,
            clearing: None,
        };
        assert_eq!(wrong(&|s| s.generator = steep.clone()), ["generator"; 3]);
    }
}
