// One visit to a world, from the click on Play to leaving: connects the connection, the replica of the world, the client
// scripts, the view and the interface.
import { GameAssets } from './assets';
import { Connection, type ConnectionOptions } from './connection/connection.svelte';
import { endingOf } from './connection/exit-reasons';
import type { WorldLink } from './connection/link';
import type { ClientCore } from './core/core';
import { type CoreEvent, type CoreStats, parseEvent, type PlayerInfo } from './core/events';
import { type FrameRecord, records } from './core/frame';
import type { Part } from './core/parts';
import { firstPad, readPad } from './input/gamepad';
import { PlayerInput } from './input/input';
import { FightEvents } from './model/fight-events';
import { PlayModel } from './model/model.svelte';
import { mark } from './perf-marks';
import { WorldReplica } from './replica/world-replica.svelte';
import { ScriptBridge } from './scripts/bridge';
import { SoundBoard } from './sound';
import { KnownTerrain } from './terrain/known';
import type { Quality } from './view/quality';
import type { WorldView } from './view/world-view';

export interface SessionOptions extends ConnectionOptions {
  quality: Quality | null;
}

/** Which parts of a visit handle an event. A kind without a row does not compile. */
const ROUTES: Record<CoreEvent['type'], readonly ('world' | 'model' | 'connection' | 'scripts')[]> = {
  welcome: ['world', 'connection', 'model'],
  scene: ['world'],
  terrain: ['world', 'scripts'],
  players: ['world', 'scripts'],
  scriptManifest: ['scripts'],
  scriptList: ['scripts'],
  scriptVerified: ['scripts'],
  scriptRun: ['scripts'],
  scriptsReload: ['scripts'],
  scriptsStarted: ['scripts'],
  event: ['scripts'],
  invokeResult: ['scripts'],
  invokeFailed: ['scripts'],
  cast: ['scripts'],
  logsWanted: ['scripts'],
  npc: ['world', 'scripts'],
  weapon: ['world'],
  armed: ['world'],
  vitals: ['world'],
  facing: ['world'],
  shot: ['world'],
  impact: ['world'],
  chat: ['model'],
  figures: ['model'],
  saving: ['model'],
  error: ['world', 'connection', 'model', 'scripts'],
  kick: ['connection'],
};

export class PlaySession {
  readonly connection: Connection;
  readonly model: PlayModel;
  readonly input: PlayerInput;
  readonly sound = new SoundBoard();
  readonly assets: GameAssets;
  readonly terrain = new KnownTerrain(() => this.core());
  readonly replica = new WorldReplica(this);
  readonly scripts: ScriptBridge;
  view: WorldView | null = null;
  readonly #fight: FightEvents;
  #ownEntity = 0;
  #playerNumber = 0;
  #lookedAround = false;
  #disposed = false;

  constructor(private readonly options: SessionOptions) {
    this.connection = new Connection(options, {
      opened: (link) => this.#opened(link),
      received: () => this.#drainEvents(),
      ended: () => this.#ended(),
    });
    this.assets = new GameAssets(options.gameId, undefined, () => this.connection.link?.join.world_id ?? null);
    this.model = new PlayModel(this.connection);
    this.input = new PlayerInput(() => this.model.takesInput);
    this.input.device = this.model.device;
    this.scripts = new ScriptBridge(this);
    this.input.listener = (event) => this.scripts.inputEvent(event);
    this.#fight = new FightEvents(this, this.model.combat);
  }

  core(): ClientCore | undefined {
    return this.connection.core;
  }

  get players(): PlayerInfo[] {
    return this.replica.players;
  }

  get parts(): ReadonlyMap<number, Part> {
    return this.replica.parts;
  }

