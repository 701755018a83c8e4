// Walkable cells of games/arena, computed from its scene: free cells of one metre, and the shortest path over them.
import { readFile } from 'node:fs/promises';

const HALF = 32;
/** Character radius with a margin. */
const WIDTH_M = 0.75;
/** Heights that block: lower objects are stepped onto, higher ones walked under. */
const STEP_M = 0.3;
const HEAD_M = 2;

export async function readMap() {
  const scene = JSON.parse(await readFile(new URL('../../games/arena/scene.json', import.meta.url), 'utf8'));
  const boxes = scene.entities.flatMap((entity) => boxOf(scene, entity));
  const meets = ([x, z], width) =>
    boxes.some((box) => x > box.x[0] - width && x < box.x[1] + width && z > box.z[0] - width && z < box.z[1] + width);
  const key = ([x, z]) => `${x},${z}`;

  /** Whether the straight line between two points is free. */
  const clear = (from, to, width) => {
    const steps = Math.ceil(Math.hypot(to[0] - from[0], to[1] - from[1]) * 4);
    return Array.from({ length: steps + 1 }, (_, i) => i / steps).every(
      (share) => !meets([from[0] + (to[0] - from[0]) * share, from[1] + (to[1] - from[1]) * share], width),
    );
  };

  /** A path towards a target, up to a point with line of sight within `reach`. */
  function way(from, to, near) {
    const start = from.map(Math.round);
    const before = new Map([[key(start), null]]);
    const open = [start];
    for (let at = open.shift(); at; at = open.shift()) {
      if (Math.hypot(at[0] - to[0], at[1] - to[1]) <= near && clear(at, to, 0.1)) return shortened(trace(before, at));
      for (const [dx, dz] of [
        [1, 0],
        [-1, 0],
        [0, 1],
        [0, -1],
      ]) {
        const next = [at[0] + dx, at[1] + dz];
        if (before.has(key(next)) || Math.max(...next.map(Math.abs)) > HALF || meets(next, WIDTH_M)) continue;
        before.set(key(next), at);
        open.push(next);
      }
    }
    throw new Error(`there is no way from ${from} to ${to}`);
  }

  const trace = (before, end) => {
    const points = [];
    for (let at = end; at; at = before.get(key(at))) points.unshift(at);
    return points;
  };

  /** Removes collinear points. */
  const shortened = (points) => {
    const corners = [];
    for (let at = 0; at < points.length - 1;) {
      let next = points.length - 1;
      while (next > at + 1 && !clear(points[at], points[next], WIDTH_M)) next -= 1;
      corners.push(points[next]);
      at = next;
    }
    return corners;
  };

  return { way };
}

/** The footprint of an obstacle, with a margin. */
function boxOf(scene, entity) {
  if (entity.parent) return [];
  const prefab = scene.prefabs[entity.prefab]?.components ?? {};
  const components = { ...prefab, ...entity.components };
  const { Shape: shape, Trigger: trigger, Transform: place } = components;
  if (!shape || trigger) return [];
  const [w, h, d] = shape.size ?? [shape.radius * 2, shape.height ?? shape.radius * 2, shape.radius * 2];
  const [sx, sy, sz] = place.scale ?? [1, 1, 1];
  const [x, y, z] = place.position;
  if (y + (h * sy) / 2 < STEP_M || y - (h * sy) / 2 > HEAD_M) return [];
  const yaw = 2 * Math.atan2(place.rotation?.[1] ?? 0, place.rotation?.[3] ?? 1);
  const [c, s] = [Math.abs(Math.cos(yaw)), Math.abs(Math.sin(yaw))];
  const [halfX, halfZ] = [(w * sx * c + d * sz * s) / 2, (w * sx * s + d * sz * c) / 2];
  return [{ x: [x - halfX, x + halfX], z: [z - halfZ, z + halfZ] }];
}
