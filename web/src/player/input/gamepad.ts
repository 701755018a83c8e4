// Gamepads have no events, so they are polled once per frame. The left stick walks, the right one looks, A jumps, X
// interacts, the right trigger fires; scripts receive every button.
import type { PlayerInput } from './input';
import { PAD_BUTTONS } from './keys';

/** The fields of the browser's Gamepad that are used. */
export interface Pad {
  readonly axes: readonly number[];
  readonly buttons: readonly { readonly pressed: boolean }[];
}

/** Dead zone: sticks at rest do not report exactly zero. */
const DEAD_ZONE = 0.15;
/** Mouse pixels per second equivalent to a fully deflected stick. */
const LOOK_PX_PER_S = 900;

/** Polls a gamepad; releases all of its inputs when it is disconnected. */
export function readPad(input: PlayerInput, pad: Pad | null, dt: number): void {
  const axis = (at: number) => {
    const value = pad?.axes[at] ?? 0;
    return Math.abs(value) > DEAD_ZONE ? Math.max(-1, Math.min(1, value)) : 0;
  };
  const before = input.pad.left;
  const [left, right] = [
    { x: axis(0), y: 0 - axis(1) },
    { x: axis(2), y: 0 - axis(3) },
  ];
  if ((left.x || left.y) && !before.x && !before.y) input.device = 'Gamepad';
  Object.assign(input.pad.left, left);
  Object.assign(input.pad.right, right);
  if (right.x || right.y) input.look(right.x * LOOK_PX_PER_S * dt, -right.y * LOOK_PX_PER_S * dt);
  PAD_BUTTONS.forEach((name, at) => input.button(name, pad?.buttons[at]?.pressed ?? false));
}

/** The first gamepad that is connected. */
export function firstPad(): Pad | null {
  return navigator.getGamepads?.().find((pad) => pad?.connected) ?? null;
}