  /** Loads and joins. Failures end the visit, never in an exception. */
  async start(canvas: HTMLCanvasElement): Promise<void> {
    mark('start');
    try {
      const renderer = import('./view/world-view');
      renderer.catch(() => undefined);
      await this.connection.join();
      const { WorldView } = await renderer;
      if (this.#disposed) return;
      this.view = new WorldView(canvas, this.options.quality, {
        jumped: (own) => own && this.sound.play('jump'),
        landed: (own) => own && this.sound.play('land'),
        stepped: (own) => own && this.sound.play('step'),
        splashed: (own) => own && this.sound.play('splash'),
      });
      mark('renderer');
      this.view.setCombat(this.model.combat, (entity) => this.#fight.weaponOf(entity));
      this.view.occludes = (origin, direction, max) => this.terrain.raycast(origin, direction, max)?.distance ?? max;
      this.view.isWater = (at) => this.terrain.water(at);
      this.#showScene();
      void this.model.people.load();
    } catch (error) {
      this.connection.end(endingOf(error));
    }
  }

  /** Input to the core, fixed steps, bytes out, events in. As often as you like; also while the tab is hidden. */
  advance(nowMs: number): void {
    const { link } = this.connection;
    if (!link?.isOpen) return;
    const { x, y } = this.input.move();
    link.core.set_input(x, y, this.input.yaw, this.input.pitch, this.input.takeButtons(nowMs));
    link.core.advance(nowMs);
    this.scripts.flushLogs(nowMs);
    link.flush();
    this.#drainEvents();
    this.connection.watch(nowMs);
  }

  /** Draws one frame. */
  draw(nowMs: number, dt: number): void {
    const { connection, view } = this;
    const core = this.core();
    if (!view || !core) return;
    if (!this.replica.isShown) {
      // Snapshots may overtake the scene: what they change waits in the core until there is something to apply it to.
      // Behind the loading screen nobody sees an empty sky, and drawing it delays the rest.
      if (connection.phase !== 'loading') view.render(this.input, dt);
      return;
    }
    const frame = core.frame(nowMs);
    const removed = core.removed();
    view.apply(frame, removed, dt);
    view.applyShots(core.shots());
    readPad(this.input, firstPad(), dt);
    if (!this.#lookedAround && view.ownId !== 0) {
      this.input.yaw = view.spawnYaw();
      this.#lookedAround = true;
    }
    this.input.turn(dt);
    this.model.device = this.input.device;
    this.scripts.tick();
    this.model.prompts.update(nowMs, core, this.input);
    if (view.ownId !== 0) this.replica.look(view);
    view.render(this.input, dt);
    if (view.ownId !== 0) connection.shown();
  }

  get stats(): CoreStats {
    const core = this.core();
    return core ? (JSON.parse(core.stats(performance.now())) as CoreStats) : {};
  }

  /** What is known about an entity right now; null when it cannot be seen. */
  entity(id: number): FrameRecord | null {
    for (const record of this.frameRecords()) if (record.id === id) return record;
    return null;
  }

  frameRecords(): Iterable<FrameRecord> {
    const core = this.core();
    return core ? records(core.frame(performance.now())) : [];
  }

  ownEntity(): number {
    return this.#ownEntity;
  }

  playerNumber(): number {
    return this.#playerNumber;
  }

  say(text: string): void {
    this.core()?.chat(text);
  }

  /** Ends the life of the own character, which respawns: for players who are stuck. */
  resetCharacter(): void {
    this.core()?.reset_character();
  }

  /** Requests the server's tick timings; see `PlayModel.serverFigures`. */
  askFigures(): void {
    this.core()?.ask_figures();
  }

  /** Blocks a player with the account, and in this world at once. */
  async block(playerId: string, on: boolean): Promise<void> {
    await this.model.people.block(playerId, on);
    this.core()?.hide(playerId, on);
  }

  /** The page is closed, reloaded, or put aside by the browser. */
  suspend(): void {
    this.connection.suspend();
    this.input.release();
  }

  /** Leaves for good. */
  dispose(): void {
    this.#disposed = true;
    this.connection.leave();
    this.scripts.dispose();
    this.replica.dispose();
    this.view?.dispose();
    this.sound.dispose();
  }

  #opened(link: WorldLink): void {
    this.assets.reset();
    this.replica.clear();
    this.model.combat.clear();
    this.scripts.open(link.core);
  }

  #ended(): void {
    this.model.paused = false;
    this.input.release();
    if (document.pointerLockElement) document.exitPointerLock();
  }

  #drainEvents(): void {
    const core = this.core();
    if (!core) return;
    for (let json = core.take_event(); json !== undefined; json = core.take_event()) {
      const event = parseEvent(json);
      if (event) this.#onEvent(event);
    }
    this.replica.takeParts();
  }

  #onEvent(event: CoreEvent): void {
    for (const part of ROUTES[event.type]) {
      if (part === 'world') this.#show(event);
      else this[part].handle(event);
    }
  }

  /** Updates the replica and shows what happens in it. */
  #show(event: CoreEvent): void {
    const { combat } = this.model;
    switch (event.type) {
      case 'welcome':
        this.#ownEntity = event.entityId;
        this.#playerNumber = event.playerNumber;
        break;
      case 'scene':
        this.replica.sceneArrived();
        this.#showScene();
        break;
      case 'terrain':
        this.replica.takeTerrain();
        break;
      case 'players':
        this.replica.takePlayers(event.changed);
        break;
      case 'npc':
        // What it means is up to the game; a start when it means oneself is not.
        if (event.target === this.#ownEntity && event.state === 'suspicious') this.sound.play('noticed');
        if (event.target === this.#ownEntity && event.state === 'alert') this.sound.play('alarm');
        break;
      case 'weapon':
        combat.define(event, this.#playerNumber);
        break;
      case 'armed':
        combat.arm(event.player, event.weapon, this.#playerNumber);
        break;
      case 'vitals':
        this.#fight.vitals(event);
        break;
      case 'facing':
        this.input.yaw = event.yaw;
        this.#lookedAround = true;
        break;
      case 'shot':
        this.#fight.shot(event);
        break;
      case 'impact':
        this.#fight.impact(event);
        break;
      case 'error':
        console.warn(`server: ${event.message} (${event.code})`);
        break;
    }
  }

  #showScene(): void {
    if (!this.replica.show()) return;
    mark('scene');
    this.connection.progress.done('scene');
  }
}
