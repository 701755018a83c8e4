// The player's current input: keyboard, mouse, touch and gamepad combined into movement, look and buttons.
import { BUTTON_FIRE, BUTTON_INTERACT, BUTTON_JUMP, BUTTON_RUN } from '../../generated/layout';
import { settings } from '../model/settings.svelte';
import { type Action, actionOf, codesOf, MOUSE_BUTTONS, nameOf } from './keys';

/** A key or button press or release, or a tap, as delivered to scripts. */
export interface InputEvent {
  down: boolean;
  /** As in crates/script/builtin/client/input.luau; the action's name for `Action`. */
  key: string;
  kind: 'Keyboard' | 'Mouse' | 'Gamepad' | 'Tap' | 'Action';
  /** Pixels from the top left corner. */
  x: number;
  y: number;
}

export type Device = 'Keyboard' | 'Touch' | 'Gamepad';

const LOOK_PER_PIXEL = 0.0024;
const TOUCH_LOOK_PER_PIXEL = 0.006;
const PITCH_MAX = 1.45;
/** Mouse pixels per second equivalent to a held arrow key. */
const KEY_LOOK_PX_PER_S = 700;
/** Slightly more than one step at 60 Hz, so that no tap is lost on faster displays. */
const TAP_MS = 20;

export class PlayerInput {
  yaw = 0;
  pitch = -0.22;
  /** Touch stick, -1…1, y forward. */
  stick = { x: 0, y: 0 };
  /** Receives all input events, for scripts. */
  listener: ((event: InputEvent) => void) | null = null;
  /** Called for gamepad presses even while the game takes no input, because menus need them. */
  padPressed: ((button: string) => void) | null = null;
  /** The device used most recently. */
  device: Device = 'Keyboard';
  /** Mouse position in pixels. */
  readonly mouse = { x: 0, y: 0 };
  /** Mouse movement since the last frame. */
  readonly moved = { x: 0, y: 0, wheel: 0 };
  /** Sticks of a gamepad, -1…1, y up. */
  readonly pad = { left: { x: 0, y: 0 }, right: { x: 0, y: 0 } };
  #codes = new Set<string>();
  /** Held buttons of mouse and gamepad by name. */
  #buttons = new Map<string, 'Mouse' | 'Gamepad'>();
  /** Held gamepad buttons. Not cleared by `release`: a held button must not count as a new press, which would close the menu it opened. */
  readonly #padHeld = new Set<string>();
  #actions = new Map<Action, number>();
  #held = { fire: false, touchJump: false, touchInteract: false };
  /** Taps shorter than a simulation step still count: button → time it was first reported. */
  #tapped = new Map<number, number | null>();

  /** `isEnabled` is evaluated on every access, so that input is never enabled while a menu is open. */
  constructor(private readonly isEnabled: () => boolean = () => true) {}

  /** False while a menu or the chat has keyboard focus: the character does not move. */
  get enabled(): boolean {
    return this.isEnabled();
  }

