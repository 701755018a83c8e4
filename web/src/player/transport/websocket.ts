// WebSocket: every message, reliable or not, is one binary message.
import { ConnectError, type Transport, type TransportHandlers } from './transport';

const SUBPROTOCOL = 'frolic.v2.bin';
const OPEN_TIMEOUT_MS = 8000;

export function openWebSocket(url: string, handlers: TransportHandlers): Promise<Transport> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, SUBPROTOCOL);
    socket.binaryType = 'arraybuffer';
    let open = false;
    let closedByUs = false;
    const timer = setTimeout(() => socket.close(), OPEN_TIMEOUT_MS);

    const send = (bytes: Uint8Array) => {
      // Sending on a closing socket throws; the close event follows.
      if (socket.readyState === WebSocket.OPEN) socket.send(bytes as Uint8Array<ArrayBuffer>);
    };
    socket.onopen = () => {
      open = true;
      clearTimeout(timer);
      resolve({
        kind: 'websocket',
        sendReliable: send,
        sendDatagram: send,
        close: () => {
          closedByUs = true;
          socket.close(1000);
        },
      });
    };
    socket.onmessage = (event: MessageEvent<unknown>) => {
      if (event.data instanceof ArrayBuffer) handlers.packet(new Uint8Array(event.data));
    };
    socket.onclose = (event) => {
      clearTimeout(timer);
      if (!open) reject(new ConnectError('The world could not be reached by WebSocket.'));
      else if (!closedByUs) handlers.closed(event.reason || `connection closed (${event.code})`);
    };
  });
}
