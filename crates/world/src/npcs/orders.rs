//! Orders of scripts to an NPC, which take precedence over its own behaviour
//! until they are released.

use frolic_protocol::npc::NpcState;
use frolic_scene::{PATROL_POINTS_MAX, PatrolPoint};
use frolic_script::{EngineError, EntityId, NpcFacts, NpcOrder, NpcPlace};
use frolic_sim::Vec3;

use super::{Npc, Npcs};
use crate::space::Space;

/// Orders that are in force.
#[derive(Clone, Debug, Default)]
pub struct Orders {
    /// The destination and whether it runs; inside: none means to stand still.
    pub goal: Option<Option<(Vec3, bool)>>,
    pub look: Option<Vec3>,
    pub state: Option<NpcState>,
}

impl Orders {
    /// Whether its own behaviour is suspended.
    pub fn takes_over(&self) -> bool {
        self.goal.is_some() || self.state.is_some()
    }
}

impl Npcs {
    fn npc_mut(&mut self, space: &Space, id: EntityId) -> Result<&mut Npc, EngineError> {
        if space.alive(id).is_none() {
            return Err(EngineError::NoSuchEntity(id));
        }
        self.all.get_mut(&id).ok_or_else(|| {
            let message = "this entity has no Npc component; check `entity.Npc` first";
            EngineError::Refused(message.to_owned())
        })
    }

    /// See [`frolic_script::Engine::npc`].
    pub fn facts(&self, space: &Space, id: EntityId) -> Result<Option<NpcFacts>, EngineError> {
        if space.alive(id).is_none() {
            return Err(EngineError::NoSuchEntity(id));
        }
        Ok(self.all.get(&id).map(|npc| NpcFacts {
            state: npc.state,
            target: npc
                .senses
                .target
                .filter(|target| space.alive(*target).is_some()),
            suspicion: npc.senses.suspicion,
            overridden: npc.orders.takes_over(),
        }))
    }

    /// See [`frolic_script::Engine::order_npc`].
    pub fn order(
        &mut self,
        space: &Space,
        id: EntityId,
        order: NpcOrder,
    ) -> Result<(), EngineError> {
        let npc = self.npc_mut(space, id)?;
        match order {
            NpcOrder::MoveTo { to, run } => {
                npc.orders.goal = Some(Some((Vec3::from(to), run)));
                npc.reported_arrival = false;
                // An order to the same place starts a new journey.
                if let Some(npc) = self.all.get_mut(&id) {
                    npc.journey.stop(&mut self.nav, id);
                }
            }
            NpcOrder::Stop => npc.orders.goal = Some(None),
            NpcOrder::LookAt(place) => npc.orders.look = place.map(Vec3::from),
            NpcOrder::SetState(state) => {
                npc.orders.state = Some(state);
                npc.orders.goal = None;
                if npc.state != state {
                    self.enter(id, state, space.tick);
                }
            }
            NpcOrder::Patrol(places) => {
                if places.len() > PATROL_POINTS_MAX {
                    let message = format!("{PATROL_POINTS_MAX} points of a patrol");
                    return Err(EngineError::Limit(message));
                }
                npc.patrol = places.into_iter().map(point).collect();
                npc.rounds = Default::default();
            }
            NpcOrder::Release => npc.orders = Orders::default(),
            NpcOrder::Forget => {
                npc.senses = Default::default();
                npc.orders = Orders::default();
                if npc.state != NpcState::Idle && npc.state != NpcState::Return {
                    self.enter(id, NpcState::Return, space.tick);
                }
            }
        }
        Ok(())
    }

    fn enter(&mut self, id: EntityId, state: NpcState, tick: u32) {
        if let Some(npc) = self.all.get_mut(&id) {
            npc.enter(state, &mut self.nav, tick);
        }
    }

    /// Applies a script's impulse to an NPC. False if the entity is not one.
    pub fn push(&mut self, space: &mut Space, id: EntityId, velocity: Vec3) -> bool {
        let Some(npc) = self.all.get_mut(&id) else {
            return false;
        };
        npc.gait.velocity = velocity;
        npc.gait.ground = None;
        space.entities.set_velocity(id, velocity);
        true
    }
}

fn point(place: NpcPlace) -> PatrolPoint {
    match place {
        NpcPlace::At(place) => PatrolPoint::At(place),
        NpcPlace::Named(name) => PatrolPoint::Named(name),
    }
}
