// Combines keys, sticks and taps into one input.
import { expect, test } from 'vitest';
import { BUTTON_JUMP } from '../../generated/layout';
import { type InputEvent, PlayerInput } from './input';
import { readPad } from './gamepad';
import { codesOf, nameOf } from './keys';

test('diagonals are as fast as straight lines, opposite keys cancel', () => {
  const input = new PlayerInput();
  input.key('KeyW', true);
  input.key('KeyD', true);
  expect(Math.hypot(input.move().x, input.move().y)).toBeCloseTo(1);
  input.key('KeyA', true);
  expect(input.move()).toEqual({ x: 0, y: 1 });
});

test('with two keys for one action, releasing one keeps it active', () => {
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
  expect(input.takeButtons(1000)).toBe(BUTTON_JUMP);
  expect(input.takeButtons(1007)).toBe(BUTTON_JUMP); // a fast display polls again before the step runs
  expect(input.takeButtons(1100)).toBe(0);
});

test('with a menu open nothing moves; leaving the page releases everything', () => {
  let open = false;
  const input = new PlayerInput(() => !open);
  input.key('KeyW', true);
  open = true;
  expect(input.move()).toEqual({ x: 0, y: 0 });
  expect(input.takeButtons(0)).toBe(0);
  open = false;
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
  expect(codesOf('One')).toEqual(['Digit1', 'Numpad1']);
  expect(['KeyQ', 'Digit1', 'ShiftLeft', 'F5'].map(nameOf)).toEqual(['Q', 'One', 'LeftShift', undefined]);
  expect(codesOf('Shift')).toEqual(['ShiftLeft', 'ShiftRight']);
  expect(codesOf('nonsense')).toEqual([]);
});

test('scripts query keys and named actions on any device', () => {
  let open = false;
  const input = new PlayerInput(() => !open);
  input.key('KeyE', true);
  expect(input.isKeyDown('E')).toBe(true);
  expect(input.isKeyDown('Interact')).toBe(true);
  expect(input.isKeyDown('Fire')).toBe(false);
  input.fire(true);
  input.touchButton('jump', true);
  expect(input.isKeyDown('Fire') && input.isKeyDown('Jump')).toBe(true);
  open = true;
  expect(input.isKeyDown('Fire')).toBe(false);
});

test('scripts receive key, button and tap events, including releases', () => {
  let open = false;
  const input = new PlayerInput(() => !open);
  const received: string[] = [];
  input.listener = (event: InputEvent) => void received.push(`${event.down ? '+' : '-'}${event.key} ${event.kind}`);
  input.key('KeyQ', true);
  input.key('KeyQ', true); // key repeat
  input.button(0, true);
  input.tap(1, 2);
  input.action('Dash', true);
  input.key('F5', true); // the browser's own
  expect(input.isKeyDown('MouseLeft')).toBe(true);
  input.release();
  expect(received).toEqual([
    '+Q Keyboard',
    '+MouseLeft Mouse',
    '+ Tap',
    '+Dash Action',
    '-Q Keyboard',
    '-MouseLeft Mouse',
  ]);
  open = true;
  input.key('KeyQ', true);
  input.tap(1, 2);
  expect(received.length).toBe(6);
});

test('a gamepad walks, looks and jumps, and is released when disconnected', () => {
  const input = new PlayerInput();
  const received: string[] = [];
  input.listener = (event: InputEvent) => void received.push(`${event.down ? '+' : '-'}${event.key}`);
  const buttons = Array.from({ length: 16 }, (_, at) => ({ pressed: at === 0 }));
  readPad(input, { axes: [0.05, -1, 1, 0], buttons }, 1 / 60);
  expect(input.move()).toEqual({ x: 0, y: 1 });
  expect(input.yaw).toBeLessThan(0);
  expect(input.takeButtons(0) & BUTTON_JUMP).toBe(BUTTON_JUMP);
  expect([input.device, received]).toEqual(['Gamepad', ['+ButtonA']]);
  readPad(input, null, 1 / 60);
  expect([input.move(), received]).toEqual([{ x: 0, y: 0 }, ['+ButtonA', '-ButtonA']]);
});

test('a keyboard alone turns the view', () => {
  const input = new PlayerInput();
  input.key('ArrowRight', true);
  input.turn(0.5);
  expect(input.yaw).toBeLessThan(-0.5);
  expect(input.move()).toEqual({ x: 0, y: 0 });
  input.key('ArrowRight', false);
  const [yaw, pitch] = [input.yaw, input.pitch];
  input.key('PageUp', true);
  input.turn(0.2);
  expect([input.yaw, input.pitch > pitch]).toEqual([yaw, true]);
});

test('gamepad presses in the menu have no effect in the game', () => {
  let open = true;
  const input = new PlayerInput(() => !open);
  const pressed: string[] = [];
  input.padPressed = (button) => void pressed.push(button);
  const buttons = Array.from({ length: 16 }, (_, at) => ({ pressed: at === 0 || at === 9 }));
  readPad(input, { axes: [0, 0, 0, 0], buttons }, 1 / 60);
  readPad(input, { axes: [0, 0, 0, 0], buttons }, 1 / 60);
  expect(pressed).toEqual(['ButtonA', 'ButtonStart']);
  open = false;
  expect(input.takeButtons(0)).toBe(0);
});

test('a gamepad button held across a release is not a new press', () => {
  const input = new PlayerInput();
  const pressed: string[] = [];
  input.padPressed = (name) => pressed.push(name);
  input.button('ButtonStart', true);
  input.release();
  input.button('ButtonStart', true);
  expect(pressed).toEqual(['ButtonStart']);
  input.button('ButtonStart', false);
  input.button('ButtonStart', true);
  expect(pressed).toEqual(['ButtonStart', 'ButtonStart']);
});
