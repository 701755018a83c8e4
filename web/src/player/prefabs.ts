// The numbers of prefabs: frames name by number what a spawned thing was made from, and the server sends definitions only
// for what is not in the scene. No three.js here: the session reads the scene before the renderer is loaded.
import type { Components, SceneData } from './scene';

/** Prefabs are numbered from 1 in the order of their names (crates/world/src/definitions.rs). */
export const prefabNames = (scene: SceneData): string[] => Object.keys(scene.prefabs ?? {}).sort();

export function prefabDefinitions(scene: SceneData): Map<number, Components> {
  return new Map(prefabNames(scene).map((name, at) => [at + 1, scene.prefabs?.[name]?.components ?? {}]));
}
