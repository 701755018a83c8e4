//! Orders of scripts to an NPC, which take precedence over its own behaviour
//! until they are released.

use frolic_protocol::npc::NpcState;
use frolic_scene::PatrolPoint;
use frolic_script::{EngineError, EntityId, NpcFacts, NpcOrder, NpcPlace};
use frolic_sim::Vec3;

use super::Npc;
use crate::state::WorldState;

/// Points of a patrol.
const PATROL_POINTS_MAX: usize = 256;

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

impl WorldState {
    fn npc_mut(&mut self, id: EntityId) -> Result<&mut Npc, EngineError> {
        if self.alive(id).is_none() {
            return Err(EngineError::NoSuchEntity(id));
        }
        self.npcs.all.get_mut(&id).ok_or_else(|| {
            let message = "this entity has no Npc component; check `entity.Npc` first";
            EngineError::Refused(message.to_owned())
        })
    }

    /// See [`frolic_script::Engine::npc`].
    pub fn npc_facts(&self, id: EntityId) -> Result<Option<NpcFacts>, EngineError> {
        if self.alive(id).is_none() {
            return Err(EngineError::NoSuchEntity(id));
        }
        Ok(self.npcs.all.get(&id).map(|npc| NpcFacts {
            state: npc.state,
            target: npc
                .senses
                .target
                .filter(|target| self.alive(*target).is_some()),
            suspicion: npc.senses.suspicion,
            overridden: npc.orders.takes_over(),
        }))
    }

    /// See [`frolic_script::Engine::order_npc`].
    pub fn order_npc(&mut self, id: EntityId, order: NpcOrder) -> Result<(), EngineError> {
        let npc = self.npc_mut(id)?;
        match order {
            NpcOrder::MoveTo { to, run } => {
                npc.orders.goal = Some(Some((Vec3::from(to), run)));
                npc.reported_arrival = false;
                // An order to the same place starts a new journey.
                let npcs = &mut self.npcs;
                if let Some(npc) = npcs.all.get_mut(&id) {
                    npc.journey.stop(&mut npcs.nav, id);
                }
            }
            NpcOrder::Stop => npc.orders.goal = Some(None),
            NpcOrder::LookAt(place) => npc.orders.look = place.map(Vec3::from),
            NpcOrder::SetState(state) => {
                npc.orders.state = Some(state);
                npc.orders.goal = None;
                if npc.state != state {
                    self.enter_npc(id, state);
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
                    self.enter_npc(id, NpcState::Return);
                }
            }
        }
        Ok(())
    }

    fn enter_npc(&mut self, id: EntityId, state: NpcState) {
        let (tick, npcs) = (self.tick, &mut self.npcs);
        if let Some(npc) = npcs.all.get_mut(&id) {
            npc.enter(state, &mut npcs.nav, tick);
        }
    }

    /// Whether an entity is an NPC.
    pub fn is_npc(&self, id: EntityId) -> bool {
        self.npcs.all.contains_key(&id)
    }

    /// Applies a script's impulse to an NPC. False if the entity is not one.
    pub fn push_npc(&mut self, id: EntityId, velocity: Vec3) -> bool {
        let Some(npc) = self.npcs.all.get_mut(&id) else {
            return false;
        };
        npc.character.velocity = velocity;
        npc.character.ground = None;
        if let Some(entity) = self.entities.get_mut(&id) {
            entity.velocity = velocity;
        }
        true
    }
}

fn point(place: NpcPlace) -> PatrolPoint {
    match place {
        NpcPlace::At(place) => PatrolPoint::At(place),
        NpcPlace::Named(name) => PatrolPoint::Named(name),
    }
}
