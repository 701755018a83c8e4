// Between client scripts and the visit: starts the scripts of each connection, passes events on to them, and gives them
// what they may see and do.
import type { GameAssets } from '../assets';
import type { ClientCore } from '../core/core';
import type { CoreEvent, PlayerInfo, WireValue } from '../core/events';
import type { LoadProgress } from '../connection/progress.svelte';
import type { HudModel } from '../hud/model.svelte';
import type { ActionButtons } from '../input/actions.svelte';
import type { InputEvent, PlayerInput } from '../input/input';
import type { EffectsHost, TerrainHost } from '../luau/host';
import type { SoundBoard } from '../sound';
import { TERRAIN_REFUSALS } from '../terrain/known';
import type { WorldView } from '../view/world-view';
import { ScriptCache } from './cache';
import { type ScriptWorld, ScriptHost } from './host';
import { ScriptLogs } from './logs';
import { loadLuau } from './luau-loader';
import { ClientScripts, type Happening } from './scripts';

/** The parts of a visit that scripts see. */
export interface ScriptVisit {
  core(): ClientCore | undefined;
  readonly view: WorldView | null;
  readonly players: readonly PlayerInfo[];
  playerNumber(): number;
  readonly terrain: TerrainHost;
  readonly input: PlayerInput;
  readonly sound: SoundBoard;
  readonly assets: GameAssets;
  readonly model: { readonly hud: HudModel; readonly actions: ActionButtons };
  readonly connection: { readonly progress: LoadProgress };
}

export class ScriptBridge implements ScriptWorld {
  readonly terrain: TerrainHost;
  readonly input: PlayerInput;
  readonly sound: SoundBoard;
  readonly assets: GameAssets;
  readonly hud: HudModel;
  readonly actions: ActionButtons;
  #scripts: ClientScripts | null = null;
  #logs: ScriptLogs | null = null;
  readonly #cache = new ScriptCache();

  constructor(private readonly visit: ScriptVisit) {
    ({ terrain: this.terrain, input: this.input, sound: this.sound, assets: this.assets } = visit);
    ({ hud: this.hud, actions: this.actions } = visit.model);
  }

  /** Replaces the scripts of the connection before; the core is that of the new one. */
  open(core: ClientCore): void {
    // Received on the previous connection; the server does not send them again.
    const waiting = this.#scripts?.takeWaiting() ?? [];
    this.#scripts?.dispose();
    this.hud.clear();
    const { progress } = this.visit.connection;
    const host = new ScriptHost(this);
    const scripts = new ClientScripts(
      core,
      host,
      this.#cache,
      loadLuau,
      () => progress.done('scripts'),
      undefined,
      (have, total, name) => progress.scripts(have, total, name),
    );
    const logs = new ScriptLogs(
      (log) => core.send_log(JSON.stringify(log)),
      () => scripts.revision,
    );
    host.originOf = (path) => scripts.origin(path);
    host.relay = (level, text) => logs.add(level, text);
    host.knownScripts = () => scripts.known();
    for (const { name, args } of waiting) scripts.event(name, args);
    this.#scripts = scripts;
    this.#logs = logs;
  }

  /** Handles the events that concern scripts. */
  handle(event: CoreEvent): void {
    const scripts = this.#scripts;
    if (!scripts) return;
    switch (event.type) {
      case 'scriptManifest':
        return void scripts.manifest(event.manifest);
      case 'scriptList':
        return void scripts.list();
      case 'scriptVerified':
        return scripts.verified(event.path, event.hash);
      case 'scriptRun':
        return scripts.run(event.path);
      case 'scriptsReload':
        return scripts.reload(event.changed, event.removed);
      case 'scriptsStarted':
        return scripts.allTold();
      case 'event':
        return scripts.event(event.name, event.args);
      case 'invokeResult':
        return scripts.result(event.id, { ok: true, values: event.values });
      case 'invokeFailed':
        return scripts.result(event.id, { ok: false, error: event.error });
      case 'cast':
        return scripts.cast(event.cast);
      case 'terrain':
        return scripts.terrain(event.min, event.max);
      case 'npc':
        return scripts.happened('npc', [event.entity, event.state, event.before]);
      case 'players':
        for (const number of event.joined) scripts.player(true, number);
        for (const number of event.left) scripts.player(false, number);
        return;
      case 'logsWanted':
        if (this.#logs) this.#logs.prints = event.prints;
        return;
      case 'error':
        if (TERRAIN_REFUSALS.has(event.code)) scripts.happened('terrainRefused', [event.code, event.message]);
        if (event.code.includes('spell')) scripts.castRefused(event.message);
    }
  }

  happened(kind: Happening, values: WireValue[]): void {
    this.#scripts?.happened(kind, values);
  }

  click(widget: number, index?: number): void {
    this.#scripts?.click(widget, index);
  }

  inputEvent(event: InputEvent): void {
    this.#scripts?.input(event);
  }

  /** Sends the output of scripts that waits. */
  flushLogs(nowMs: number): void {
    this.#logs?.flush(nowMs);
  }

  /** Runs the scripts; once per frame. */
  tick(): void {
    this.#scripts?.tick();
  }

  get memoryBytes(): number {
    return this.#scripts?.memoryBytes ?? 0;
  }

  get lastTickMs(): number {
    return this.#scripts?.lastTickMs ?? 0;
  }

  dispose(): void {
    this.#scripts?.dispose();
  }

  // What scripts see and do.

  get players(): readonly PlayerInfo[] {
    return this.visit.players;
  }

  core(): ClientCore | undefined {
    return this.visit.core();
  }

  playerNumber(): number {
    return this.visit.playerNumber();
  }

  chaseCamera() {
    return this.visit.view?.camera ?? null;
  }

  viewportSize(): { width: number; height: number } {
    const canvas = this.visit.view?.renderer.domElement;
    return { width: canvas?.clientWidth ?? 0, height: canvas?.clientHeight ?? 0 };
  }

  readonly effects: EffectsHost = {
    particles: (at, options) => this.visit.view?.particles(at, options),
    beam: (from, to, options) => this.visit.view?.beam(from, to, options),
  };

  worldTime(): number {
    return this.core()?.world_time(performance.now()) ?? 0;
  }

  fireServer(name: string, args: WireValue[], reliable: boolean): void {
    this.core()?.fire_server(name, JSON.stringify(args), reliable);
  }

  invokeServer(id: number, name: string, args: WireValue[]): void {
    this.core()?.invoke_server(id, name, JSON.stringify(args));
  }

  castSpell(spell: string, params: WireValue): void {
    this.core()?.cast_spell(spell, JSON.stringify([params]));
  }

  wantModule(path: string): boolean {
    return this.#scripts?.want(path) ?? false;
  }
}
