// scene.json as the view reads it: the types, prefab merging and where things stand. The server and the client
// core have already validated the file, so this only picks out what can be drawn.
import { Quaternion, Vector3 } from 'three';
import type { Looks, WireValue } from './events';
import type { NpcData } from './npc';

export type Vec3 = [number, number, number];

export type Shape =
  | { type: 'box' | 'wedge'; size: Vec3 }
  | { type: 'sphere'; radius: number }
  | { type: 'capsule' | 'cylinder'; radius: number; height: number }
  | { type: 'mesh'; asset: string; scale?: Vec3 };

export type Pattern = 'plain' | 'studs' | 'checker' | 'grass' | 'planks';

export interface MaterialData {
  color?: string;
  roughness?: number;
  metalness?: number;
  emissive?: string | null;
  opacity?: number;
  pattern?: Pattern | null;
}

export interface LightData {
  type: 'point' | 'spot' | 'sun';
  color?: string;
  intensity?: number;
  range?: number;
}

export interface Components {
  Transform?: { position?: Vec3; rotation?: [number, number, number, number]; scale?: Vec3 };
  Shape?: Shape;
  Material?: MaterialData;
  Body?: { type: 'static' | 'dynamic' | 'kinematic' };
  Trigger?: object;
  Light?: LightData;
  SpawnPoint?: object;
  Npc?: NpcData;
  Attributes?: Record<string, WireValue>;
  Tag?: string[];
}

export interface SceneEntity {
  id: number;
  name?: string;
  parent?: number | null;
  prefab?: string | null;
  components?: Components;
}

export interface SceneData {
  prefabs?: Record<string, { components?: Components }>;
  entities: SceneEntity[];
  /** The ground of blocks: the client core makes it. */
  terrain?: object;
}

/** Where something stands; scale multiplies axis by axis, as `Transform::then` in crates/package does. */
export interface Placement {
  position: Vector3;
  rotation: Quaternion;
  scale: Vector3;
}

/** One thing to draw: its merged components, where it stands, and its shape with the scale already in it. */
export interface Part {
  id: number;
  components: Components;
  placement: Placement;
  shape: Shape | undefined;
}

/** The components of a prefab by name; empty when the name is unknown. */
export function prefabComponents(scene: SceneData, name: string | null | undefined): Components {
  return (name ? scene.prefabs?.[name]?.components : undefined) ?? {};
}

/** A part from components alone: what scripts spawn. */
export function makePart(id: number, components: Components, parent?: Placement): Part {
  const placement = place(components.Transform, parent);
  const shape = components.Shape && scaledShape(components.Shape, placement.scale);
  return { id, components, placement, shape };
}

/** A part with the looks that a script gave it. */
export function styled(part: Part, looks: Looks | undefined): Part {
  if (!looks) return part;
  const material: MaterialData = { ...part.components.Material };
  if (looks.color) material.color = `#${looks.color.map((c) => c.toString(16).padStart(2, '0')).join('')}`;
  if (looks.opacity !== null) material.opacity = looks.opacity;
  const components = { ...part.components, Material: material };
  if (!looks.scale || !components.Shape) return { ...part, components };
  const scale = new Vector3(...looks.scale);
  return { ...part, components, placement: { ...part.placement, scale }, shape: scaledShape(components.Shape, scale) };
}

/** Every entity where it stands. Parents may come anywhere in the list; a loop of parents ends at its start. */
export function resolveParts(scene: SceneData): Part[] {
  const byId = new Map(scene.entities.map((entity) => [entity.id, entity]));
  const done = new Map<number, Part>();

  const resolve = (entity: SceneEntity, open: Set<number>): Part => {
    const known = done.get(entity.id);
    if (known) return known;
    open.add(entity.id);
    const components = { ...prefabComponents(scene, entity.prefab), ...entity.components };
    const parent = entity.parent ? byId.get(entity.parent) : undefined;
    const above = parent && !open.has(parent.id) ? resolve(parent, open).placement : undefined;
    const part = makePart(entity.id, components, above);
    done.set(entity.id, part);
    return part;
  };
  return scene.entities.map((entity) => resolve(entity, new Set()));
}

/** The direction of the spawn point nearest to `feet`: yaw 0 looks along -Z. */
export function spawnYaw(parts: Part[], feet: Vector3): number {
  const distance = (part: Part) => part.placement.position.distanceToSquared(feet);
  const spawns = parts.filter((part) => part.components.SpawnPoint).sort((a, b) => distance(a) - distance(b));
  const spawn = spawns[0];
  if (!spawn) return 0;
  const forward = new Vector3(0, 0, -1).applyQuaternion(spawn.placement.rotation);
  return Math.atan2(-forward.x, -forward.z);
}

/** Solid things block the camera and carry the shadows of players. */
export function isSolid(components: Components): boolean {
  return components.Shape !== undefined && components.Trigger === undefined;
}

function place(transform: Components['Transform'], parent?: Placement): Placement {
  const position = new Vector3(...(transform?.position ?? [0, 0, 0]));
  const rotation = new Quaternion(...(transform?.rotation ?? [0, 0, 0, 1])).normalize();
  const scale = new Vector3(...(transform?.scale ?? [1, 1, 1]));
  if (!parent) return { position, rotation, scale };
  return {
    position: position.multiply(parent.scale).applyQuaternion(parent.rotation).add(parent.position),
    rotation: rotation.premultiply(parent.rotation).normalize(),
    scale: scale.multiply(parent.scale),
  };
}

/** Round shapes stay round and take the larger factor, as `Shape::scaled` in crates/package does. */
export function scaledShape(shape: Shape, scale: Vector3): Shape {
  const [x, y, z] = [Math.abs(scale.x), Math.abs(scale.y), Math.abs(scale.z)];
  switch (shape.type) {
    case 'box':
    case 'wedge':
      return { type: shape.type, size: [shape.size[0] * x, shape.size[1] * y, shape.size[2] * z] };
    case 'sphere':
      return { type: 'sphere', radius: shape.radius * Math.max(x, y, z) };
    case 'cylinder':
      return { type: 'cylinder', radius: shape.radius * Math.max(x, z), height: shape.height * y };
    case 'capsule': {
      const radius = shape.radius * Math.max(x, z);
      return { type: 'capsule', radius, height: Math.max(shape.height * y, 2 * radius) };
    }
    case 'mesh':
      return { ...shape, scale: [x, y, z] };
  }
}
