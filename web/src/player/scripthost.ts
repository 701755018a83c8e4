// What client scripts can reach outside their VM: the HUD, input, camera, sounds, effects, what is known of the world,
// and the server.
import type { GameAssets } from './assets';
import type { WireValue } from './events';
import type { HudModel } from './hud/model.svelte';
import type { ActionButtons } from './input/actions.svelte';
import type { KnownSource } from './replica';
import type { CameraHost, ClientHost, EffectsHost, TerrainHost, Triple, WorldHost } from './luau/host';
import type { CameraSource } from './scriptcamera';
import { ScriptSounds, type SoundSource } from './scriptsounds';
import type { LogLevel } from './scriptlogs';
import type { Tools } from './scripttools';

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
  /** True when the module is on its way. */
  wantModule(path: string): boolean;
}

export class ScriptHost implements ClientHost {
  /**
   * Calls of one VM are counted from here. A VM that starts after a lost connection must not take the answer to a call
   * of the one before for its own.
   */
  readonly #firstCall = Math.floor(Math.random() * 2 ** 32);
  readonly sound: ScriptSounds;
  #tools: Tools | null = null;
  /** The world's time that scripts know. */
  #time = 0;

  /** Which code a script is; every error says so. */
  originOf: (path: string) => string = () => '';
  /** Where lines go besides the browser's own console. */
  relay: (level: LogLevel, text: string) => void = () => undefined;
  /** The scripts of the game that this client may have. */
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

  /** What came with the VM; nothing of the VM runs before. */
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

  /** The scripts are gone: nothing of them stays on the screen or in the ears. */
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

  /** Which call of the VM an answer belongs to; of another VM's calls, some number that nobody waits for. */
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

  /** Seconds of world time since scripts last asked. Frames may be slow or stop in a hidden tab, and the world does not. */
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
