// Parts for tests: what a test does not care about has a plain value.
import type { Part } from './parts';

export function makePart(id: number, fields: Partial<Part> = {}): Part {
  return {
    id,
    name: `Part ${id}`,
    position: [0, 0, 0],
    rotation: [0, 0, 0, 1],
    material: { color: '#b8b8c4', roughness: 0.8, metalness: 0, emissive: null, opacity: 1, pattern: 'plain' },
    moves: false,
    trigger: false,
    spawnPoint: false,
    tags: [],
    attributes: {},
    ...fields,
  };
}
