//! Checks of component values. Types alone do not say that a radius is positive or a position near
//! enough to simulate, and the simulation relies on it. The bounds are declared beside the fields
//! ([`fields!`](crate::component)).

use crate::Rule;
use crate::field::{Field, Numbers};
use crate::text::shown;

/// How far from the origin, in metres, things may be: beyond it `f32` steps exceed 6 cm.
pub(crate) const POSITION_MAX: f32 = 1_000_000.0;
/// The smallest and the largest size, in metres.
pub(crate) const SIZE_MIN: f32 = 0.001;
pub(crate) const SIZE_MAX: f32 = 100_000.0;
const NAME_CHARS_MAX: usize = 64;

/// A value out of range, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentProblem {
    /// Name of the component, as in scene.json.
    pub component: &'static str,
    /// Name of the field (of the attribute, in Attributes); none when the component as a whole
    /// is wrong.
    pub field: Option<String>,
    /// The rule that was broken.
    pub rule: Rule,
    /// The error.
    pub message: String,
}

/// Whether a text can be the name of an entity, prefab, team or tag: 1 to 64 characters, none of
/// them a control character.
pub(crate) fn is_label(text: &str) -> bool {
    let chars = text.chars().count();
    (1..=NAME_CHARS_MAX).contains(&chars) && !text.chars().any(char::is_control)
}

/// Whether a text can be the name of an attribute.
pub(crate) fn is_attribute_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    let starts_well = bytes
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    let continues_well = bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_');
    starts_well && continues_well && name.len() <= NAME_CHARS_MAX
}

/// Collects the problems of components.
#[derive(Default)]
pub struct Checker {
    component: &'static str,
    problems: Vec<ComponentProblem>,
}

impl Checker {
    /// The problems that follow are of this component.
    pub(crate) fn begin(&mut self, component: &'static str) {
        self.component = component;
    }

    /// The problems found so far.
    pub(crate) fn finish(self) -> Vec<ComponentProblem> {
        self.problems
    }

    /// Checks the numbers of a field against its range.
    pub(crate) fn numbers(&mut self, field: &Field, value: &impl Numbers) {
        if let Some((min, max)) = field.range {
            value.each(&mut |number| self.range(field.name, number, min, max));
        }
    }

    pub(crate) fn range(&mut self, field: &str, value: f32, min: f32, max: f32) {
        if !value.is_finite() {
            let message = format!("{field} is not a finite number");
            self.problem(Rule::NonFiniteNumber, Some(field), message);
        } else if !(min..=max).contains(&value) {
            let message = format!("{field} must be from {min} to {max}, not {value}");
            self.invalid(field, message);
        }
    }

    pub(crate) fn asset(&mut self, field: &str, path: &str, extensions: &[&str]) {
        let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
        if !path.starts_with("assets/") || !extensions.contains(&extension) {
            let message = format!(
                "{field} must be a path below assets/ that ends in {}, not \"{}\"",
                extensions.join(" or "),
                shown(path)
            );
            self.invalid(field, message);
        }
    }

    pub(crate) fn label(&mut self, field: &str, text: &str) {
        if !is_label(text) {
            let message = format!(
                "{field} must be 1 to {NAME_CHARS_MAX} characters without control characters"
            );
            self.invalid(field, message);
        }
    }

    pub(crate) fn invalid<'f>(
        &mut self,
        field: impl Into<Option<&'f str>>,
        message: impl Into<String>,
    ) {
        self.problem(Rule::InvalidValue, field.into(), message.into());
    }

    pub(crate) fn problem(&mut self, rule: Rule, field: Option<&str>, message: String) {
        self.problems.push(ComponentProblem {
            component: self.component,
            field: field.map(shown),
            rule,
            message,
        });
    }
}
