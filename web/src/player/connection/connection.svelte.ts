// The connection of one visit: joins, remembers the place, returns after a loss, and knows how the visit ended. Whether
// and when it returns is decided by the client core (crates/client/src/reconnect.rs).
import { LIVENESS_LOST, LIVENESS_STALLED } from '../../generated/layout';
import type { JoinRequest } from '../../generated/rest';
import type { NextStep } from '../../generated/NextStep';
import type { SessionEnd } from '../../generated/SessionEnd';
import { ApiError } from '../../lib/api';
import { type ClientCore, newReconnectPolicy, type ReconnectPolicy } from '../core/core';
import type { CoreEvent } from '../core/events';
import { mark } from '../perf-marks';
import type { TransportKind } from '../transport/transport';
import { type Ending, endingOf, kicked, lost, outdated, refused, replaced } from './exit-reasons';
import { type ClosedCause, WorldLink } from './link';
import { reloadOnce } from './outdated';
import { LoadProgress } from './progress.svelte';
import { forgetPlace, keepPlace, keptPlace } from './saved-seat';

/** `loading` and `reconnecting` last until the world is on screen. */
export type Phase = 'loading' | 'playing' | 'reconnecting' | 'ended';

export interface ConnectionOptions {
  gameId: string;
  wish: JoinRequest;
  transport: TransportKind | null;
}

export interface ConnectionListener {
  /** A link is open. The core of the link before is freed afterwards. */
  opened(link: WorldLink): void;
  /** The core may have events. */
  received(): void;
  /** The visit is over; see `ending`. */
  ended(): void;
}

/** One attempt to return takes no longer. */
const ATTEMPT_MS_MAX = 60_000;
/** How often the place is saved: a tab that crashes does not report it. */
const SAVE_PLACE_EVERY_MS = 5000;

export class Connection {
  phase = $state<Phase>('loading');
  ending = $state.raw<Ending | null>(null);
  /** The connection is open, but nothing is received. */
  stalled = $state(false);
  roomCode = $state('');
  readonly progress = new LoadProgress();
  /** The newest link, open or closed. */
  link: WorldLink | null = null;
  /** Exists from the first link on. */
  #policy: ReconnectPolicy | null = null;
  #resumeToken: string | undefined;
  /** Attempts to return are in progress. */
  #returning = false;
  #left = false;
  #placeSavedAt = 0;
  /** Aborts a waiting join when the player leaves. */
  readonly #leaving = new AbortController();

  constructor(
    private readonly options: ConnectionOptions,
    private readonly listener: ConnectionListener,
  ) {}

  get core(): ClientCore | undefined {
    return this.link?.core;
  }

  get isOpen(): boolean {
    return this.link?.isOpen ?? false;
  }

  /** Joins: the place that this tab had a moment ago, otherwise wherever the request leads. */
  async join(): Promise<void> {
    const place = keptPlace(this.options.gameId, this.options.wish);
    forgetPlace(); // a token works once
    if (place) {
      try {
        this.#resumeToken = place.resumeToken;
        // By its code: a private world admits nobody by its id.
        return await this.#open({ room_code: place.roomCode });
      } catch (error) {
        console.info('the saved place is gone:', error instanceof Error ? error.message : error);
        this.#resumeToken = undefined;
      }
    }
    await this.#open(this.options.wish);
  }

  async #open(wish: JoinRequest, timeoutMs?: number): Promise<void> {
    const leaving = this.#leaving.signal;
    const link = await WorldLink.open({
      wish,
      signal: timeoutMs === undefined ? leaving : AbortSignal.any([leaving, AbortSignal.timeout(timeoutMs)]),
      force: this.options.transport,
      resumeToken: this.#resumeToken,
      previous: this.core,
      progress: this.progress,
      onreceived: () => this.listener.received(),
      onclosed: (reason, cause) => this.#closed(reason, cause),
    });
    if (this.#left) return link.leave();
    const before = this.link;
    this.link = link;
    this.stalled = false;
    this.roomCode = link.join.room_code;
    this.#policy ??= newReconnectPolicy();
    this.#policy.connected(this.#resumeToken !== undefined);
    this.listener.opened(link);
    before?.core.free();
  }

  /** Handles the events that concern the connection. */
  handle(event: CoreEvent): void {
    if (event.type === 'welcome') {
      this.#resumeToken = event.resumeToken;
      this.#policy?.welcomed();
      this.#savePlace();
      mark('welcome');
      this.progress.done('connect');
    } else if (event.type === 'error') {
      this.#policy?.error(event.code, event.message);
    } else if (event.type === 'kick') {
      const end = this.#policy?.kicked(event.reason);
      if (end !== undefined) this.#endAs(JSON.parse(end) as SessionEnd);
    }
  }

