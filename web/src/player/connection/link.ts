// One connection to one world: asks for a place, opens a transport and moves bytes between it and a client core.
import * as api from '../../lib/api';
import type { JoinRequest, JoinResponse } from '../../generated/rest';
import { join as joinWorld } from '../../lib/joining';
import { type ClientCore, loadCore } from '../core/core';
import { mark } from '../perf-marks';
import type { LoadProgress } from './progress.svelte';
import { connect } from '../transport/connect';
import type { Transport, TransportKind } from '../transport/transport';

export interface LinkOptions {
  wish: JoinRequest;
  force: TransportKind | null;
  resumeToken?: string | undefined;
  /** The core of the connection that was lost; the new one goes on where it stopped. */
  previous?: ClientCore | undefined;
  progress?: LoadProgress;
  /** Ends a join that waits. */
  signal?: AbortSignal;
  /** Something came, so that there may be events. Not only with the next frame: a hidden page has one a minute. */
  onreceived(): void;
  /** The connection ended, and not by `close()`. */
  onclosed(reason: string, cause: ClosedCause): void;
}

/** `unreadable`: what came is not of this page's protocol, which mostly means that page and server are of different versions. */
export type ClosedCause = 'lost' | 'unreadable';

export class WorldLink {
  #closed = false;

  private constructor(
    readonly core: ClientCore,
    readonly join: JoinResponse,
    private readonly transport: Transport,
    private readonly options: LinkOptions,
  ) {}

  /** Joins and connects; the handshake is on its way when this returns. */
  static async open(options: LinkOptions): Promise<WorldLink> {
    const { progress } = options;
    const engine = loadCore();
    engine.catch(() => undefined); // awaited below; the join may fail first
    await api.session();
    mark('login');
    progress?.done('login');
    const join = await joinWorld(options.wish, { onwait: (wait) => progress?.waiting(wait), signal: options.signal });
    mark('join');
    progress?.done('join');
    const core = await engine;
    mark('engine');
    progress?.done('engine');
    let link: WorldLink | null = null;
    const transport = await connect(
      join.transports,
      {
        // A datagram may be ignored like a lost one; a WebSocket message is part of what must not have gaps.
        packet: (bytes) => link?.receive(() => core.receive(bytes, performance.now()), link.kind === 'webtransport'),
        stream: (bytes) => link?.receive(() => core.receive_stream(bytes, performance.now()), false),
        closed: (reason) => link?.giveUp(reason, 'lost'),
      },
      options.force,
    );
    mark('connected');
    link = new WorldLink(core, join, transport, options);
    if (options.previous) core.take_over(options.previous);
    // Scripts that this platform has not signed for this game are refused.
    core.trust(join.script_key, join.game_id);
    core.handshake(join.ticket, options.resumeToken);
    link.flush();
    return link;
  }

  get kind(): TransportKind {
    return this.transport.kind;
  }

  get isOpen(): boolean {
    return !this.#closed;
  }

  /** Sends what the core has queued. */
  flush(): void {
    if (this.#closed) return;
    for (let bytes = this.core.take_reliable(); bytes; bytes = this.core.take_reliable())
      this.transport.sendReliable(bytes);
    for (let bytes = this.core.take_datagram(); bytes; bytes = this.core.take_datagram())
      this.transport.sendDatagram(bytes);
  }

  /** Says goodbye, so that the server need not wait for a timeout to free the place. */
  leave(): void {
    if (this.#closed) return;
    this.core.leave();
    this.flush();
    this.close();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.transport.close();
  }

  /** Acknowledgements leave at once: waiting for the next frame would look like a slow network to the server. */
  private receive(feed: () => boolean, mayBeLost: boolean): void {
    if (this.#closed) return;
    try {
      // What the core had no room for was not confirmed: it comes again on the next connection.
      if (!feed() && !mayBeLost) return this.giveUp('more came than this page can take', 'lost');
    } catch (error) {
      console.warn('unusable packet:', error);
      if (!mayBeLost) return this.giveUp('the world sent something that this page cannot read', 'unreadable');
    }
    this.flush();
    this.options.onreceived();
  }

  private giveUp(reason: string, cause: ClosedCause): void {
    if (this.#closed) return;
    this.close();
    this.options.onclosed(reason, cause);
  }
}
