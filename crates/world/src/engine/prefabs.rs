//! Spawns what is below the root of a prefab.

use std::rc::Rc;

use frolic_scene::{Components, PrefabPart, Transform};
use frolic_script::{EngineError, EntityId};

use crate::entities::{NPCS_MAX, SPAWNED_MAX};
use crate::state::WorldState;

impl WorldState {
    /// Whether there is room for the parts of a prefab below its root. Checked before anything is
    /// spawned: half a prefab is no use.
    pub(super) fn check_room_for_parts(&self, parts: &[PrefabPart]) -> Result<(), EngineError> {
        if self.space.entities.spawned() + parts.len() >= SPAWNED_MAX {
            let message = format!("{SPAWNED_MAX} spawned entities; destroy some first");
            return Err(EngineError::Limit(message));
        }
        let has_npc = parts.iter().any(|part| part.components.npc.is_some());
        if has_npc && !self.space.entities.has_room_for_npc() {
            let message = format!("{NPCS_MAX} NPCs; destroy some first");
            return Err(EngineError::Limit(message));
        }
        Ok(())
    }

    /// Spawns the parts below an entity that was made from their prefab. Returns the scripts of
    /// each.
    pub(super) fn spawn_parts(
        &mut self,
        root: EntityId,
        place: &Transform,
        parts: &[PrefabPart],
    ) -> Result<Vec<(EntityId, String)>, EngineError> {
        let mut made: Vec<(EntityId, Transform)> = Vec::with_capacity(parts.len());
        let mut scripts = Vec::new();
        for part in parts {
            let above = part.parent.and_then(|index| made.get(index));
            let (parent, above) = above.copied().unwrap_or((root, *place));
            let transform = above.then(&part.components.transform.unwrap_or_default());
            let (definition, components) = self.definition_of_part(part, &transform)?;
            self.bodies
                .check_room_for(&self.space, &components, &transform)?;
            let script = components.script.as_ref().map(|script| script.path.clone());
            let id = self
                .spawn(part.name.clone(), definition, components, &transform)
                .ok_or_else(|| EngineError::Limit("too many spawned entities".to_owned()))?;
            self.space.entities.set_parent(id, Some(parent));
            scripts.extend(script.map(|path| (id, path)));
            made.push((id, transform));
        }
        Ok(scripts)
    }

    /// The definition of a part, as that of components that a script spawns: it has the size in
    /// the world, and leaves out the place, which would make a definition for each.
    fn definition_of_part(
        &mut self,
        part: &PrefabPart,
        transform: &Transform,
    ) -> Result<(u16, Rc<Components>), EngineError> {
        let look = Transform {
            scale: transform.scale,
            ..Transform::default()
        };
        let mut components = part.components.clone();
        components.transform = (look != Transform::default()).then_some(look);
        let made = self.definitions.of_components(components);
        let index = made.map_err(|error| EngineError::Limit(error.to_string()))?;
        let components = self.definitions.components(index);
        let components = components
            .ok_or_else(|| EngineError::Refused("the components were not stored".to_owned()))?;
        Ok((index, components))
    }
}