  /** Saves the place and checks whether the server still responds; called as often as the world advances. */
  watch(nowMs: number): void {
    const { link } = this;
    if (!link?.isOpen) return;
    if (nowMs - this.#placeSavedAt > SAVE_PLACE_EVERY_MS) this.#savePlace();
    const liveness = link.core.liveness();
    this.stalled = liveness === LIVENESS_STALLED;
    if (liveness === LIVENESS_LOST) {
      // A connection that died without notice (another Wi-Fi, a stopped server) never reports that it closed.
      link.close();
      this.#closed('the world does not answer', 'lost');
    }
  }

  /** The world is on screen. */
  shown(): void {
    if (!this.isOpen || this.phase === 'playing' || this.phase === 'ended') return;
    mark('playing');
    this.phase = 'playing';
  }

  /** The page is hidden for good or for a while. This is no goodbye: the server preserves the place for a minute. */
  suspend(): void {
    this.#savePlace();
    this.link?.close();
  }

  /** The browser shows the page again: the connection is gone, the rest is as it was. */
  wake(): void {
    // Without a link the first join is still in progress.
    if (this.#left || this.phase === 'ended' || !this.link || this.link.isOpen || !this.#policy) return;
    this.#policy.rested();
    this.#follow(this.#policy.try_again(performance.now()));
  }

  /** Leaves for good. */
  leave(): void {
    this.#left = true;
    this.#leaving.abort();
    forgetPlace();
    this.link?.leave();
  }

  /** Ends the visit. */
  end(ending: Ending): void {
    if (this.#left || this.phase === 'ended') return;
    this.ending = ending;
    this.phase = 'ended';
    this.stalled = false;
    if (!ending.reload) forgetPlace();
    this.link?.close();
    this.listener.ended();
  }

  #closed(reason: string, cause: ClosedCause): void {
    this.listener.received(); // a kick or an error may have arrived just before the end
    if (this.phase === 'ended' || this.#left || !this.#policy) return;
    this.#follow(this.#policy.closed(reason, cause === 'unreadable', performance.now()));
  }

  /** Takes the next step, the JSON of a `NextStep`; `error` is why the last attempt failed. */
  #follow(json: string, error?: unknown): void {
    const next = JSON.parse(json) as NextStep;
    if (next.type === 'end') this.#endAs(next.ending, error);
    else if (next.type === 'joinAgain')
      this.#open(this.options.wish).catch((failure: unknown) => this.end(endingOf(failure)));
    else void this.#return(next.pauseMs);
  }

  async #return(pauseMs: number): Promise<void> {
    this.phase = 'reconnecting';
    this.stalled = false;
    if (this.#returning) return;
    this.#returning = true;
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    if (this.#left) return;
    const room = this.link?.join.room_code;
    const failure = await this.#open(room ? { room_code: room } : this.options.wish, ATTEMPT_MS_MAX).then(
      () => null,
      (error: unknown) => ({ error }),
    );
    this.#returning = false;
    if (!failure || !this.#policy) return;
    const { error } = failure;
    console.info('still reconnecting:', error instanceof Error ? error.message : error);
    this.#follow(this.#policy.failed(error instanceof ApiError ? error.status : 0, performance.now()), error);
  }

  #endAs(end: SessionEnd, error?: unknown): void {
    if (this.#left || this.phase === 'ended') return;
    switch (end.type) {
      case 'outdated':
        // Another page may understand the server, and finds the place that this one had.
        this.#savePlace();
        this.end(outdated);
        reloadOnce();
        break;
      case 'replaced':
        return this.end(replaced);
      case 'kicked':
        return this.end(kicked(end.reason));
      case 'refused':
        return this.end(refused(end.message));
      case 'lost':
        return this.end(lost);
      case 'denied':
        return this.end(endingOf(error));
    }
  }

  #savePlace(): void {
    const { link } = this;
    if (!link || !this.#resumeToken || this.phase === 'ended') return;
    this.#placeSavedAt = performance.now();
    const resumeToken = link.core.resume_token() ?? this.#resumeToken;
    keepPlace({ gameId: this.options.gameId, worldId: link.join.world_id, roomCode: link.join.room_code, resumeToken });
  }
}
