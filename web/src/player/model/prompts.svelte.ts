// The interaction prompt on screen and its key.
import type { KnownWorld } from '../replica/known-world';
import { type Offer, offerTo } from './prompt';
import type { PlayerInput } from '../input/input';
import type { WorldView } from '../view/world-view';

/** Update interval. */
const EVERY_MS = 100;

export class Prompts {
  shown = $state.raw<(Offer & { key: string }) | null>(null);
  #at = 0;

  constructor(private readonly known: KnownWorld) {}

  update(nowMs: number, view: WorldView, input: PlayerInput, alive: boolean): void {
    if (nowMs - this.#at <= EVERY_MS) return;
    this.#at = nowMs;
    const { x, y, z } = view.ownPosition;
    const offer = view.ownId !== 0 && alive ? offerTo(this.known, [x, y, z], input, view.ownId) : null;
    const key = input.device === 'Gamepad' ? 'X' : 'E';
    if (offer?.id === this.shown?.id && offer?.text === this.shown?.text && key === this.shown?.key) return;
    this.shown = offer && { ...offer, key };
  }
}
