// Keys, stick and taps become one input.
import { expect, test } from 'vitest';
import { Button } from '../core';
import { PlayerInput } from './input';
import { codesOf } from './keys';

test('diagonals are as fast as straight lines, opposite keys cancel', () => {
  const input = new PlayerInput();
  input.key('KeyW', true);
  input.key('KeyD', true);
  expect(Math.hypot(input.move().x, input.move().y)).toBeCloseTo(1);
  input.key('KeyA', true);
  expect(input.move()).toEqual({ x: 0, y: 1 });
});

test('two keys of one action: letting go of one keeps it', () => {
  const input = new PlayerInput();
  input.key('KeyW', true);
  input.key('KeyW', true); // key repeat
  input.key('ArrowUp', true);
  input.key('ArrowUp', false);
  expect(input.move().y).toBe(1);
  input.key('KeyW', false);
  expect(input.move().y).toBe(0);
});

test('a tap between two frames still jumps, for one step', () => {
  const input = new PlayerInput();
  input.key('Space', true);
  input.key('Space', false);
  expect(input.takeButtons(1000)).toBe(Button.jump);
  expect(input.takeButtons(1007)).toBe(Button.jump); // a fast display asks again before the step runs
  expect(input.takeButtons(1100)).toBe(0);
});

test('with a menu open nothing moves; leaving the page lets go of everything', () => {
  const input = new PlayerInput();
  input.key('KeyW', true);
  input.enabled = false;
  expect(input.move()).toEqual({ x: 0, y: 0 });
  expect(input.takeButtons(0)).toBe(0);
  input.enabled = true;
  input.release();
  expect(input.move()).toEqual({ x: 0, y: 0 });
});

test('looking: mouse right turns right (yaw falls), pitch stops before the poles', () => {
  const input = new PlayerInput();
  input.look(100, 0);
  expect(input.yaw).toBeLessThan(0);
  input.look(0, -100_000);
  expect(input.pitch).toBeCloseTo(1.45);
});

test('key names of scripts', () => {
  expect(codesOf('w')).toEqual(['KeyW']);
  expect(codesOf('One')).toEqual(['Digit1']);
  expect(codesOf('Shift')).toEqual(['ShiftLeft', 'ShiftRight']);
  expect(codesOf('nonsense')).toEqual([]);
});

test('scripts ask for keys and for named actions, whatever the device', () => {
  const input = new PlayerInput();
  input.key('KeyE', true);
  expect(input.isKeyDown('E')).toBe(true);
  expect(input.isKeyDown('Interact')).toBe(true);
  expect(input.isKeyDown('Fire')).toBe(false);
  input.fire(true);
  input.touchButton('jump', true);
  expect(input.isKeyDown('Fire') && input.isKeyDown('Jump')).toBe(true);
  input.enabled = false;
  expect(input.isKeyDown('Fire')).toBe(false);
});
