//! The scene and the replicated entities: their components, their solids and their
//! parts.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use frolic_protocol::details::Details;
use frolic_protocol::entity::{EntityKind, SCENE_DEFINITION, flags};
use frolic_protocol::{EntityState, quantize};
use frolic_scene::{BodyKind, Components, Limits, Scene, Transform};
use frolic_sim::{CollisionWorld, Meshes, Motion, Pose, Rotation, Vec3};
use frolic_terrain::Settings;

use crate::drawn::{Drawn, DrawnKind};
use crate::parts::{Part, PartChanges, PartLog, Resolved};
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
    name: String,
    components: Components,
    transform: Transform,
    /// Its pose, and the same after quantization.
    home: Pose,
    quantized: Pose,
    /// Whether it is destroyed, or neither where the file has it nor in view.
    gone: bool,
}

/// Name of an entity that a script spawned from components.
const UNNAMED: &str = "Entity";

/// The parts of a scene on its own, from the text of scene.json: what a world shows
/// before its scripts run.
///
/// # Errors
/// When the text is not a scene.
pub fn parts_of_scene(json: &[u8]) -> Result<Vec<Part>, String> {
    let scene = ClientScene::load(json, 60, Meshes::default())?;
    let part = |id| Some(scene.resolve(id, None)?.part(id));
    Ok(scene.ids().filter_map(part).collect())
}

#[derive(Default)]
pub(crate) struct ClientScene {
    pub collision: CollisionWorld,
    /// Settings of the terrain, if the scene has one.
    pub terrain: Option<Settings>,
    /// In the order of their numbers, from 1.
    prefabs: Vec<(String, Components)>,
    definitions: HashMap<u16, Components>,
    /// Definitions of entities that were replicated before these arrived.
    awaited: BTreeSet<u16>,
    /// Scene entities as the file has them, for those that are replicated.
    originals: BTreeMap<u32, Original>,
    movers: BTreeMap<u32, Mover>,
    /// Attributes and looks that scripts changed.
    details: HashMap<u32, Details>,
    parts: PartLog,
    posed_tick: Option<u32>,
    dt: f32,
}

