// The interaction prompt on screen and its key.
import type { ClientCore } from '../core/core';
import type { PlayerInput } from '../input/input';

/** Update interval. */
const EVERY_MS = 100;

export class Prompts {
  shown = $state.raw<{ text: string; key: string } | null>(null);
  #at = 0;

  update(nowMs: number, core: ClientCore, input: PlayerInput): void {
    if (nowMs - this.#at <= EVERY_MS) return;
    this.#at = nowMs;
    const text = core.prompt(input.yaw, input.pitch);
    const key = input.device === 'Gamepad' ? 'X' : 'E';
    if (text === this.shown?.text && key === this.shown?.key) return;
    this.shown = text === undefined ? null : { text, key };
  }
}
