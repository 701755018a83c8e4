// One visit to a world, from the click on Play to leaving: the only place that knows the order of things.
import type { JoinRequest } from '../generated/rest';
import {
  comesBack,
  hasStaleTicket,
  isFinal,
  isOutdated,
  isReplaced,
  type Standing,
} from './connection/reconnect-policy';
import { type ClientCore, Liveness } from './core/core';
import { endingOf, kicked, lost, outdated, refused, replaced, type Ending } from './connection/exit-reasons';
import { parseEvent } from './core/events';
import type { CoreEvent, CoreStats, PlayerInfo, TickFigures, WireValue } from './core/events';
import { type FrameRecord, records } from './core/frame';
import { GameAssets } from './assets';
import { HudModel } from './hud/model.svelte';
import { ActionButtons } from './input/actions.svelte';
import type { Situation } from './input/controls';
import { firstPad, readPad } from './input/gamepad';
import { type Device, PlayerInput } from './input/input';
import { type ClosedCause, WorldLink } from './connection/link';
import { loadLuau } from './scripts/luau-loader';
import { mark } from './perf-marks';
import { Misunderstandings, reloadOnce } from './connection/outdated';
import { forgetPlace, keepPlace, keptPlace } from './connection/saved-seat';
import { LoadProgress } from './connection/progress.svelte';
import type { Part } from './core/parts';
import type { EffectsHost } from './luau/host';
import { ScriptHost } from './scripts/host';
import { ScriptCache } from './scripts/cache';
import { ScriptLogs } from './scripts/logs';
import { ClientScripts } from './scripts/scripts';
import { SoundBoard } from './sound';
import { ChatLog } from './model/chat.svelte';
import { People } from './model/people.svelte';
import { Combat } from './model/combat.svelte';
import { FightEvents } from './model/fight-events';
import { KnownTerrain, TERRAIN_REFUSALS } from './terrain/known';
import { KnownWorld } from './replica/known-world';
import { Prompts } from './model/prompts.svelte';
import { isTouchScreen } from './model/touchscreen';
import type { TransportKind } from './transport/transport';
import type { Quality } from './view/quality';
import type { WorldView } from './view/world-view';
import { WorldReplica } from './replica/world-replica.svelte';

export type Phase = 'loading' | 'playing' | 'reconnecting' | 'ended';

export interface SessionOptions {
  gameId: string;
  wish: JoinRequest;
  transport: TransportKind | null;
  quality: Quality | null;
}

/** The server keeps a disconnected player's place for a minute. */
const RECONNECT_FOR_MS = 60_000;
/** How often the place is kept in the tab while it is played: one that crashes says nothing, and the place counts from then. */
const KEEP_PLACE_EVERY_MS = 5000;
const RECONNECT_PAUSE_MS = [300, 1000, 2000, 4000, 8000];

export class PlaySession {
  phase = $state<Phase>('loading');
  ending = $state.raw<Ending | null>(null);
  roomCode = $state('');
  /** The pause menu is open. */
  paused = $state(false);
  /** The connection is open, and nothing comes through it. */
  stalled = $state(false);
  /** What the player used last. */
  device = $state<Device>(isTouchScreen() ? 'Touch' : 'Keyboard');
  /** What happens in the world takes unusually long to be stored. */
  savingDelayed = $state(false);
  readonly progress = new LoadProgress();
  readonly hud = new HudModel();
  readonly input = new PlayerInput(() => this.takesInput);
  readonly sound = new SoundBoard();
  readonly actions = new ActionButtons();
  readonly combat = new Combat();
  readonly #fight = new FightEvents(this);
  readonly chat = new ChatLog();
  readonly people = new People();
  readonly assets: GameAssets;
  view: WorldView | null = null;
  link: WorldLink | null = null;
  readonly terrain = new KnownTerrain(() => this.link?.core);
  readonly prompts = new Prompts(new KnownWorld(this));
  scripts: ClientScripts | null = null;
  #logs: ScriptLogs | null = null;
  /** What the server last said of its ticks; only while somebody asks. */
  serverFigures: TickFigures | null = null;
  #resumeToken: string | undefined;
  #lastError: { code: string; message: string } | null = null;
  /** It was tried once more with a new ticket. */
  #joinedAgain = false;
  /** The server has said that it stops and that our place is kept. */
  #restarting = false;
  /** Ends a join that waits when the visitor leaves. */
  readonly #leaving = new AbortController();
  #ownEntity = 0;
  #playerNumber = 0;
  readonly replica = new WorldReplica(this);
  #disposed = false;
  #lookedAround = false;
  /** Set while reconnecting, until the welcome. */
  #giveUpAt: number | null = null;
  #attempts = 0;
  #placeKeptAt = 0;
  #reconnecting = false;
  readonly #misunderstandings = new Misunderstandings();
  #scriptCache = new ScriptCache();

