// A lossy UDP network: packets to a port are delayed with jitter, and some are lost.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';

/** Deterministic random numbers. */
function dice(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Forwards packets to `port` and back with a one-way delay of `delayMs` ± `jitterMs` and a `loss` rate. */
export async function openBadLine(port, { delayMs, jitterMs, loss, seed = 1 }) {
  const random = dice(seed);
  const waiting = new Set();
  const counts = { passed: 0, lost: 0 };
  const later = (send) => {
    if (random() < loss) {
      counts.lost += 1;
      return;
    }
    counts.passed += 1;
    const timer = setTimeout(
      () => {
        waiting.delete(timer);
        send();
      },
      delayMs + (random() - 0.5) * jitterMs,
    );
    waiting.add(timer);
  };
  const face = createSocket('udp4').bind(0, '127.0.0.1');
  await once(face, 'listening');
  const behind = new Map();
  face.on('message', (packet, { port: client }) => {
    let socket = behind.get(client);
    if (!socket) {
      socket = createSocket('udp4');
      socket.on('message', (answer) => later(() => face.send(answer, client, '127.0.0.1')));
      behind.set(client, socket);
    }
    later(() => socket.send(packet, port, '127.0.0.1'));
  });
  return {
    port: face.address().port,
    counts,
    close() {
      for (const timer of waiting) clearTimeout(timer);
      face.close();
      for (const socket of behind.values()) socket.close();
    },
  };
}
