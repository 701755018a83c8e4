// The choice of transport and the fallback within a second.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { connect, parseTransport, type Openers } from './connect';
import type { Transport, TransportHandlers } from './transport';
import { hexBytes } from './webtransport';

const transports = {
  websocket: { url: 'ws://host/ws' },
  webtransport: { url: 'https://host/game', cert_sha256: 'ab' },
};
const handlers: TransportHandlers = { packet: vi.fn(), stream: vi.fn(), closed: vi.fn() };
const fake = (kind: Transport['kind']): Transport => ({ kind, sendReliable() {}, sendDatagram() {}, close() {} });

function openers(webTransport: Openers['webTransport']): Openers & { wsAt: number[] } {
  const wsAt: number[] = [];
  return { webTransport, wsAt, webSocket: async () => (wsAt.push(Date.now()), fake('websocket')) };
}

beforeEach(() => {
  vi.useFakeTimers({ now: 0 });
  vi.stubGlobal('WebTransport', class {});
  vi.spyOn(console, 'info').mockImplementation(() => undefined);
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

test('WebTransport is used when it opens', async () => {
  const open = openers(async () => fake('webtransport'));
  expect((await connect(transports, handlers, null, open)).kind).toBe('webtransport');
  expect(open.wsAt).toEqual([]);
});

test('without an answer it falls back after one second and closes the late connection', async () => {
  let signal: AbortSignal | undefined;
  const open = openers((_address, guarded, abort) => {
    signal = abort;
    setTimeout(() => guarded.closed('too late'), 5000);
    return new Promise(() => undefined);
  });
  const connecting = connect(transports, handlers, null, open);
  await vi.advanceTimersByTimeAsync(1000);
  expect((await connecting).kind).toBe('websocket');
  expect(open.wsAt).toEqual([1000]);
  expect(signal?.aborted).toBe(true);
  await vi.advanceTimersByTimeAsync(5000);
  expect(handlers.closed).not.toHaveBeenCalled();
});

test('a refusal falls back at once', async () => {
  const open = openers(() => Promise.reject(new Error('refused')));
  expect((await connect(transports, handlers, null, open)).kind).toBe('websocket');
  expect(open.wsAt).toEqual([0]);
});

test('no offer, no browser support or ?transport=ws use WebSocket directly', async () => {
  const never = openers(() => expect.unreachable());
  expect((await connect({ ...transports, webtransport: null }, handlers, null, never)).kind).toBe('websocket');
  expect((await connect(transports, handlers, parseTransport('ws'), never)).kind).toBe('websocket');
  vi.stubGlobal('WebTransport', undefined);
  expect((await connect(transports, handlers, null, never)).kind).toBe('websocket');
});

test('certificate hashes', () => {
  expect([...hexBytes('00fF10')]).toEqual([0, 255, 16]);
  expect(() => hexBytes('xyz')).toThrow('hexadecimal');
});
