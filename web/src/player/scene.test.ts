// Reading scene.json for the view: prefabs, parents, hostile parent loops.
import { expect, test } from 'vitest';
import { Vector3 } from 'three';
import { makePart, resolveParts, spawnYaw, styled, type SceneData } from './scene';

const at = (scene: SceneData, id: number): number[] => {
  const part = resolveParts(scene).find((p) => p.id === id);
  return part!.placement.position.toArray();
};

test('entity components win over those of the prefab', () => {
  const scene: SceneData = {
    prefabs: { Block: { components: { Shape: { type: 'box', size: [1, 1, 1] }, Material: { color: '#ff0000' } } } },
    entities: [{ id: 1, prefab: 'Block', components: { Material: { color: '#00ff00' } } }],
  };
  const [part] = resolveParts(scene);
  expect(part?.components.Material?.color).toBe('#00ff00');
  expect(part?.components.Shape?.type).toBe('box');
});

test('a child moves with its parent, whatever their order', () => {
  const scene: SceneData = {
    entities: [
      { id: 2, parent: 1, components: { Transform: { position: [1, 0, 0] } } },
      { id: 1, components: { Transform: { position: [0, 5, 0], scale: [2, 2, 2] } } },
    ],
  };
  expect(at(scene, 2)).toEqual([2, 5, 0]);
});

test('a loop of parents ends', () => {
  const scene: SceneData = {
    entities: [
      { id: 1, parent: 2 },
      { id: 2, parent: 1 },
    ],
  };
  expect(resolveParts(scene)).toHaveLength(2);
});

test('scale goes into the shape and round shapes stay round', () => {
  const scene: SceneData = {
    entities: [
      { id: 1, components: { Transform: { scale: [2, 1, 3] }, Shape: { type: 'box', size: [1, 1, 1] } } },
      { id: 2, parent: 1, components: { Shape: { type: 'cylinder', radius: 1, height: 2 } } },
    ],
  };
  expect(resolveParts(scene).map((part) => part.shape)).toEqual([
    { type: 'box', size: [2, 1, 3] },
    { type: 'cylinder', radius: 3, height: 2 },
  ]);
});

test('a player looks where the nearest spawn point looks', () => {
  const left = [0, Math.SQRT1_2, 0, Math.SQRT1_2] as [number, number, number, number];
  const scene: SceneData = {
    entities: [
      { id: 1, components: { SpawnPoint: {}, Transform: { position: [50, 0, 0] } } },
      { id: 2, components: { SpawnPoint: {}, Transform: { position: [1, 0, 0], rotation: left } } },
    ],
  };
  expect(spawnYaw(resolveParts(scene), new Vector3())).toBeCloseTo(Math.PI / 2);
  expect(spawnYaw(resolveParts(scene), new Vector3(49, 0, 0))).toBeCloseTo(0);
  expect(spawnYaw([], new Vector3())).toBe(0);
});

test('what a script changed of the looks shows, the rest stays', () => {
  const ball = makePart(3, { Shape: { type: 'sphere', radius: 1 }, Material: { color: '#ff0000', roughness: 0.4 } });
  expect(styled(ball, undefined)).toBe(ball);
  const green = styled(ball, { color: [0, 255, 8], opacity: null, scale: null });
  expect(green.components.Material).toEqual({ color: '#00ff08', roughness: 0.4 });
  const large = styled(ball, { color: null, opacity: 0.5, scale: [2, 2, 2] });
  expect(large.shape).toEqual({ type: 'sphere', radius: 2 });
  expect(large.components.Material).toEqual({ color: '#ff0000', roughness: 0.4, opacity: 0.5 });
  expect(ball.components.Material?.color).toBe('#ff0000');
});
