//! Helpers of the engine's calls: lookups that may be refused, and changes of a
//! single entity.

use std::rc::Rc;

use frolic_protocol::Value;
use frolic_protocol::details::SCALE_MAX;
use frolic_scene::{Components, Transform};
use frolic_script::{EngineError, EntityId, PlayerId};
use frolic_sim::{Motion, Vec3};

use crate::definitions::MakeError;
use crate::entity::Entity;
use crate::player::Player;
use crate::state::WorldState;

/// Children per entity, and depth of a hierarchy.
const CHILDREN_MAX: usize = 1000;
const FAMILY_DEPTH_MAX: usize = 32;

impl WorldState {
    pub(super) fn entity(&self, id: EntityId) -> Result<&Entity, EngineError> {
        self.alive(id).ok_or(EngineError::NoSuchEntity(id))
    }

    pub(super) fn entity_mut(&mut self, id: EntityId) -> Result<&mut Entity, EngineError> {
        self.alive_mut(id).ok_or(EngineError::NoSuchEntity(id))
    }

    pub(super) fn player(&self, id: PlayerId) -> Result<&Player, EngineError> {
        self.players.get(&id).ok_or(EngineError::NoSuchPlayer(id))
    }

    pub(super) fn player_mut(&mut self, id: PlayerId) -> Result<&mut Player, EngineError> {
        self.players
            .get_mut(&id)
            .ok_or(EngineError::NoSuchPlayer(id))
    }

    /// An entity that may be moved; characters are moved through their player.
    pub(super) fn movable(&mut self, id: EntityId) -> Result<&mut Entity, EngineError> {
        let entity = self.entity_mut(id)?;
        if entity.player.is_some() {
            let advice = "this is a player's character; use player.Teleport".to_owned();
            return Err(EngineError::Refused(advice));
        }
        Ok(entity)
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
            if !self.assets.contains(asset) {
                let message = format!("{component}: there is no file {asset} in this game");
                return Err(EngineError::Refused(message));
            }
            if component == "Shape" && self.collision.meshes().find(asset).is_none() {
                let message = format!(
                    "{component}: the mesh {asset} is not loaded; give it to a prefab of \
                     scene.json and spawn that: World.Spawn(\"Name\", position)"
                );
                return Err(EngineError::Refused(message));
            }
        }
        Ok(())
    }

    pub(super) fn details_changed(&mut self, id: EntityId) {
        if let Some(entity) = self.alive_mut(id) {
            entity.note_details();
        }
        self.replicate(id);
    }

    pub(super) fn set_scale(&mut self, id: EntityId, scale: Vec3) -> Result<(), EngineError> {
        if scale.abs().max_element() > SCALE_MAX {
            let message = format!("Scale is at most {SCALE_MAX} along each axis");
            return Err(EngineError::Limit(message));
        }
        let entity = self.movable(id)?;
        entity.scale = scale;
        entity.looks.scale = Some(scale.to_array());
        let transform = Transform {
            scale: scale.to_array(),
            ..Transform::default()
        };
        let (components, pose) = (entity.components.clone(), entity.pose());
        let place = entity.solid_pose();
        self.solid_changed(id);
        let solid = frolic_sim::scene::insert(&mut self.collision, id, &components, &transform);
        self.collision.teleport(id, place);
        self.solid_changed(id);
        if let Some(entity) = self.alive_mut(id) {
            entity.reach = solid.map_or(0.0, |shape| shape.reach());
        }
        self.add_body(id);
        if let Some(shape) = frolic_sim::scene::trigger_shape(&components, &transform) {
            self.triggers.reshape(id, shape, pose);
        }
        self.details_changed(id);
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
                above = self.alive(at).and_then(|entity| entity.parent);
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
        let before = std::mem::replace(&mut self.entity_mut(id)?.parent, parent);
        if let Some(before) = before.and_then(|before| self.entities.get_mut(&before)) {
            before.children.retain(|child| *child != id);
        }
        if let Some(parent) = parent {
            self.entity_mut(parent)?.children.push(id);
        }
        // A child of a body is part of it.
        if self.entity(id)?.components.body.is_none() {
            self.add_body(id);
        }
        Ok(())
    }

    /// The depth of the hierarchy below an entity, including the entity.
    pub(super) fn height(&self, id: EntityId) -> usize {
        let children = self.alive(id).map(|entity| entity.children.as_slice());
        let below = children.unwrap_or_default().iter();
        1 + below.map(|child| self.height(*child)).max().unwrap_or(0)
    }

    pub(super) fn set_motion(&mut self, id: EntityId, offset: Vec3, ticks: u32) {
        let tick = self.tick;
        self.solid_changed(id);
        let falls = self.bodies.is_dynamic(id);
        let Some(entity) = self.alive_mut(id).filter(|_| !falls) else {
            return;
        };
        // Paths are replicated exactly, so this one begins at the pose that
        // clients have.
        let from = entity.solid_pose().translation;
        entity.velocity = Vec3::ZERO;
        entity.motion = Some(Motion {
            from,
            to: entity.position + offset,
            start_tick: tick,
            end_tick: tick + ticks,
        });
        let children = entity.children.clone();
        self.moving.insert(id);
        self.replicate(id);
        for child in children {
            self.set_motion(child, offset, ticks);
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
