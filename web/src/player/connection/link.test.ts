// Unreadable data and full queues on a connection.
import { beforeEach, expect, test, vi } from 'vitest';
import type { TransportHandlers, TransportKind } from '../transport/transport';

let handlers: TransportHandlers;
let kind: TransportKind;
const transport = { sendReliable() {}, sendDatagram() {}, close: vi.fn() };
const core = {
  receive: vi.fn(() => true),
  receive_stream: vi.fn(() => true),
  take_reliable: () => undefined,
  take_datagram: () => undefined,
  trust() {},
  handshake() {},
};

vi.mock('../../lib/api', () => ({ session: async () => undefined }));
vi.mock('../../lib/joining', () => ({ join: async () => ({ transports: {} }) }));
vi.mock('../core/core', () => ({ loadCore: async () => core }));
vi.mock('../transport/connect', () => ({
  connect: async (_transports: unknown, given: TransportHandlers) => {
    handlers = given;
    return { ...transport, kind };
  },
}));
const { WorldLink } = await import('./link');

const onreceived = vi.fn();
const onclosed = vi.fn();
const bytes = new Uint8Array(3);
const unreadable = () => {
  throw new Error('the message cannot be read');
};

beforeEach(() => {
  vi.clearAllMocks();
  vi.spyOn(console, 'warn').mockImplementation(() => undefined);
  core.receive.mockImplementation(() => true);
  core.receive_stream.mockImplementation(() => true);
});

async function open(by: TransportKind) {
  kind = by;
  return WorldLink.open({ wish: {}, force: null, onreceived, onclosed });
}

test('received data is reported immediately, without waiting for a frame', async () => {
  const link = await open('webtransport');
  handlers.packet(bytes);
  handlers.stream(bytes);
  expect(onreceived).toHaveBeenCalledTimes(2);
  expect(link.isOpen).toBe(true);
});

test('a stream with unreadable data is closed and not read further', async () => {
  const link = await open('webtransport');
  core.receive_stream.mockImplementation(unreadable);
  handlers.stream(bytes);
  handlers.stream(bytes);
  expect(core.receive_stream).toHaveBeenCalledOnce();
  expect(onclosed).toHaveBeenCalledExactlyOnceWith(expect.any(String), 'unreadable');
  expect(transport.close).toHaveBeenCalledOnce();
  expect(link.isOpen).toBe(false);
});

test('a WebSocket with an unreadable message is closed', async () => {
  await open('websocket');
  core.receive.mockImplementation(unreadable);
  handlers.packet(bytes);
  expect(onclosed).toHaveBeenCalledExactlyOnceWith(expect.any(String), 'unreadable');
});

test('an unreadable datagram, or one without room, is treated as lost', async () => {
  const link = await open('webtransport');
  core.receive.mockImplementationOnce(unreadable).mockImplementationOnce(() => false);
  handlers.packet(bytes);
  handlers.packet(bytes);
  expect(onclosed).not.toHaveBeenCalled();
  expect(link.isOpen).toBe(true);
});

test('a connection with more data than fits is closed, so that the server sends it again', async () => {
  await open('webtransport');
  core.receive_stream.mockImplementation(() => false);
  handlers.stream(bytes);
  expect(onclosed).toHaveBeenCalledExactlyOnceWith(expect.any(String), 'lost');
});

test('the end of the transport is reported once', async () => {
  const link = await open('websocket');
  handlers.closed('gone');
  handlers.closed('gone');
  expect(onclosed).toHaveBeenCalledExactlyOnceWith('gone', 'lost');
  expect(link.isOpen).toBe(false);
});
