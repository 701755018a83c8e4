//! Block materials: a fixed list, the same in every world.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The material of a block. The numbers are part of the protocol and of stored
/// worlds: append new materials at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Material(u8);

/// Behaviour and appearance of a material.
struct About {
    name: &'static str,
    /// sRGB.
    color: [u8; 3],
    /// Of the top face, where it differs.
    top: Option<[u8; 3]>,
    solid: bool,
    /// Whether blocks behind it are visible.
    clear: bool,
}

const fn about(name: &'static str, color: u32) -> About {
    About {
        name,
        color: rgb(color),
        top: None,
        solid: true,
        clear: false,
    }
}

const fn rgb(color: u32) -> [u8; 3] {
    [(color >> 16) as u8, (color >> 8) as u8, color as u8]
}

const ALL: [About; 20] = [
    About {
        solid: false,
        clear: true,
        ..about("air", 0)
    },
    About {
        top: Some(rgb(0x7cc65a)),
        ..about("grass", 0x63a550)
    },
    about("dirt", 0x946b4a),
    about("stone", 0x9a9aa6),
    about("sand", 0xf0d79b),
    About {
        top: Some(rgb(0xfafcff)),
        ..about("snow", 0xdfe6ee)
    },
    About {
        top: Some(rgb(0xc79a63)),
        ..about("wood", 0x7a5236)
    },
    about("leaves", 0x4fa552),
    About {
        solid: false,
        clear: true,
        ..about("water", 0x3aa6ff)
    },
    about("planks", 0xd6a36a),
    about("brick", 0xc0604f),
    About {
        clear: true,
        ..about("glass", 0xcfeaff)
    },
    about("clay", 0xb99c8d),
    about("coral", 0xff5d5d),
    about("sky", 0x3aa6ff),
    about("sun", 0xffc53d),
    about("leaf", 0x2fbf71),
    about("plum", 0x9b6bd6),
    about("ink", 0x35324a),
    about("paper", 0xfbf8f3),
];

impl Material {
    /// Nothing.
    pub const AIR: Material = Material(0);
    /// Green on top.
    pub const GRASS: Material = Material(1);
    /// Below grass.
    pub const DIRT: Material = Material(2);
    /// Deep down.
    pub const STONE: Material = Material(3);
    /// On shores.
    pub const SAND: Material = Material(4);
    /// On peaks.
    pub const SNOW: Material = Material(5);
    /// Trunks.
    pub const WOOD: Material = Material(6);
    /// Of trees.
    pub const LEAVES: Material = Material(7);
    /// In lakes. Not solid: characters swim in it.
    pub const WATER: Material = Material(8);

    /// The number of materials, including air.
    pub const COUNT: usize = ALL.len();

    /// The material with that number.
    pub fn from_number(number: u8) -> Option<Self> {
        (usize::from(number) < Self::COUNT).then_some(Self(number))
    }

    /// Its number.
    pub fn number(self) -> u8 {
        self.0
    }

    /// The material with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        let at = ALL.iter().position(|about| about.name == name)?;
        Some(Self(at as u8))
    }

    /// Its name, as in scene.json and scripts.
    pub fn name(self) -> &'static str {
        self.about().name
    }

    /// All materials but air.
    pub fn all() -> impl Iterator<Item = Self> {
        (1..Self::COUNT as u8).map(Self)
    }

    /// Whether characters and entities collide with it.
    pub fn is_solid(self) -> bool {
        self.about().solid
    }

    /// Whether what is behind it is visible.
    pub fn is_clear(self) -> bool {
        self.about().clear
    }

    /// Its colour in sRGB, on top and elsewhere.
    pub fn color(self, top: bool) -> [u8; 3] {
        let about = self.about();
        about.top.filter(|_| top).unwrap_or(about.color)
    }

    fn about(self) -> &'static About {
        &ALL[usize::from(self.0)]
    }
}

impl Serialize for Material {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Material {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Material;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("the name of a material")
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Material, E> {
                Material::from_name(name).ok_or_else(|| {
                    let known: Vec<_> = ALL.iter().map(|about| about.name).collect();
                    let name: String = name.chars().take(40).collect();
                    E::custom(format!(
                        "\"{name}\" is not a material; there are {}",
                        known.join(", ")
                    ))
                })
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_lead_back() {
        for number in 0..Material::COUNT as u8 {
            let material = Material::from_number(number).unwrap();
            assert_eq!(Material::from_name(material.name()), Some(material));
            assert_eq!(material.number(), number);
        }
        assert_eq!(Material::from_number(Material::COUNT as u8), None);
        assert_eq!(Material::from_name("Grass"), None);
        assert_eq!(Material::WATER.name(), "water");
        assert!(!Material::WATER.is_solid() && !Material::AIR.is_solid());
        assert_eq!(Material::LEAVES.name(), "leaves");
    }
}
