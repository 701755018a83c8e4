// Chooses the transport: WebTransport when it opens within a second, otherwise WebSocket.
import type { JoinResponse } from '../../generated/rest';
import { mark } from '../perf-marks';
import type { Transport, TransportHandlers, TransportKind } from './transport';
import { openWebSocket } from './websocket';
import { openWebTransport, webTransportAvailable } from './webtransport';

const WEBTRANSPORT_PATIENCE_MS = 1000;

/** How transports are opened; replaced in tests. */
export interface Openers {
  webTransport: typeof openWebTransport;
  webSocket: typeof openWebSocket;
}

/** `force` (from `?transport=ws|wt`) skips the choice. */
export async function connect(
  transports: JoinResponse['transports'],
  handlers: TransportHandlers,
  force: TransportKind | null = null,
  openers: Openers = { webTransport: openWebTransport, webSocket: openWebSocket },
): Promise<Transport> {
  mark('connecting');
  const address = transports.webtransport;
  if (address && force !== 'websocket' && (force === 'webtransport' || webTransportAvailable())) {
    try {
      return await withinPatience(address, handlers, force, openers);
    } catch (error) {
      if (force === 'webtransport') throw error;
      mark('fallback');
      console.info('WebTransport did not open, using WebSocket:', error instanceof Error ? error.message : error);
    }
  }
  return openers.webSocket(transports.websocket.url, handlers);
}

async function withinPatience(
  address: NonNullable<JoinResponse['transports']['webtransport']>,
  handlers: TransportHandlers,
  force: TransportKind | null,
  openers: Openers,
): Promise<Transport> {
  const abort = new AbortController();
  // Data and close events of a connection that lost the race must not reach the player.
  const guarded: TransportHandlers = {
    packet: (bytes) => !abort.signal.aborted && handlers.packet(bytes),
    stream: (bytes) => !abort.signal.aborted && handlers.stream(bytes),
    closed: (reason) => !abort.signal.aborted && handlers.closed(reason),
  };
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    if (force) return;
    timer = setTimeout(() => reject(new Error('not open within a second')), WEBTRANSPORT_PATIENCE_MS);
  });
  try {
    const opening = openers.webTransport(address, guarded, abort.signal);
    opening.catch(() => undefined); // when it fails after the race was lost
    return await Promise.race([opening, late]);
  } catch (error) {
    abort.abort();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** Parses `?transport=`; unknown values mean no preference. */
export function parseTransport(text: string | null): TransportKind | null {
  if (text === 'ws' || text === 'websocket') return 'websocket';
  if (text === 'wt' || text === 'webtransport') return 'webtransport';
  return null;
}
