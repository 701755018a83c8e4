// How a browser connects (NET-1): by WebTransport where it can, by WebSocket
// where that is missing or goes nowhere, and in both cases it walks.
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { launchBrowser } from './browser.mjs';
import { Player } from './player.mjs';
import { startServer } from './server.mjs';

let server;
let browser;
let game;
before(async () => {
  server = await startServer();
  browser = await launchBrowser();
  game = 'obby';
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

async function walksOver(transport, prepare) {
  const player = await Player.enter(browser, server, { game, prepare });
  assert.equal(await player.read('transport'), transport);
  await player.walk(1);
  await player.close();
}

test('WebTransport carries the game where the browser has it', () => walksOver('webtransport'));

test('a browser without WebTransport plays over WebSocket', () =>
  walksOver('websocket', (context) => context.addInitScript(() => delete window.WebTransport)));

test('where UDP goes nowhere, WebSocket takes over', async () => {
  // A bound socket that never answers: what a firewall that drops UDP looks like.
  const silent = createSocket('udp4').bind(0, '127.0.0.1');
  await once(silent, 'listening');
  try {
    await walksOver('websocket', (context) =>
      context.route('**/join', async (route) => {
        const response = await route.fetch();
        const joined = await response.json();
        joined.transports.webtransport.url = `https://127.0.0.1:${silent.address().port}/game`;
        await route.fulfill({ response, json: joined });
      }),
    );
  } finally {
    silent.close();
  }
});
