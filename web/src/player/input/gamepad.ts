// Gamepads have no events: they are asked once per frame. The left stick walks, the right one looks, A jumps, X
// interacts, the right trigger fires; scripts hear of every button.
import type { PlayerInput } from './input';
import { PAD_BUTTONS } from './keys';

/** The part of the browser's Gamepad that is read. */
export interface Pad {
  readonly axes: readonly number[];
  readonly buttons: readonly { readonly pressed: boolean }[];
}

/** Sticks at rest are never quite at zero. */
const DEAD_ZONE = 0.15;
/** Pixels of mouse movement per second that a fully pushed stick stands for. */
const LOOK_PX_PER_S = 900;

/** Reads a gamepad, or lets everything of it go when there is none (any more). */
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
