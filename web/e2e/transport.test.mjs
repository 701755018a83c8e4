// How a browser connects (NET-1): by WebTransport where it can, by WebSocket
// where that is missing or goes nowhere, and in both cases it walks.
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { launchBrowser } from './browser.mjs';
import { changeJoin, Player } from './player.mjs';
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
  const moments = await player.page.evaluate(() => window.__frolic.moments());
  await player.walk(1);
  await player.close();
  return moments;
}

test('WebTransport carries the game where the browser has it', async () => {
  const moments = await walksOver('webtransport');
  assert.equal(moments.fallback, undefined, 'nothing was given up');
});

test('a browser without WebTransport plays over WebSocket', () =>
  walksOver('websocket', (context) => context.addInitScript(() => delete window.WebTransport)));

test('where UDP goes nowhere, WebSocket takes over after a second', async (context) => {
  // A bound socket that never answers: what a firewall that drops UDP looks like.
  const silent = createSocket('udp4').bind(0, '127.0.0.1');
  await once(silent, 'listening');
  try {
    const moments = await walksOver('websocket', (page) =>
      changeJoin(page, (joined) => {
        joined.transports.webtransport.url = `https://127.0.0.1:${silent.address().port}/game`;
        return joined;
      }),
    );
    const waited = Math.round(moments.fallback - moments.connecting);
    context.diagnostic(`WebTransport was given up after ${waited} ms, and WebSocket was open ${Math.round(moments.connected - moments.fallback)} ms later`);
    // A second, and what a page that loads and draws in software is late with its timers.
    assert.ok(waited >= 900 && waited <= 2500, `WebTransport was given up after ${waited} ms`);
    assert.ok(moments.connected > moments.fallback, 'WebSocket opens after that');
  } finally {
    silent.close();
  }
});
