//! The solids this client knows: the scene's, and those of replicated entities.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use frolic_package::{BodyKind, Components, Limits, Scene, Transform};
use frolic_protocol::entity::{EntityKind, SCENE_DEFINITION, flags};
use frolic_protocol::{EntityState, quantize};
use frolic_sim::{CollisionWorld, Meshes, Motion, Pose, Rotation, Vec3};

use crate::playback::{Drawn, DrawnKind};
use crate::replication::Applied;

/// A body continues straight for this long without updates: something will have
/// stopped it.
const BODY_DRIFT_TICKS: i64 = 30;

/// Rotations whose squared component differences sum to less than this are equal: a
/// quantization step is a thousand times as much.
const SAME_TURN: f32 = 1e-9;

/// A solid that moves by itself, and so must be posed for every predicted tick.
struct Mover {
    rotation: Rotation,
    path: Path,
}

enum Path {
    /// Along a path, then at its quantized end, as the server would replicate it.
    Motion { motion: Motion, end: Vec3 },
    /// Straight on from where it was at that tick, in metres per tick.
    Drift {
        from: Vec3,
        per_tick: Vec3,
        tick: u32,
        /// How long that is extrapolated.
        ticks_max: i64,
    },
}

/// A part of the scene as the file has it.
struct Original {
    components: Components,
    transform: Transform,
    /// Its pose, and the same after quantization.
    home: Pose,
    quantized: Pose,
}

#[derive(Default)]
pub(crate) struct ClientScene {
    pub collision: CollisionWorld,
    /// Text of scene.json, for the host to draw.
    pub json: String,
    prefabs: Vec<Components>,
    definitions: HashMap<u16, Components>,
    /// Definitions of entities that were replicated before these arrived.
    awaited: BTreeSet<u16>,
    /// Scene entities as the file has them, for those that are replicated.
    originals: BTreeMap<u32, Original>,
    movers: BTreeMap<u32, Mover>,
    /// Scales that scripts changed.
    scales: HashMap<u32, Vec3>,
    posed_tick: Option<u32>,
    dt: f32,
}

impl ClientScene {
    pub fn load(json: String, tick_hz: u32, meshes: Meshes) -> Result<Self, String> {
        let scene = Scene::parse(json.as_bytes(), &Limits::default())
            .map_err(|report| report.to_string())?;
        let originals = scene
            .entities
            .iter()
            .zip(scene.world_transforms())
            .map(|(entity, transform)| {
                (entity.id, Original::new(scene.resolved(entity), transform))
            })
            .collect();
        Ok(Self {
            collision: frolic_sim::scene::load_with(&scene, meshes),
            prefabs: scene
                .prefabs
                .values()
                .map(|prefab| prefab.components.clone())
                .collect(),
            definitions: HashMap::new(),
            awaited: BTreeSet::new(),
            originals,
            movers: BTreeMap::new(),
            scales: HashMap::new(),
            posed_tick: None,
            dt: 1.0 / tick_hz.max(1) as f32,
            json,
        })
    }

    /// Takes over from the placeholder that was used while the scene was loading:
    /// datagrams overtake the stream, and no solids could be made from them.
    /// `states` are the replicated states, each as of its tick.
    pub fn take_over<'a>(
        &mut self,
        early: Self,
        states: impl Iterator<Item = (u32, &'a EntityState)>,
    ) {
        self.definitions = early.definitions;
        self.scales = early.scales;
        let states: Vec<_> = states.collect();
        for (_, state) in &states {
            // Otherwise a part of the scene would retain the size in the file.
            if self.scales.contains_key(&state.id) {
                self.collision.remove(state.id);
            }
        }
        self.apply_states(states.into_iter());
    }

    /// Adds the components of a definition. Returns whether entities of it were
    /// replicated already; those must be applied again.
    pub fn define(&mut self, index: u16, components: &str) -> Result<bool, String> {
        let components = serde_json::from_str(components).map_err(|cause| cause.to_string())?;
        self.definitions.insert(index, components);
        Ok(self.awaited.remove(&index))
    }

    fn components_of(&self, state: &EntityState) -> Option<(&Components, Transform)> {
        if state.definition == SCENE_DEFINITION {
            let original = self.originals.get(&state.id)?;
            return Some((&original.components, original.transform));
        }
        let components = self
            .prefabs
            .get(usize::from(state.definition) - 1)
            .or_else(|| self.definitions.get(&state.definition))?;
        Some((components, components.transform.unwrap_or_default()))
    }

    /// The exact pose that the server has for a resting solid.
    fn known_pose(&self, state: &EntityState) -> Pose {
        let original = match state.definition {
            SCENE_DEFINITION => self.originals.get(&state.id),
            _ => None,
        };
        let home = original.map(|original| &original.home);
        quantize::pose_back(state.position, state.rotation, home)
    }

