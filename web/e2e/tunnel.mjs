// A TCP tunnel to a server: what a client sees that reaches the platform
// through one forwarded port only. The test can cut it, as a bad network would.
import { once } from 'node:events';
import { connect, createServer } from 'node:net';

/** @param {string} target the server's address, `http://host:port` */
export async function openTunnel(target) {
  const { hostname, port } = new URL(target);
  const sockets = new Set();
  let silent = false;
  const listener = createServer((near) => {
    const far = connect(Number(port), hostname);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ]) {
      sockets.add(from);
      from.pipe(to);
      if (silent) from.pause();
      from.on('error', () => undefined);
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
    }
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const cut = () => sockets.forEach((socket) => socket.resetAndDestroy());
  return {
    url: `http://127.0.0.1:${listener.address().port}`,
    /** Pauses or resumes forwarding, without closing connections. */
    silence(on) {
      silent = on;
      for (const socket of sockets)
        if (on) socket.pause();
        else socket.resume();
    },
    /** Closes every connection abruptly. New ones are accepted. */
    cut,
    close() {
      cut();
      listener.close();
    },
  };
}