  /** Handles a key event; returns true when the game uses the key and the page must ignore it. */
  key(code: string, down: boolean): boolean {
    const action = actionOf(code);
    if (down === this.#codes.has(code)) return action !== undefined;
    if (down) this.#codes.add(code);
    else this.#codes.delete(code);
    this.device = 'Keyboard';
    const name = nameOf(code);
    if (name) this.#tell(down, name, 'Keyboard');
    if (!action) return false;
    this.#actions.set(action, (this.#actions.get(action) ?? 0) + (down ? 1 : -1));
    if (down && this.enabled) {
      if (action === 'jump') this.#tapped.set(BUTTON_JUMP, null);
      if (action === 'interact') this.#tapped.set(BUTTON_INTERACT, null);
    }
    return true;
  }

  /** Handles a mouse button (by number) or a gamepad button (by name). */
  button(which: number | string, down: boolean): void {
    const kind = typeof which === 'number' ? 'Mouse' : 'Gamepad';
    const name = typeof which === 'number' ? MOUSE_BUTTONS[which] : which;
    const held = kind === 'Gamepad' ? this.#padHeld : this.#buttons;
    if (!name || down === held.has(name)) return;
    if (kind === 'Gamepad' && down) this.#padHeld.add(name);
    if (kind === 'Gamepad' && !down) this.#padHeld.delete(name);
    this.device = kind === 'Mouse' ? 'Keyboard' : 'Gamepad';
    // A button cleared by `release` is not released a second time.
    if (down || this.#buttons.has(name)) this.#tell(down, name, kind);
    if (down) this.#buttons.set(name, kind);
    else this.#buttons.delete(name);
    if (down && kind === 'Gamepad') this.padPressed?.(name);
    if (name === 'ButtonA') this.touchButton('jump', down);
    if (name === 'ButtonX') this.touchButton('interact', down);
    if (name === 'ButtonR2') this.fire(down);
  }

  /** A tap on the world. */
  tap(x: number, y: number): void {
    this.device = 'Touch';
    if (this.enabled) this.listener?.({ down: true, key: '', kind: 'Tap', x, y });
  }

  /** The touch button of a script's action. */
  action(name: string, down: boolean): void {
    this.device = 'Touch';
    if (this.enabled || !down) this.listener?.({ down, key: name, kind: 'Action', x: 0, y: 0 });
  }

  /** Resets the mouse movement after scripts have read it. */
  endFrame(): void {
    Object.assign(this.moved, { x: 0, y: 0, wheel: 0 });
  }

  #tell(down: boolean, key: string, kind: InputEvent['kind']): void {
    // Releases are delivered even while a menu is open; otherwise scripts would see the key as held.
    if (this.enabled || !down) this.listener?.({ down, key, kind, ...this.mouse });
  }

  /** Releases everything, because the page lost focus. */
  release(): void {
    for (const code of this.#codes) {
      const name = nameOf(code);
      if (name) this.#tell(false, name, 'Keyboard');
    }
    for (const [name, kind] of this.#buttons) this.#tell(false, name, kind);
    this.#buttons.clear();
    this.#codes.clear();
    this.#actions.clear();
    this.#held = { fire: false, touchJump: false, touchInteract: false };
    this.stick = { x: 0, y: 0 };
    this.#tapped.clear();
  }

  fire(down: boolean): void {
    this.#held.fire = down && this.enabled;
    if (down && this.enabled) this.#tapped.set(BUTTON_FIRE, null);
  }

  touchButton(button: 'jump' | 'interact', down: boolean): void {
    const held = down && this.enabled;
    if (button === 'jump') this.#held.touchJump = held;
    else this.#held.touchInteract = held;
    if (down && this.enabled) this.#tapped.set(button === 'jump' ? BUTTON_JUMP : BUTTON_INTERACT, null);
  }

  /** Turns the view by a mouse or finger movement in pixels. */
  look(dx: number, dy: number, touch = false): void {
    if (!this.enabled) return;
    const scale = (touch ? TOUCH_LOOK_PER_PIXEL : LOOK_PER_PIXEL) * settings.sensitivity;
    this.yaw = wrap(this.yaw - dx * scale);
    const lift = dy * scale * (settings.invertY ? 1 : -1);
    this.pitch = Math.max(-PITCH_MAX, Math.min(PITCH_MAX, this.pitch + lift));
  }

  /** Turns the view by the held keys. */
  turn(dt: number): void {
    const on = (action: Action) => ((this.#actions.get(action) ?? 0) > 0 ? 1 : 0);
    const [dx, dy] = [on('turnRight') - on('turnLeft'), on('lookDown') - on('lookUp')];
    // The invert-Y setting applies to the mouse, not to keys.
    if (dx || dy) this.look(dx * KEY_LOOK_PX_PER_S * dt, dy * KEY_LOOK_PX_PER_S * dt * (settings.invertY ? -1 : 1));
  }

  /** Movement -1…1, never longer than 1, so that diagonals are not faster. */
  move(): { x: number; y: number } {
    if (!this.enabled) return { x: 0, y: 0 };
    const on = (action: Action) => ((this.#actions.get(action) ?? 0) > 0 ? 1 : 0);
    const x = on('right') - on('left') + this.stick.x + this.pad.left.x;
    const y = on('forward') - on('back') + this.stick.y + this.pad.left.y;
    const length = Math.max(1, Math.hypot(x, y));
    return { x: x / length, y: y / length };
  }

  /** The current buttons. A tap is reported for the length of one simulation step. */
  takeButtons(nowMs: number): number {
    if (!this.enabled) return 0;
    const on = (action: Action) => (this.#actions.get(action) ?? 0) > 0;
    let buttons = 0;
    for (const [button, since] of this.#tapped) {
      if (since !== null && nowMs - since > TAP_MS) this.#tapped.delete(button);
      else buttons |= button;
      if (since === null) this.#tapped.set(button, nowMs);
    }
    if (on('jump') || this.#held.touchJump) buttons |= BUTTON_JUMP;
    // A stick pushed to its edge runs, because a phone has no Shift key.
    const pushed = Math.max(Math.hypot(this.stick.x, this.stick.y), Math.hypot(this.pad.left.x, this.pad.left.y));
    if (on('run') || pushed > 0.95) buttons |= BUTTON_RUN;
    if (this.#held.fire) buttons |= BUTTON_FIRE;
    if (on('interact') || this.#held.touchInteract) buttons |= BUTTON_INTERACT;
    return buttons;
  }

  /** For scripts: whether a key ("E", "Space") or a named action ("Fire", "Jump") is held, on any device. */
  isKeyDown(name: string): boolean {
    if (!this.enabled) return false;
    const action = name.toLowerCase();
    if (action === 'fire') return this.#held.fire;
    if (action === 'jump' && this.#held.touchJump) return true;
    if (action === 'interact' && this.#held.touchInteract) return true;
    if ((this.#actions.get(action as Action) ?? 0) > 0 || this.#buttons.has(name)) return true;
    return codesOf(name).some((code) => this.#codes.has(code));
  }
}

function wrap(angle: number): number {
  return Math.atan2(Math.sin(angle), Math.cos(angle));
}
