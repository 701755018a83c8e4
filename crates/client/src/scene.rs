//! The solids this client knows: the scene's, and those of entities it was told of.

use std::collections::{BTreeMap, HashMap};

use frolic_package::{Components, Limits, Scene, Transform};
use frolic_protocol::EntityState;
use frolic_protocol::entity::{EntityKind, SCENE_DEFINITION, flags};
use frolic_sim::{CollisionWorld, Motion, Pose, Rotation, Vec3};

/// A solid that moves by itself, and so must be posed for every predicted tick.
struct Mover {
    id: u32,
    rotation: Rotation,
    path: Path,
}

enum Path {
    Motion(Motion),
    /// Straight on from where it was at that tick, in metres per tick.
    Drift {
        from: Vec3,
        per_tick: Vec3,
        tick: u32,
    },
}

#[derive(Default)]
pub(crate) struct ClientScene {
    pub collision: CollisionWorld,
    /// Text of scene.json, for the host to draw.
    pub json: String,
    prefabs: Vec<Components>,
    definitions: HashMap<u16, Components>,
    /// Scene entities as the file has them, for those that are replicated.
    originals: BTreeMap<u32, (Components, Transform)>,
    movers: Vec<Mover>,
    posed_tick: Option<u32>,
    dt: f32,
}

impl ClientScene {
    pub fn load(json: String, tick_hz: u32) -> Result<Self, String> {
        let scene = Scene::parse(json.as_bytes(), &Limits::default())
            .map_err(|report| report.to_string())?;
        let originals = scene
            .entities
            .iter()
            .zip(scene.world_transforms())
            .map(|(entity, transform)| (entity.id, (scene.resolved(entity), transform)))
            .collect();
        Ok(Self {
            collision: frolic_sim::scene::load(&scene),
            prefabs: scene
                .prefabs
                .values()
                .map(|prefab| prefab.components.clone())
                .collect(),
            definitions: HashMap::new(),
            originals,
            movers: Vec::new(),
            posed_tick: None,
            dt: 1.0 / tick_hz.max(1) as f32,
            json,
        })
    }

    /// Learns how entities of a definition look.
    pub fn define(&mut self, index: u16, components: &str) -> Result<(), String> {
        let components = serde_json::from_str(components).map_err(|cause| cause.to_string())?;
        self.definitions.insert(index, components);
        Ok(())
    }

    fn components_of(&self, state: &EntityState) -> Option<(&Components, Transform)> {
        if state.definition == SCENE_DEFINITION {
            let (components, transform) = self.originals.get(&state.id)?;
            return Some((components, *transform));
        }
        let components = self
            .prefabs
            .get(usize::from(state.definition) - 1)
            .or_else(|| self.definitions.get(&state.definition))?;
        Some((components, components.transform.unwrap_or_default()))
    }

    /// Brings the solids in line with a snapshot.
    pub fn apply(&mut self, tick: u32, entities: &[EntityState], removed: &[u32]) {
        self.movers.clear();
        self.posed_tick = None;
        for id in removed {
            self.collision.remove(*id);
        }
        for state in entities {
            if state.kind == EntityKind::Character {
                continue;
            }
            if state.has(flags::DESTROYED) {
                self.collision.remove(state.id);
                continue;
            }
            self.place(tick, state);
        }
    }

    fn place(&mut self, tick: u32, state: &EntityState) {
        let pose = Pose::from_parts(state.place(), state.turn());
        if !self.collision.contains(state.id) {
            let solid = self
                .components_of(state)
                .and_then(|(components, transform)| {
                    frolic_sim::scene::solid_shape(components, &transform)
                });
            let Some(shape) = solid else {
                return;
            };
            self.collision.insert(state.id, shape, pose);
        }
        let path = match state.motion {
            Some(motion) => Path::Motion(motion),
            None if state.velocity != [0; 3] => Path::Drift {
                from: state.place(),
                per_tick: state.speed() * self.dt,
                tick,
            },
            None => {
                self.collision.teleport(state.id, pose);
                return;
            }
        };
        self.movers.push(Mover {
            id: state.id,
            rotation: state.turn(),
            path,
        });
    }

    /// Puts everything that moves where it is, and was, at a tick.
    pub fn pose_movers_at(&mut self, tick: u32) {
        if self.posed_tick == Some(tick) {
            return;
        }
        self.posed_tick = Some(tick);
        self.collision.begin_tick();
        for mover in &self.movers {
            let pose = |tick| Pose::from_parts(mover.path.at(tick), mover.rotation);
            self.collision
                .set_path(mover.id, pose(tick.saturating_sub(1)), pose(tick));
        }
    }
}

impl Path {
    fn at(&self, at: u32) -> Vec3 {
        match self {
            Path::Motion(motion) => motion.position_at(at),
            Path::Drift {
                from,
                per_tick,
                tick,
            } => *from + *per_tick * (i64::from(at) - i64::from(*tick)) as f32,
        }
    }
}
