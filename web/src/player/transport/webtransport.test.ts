// Datagrams over WebTransport, with a browser's stream that announces room for one at a time.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { openWebTransport } from './webtransport';

/** Datagrams written to the stream, and the promise that grants more room. */
const line = { taken: [] as number[], free: Promise.resolve() };

class FakeWebTransport {
  readonly ready = Promise.resolve();
  readonly closed = new Promise<never>(() => undefined);
  readonly datagrams = {
    readable: new ReadableStream(),
    // Chromium announces room for one, whatever `outgoingHighWaterMark` says.
    writable: new WritableStream<Uint8Array>({
      write: (bytes) => {
        line.taken.push(bytes[0] ?? -1);
        return line.free;
      },
    }),
  };
  createBidirectionalStream = async () => ({ readable: new ReadableStream(), writable: new WritableStream() });
  close() {}
}

beforeEach(() => {
  line.taken = [];
  line.free = Promise.resolve();
  vi.stubGlobal('WebTransport', FakeWebTransport);
});
afterEach(() => vi.unstubAllGlobals());

const open = () =>
  openWebTransport(
    { url: 'https://host/game', cert_sha256: '' },
    { packet() {}, stream() {}, closed() {} },
    new AbortController().signal,
  );
const settled = () => new Promise((resolve) => setTimeout(resolve));

test('all datagrams of one frame are sent: the inputs and the ping after them', async () => {
  const transport = await open();
  for (const number of [1, 2, 3]) transport.sendDatagram(Uint8Array.of(number));
  await settled();
  expect(line.taken).toEqual([1, 2, 3]);
});

test('a blocked connection queues only a few datagrams', async () => {
  let clear = () => {};
  line.free = new Promise((resolve) => (clear = resolve));
  const transport = await open();
  for (let number = 0; number < 100; number++) transport.sendDatagram(Uint8Array.of(number));
  await settled();
  expect(line.taken).toEqual([0]);
  clear();
  await settled();
  expect(line.taken).toHaveLength(32);
  transport.sendDatagram(Uint8Array.of(200));
  await settled();
  expect(line.taken.at(-1)).toBe(200);
});
