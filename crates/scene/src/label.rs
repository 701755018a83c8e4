//! The Label component: text in the world.

use serde::{Deserialize, Serialize};

use crate::check::Checker;
use crate::color::Color;
use crate::component::fields;
use crate::field::Field;

const TEXT_CHARS_MAX: usize = 200;
const LINES_MAX: usize = 6;

/// Text that faces each viewer, such as a sign, a goal or the name of a shop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Label {
    /// Up to 200 characters in up to 6 lines, separated by `\n`.
    pub text: String,
    /// Colour of the letters; white when left out.
    #[serde(default = "white")]
    pub color: Color,
    /// Height of a line.
    #[serde(default = "half_a_metre")]
    pub size: f32,
    /// How far above the entity's position its lowest line is.
    #[serde(default)]
    pub height: f32,
    /// How near a viewer must be to see it.
    #[serde(default = "default_distance")]
    pub distance: f32,
}

fields! {
    Label {
        color: Field::any().widget("color"),
        size: Field::range(0.05, 20.0).unit("m"),
        height: Field::range(-100.0, 100.0).unit("m"),
        distance: Field::range(1.0, 1_000.0).unit("m"),
    }
    with check_label
}

fn check_label(label: &Label, found: &mut Checker) {
    let text = &label.text;
    let chars = text.chars().count();
    if !(1..=TEXT_CHARS_MAX).contains(&chars) || text.split('\n').count() > LINES_MAX {
        let message =
            format!("a label has 1 to {TEXT_CHARS_MAX} characters in {LINES_MAX} lines at most");
        found.invalid("text", message);
    } else if text.chars().any(|c| c.is_control() && c != '\n') {
        found.invalid(
            "text",
            "a label contains no control characters except line breaks",
        );
    }
}

fn white() -> Color {
    Color([0xff; 3])
}

fn half_a_metre() -> f32 {
    0.5
}

fn default_distance() -> f32 {
    40.0
}
