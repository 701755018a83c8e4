//! Helpers of the engine's calls: lookups that may be refused, and changes of a
//! single entity.

use std::rc::Rc;

use frolic_protocol::Value;
use frolic_protocol::details::SCALE_MAX;
use frolic_scene::{Components, Transform};
use frolic_script::{EngineError, EntityId};
use frolic_sim::{Pose, Vec3};

use crate::definitions::MakeError;
use crate::entities::{Change, Entity};
use crate::state::WorldState;

/// Children per entity, and depth of a hierarchy.
const CHILDREN_MAX: usize = 1000;
const FAMILY_DEPTH_MAX: usize = 32;

impl WorldState {
    pub(super) fn entity(&self, id: EntityId) -> Result<&Entity, EngineError> {
        self.space.alive(id).ok_or(EngineError::NoSuchEntity(id))
    }

    /// An entity that may be moved; characters are moved through their player.
    pub(super) fn movable(&self, id: EntityId) -> Result<&Entity, EngineError> {
        let entity = self.entity(id)?;
        if entity.player.is_some() {
            let advice = "this is a player's character; use player.Teleport".to_owned();
            return Err(EngineError::Refused(advice));
        }
        Ok(entity)
    }

    /// Puts an entity somewhere, with its children.
    pub(super) fn place(&mut self, id: EntityId, pose: Pose) {
        self.space.place(id, pose);
        self.settle();
    }

    /// The definition of a script's components, and the transform it asked for.
    pub(super) fn spawn_components(
        &mut self,
        json: &serde_json::Value,
    ) -> Result<(u16, Rc<Components>, Transform), EngineError> {
        let mut components: Components = serde_json::from_value(json.clone())
            .map_err(|cause| EngineError::Refused(format!("wrong components: {cause}")))?;
        if let Some(problem) = components.check().first() {
            let message = format!("{}: {}", problem.component, problem.message);
            return Err(EngineError::Refused(message));
        }
        self.check_assets(&components)?;
        let transform = components.transform.unwrap_or_default();
        // A definition is sent with the first snapshot and stored for the life
        // of the world, so it leaves out the position, which would make a new
        // definition for each place.
        let look = Transform {
            scale: transform.scale,
            ..Transform::default()
        };
        components.transform = (look != Transform::default()).then_some(look);
        let made = self.definitions.of_components(components);
        let index = made.map_err(|error| match error {
            MakeError::TooMany => EngineError::Limit(error.to_string()),
            MakeError::NotJson(_) => EngineError::Refused(error.to_string()),
        })?;
        let components = self
            .definitions
            .components(index)
            .ok_or_else(|| EngineError::Refused("the components were not stored".into()))?;
        Ok((index, components, transform))
    }

    /// Assets that a script names must be in the package, and meshes must be
    /// among those sent to clients with the scene.
    fn check_assets(&self, components: &Components) -> Result<(), EngineError> {
        for (component, asset) in components.assets() {
            if !self.definitions.has_asset(asset) {
                let message = format!("{component}: there is no file {asset} in this game");
                return Err(EngineError::Refused(message));
            }
            if component == "Shape" && self.space.collision.meshes().find(asset).is_none() {
                let message = format!(
                    "{component}: the mesh {asset} is not loaded; give it to a prefab of \
                     scene.json and spawn that: World.Spawn(\"Name\", position)"
                );
                return Err(EngineError::Refused(message));
            }
        }
        Ok(())
    }