  constructor(private readonly options: SessionOptions) {
    this.assets = new GameAssets(options.gameId, undefined, () => this.link?.join.world_id ?? null);
    this.input.device = this.device;
    this.input.listener = (event) => this.scripts?.input(event);
  }

  get players(): PlayerInfo[] {
    return this.replica.players;
  }

  get parts(): ReadonlyMap<number, Part> {
    return this.replica.parts;
  }

  /** Whether keys, mouse, fingers and gamepad play the game: not while a menu or the chat has them. */
  get takesInput(): boolean {
    return !this.paused && !this.chat.writing && (this.phase === 'playing' || this.phase === 'reconnecting');
  }

  /** What there is to press, for hints. */
  get situation(): Situation {
    const { device, actions, combat } = this;
    return { device, actions: actions.all, armed: combat.weapon !== null, usable: this.prompts.shown !== null };
  }

  /** Opens or closes the pause menu; it opens only where there is something to pause. */
  pause(open: boolean): void {
    this.paused = open && this.phase === 'playing';
  }

  /** Loads and joins. Failures end in `ending`, never in an exception. */
  async start(canvas: HTMLCanvasElement): Promise<void> {
    mark('start');
    try {
      const renderer = import('./view/world-view');
      renderer.catch(() => undefined);
      const link = await this.#enter();
      const { WorldView } = await renderer;
      if (this.#disposed) return link.leave();
      this.view = new WorldView(canvas, this.options.quality, {
        jumped: (own) => own && this.sound.play('jump'),
        landed: (own) => own && this.sound.play('land'),
        stepped: (own) => own && this.sound.play('step'),
        splashed: (own) => own && this.sound.play('splash'),
      });
      mark('renderer');
      this.view.setCombat(this.combat, (entity) => this.#fight.weaponOf(entity));
      this.view.occludes = (origin, direction, max) => this.terrain.raycast(origin, direction, max)?.distance ?? max;
      this.view.isWater = (at) => this.terrain.water(at);
      this.#showScene();
      void this.people.load();
    } catch (error) {
      this.#end(endingOf(error));
    }
  }

  /** Input to the core, fixed steps, bytes out, events in. As often as you like; also while the tab is hidden. */
  advance(nowMs: number): void {
    const link = this.link;
    if (!link?.isOpen) return;
    const { x, y } = this.input.move();
    link.core.set_input(x, y, this.input.yaw, this.input.pitch, this.input.takeButtons(nowMs));
    link.core.advance(nowMs);
    this.#logs?.flush(nowMs);
    link.flush();
    this.#drainEvents();
    if (nowMs - this.#placeKeptAt > KEEP_PLACE_EVERY_MS) this.#keepPlace();
    const liveness = link.core.liveness();
    this.stalled = liveness === Liveness.stalled;
    if (liveness === Liveness.lost && link.isOpen) {
      // A connection that died without a word (another Wi-Fi, a stopped server) never reports that it closed.
      link.close();
      this.#onClosed('the world does not answer');
    }
  }

  /** Draws one frame. */
  draw(nowMs: number, dt: number): void {
    const { view, link } = this;
    if (!view || !link) return;
    if (!this.replica.isShown) {
      // Snapshots may overtake the scene: what they tell of waits in the core until there is something to apply it to.
      // Behind the loading screen nobody sees an empty sky, and drawing it holds up what is to come.
      if (this.phase !== 'loading') view.render(this.input, dt);
      return;
    }
    const frame = link.core.frame(nowMs);
    const removed = link.core.removed();
    view.apply(frame, removed, dt);
    view.applyShots(link.core.shots());
    readPad(this.input, firstPad(), dt);
    if (!this.#lookedAround && view.ownId !== 0) {
      this.input.yaw = view.spawnYaw();
      this.#lookedAround = true;
    }
    this.input.turn(dt);
    this.device = this.input.device;
    this.scripts?.tick();
    this.prompts.update(nowMs, view, this.input, this.combat.alive);
    if (view.ownId !== 0) this.replica.look(view);
    view.render(this.input, dt);
    const arriving = this.phase === 'loading' || this.phase === 'reconnecting';
    if (arriving && link.isOpen && view.ownId !== 0) {
      mark('playing');
      this.phase = 'playing';
    }
  }

  get stats(): CoreStats {
    return this.link ? (JSON.parse(this.link.core.stats(performance.now())) as CoreStats) : {};
  }

  /** What is known about an entity right now; null when it cannot be seen. */
  entity(id: number): FrameRecord | null {
    for (const record of this.frameRecords()) if (record.id === id) return record;
    return null;
  }

  frameRecords(): Iterable<FrameRecord> {
    return this.link ? records(this.link.core.frame(performance.now())) : [];
  }

  ownEntity(): number {
    return this.#ownEntity;
  }

  worldTime(): number {
    return this.link?.core.world_time(performance.now()) ?? 0;
  }

  fireServer(name: string, args: WireValue[], reliable = true): void {
    this.link?.core.fire_server(name, JSON.stringify(args), reliable);
  }

  invokeServer(id: number, name: string, args: WireValue[]): void {
    this.link?.core.invoke_server(id, name, JSON.stringify(args));
  }

  /** Asks where the server's time goes; see `serverFigures`. */
  askFigures(): void {
    this.link?.core.ask_figures();
  }

  castSpell(spell: string, params: WireValue): void {
    this.link?.core.cast_spell(spell, JSON.stringify([params]));
  }

  wantModule(path: string): boolean {
    return this.scripts?.want(path) ?? false;
  }

  core(): ClientCore | undefined {
    return this.link?.core;
  }

  playerNumber(): number {
    return this.#playerNumber;
  }

  chaseCamera() {
    return this.view?.camera ?? null;
  }

  viewportSize(): { width: number; height: number } {
    const canvas = this.view?.renderer.domElement;
    return { width: canvas?.clientWidth ?? 0, height: canvas?.clientHeight ?? 0 };
  }

  readonly effects: EffectsHost = {
    particles: (at, options) => this.view?.particles(at, options),
    beam: (from, to, options) => this.view?.beam(from, to, options),
  };

  /**
   * The page goes away: closed, reloaded, or put aside by the browser. Nobody can tell whether it comes back, so this
   * is no goodbye; the server keeps the place for a minute.
   */
  suspend(): void {
    this.#keepPlace();
    this.link?.close();
    this.input.release();
  }

  /** The browser shows a page again that it had put aside: its connection is gone, the rest is as it was. */
  wake(): void {
    if (this.#disposed || this.phase === 'ended' || this.link?.isOpen) return;
    this.#giveUpAt = null;
    this.#attempts = 0;
    // While it was still loading, loading goes on by itself.
    if (this.link) void this.#reconnect();
  }

  /** Leaves for good. */
  dispose(): void {
    this.#disposed = true;
    this.#leaving.abort();
    forgetPlace();
    this.link?.leave();
    this.scripts?.dispose();
    this.replica.dispose();
    this.view?.dispose();
    this.sound.dispose();
  }

  /** Back to the place this tab had a moment ago, else to wherever the wish leads. */
  async #enter(): Promise<WorldLink> {
    const place = keptPlace(this.options.gameId, this.options.wish);
    forgetPlace(); // a token works once
    if (place) {
      try {
        this.#resumeToken = place.resumeToken;
        // By its code: a private world takes nobody by its id.
        return await this.#open({ room_code: place.roomCode });
      } catch (error) {
        console.info('the place of before is gone:', error instanceof Error ? error.message : error);
        this.#resumeToken = undefined;
      }
    }
    return this.#open(this.options.wish);
  }

  #keepPlace(): void {
    const { link } = this;
    if (!link || !this.#resumeToken || this.phase === 'ended') return;
    this.#placeKeptAt = performance.now();
    const resumeToken = link.core.resume_token() ?? this.#resumeToken;
    keepPlace({ gameId: this.options.gameId, worldId: link.join.world_id, roomCode: link.join.room_code, resumeToken });
  }

  async #open(wish: JoinRequest, patienceMs?: number): Promise<WorldLink> {
    const leaving = this.#leaving.signal;
    const link = await WorldLink.open({
      wish,
      signal: patienceMs === undefined ? leaving : AbortSignal.any([leaving, AbortSignal.timeout(patienceMs)]),
      force: this.options.transport,
      resumeToken: this.#resumeToken,
      previous: this.link?.core,
      progress: this.progress,
      onreceived: () => this.#drainEvents(),
      onclosed: (reason, cause) => this.#onClosed(reason, cause),
    });
    if (this.#disposed) {
      link.leave();
      return link;
    }
    const old = this.link;
    this.link = link;
    this.stalled = false;
    this.roomCode = link.join.room_code;
    this.assets.reset();
    this.replica.clear();
    this.#lastError = null;
    this.combat.clear();
    // Heard on the line before, and not told again on this one.
    const unheard = this.scripts?.takeWaiting() ?? [];
    this.scripts?.dispose();
    old?.core.free();
    this.hud.clear();
    const host = new ScriptHost(this);
    const scripts = new ClientScripts(
      link.core,
      host,
      this.#scriptCache,
      loadLuau,
      () => this.progress.done('scripts'),
      undefined,
      (have, total, name) => this.progress.scripts(have, total, name),
    );
    host.originOf = (path) => scripts.origin(path);
    this.#logs = new ScriptLogs(
      (log) => link.core.send_log(JSON.stringify(log)),
      () => scripts.revision,
    );
    host.relay = (level, text) => this.#logs?.add(level, text);
    host.knownScripts = () => scripts.known();
    for (const { name, args } of unheard) scripts.event(name, args);
    this.scripts = scripts;
    return link;
  }

  #drainEvents(): void {
    const link = this.link;
    if (!link) return;
    for (let json = link.core.take_event(); json !== undefined; json = link.core.take_event()) {
      const event = parseEvent(json);
      if (event) this.#onEvent(event);
    }
    this.replica.takeParts();
  }

