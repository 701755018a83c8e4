// WebTransport: datagrams for unreliable messages, one bidirectional stream for reliable ones.
import { ConnectError, type Transport, type TransportHandlers } from './transport';

export interface WebTransportAddress {
  url: string;
  /** Hex SHA-256 of the server's short-lived certificate; empty when it has a public one. */
  cert_sha256: string;
}

const DATAGRAM_AGE_MAX_MS = 250;
const DATAGRAMS_QUEUED_MAX = 32;

export const webTransportAvailable = (): boolean => typeof WebTransport === 'function';

/** Opens the connection and its stream. After `signal` aborts, a connection that still opens is closed. */
export async function openWebTransport(
  address: WebTransportAddress,
  handlers: TransportHandlers,
  signal: AbortSignal,
): Promise<Transport> {
  const hashes = address.cert_sha256 ? [{ algorithm: 'sha-256', value: hexBytes(address.cert_sha256) }] : [];
  const connection = new WebTransport(address.url, { serverCertificateHashes: hashes });
  connection.closed.catch(() => undefined); // reported below; must not be an unhandled rejection before that
  signal.addEventListener('abort', () => connection.close(), { once: true });
  await connection.ready;
  const stream = await connection.createBidirectionalStream();
  if (signal.aborted) throw new ConnectError('WebTransport opened too late.');

  let over = false;
  const end = (reason: string) => {
    if (over) return;
    over = true;
    handlers.closed(reason);
  };
  connection.closed.then(
    (info) => end(info.reason || 'connection closed'),
    (error: unknown) => end(describe(error)),
  );
  void pump(stream.readable, handlers.stream).then(
    () => end('stream ended'),
    (error: unknown) => end(describe(error)),
  );
  void pump(connection.datagrams.readable, handlers.packet).catch(() => undefined);

  const reliable = stream.writable.getWriter();
  // Outdated inputs and snapshots are worthless: the browser drops them instead of delivering them late.
  connection.datagrams.outgoingMaxAge = DATAGRAM_AGE_MAX_MS;
  connection.datagrams.outgoingHighWaterMark = DATAGRAMS_QUEUED_MAX;
  connection.datagrams.incomingHighWaterMark = DATAGRAMS_QUEUED_MAX;
  const datagrams = connection.datagrams.writable.getWriter();
  // A write fails only when the connection is gone, which `closed` reports.
  const write = (writer: WritableStreamDefaultWriter, bytes: Uint8Array): Promise<void> =>
    writer.write(bytes).catch(() => undefined);
  let waiting = 0;
  return {
    kind: 'webtransport',
    sendReliable: (bytes) => void write(reliable, bytes),
    // Counted here: the stream reports room for one datagram only, so the ping after a frame's inputs would never be sent.
    sendDatagram: (bytes) => {
      if (waiting === DATAGRAMS_QUEUED_MAX) return;
      waiting += 1;
      void write(datagrams, bytes).then(() => (waiting -= 1));
    },
    close: () => {
      over = true;
      // Closing immediately would drop data in flight, including the goodbye.
      const done = () => connection.close({ closeCode: 0, reason: 'left' });
      void reliable.close().then(done, done);
    },
  };
}

async function pump(readable: ReadableStream, sink: (bytes: Uint8Array) => void): Promise<void> {
  const reader = readable.getReader() as ReadableStreamDefaultReader<Uint8Array>;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    sink(value);
  }
}

function describe(error: unknown): string {
  return error instanceof Error && error.message ? error.message : 'connection lost';
}

/** Bytes of a hex string; throws a readable error for anything else. */
export function hexBytes(hex: string): Uint8Array<ArrayBuffer> {
  if (!/^([0-9a-f]{2})+$/i.test(hex)) throw new ConnectError('The certificate hash is not hexadecimal.');
  return Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}
