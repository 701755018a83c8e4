// The camera under script control: hold, look, shake, return.
import { Vector3 } from 'three';
import { expect, test } from 'vitest';
import { PlayerInput } from '../input/input';
import { ScriptCamera } from '../scripts/camera';
import { ChaseCamera } from './camera';
import { Occluders } from './occluders';

const feet = new Vector3(0, 0, 0);

test('a held camera keeps its position, even when shaken, until it follows again', () => {
  const camera = new ChaseCamera();
  camera.resize(800, 600, 100);
  camera.hold(new Vector3(0, 10, 10));
  camera.holdTowards(new Vector3(0, 0, 0));
  camera.shake(1, 0.5);
  for (let i = 0; i < 60; i++) camera.update(feet, 0, 0, 1 / 60, new Occluders());
  expect(camera.camera.position.distanceTo(new Vector3(0, 10, 10))).toBeLessThan(1e-6);
  expect(camera.firstPerson).toBe(false);
  camera.setMode('First');
  camera.update(feet, 0, 0, 1 / 60, new Occluders());
  expect(camera.firstPerson).toBe(true);
  expect(camera.camera.position.y).toBeCloseTo(1.55);
});

test('world to screen and back, the look direction, and the field of view', () => {
  const [chase, input] = [new ChaseCamera(), new PlayerInput()];
  chase.resize(800, 600, 100);
  const camera = new ScriptCamera({
    input,
    chaseCamera: () => chase,
    viewportSize: () => ({ width: 800, height: 600 }),
  });
  camera.setPosition([0, 0, 10]);
  camera.lookAt([0, 0, 0]);
  chase.update(feet, 0, 0, 1 / 60, new Occluders());
  expect(camera.mode()).toBe('Fixed');
  expect(camera.worldToScreen([0, 0, 0]).map(Math.round)).toEqual([400, 300, 10]);
  expect(camera.screenToRay(400, 300).map((n) => Math.round(n * 100) / 100 + 0)).toEqual([0, 0, -1]);
  expect(camera.forward().map((n) => Math.round(n) + 0)).toEqual([0, 0, -1]);
  camera.setFieldOfView(40);
  expect(camera.fieldOfView()).toBe(40);
  camera.setFieldOfView(0);
  expect(camera.fieldOfView()).toBe(68);
  camera.setMode('Follow');
  camera.lookAt([10, 1.55, 0]);
  expect(input.yaw).toBeCloseTo(-Math.PI / 2);
});
