// What the player wants this moment: keys, mouse and touch folded into one movement, look and set of buttons.
import { Button } from '../core';
import { settings } from '../settings.svelte';
import { type Action, actionOf, codesOf } from './keys';

const LOOK_PER_PIXEL = 0.0024;
const TOUCH_LOOK_PER_PIXEL = 0.006;
const PITCH_MAX = 1.45;
/** A little more than one step at 60 Hz, so that a display faster than that loses no tap. */
const TAP_MS = 20;

export class PlayerInput {
  yaw = 0;
  pitch = -0.22;
  /** Off while a menu is open: the character stands still. */
  enabled = true;
  /** Touch stick, -1…1, y forward. */
  stick = { x: 0, y: 0 };
  #codes = new Set<string>();
  #actions = new Map<Action, number>();
  #held = { fire: false, touchJump: false, touchInteract: false };
  /** Taps shorter than a simulation step still count: button → when it was first handed out. */
  #tapped = new Map<number, number | null>();

  /** Takes a key; true when it means something in the game and the page must not react to it. */
  key(code: string, down: boolean): boolean {
    const action = actionOf(code);
    if (down === this.#codes.has(code)) return action !== undefined;
    if (down) this.#codes.add(code);
    else this.#codes.delete(code);
    if (!action) return false;
    this.#actions.set(action, (this.#actions.get(action) ?? 0) + (down ? 1 : -1));
    if (down && this.enabled) {
      if (action === 'jump') this.#tapped.set(Button.jump, null);
      if (action === 'interact') this.#tapped.set(Button.interact, null);
    }
    return true;
  }

  /** Everything is let go: focus left the page. */
  release(): void {
    this.#codes.clear();
    this.#actions.clear();
    this.#held = { fire: false, touchJump: false, touchInteract: false };
    this.stick = { x: 0, y: 0 };
    this.#tapped.clear();
  }

  fire(down: boolean): void {
    this.#held.fire = down && this.enabled;
    if (down && this.enabled) this.#tapped.set(Button.fire, null);
  }

  touchButton(button: 'jump' | 'interact', down: boolean): void {
    if (button === 'jump') this.#held.touchJump = down;
    else this.#held.touchInteract = down;
    if (down && this.enabled) this.#tapped.set(button === 'jump' ? Button.jump : Button.interact, null);
  }

  /** Turns the view by a mouse or finger movement in pixels. */
  look(dx: number, dy: number, touch = false): void {
    if (!this.enabled) return;
    const scale = (touch ? TOUCH_LOOK_PER_PIXEL : LOOK_PER_PIXEL) * settings.sensitivity;
    this.yaw = wrap(this.yaw - dx * scale);
    const lift = dy * scale * (settings.invertY ? 1 : -1);
    this.pitch = Math.max(-PITCH_MAX, Math.min(PITCH_MAX, this.pitch + lift));
  }

  /** Movement -1…1, never longer than 1, so that diagonals are not faster. */
  move(): { x: number; y: number } {
    if (!this.enabled) return { x: 0, y: 0 };
    const on = (action: Action) => ((this.#actions.get(action) ?? 0) > 0 ? 1 : 0);
    const x = on('right') - on('left') + this.stick.x;
    const y = on('forward') - on('back') + this.stick.y;
    const length = Math.max(1, Math.hypot(x, y));
    return { x: x / length, y: y / length };
  }

  /** The buttons at this moment. A tap is handed out for the length of a simulation step. */
  takeButtons(nowMs: number): number {
    if (!this.enabled) return 0;
    const on = (action: Action) => (this.#actions.get(action) ?? 0) > 0;
    let buttons = 0;
    for (const [button, since] of this.#tapped) {
      if (since !== null && nowMs - since > TAP_MS) this.#tapped.delete(button);
      else buttons |= button;
      if (since === null) this.#tapped.set(button, nowMs);
    }
    if (on('jump') || this.#held.touchJump) buttons |= Button.jump;
    // A stick pushed to its rim runs: there is no shift key on a phone.
    if (on('run') || Math.hypot(this.stick.x, this.stick.y) > 0.95) buttons |= Button.run;
    if (this.#held.fire) buttons |= Button.fire;
    if (on('interact') || this.#held.touchInteract) buttons |= Button.interact;
    return buttons;
  }

  /** For scripts: whether a key ("E", "Space") or a named action ("Fire", "Jump") is held, on any device. */
  isKeyDown(name: string): boolean {
    if (!this.enabled) return false;
    const action = name.toLowerCase();
    if (action === 'fire') return this.#held.fire;
    if (action === 'jump' && this.#held.touchJump) return true;
    if (action === 'interact' && this.#held.touchInteract) return true;
    if ((this.#actions.get(action as Action) ?? 0) > 0) return true;
    return codesOf(name).some((code) => this.#codes.has(code));
  }
}

function wrap(angle: number): number {
  return Math.atan2(Math.sin(angle), Math.cos(angle));
}
