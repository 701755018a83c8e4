// TLS by configuration: a browser plays on a platform that speaks https itself. The room's WebSocket goes
// through the platform's certificate, WebTransport straight to the game server with the certificate it made for itself.
// Covers: crates/platform/src/core/tls.rs, crates/gameserver/src/transport
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { launchBrowser } from './browser.mjs';
import { Player } from './player.mjs';
import { startServer } from './server.mjs';

// The certificate of this test is not trusted, in Node or in the browser.
process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';

let folder;
let server;
let browser;
before(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'frolic-tls-'));
  const [cert, key] = ['cert.pem', 'key.pem'].map((name) => path.join(folder, name));
  execFileSync(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'],
      ...['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'],
      ...['-keyout', key, '-out', cert],
    ],
    { stdio: 'pipe' },
  );
  server = await startServer({ TLS_CERT: cert, TLS_KEY: key });
  browser = withoutQuestions(await launchBrowser());
});
after(async () => {
  await browser?.close();
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
});

/** A browser whose pages take any certificate, as after a click on "proceed anyway". */
function withoutQuestions(launched) {
  return {
    newContext: (options) => launched.newContext({ ...options, ignoreHTTPSErrors: true }),
    close: () => launched.close(),
  };
}

async function walksOver(transport, prepare) {
  const sockets = [];
  const player = await Player.enter(browser, server, {
    game: 'obby',
    async prepare(context) {
      context.on('page', (page) => page.on('websocket', (socket) => sockets.push(socket.url())));
      await prepare?.(context);
    },
  });
  assert.equal(await player.read('transport'), transport);
  await player.walk(1);
  const room = await player.read('roomCode');
  await player.close();
  return { sockets, room };
}

test('over https WebTransport reaches the game server by the hash of its certificate', async () => {
  assert.match(server.url, /^https:/);
  await walksOver('webtransport');
});

test('over https a browser without WebTransport plays through the room, encrypted', async () => {
  const { sockets, room } = await walksOver('websocket', (context) =>
    context.addInitScript(() => delete window.WebTransport),
  );
  assert.deepEqual(sockets, [`${server.url.replace('https', 'wss')}/api/rooms/${room}/ws`]);
});

test('plain http on the same port redirects to https', async () => {
  const answer = await fetch(`${server.url.replace('https', 'http')}/play/obby`, { redirect: 'manual' });
  assert.equal(answer.status, 307);
  assert.equal(answer.headers.get('location'), `${server.url}/play/obby`);
});
