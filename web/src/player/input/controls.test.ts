// Which controls are shown to a player.
import { expect, test } from 'vitest';
import { allControls, firstControls, type Situation } from './controls';

const ACTIONS = [
  { name: 'Dig', keys: ['MouseLeft', 'ButtonR2'] },
  { name: 'Dash', keys: ['LeftShift', 'RightShift', 'Q'] },
  { name: 'Taunt', keys: ['DPadUp'] },
];
const at = (change: Partial<Situation>): Situation => ({
  device: 'Keyboard',
  actions: ACTIONS,
  armed: false,
  usable: false,
  ...change,
});
const keysOf = (situation: Situation, does: string) =>
  allControls(situation).find((control) => control.does === does)?.keys;

test("the game's actions are named with the keys of the device in hand", () => {
  expect(keysOf(at({}), 'Dig')).toEqual(['Left click']);
  expect(keysOf(at({}), 'Dash')).toEqual(['Shift', 'Q']);
  expect(keysOf(at({}), 'Taunt')).toBeUndefined();
  expect(keysOf(at({ device: 'Gamepad' }), 'Dig')).toEqual(['RT']);
  expect(keysOf(at({ device: 'Gamepad' }), 'Taunt')).toEqual(['D-pad up']);
  expect(allControls(at({ device: 'Touch' })).some(({ does }) => does === 'Dig, Dash, Taunt')).toBe(true);
});

test('the first hint on a keyboard includes chat, leaderboard and menu', () => {
  const first = firstControls(at({})).map(({ keys, does }) => `${keys.join(' ')} ${does}`);
  expect(first).toEqual(expect.arrayContaining(['Enter Chat', 'P Leaderboard', 'Esc Menu', 'Left click Dig']));
  expect(first.some((line) => line.startsWith('Tab'))).toBe(false);
});

test('fire and use are listed only when there is something to fire or to use', () => {
  expect(keysOf(at({}), 'Fire')).toBeUndefined();
  expect(keysOf(at({ armed: true }), 'Fire')).toEqual(['Left click']);
  expect(keysOf(at({}), 'Use')).toBeUndefined();
  expect(keysOf(at({ usable: true }), 'Use')).toEqual(['E']);
});
