// What client scripts can reach outside their VM: the HUD, the keyboard, the camera, entities, sounds, the server.
import type { WireValue } from './events';
import type { Point } from './frame';
import type { HudModel } from './hud/model.svelte';
import type { PlayerInput } from './input/input';
import type { ClientHost } from './luau/host';
import type { SoundBoard } from './sound';

/** The parts of a running session that scripts may see. */
export interface ScriptWorld {
  readonly hud: HudModel;
  readonly input: PlayerInput;
  readonly sound: SoundBoard;
  fireServer(name: string, args: WireValue[]): void;
  invokeServer(id: number, name: string, args: WireValue[]): void;
  ownEntity(): number;
  entity(id: number): { position: Point; velocity: Point } | null;
  attribute(id: number, name: string): WireValue;
  cameraPosition(): Point;
  /** True when the module is on its way. */
  wantModule(path: string): boolean;
}

type Triple = [number, number, number];

export class ScriptHost implements ClientHost {
  /**
   * Calls of one VM are counted from here. A VM that starts after a lost connection must not take the answer to a call
   * of the one before for its own.
   */
  readonly #firstCall = Math.floor(Math.random() * 2 ** 32);

  /** Which code a script is; every error says so (BEY-1). */
  originOf: (path: string) => string = () => '';

  constructor(private readonly world: ScriptWorld) {}

  fireServer(name: string, args: WireValue[]): void {
    this.world.fireServer(name, args);
  }

  invokeServer(call: number, name: string, args: WireValue[]): void {
    this.world.invokeServer((this.#firstCall + call) >>> 0, name, args);
  }

  /** Which call of the VM an answer belongs to; of another VM's calls, some number that nobody waits for. */
  callOf(id: number): number {
    return (id - this.#firstCall) >>> 0;
  }

  log(level: string, text: string): void {
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
    return this.world.wantModule(path);
  }

  uiCreate(id: number, kind: string, props: Record<string, unknown>): void {
    if (!this.world.hud.create(id, kind, props)) this.log('warn', `could not create UI of kind ${kind}`);
  }

  uiUpdate(id: number, props: Record<string, unknown>): void {
    this.world.hud.update(id, props);
  }

  uiRemove(id: number): void {
    this.world.hud.remove(id);
  }

  isKeyDown(name: string): boolean {
    return this.world.input.isKeyDown(name);
  }

  camera(): { position: Triple; forward: Triple } {
    const { yaw, pitch } = this.world.input;
    const flat = Math.cos(pitch);
    const position = triple(this.world.cameraPosition());
    return { position, forward: [-Math.sin(yaw) * flat, Math.sin(pitch), -Math.cos(yaw) * flat] };
  }

  /** Entity id of the own character; 0 before there is one. */
  character(): number {
    return this.world.ownEntity();
  }

  entity(id: number): { position: Triple; velocity: Triple } | null {
    const found = this.world.entity(id);
    return found && { position: triple(found.position), velocity: triple(found.velocity) };
  }

  attribute(id: number, name: string): WireValue {
    return this.world.attribute(id, name);
  }

  playSound(name: string): void {
    this.world.sound.play(name);
  }
}

const triple = (point: Point): Triple => [point.x, point.y, point.z];
