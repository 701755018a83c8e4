// Host of client scripts: HUD, input, camera, sounds, effects, the replicated world
// and the server.
import type { GameAssets } from '../assets';
import type { WireValue } from '../core/events';
import type { HudModel } from '../hud/model.svelte';
import type { ActionButtons } from '../input/actions.svelte';
import type { KnownSource } from '../replica/known-world';
import type { CameraHost, ClientHost, EffectsHost, TerrainHost, Triple, WorldHost } from '../luau/host';
import type { CameraSource } from './camera';
import { ScriptSounds, type SoundSource } from './sounds';
import type { LogLevel } from './logs';
import type { Tools } from './tools';

/** The parts of a running session that scripts may see. */
export interface ScriptWorld
  extends KnownSource, CameraSource, Omit<SoundSource, 'entityPosition' | 'listener' | 'warn'> {
  readonly hud: HudModel;
  readonly actions: ActionButtons;
  readonly assets: GameAssets;
  readonly effects: EffectsHost;
  /** Seconds since the world started, as the server counts them. */
  worldTime(): number;
  readonly terrain: TerrainHost;
  fireServer(name: string, args: WireValue[], reliable: boolean): void;
  invokeServer(id: number, name: string, args: WireValue[]): void;
  castSpell(spell: string, params: WireValue): void;
  /** True when the module is being loaded. */
  wantModule(path: string): boolean;
}

export class ScriptHost implements ClientHost {
  /**
   * Offset of call ids per VM. A VM that starts after a lost connection must not accept the result of a call
   * of the previous VM.
   */
  readonly #firstCall = Math.floor(Math.random() * 2 ** 32);
  readonly sound: ScriptSounds;
  #tools: Tools | null = null;
  /** World time as seen by scripts. */
  #time = 0;

  /** Revision and hash of a script, added to its errors. */
  originOf: (path: string) => string = () => '';
  /** Receives log lines in addition to the browser's console. */
  relay: (level: LogLevel, text: string) => void = () => undefined;
  /** All client scripts of the game. */
  knownScripts: () => Iterable<[path: string, module: boolean]> = () => [];

  constructor(readonly session: ScriptWorld) {
    session.assets.onMissing = (text) => this.log('warn', text);
    this.sound = new ScriptSounds({
      sound: session.sound,
      assets: session.assets,
      entityPosition: (id) => {
        const at = this.#tools?.world.entity(id, 'position');
        return at && typeof at === 'object' && '$v' in at ? (at.$v as Triple) : null;
      },
      listener: () => ({ position: this.camera.position(), forward: this.camera.forward() }),
      warn: (text) => this.log('warn', text),
    });
  }

  /** Set with the VM; required before any script runs. */
  attach(tools: Tools): void {
    this.#tools = tools;
  }

  get camera(): CameraHost {
    return this.#there.camera;
  }

  get world(): WorldHost {
    return this.#there.world;
  }

  get terrain(): TerrainHost {
    return this.session.terrain;
  }

  get effects(): EffectsHost {
    return this.session.effects;
  }

  get #there(): Tools {
    if (!this.#tools) throw new Error('the script host is not complete');
    return this.#tools;
  }

  /** Once per frame, after the scripts. */
  endFrame(): void {
    this.session.input.endFrame();
    if (this.#tools) this.sound.update();
  }

  /** Removes all widgets, sounds and effects of the scripts. */
  dispose(): void {
    this.sound.stop(0);
    this.session.actions.clear();
    this.session.chaseCamera()?.release();
  }

  fireServer(name: string, args: WireValue[], reliable: boolean): void {
    this.session.fireServer(name, args, reliable);
  }

  invokeServer(call: number, name: string, args: WireValue[]): void {
    this.session.invokeServer((this.#firstCall + call) >>> 0, name, args);
  }

  castSpell(spell: string, params: WireValue): void {
    this.session.castSpell(spell, params);
  }

  /** Maps a result to the VM's call id; results of another VM map to an unused id. */
  callOf(id: number): number {
    return (id - this.#firstCall) >>> 0;
  }

  log(level: LogLevel, text: string): void {
    this.relay(level, text);
    if (level === 'error') console.error(`[script] ${this.#withOrigin(text)}`);
    else if (level === 'warn') console.warn(`[script] ${text}`);
    else console.info(`[script] ${text}`);
  }

  #withOrigin(text: string): string {
    const path = /^(\S+?\.luau)\b/.exec(text)?.[1] ?? '';
    const origin = this.originOf(path);
    const [first, ...rest] = text.split('\n');
    return origin ? [`${first} (${origin})`, ...rest].join('\n') : text;
  }

  wantModule(path: string): boolean {
    return this.session.wantModule(path);
  }

  uiCreate(id: number, kind: string, props: Record<string, unknown>): void {
    if (!this.session.hud.create(id, kind, props)) this.log('warn', `could not create UI of kind ${kind}`);
  }

  uiUpdate(id: number, props: Record<string, unknown>): void {
    this.session.hud.update(id, props);
  }

  uiRemove(id: number): void {
    this.session.hud.remove(id);
  }

  isKeyDown(name: string): boolean {
    return this.session.input.isKeyDown(name);
  }

  inputVector(which: number): Triple {
    const { mouse, moved, pad } = this.session.input;
    if (which === 0) return [mouse.x, mouse.y, 0];
    if (which === 1) return [moved.x, moved.y, moved.wheel];
    const stick = which === 2 ? pad.left : pad.right;
    return [stick.x, stick.y, 0];
  }

  inputDevice(): string {
    return this.session.input.device;
  }

  /** The time at which the VM starts. */
  worldTime(): number {
    this.#time = this.session.worldTime();
    return this.#time;
  }

  /** World time in seconds since the last call. Frames may stop in a hidden tab, world time does not. */
  elapsed(): number {
    const before = this.#time;
    return Math.max(0, this.worldTime() - before);
  }

  bindAction(name: string, keys: string[]): void {
    this.session.actions.bind(name, keys);
  }

  unbindAction(name: string): void {
    this.session.actions.unbind(name);
  }
}
