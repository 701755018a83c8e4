//! Warnings about what a scene may say and what changes nothing (yet): a creator
//! who writes it believes that it does something.

use super::{ComponentPlaces, Reader};
use crate::Rule;
use crate::components::default_range;
use crate::{Body, BodyKind, ComponentKind, Components, Joint, JointKind, LightKind, Shape};

impl<'t> Reader<'t, '_> {
    /// Looks at the components of one prefab or entity, by themselves.
    pub(super) fn warn_of_inert(&mut self, components: &Components, places: &ComponentPlaces<'t>) {
        for (component, message) in inert(components) {
            // A component of the prefab has its warning there.
            let Some((_, at)) = places.iter().find(|(key, _)| key == component) else {
                continue;
            };
            self.within_component(component, |reader| {
                reader.warning(Rule::NoEffect, *at, message);
            });
        }
    }
}

/// Why a whole component does nothing yet; none when it does something.
pub fn without_effect(component: &str) -> Option<&'static str> {
    ComponentKind::from_name(component)?.unused()
}

/// Component and sentence of everything that has no effect.
fn inert(components: &Components) -> Vec<(&'static str, String)> {
    let mut found: Vec<(&'static str, String)> = Vec::new();
    let mut say = |component, message: &str| found.push((component, message.to_owned()));
    for kind in ComponentKind::ALL
        .iter()
        .filter(|kind| components.has(**kind))
    {
        if let Some(message) = kind.unused() {
            say(kind.name(), message);
        }
    }
    let team = components.spawn_point.as_ref().map(|point| &point.team);
    if team.is_some_and(Option::is_some) {
        say(
            "SpawnPoint",
            "SpawnPoint: team has no effect yet: players of every team appear here",
        );
    }
    if components.trigger.is_some() {
        if matches!(components.shape, Some(Shape::Mesh { .. })) {
            say(
                "Trigger",
                "Trigger has no effect on a mesh, which has no inside; give it a simple shape",
            );
        }
        let falls = |body: &Body| body.kind == BodyKind::Dynamic;
        if components.body.as_ref().is_some_and(falls) {
            say(
                "Body",
                "Body of type \"dynamic\" has no effect beside a Trigger, which is not solid and does not fall",
            );
        }
    }
    if let Some(body) = &components.body
        && body.kind != BodyKind::Dynamic
        && body.mass != Body::new(body.kind).mass
    {
        say(
            "Body",
            "Body: mass has no effect unless its type is \"dynamic\"",
        );
    }
    if let Some(light) = &components.light
        && light.kind == LightKind::Sun
        && light.range != default_range()
    {
        say(
            "Light",
            "Light: range has no effect on a sun, which reaches everywhere",
        );
    }
    if let Some(joint) = &components.joint {
        let unused = unused_of_joint(joint);
        if !unused.is_empty() {
            let message = format!(
                "Joint: {} {} no effect on this type of joint",
                unused.join(" and "),
                if unused.len() == 1 { "has" } else { "have" }
            );
            found.push(("Joint", message));
        }
    }
    found
}

/// Settings that were given and that joints of this type do not have.
fn unused_of_joint(joint: &Joint) -> Vec<&'static str> {
    let usual = Joint::new(joint.kind);
    let along_axis = matches!(joint.kind, JointKind::Hinge | JointKind::Slider);
    let at_distance = matches!(joint.kind, JointKind::Rope | JointKind::Spring);
    let is_spring = joint.kind == JointKind::Spring;
    let settings = [
        ("axis", joint.axis != usual.axis, along_axis),
        ("limits", joint.limits.is_some(), along_axis),
        ("speed", joint.speed.is_some(), along_axis),
        ("length", joint.length.is_some(), at_distance),
        ("stiffness", joint.stiffness != usual.stiffness, is_spring),
        ("damping", joint.damping != usual.damping, is_spring),
    ];
    settings
        .into_iter()
        .filter(|(_, given, used)| *given && !used)
        .map(|(name, ..)| name)
        .collect()
}