impl ClientScene {
    pub fn load(json: &[u8], tick_hz: u32, meshes: Meshes) -> Result<Self, String> {
        let scene = Scene::parse(json, &Limits::default()).map_err(|report| report.to_string())?;
        let originals = scene
            .entities
            .iter()
            .zip(scene.world_transforms())
            .map(|(entity, transform)| {
                let components = scene.resolved(entity);
                let name = entity.name.clone();
                (entity.id, Original::new(name, components, transform))
            })
            .collect();
        Ok(Self {
            collision: frolic_sim::scene::load_with(&scene, meshes),
            prefabs: scene
                .prefabs
                .into_iter()
                .map(|(name, prefab)| (name, prefab.components))
                .collect(),
            terrain: scene.terrain,
            originals,
            dt: 1.0 / tick_hz.max(1) as f32,
            ..Self::default()
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
        self.details = early.details;
        self.parts = early.parts;
        let states: Vec<_> = states.collect();
        for (_, state) in &states {
            // Otherwise a part of the scene would retain the size in the file.
            if self.changed_scale(state.id).is_some() {
                self.collision.remove(state.id);
            }
        }
        self.apply_states(states.into_iter());
        self.parts.mark_all();
    }

    /// Adds the components of a definition, unless a value is out of its range: the
    /// simulation and the host rely on finite numbers. Returns whether entities of it were
    /// replicated already; those must be applied again.
    pub fn define(&mut self, index: u16, components: &str) -> Result<bool, String> {
        let components: Components =
            serde_json::from_str(components).map_err(|cause| cause.to_string())?;
        if let Some(problem) = components.check().first() {
            return Err(format!("{}: {}", problem.component, problem.message));
        }
        self.definitions.insert(index, components);
        Ok(self.awaited.remove(&index))
    }

    fn components_of(&self, state: &EntityState) -> Option<(&Components, Transform)> {
        if state.definition == SCENE_DEFINITION {
            let original = self.originals.get(&state.id)?;
            return Some((&original.components, original.transform));
        }
        let components = match self.prefab(state.definition) {
            Some((_, components)) => components,
            None => self.definitions.get(&state.definition)?,
        };
        Some((components, components.transform.unwrap_or_default()))
    }

    fn prefab(&self, definition: u16) -> Option<&(String, Components)> {
        let number = usize::from(definition).checked_sub(1)?;
        self.prefabs.get(number)
    }

    /// Attributes and looks that scripts changed.
    pub fn details_of(&self, id: u32) -> Option<&Details> {
        self.details.get(&id)
    }

    fn changed_scale(&self, id: u32) -> Option<[f32; 3]> {
        self.details.get(&id)?.looks.scale
    }

    /// An entity in its replicated state, or as the scene has it. None for a character
    /// of a player, for what is gone, and for what has no definition yet.
    pub fn resolve(&self, id: u32, state: Option<&EntityState>) -> Option<Resolved<'_>> {
        let details = self.details.get(&id);
        let Some(state) = state else {
            let original = self.originals.get(&id).filter(|original| !original.gone)?;
            return Some(Resolved {
                name: &original.name,
                components: &original.components,
                transform: original.transform,
                details,
            });
        };
        if state.has(flags::DESTROYED) {
            return None;
        }
        let (components, mut transform) = self.components_of(state)?;
        let name = match state.definition {
            SCENE_DEFINITION => self.originals.get(&id).map(|original| &original.name),
            definition => self.prefab(definition).map(|(name, _)| name),
        };
        let pose = self.known_pose(state);
        transform.position = pose.translation.to_array();
        transform.rotation = pose.rotation.to_array();
        Some(Resolved {
            name: name.map_or(UNNAMED, String::as_str),
            components,
            transform,
            details,
        })
    }

    /// The ids of all entities of the scene.
    pub fn ids(&self) -> impl Iterator<Item = u32> {
        self.originals.keys().copied()
    }

    /// The parts that changed since the last call. `state_of` is the replicated state
    /// of an entity, `replicated` are the ids that have one.
    pub fn take_part_changes<'a>(
        &mut self,
        state_of: impl Fn(u32) -> Option<&'a EntityState>,
        replicated: impl Iterator<Item = u32>,
    ) -> PartChanges {
        let mut log = std::mem::take(&mut self.parts);
        let changes = log.take(
            || self.ids().chain(replicated),
            |id| Some(self.resolve(id, state_of(id))?.part(id)),
        );
        self.parts = log;
        changes
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
            // The host would otherwise retain the pose in which it got the part.
            self.parts.mark(*id);
        }
        self.apply_states(applied.changed.iter().map(|state| (tick, state)));
    }

    /// Updates the solids from states, each as of its tick.
    pub fn apply_states<'a>(&mut self, states: impl Iterator<Item = (u32, &'a EntityState)>) {
        self.posed_tick = None;
        for (tick, state) in states {
            if state.has(flags::DESTROYED) {
                self.remove(state.id);
                continue;
            }
            self.note_part(state);
            if state.kind != EntityKind::Character {
                self.place(tick, state);
            }
        }
    }

    /// Records that a part is in view, or that its definition must arrive first.
    fn note_part(&mut self, state: &EntityState) {
        if state.definition == SCENE_DEFINITION {
            if let Some(original) = self.originals.get_mut(&state.id) {
                original.gone = false;
            }
        } else if self.components_of(state).is_none() {
            self.awaited.insert(state.definition);
        }
        let mut log = std::mem::take(&mut self.parts);
        log.mark_new(state.id, || self.components_of(state).is_some());
        self.parts = log;
    }

    /// Removes an entity's solid and its part.
    pub fn remove(&mut self, id: u32) {
        self.collision.remove(id);
        self.movers.remove(&id);
        self.details.remove(&id);
        if let Some(original) = self.originals.get_mut(&id) {
            original.gone = true;
        }
        self.parts.mark_removed(id);
    }

    /// A script changed attributes or looks of an entity.
    pub fn learn_details(&mut self, state: &EntityState, details: Details) {
        let scale = details.looks.scale;
        let before = self.details.insert(state.id, details);
        if self.components_of(state).is_some() {
            self.parts.mark(state.id);
        }
        let rescaled = scale != before.and_then(|before| before.looks.scale);
        if rescaled && self.collision.contains(state.id) {
            self.collision.remove(state.id);
            self.insert(state);
            self.posed_tick = None;
        }
    }

    /// Creates an entity's solid, if it has one.
    fn insert(&mut self, state: &EntityState) -> bool {
        let Some((components, mut transform)) = self.components_of(state) else {
            return false;
        };
        let components = components.clone();
        transform.scale = self.changed_scale(state.id).unwrap_or(transform.scale);
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
    fn new(name: String, components: Components, transform: Transform) -> Self {
        let home = frolic_sim::scene::pose(&transform);
        Self {
            name,
            gone: false,
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