    pub(super) fn set_scale(&mut self, id: EntityId, scale: Vec3) -> Result<(), EngineError> {
        if scale.abs().max_element() > SCALE_MAX {
            let message = format!("Scale is at most {SCALE_MAX} along each axis");
            return Err(EngineError::Limit(message));
        }
        let entity = self.movable(id)?;
        let transform = Transform {
            scale: scale.to_array(),
            ..Transform::default()
        };
        let (components, pose) = (entity.components.clone(), entity.pose());
        let place = entity.solid_pose();
        let space = &mut self.space;
        space.solid_changed(id);
        let solid = frolic_sim::scene::insert(&mut space.collision, id, &components, &transform);
        space.collision.teleport(id, place);
        space.solid_changed(id);
        let reach = solid.map_or(0.0, |shape| shape.reach());
        space.entities.resize(id, scale, reach);
        if let Some(shape) = frolic_sim::scene::trigger_shape(&components, &transform) {
            space.triggers.reshape(id, shape, pose);
        }
        self.settle();
        Ok(())
    }

    /// Attaches an entity to a parent, or detaches it; it stays where it is.
    pub(super) fn set_parent(
        &mut self,
        id: EntityId,
        parent: Option<EntityId>,
    ) -> Result<(), EngineError> {
        self.movable(id)?;
        if let Some(parent) = parent {
            self.movable(parent)?;
            let mut depth = self.height(id);
            let mut above = Some(parent);
            while let Some(at) = above {
                if at == id {
                    let message = "an entity cannot hang on itself or on its own child";
                    return Err(EngineError::Refused(message.to_owned()));
                }
                depth += 1;
                above = self.space.alive(at).and_then(|entity| entity.parent);
            }
            // Moving an entity visits all of its descendants, so the depth is
            // bounded.
            if depth > FAMILY_DEPTH_MAX {
                let message = format!("{FAMILY_DEPTH_MAX} entities that hang on each other");
                return Err(EngineError::Limit(message));
            }
            let children = &self.entity(parent)?.children;
            if children.len() >= CHILDREN_MAX && !children.contains(&id) {
                let message = format!("{CHILDREN_MAX} children of one entity");
                return Err(EngineError::Limit(message));
            }
        }
        self.space.entities.set_parent(id, parent);
        // A child of a body is part of it.
        if self.entity(id)?.components.body.is_none() {
            self.space.entities.record(Change::Rebuilt(id));
        }
        self.settle();
        Ok(())
    }

    /// The depth of the hierarchy below an entity, including the entity.
    pub(super) fn height(&self, id: EntityId) -> usize {
        let children = self
            .space
            .alive(id)
            .map(|entity| entity.children.as_slice());
        let below = children.unwrap_or_default().iter();
        1 + below.map(|child| self.height(*child)).max().unwrap_or(0)
    }

    /// Starts a motion of an entity with its children.
    pub(super) fn set_motion(&mut self, id: EntityId, offset: Vec3, ticks: u32) {
        self.space.solid_changed(id);
        if !self.bodies.is_dynamic(id) {
            let tick = self.space.tick;
            let entities = &mut self.space.entities;
            let children = entities.start_motion(id, offset, (tick, tick + ticks));
            for child in children.unwrap_or_default() {
                self.set_motion(child, offset, ticks);
            }
        }
    }
}

pub(super) fn vector(property: &'static str, value: &Value) -> Result<Vec3, EngineError> {
    match value {
        Value::Vector(v) => Ok(Vec3::from(*v)),
        _ => Err(wrong(property, "Vector3")),
    }
}

/// The colour of an entity, as scripts write it.
pub(super) fn color_of(entity: &Entity) -> Value {
    let material = entity.components.material.as_ref();
    match entity.looks.color {
        Some([r, g, b]) => Value::String(format!("#{r:02x}{g:02x}{b:02x}")),
        None => material.map_or(Value::Nil, |m| Value::String(m.color.to_string())),
    }
}

pub(super) fn color(property: &'static str, value: &Value) -> Result<[u8; 3], EngineError> {
    let wrong = || wrong(property, "colour like \"#ff8800\"");
    let Value::String(text) = value else {
        return Err(wrong());
    };
    let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6);
    let number = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
    let [_, r, g, b] = number.ok_or_else(wrong)?.to_be_bytes();
    Ok([r, g, b])
}

pub(super) fn wrong(property: &'static str, expected: &'static str) -> EngineError {
    EngineError::WrongType { property, expected }
}