    /// Draws an entity that is where the file has it, except for rounding, exactly
    /// there: its solid is there, and at the far end of something large the
    /// difference is visible.
    pub fn draw_at_home(&self, drawn: &mut Drawn) {
        if drawn.kind != DrawnKind::Thing || drawn.definition != SCENE_DEFINITION {
            return;
        }
        let Some(Original {
            home, quantized, ..
        }) = self.originals.get(&drawn.id)
        else {
            return;
        };
        if drawn.position == quantized.translation {
            drawn.position = home.translation;
        }
        if (drawn.rotation - quantized.rotation).length_squared() < SAME_TURN {
            drawn.rotation = home.rotation;
        }
    }

    /// Whether physics moves it.
    fn falls(&self, state: &EntityState) -> bool {
        let components = self.components_of(state);
        let body = components.and_then(|(components, _)| components.body);
        body.is_some_and(|body| body.kind == BodyKind::Dynamic)
    }

    /// Updates the solids from a snapshot's changes.
    pub fn apply(&mut self, tick: u32, applied: &Applied) {
        for id in &applied.removed {
            self.remove(*id);
        }
        for id in &applied.out_of_view {
            // No further updates: its stop would be missed.
            self.movers.remove(id);
        }
        self.apply_states(applied.changed.iter().map(|state| (tick, state)));
    }

    /// Updates the solids from states, each as of its tick.
    pub fn apply_states<'a>(&mut self, states: impl Iterator<Item = (u32, &'a EntityState)>) {
        self.posed_tick = None;
        for (tick, state) in states {
            if state.kind == EntityKind::Character {
                continue;
            }
            if state.has(flags::DESTROYED) {
                self.remove(state.id);
                continue;
            }
            self.place(tick, state);
        }
    }

    /// Removes an entity's solid.
    pub fn remove(&mut self, id: u32) {
        self.collision.remove(id);
        self.movers.remove(&id);
        self.scales.remove(&id);
    }

    /// A script changed the scale of an entity.
    pub fn rescale(&mut self, state: &EntityState, scale: Vec3) {
        self.scales.insert(state.id, scale);
        if self.collision.contains(state.id) {
            self.collision.remove(state.id);
            self.insert(state);
            self.posed_tick = None;
        }
    }

    /// Creates an entity's solid, if it has one.
    fn insert(&mut self, state: &EntityState) -> bool {
        let Some((components, mut transform)) = self.components_of(state) else {
            self.awaited.insert(state.definition);
            return false;
        };
        let components = components.clone();
        if let Some(scale) = self.scales.get(&state.id) {
            transform.scale = scale.to_array();
        }
        let pose = self.known_pose(state);
        let world = &mut self.collision;
        let shape = frolic_sim::scene::insert(world, state.id, &components, &transform);
        world.teleport(state.id, pose);
        shape.is_some()
    }

    fn place(&mut self, tick: u32, state: &EntityState) {
        if !self.collision.contains(state.id) && !self.insert(state) {
            return;
        }
        let falls = self.falls(state);
        let pose = self.known_pose(state);
        let path = match state.motion {
            Some(motion) => {
                let mut arrived = *state;
                arrived.position = quantize::position(motion.to);
                let end = self.known_pose(&arrived).translation;
                Path::Motion { motion, end }
            }
            None if state.velocity != [0; 3] => Path::Drift {
                from: state.place(),
                per_tick: state.speed() * self.dt,
                // Bodies move after characters, which collide with them a tick
                // later.
                tick: tick.saturating_add(u32::from(falls)),
                ticks_max: if falls { BODY_DRIFT_TICKS } else { i64::MAX },
            },
            None => {
                self.movers.remove(&state.id);
                self.collision.teleport(state.id, pose);
                return;
            }
        };
        let rotation = pose.rotation;
        self.movers.insert(state.id, Mover { rotation, path });
    }

    /// Poses everything that moves as of a tick and the one before.
    pub fn pose_movers_at(&mut self, tick: u32) {
        if self.posed_tick == Some(tick) {
            return;
        }
        self.posed_tick = Some(tick);
        self.collision.begin_tick();
        for (&id, mover) in &self.movers {
            let pose = |tick| Pose::from_parts(mover.path.at(tick), mover.rotation);
            self.collision
                .set_path(id, pose(tick.saturating_sub(1)), pose(tick));
        }
    }
}

impl Original {
    fn new(components: Components, transform: Transform) -> Self {
        let home = frolic_sim::scene::pose(&transform);
        Self {
            components,
            transform,
            home,
            quantized: quantize::pose(&home, None),
        }
    }
}

impl Path {
    fn at(&self, at: u32) -> Vec3 {
        match self {
            Path::Motion { motion, end } if at >= motion.end_tick => *end,
            Path::Motion { motion, .. } => motion.position_at(at),
            Path::Drift {
                from,
                per_tick,
                tick,
                ticks_max,
            } => {
                let ticks = (i64::from(at) - i64::from(*tick)).min(*ticks_max);
                *from + *per_tick * ticks as f32
            }
        }
    }
}