  #onEvent(event: CoreEvent): void {
    switch (event.type) {
      case 'welcome':
        this.#resumeToken = event.resumeToken;
        this.#keepPlace();
        this.#ownEntity = event.entityId;
        this.#playerNumber = event.playerNumber;
        this.#giveUpAt = null;
        this.#attempts = 0;
        this.#restarting = false;
        // The server says so behind the welcome, if it still is.
        this.savingDelayed = false;
        mark('welcome');
        this.progress.done('connect');
        break;
      case 'scene':
        this.replica.sceneArrived();
        this.#showScene();
        break;
      case 'terrain':
        this.replica.takeTerrain();
        this.scripts?.terrain(event.min, event.max);
        break;
      case 'players':
        this.replica.takePlayers(event.changed);
        for (const number of event.joined) this.scripts?.player(true, number);
        for (const number of event.left) this.scripts?.player(false, number);
        break;
      case 'scriptManifest':
        void this.scripts?.manifest(event.manifest);
        break;
      case 'scriptList':
        void this.scripts?.list();
        break;
      case 'scriptVerified':
        this.scripts?.verified(event.path, event.hash);
        break;
      case 'scriptRun':
        this.scripts?.run(event.path);
        break;
      case 'scriptsReload':
        this.scripts?.reload(event.changed, event.removed);
        break;
      case 'scriptsStarted':
        this.scripts?.allTold();
        break;
      case 'event':
        this.scripts?.event(event.name, event.args);
        break;
      case 'npc':
        // What it means is up to the game; a start when it means oneself is not.
        if (event.target === this.#ownEntity && event.state === 'suspicious') this.sound.play('noticed');
        if (event.target === this.#ownEntity && event.state === 'alert') this.sound.play('alarm');
        this.scripts?.happened('npc', [event.entity, event.state, event.before]);
        break;
      case 'invokeResult':
        this.scripts?.result(event.id, { ok: true, values: event.values });
        break;
      case 'invokeFailed':
        this.scripts?.result(event.id, { ok: false, error: event.error });
        break;
      case 'logsWanted':
        if (this.#logs) this.#logs.prints = event.prints;
        break;
      case 'figures':
        this.serverFigures = event.figures;
        break;
      case 'saving':
        this.savingDelayed = event.delayed;
        break;
      case 'cast':
        this.scripts?.cast(event.cast);
        break;
      case 'chat':
        this.chat.add(event.from, event.text, performance.now(), event.playerId);
        break;
      case 'weapon':
        this.combat.define(event, this.#playerNumber);
        break;
      case 'armed':
        this.combat.arm(event.player, event.weapon, this.#playerNumber);
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
        if (TERRAIN_REFUSALS.has(event.code)) this.scripts?.happened('terrainRefused', [event.code, event.message]);
        if (event.code.includes('spell')) this.scripts?.castRefused(event.message);
        if (event.code === 'restarting') this.#restarting = true;
        if (event.code === 'chat_too_fast' || event.code === 'bad_chat') this.chat.add('', event.message);
        console.warn(`server: ${event.message} (${event.code})`);
        this.#lastError = event;
        break;
      case 'kick':
        // The connection closes next; then we come back, to the next server or with the next ticket.
        if (isOutdated(this.#standing())) this.#endOutdated();
        else if (isReplaced(this.#standing())) this.#end(replaced);
        else if (!comesBack(this.#standing())) this.#end(kicked(event.reason));
        break;
      default:
        // A kind that the core has and this page does not handle does not compile.
        event satisfies never;
    }
  }

  say(text: string): void {
    this.link?.core.chat(text);
  }

  /** Blocks somebody with the account, and in this world at once. */
  async block(playerId: string, on: boolean): Promise<void> {
    await this.people.block(playerId, on);
    this.link?.core.hide(playerId, on);
  }

  #showScene(): void {
    if (!this.replica.show()) return;
    mark('scene');
    this.progress.done('scene');
  }

  #onClosed(reason: string, cause: ClosedCause = 'lost'): void {
    this.#drainEvents(); // a kick or an error may have come just before the end
    if (this.phase === 'ended' || this.#disposed) return;
    if (isOutdated(this.#standing()) || (cause === 'unreadable' && this.#misunderstandings.again(performance.now())))
      this.#endOutdated();
    else if (this.#resumeToken) void this.#reconnect();
    // Not in yet. Where nobody said why, the server went down before it answered.
    else if (!this.#joinedAgain && (this.#lastError === null || hasStaleTicket(this.#standing())))
      void this.#joinAgain();
    else this.#end(refused(this.#lastError?.message ?? reason));
  }

  #standing(): Standing {
    return {
      hasPlace: Boolean(this.#resumeToken),
      // Not the phase: that lasts until the world is drawn, and who is shown out before that was in.
      reconnecting: this.#giveUpAt !== null,
      restarting: this.#restarting,
      joinedAgain: this.#joinedAgain,
      lastCode: this.#lastError?.code ?? null,
    };
  }

  async #joinAgain(): Promise<void> {
    this.#joinedAgain = true;
    try {
      await this.#open(this.options.wish);
    } catch (error) {
      this.#end(endingOf(error));
    }
  }

  /** Tries until a minute after the first loss; a welcome ends it, and a refusal on the way only costs an attempt. */
  async #reconnect(): Promise<void> {
    this.phase = 'reconnecting';
    this.stalled = false;
    if (this.#reconnecting) return;
    this.#reconnecting = true;
    try {
      await this.#tryAgain();
    } finally {
      this.#reconnecting = false;
    }
  }

  async #tryAgain(): Promise<void> {
    const room = this.link?.join.room_code;
    // Set anew by `wake`: time in the browser's drawer does not count.
    const timeLeft = () => performance.now() < (this.#giveUpAt ??= performance.now() + RECONNECT_FOR_MS);
    while (timeLeft()) {
      const pause = RECONNECT_PAUSE_MS[Math.min(this.#attempts++, RECONNECT_PAUSE_MS.length - 1)];
      await new Promise((resolve) => setTimeout(resolve, pause));
      if (this.#disposed) return;
      try {
        await this.#open(room ? { room_code: room } : this.options.wish, RECONNECT_FOR_MS);
        return;
      } catch (error) {
        if (isFinal(error)) return this.#end(endingOf(error));
        console.info('still reconnecting:', error instanceof Error ? error.message : error);
      }
    }
    this.#end(lost);
  }

  /** Another page may understand the server, and finds the place that this one had. */
  #endOutdated(): void {
    if (this.#disposed || this.phase === 'ended') return;
    this.#keepPlace();
    this.#end(outdated);
    reloadOnce();
  }

  #end(ending: Ending): void {
    if (this.#disposed || this.phase === 'ended') return;
    this.ending = ending;
    this.phase = 'ended';
    this.paused = this.stalled = false;
    if (!ending.reload) forgetPlace();
    this.link?.close();
    this.input.release();
    if (document.pointerLockElement) document.exitPointerLock();
  }
}
