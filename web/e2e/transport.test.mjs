// How a browser connects: by WebTransport if possible, by WebSocket
// if that is missing or blocked; both can play.
// Covers: crates/gameserver/src/transport, crates/client, web/src/player/transport
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { openBadLine } from './lossy-network.mjs';
import { launchBrowser, openPage } from './browser.mjs';
import { JsonClient, Replica } from './json-client.mjs';
import { changeJoin, Player } from './player.mjs';
import { startServer } from './server.mjs';
import { openTunnel } from './tunnel.mjs';

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

test('WebTransport is used where the browser supports it', async () => {
  const moments = await walksOver('webtransport');
  assert.equal(moments.fallback, undefined, 'nothing was given up');
});

test('a browser without WebTransport plays over WebSocket', () =>
  walksOver('websocket', (context) => context.addInitScript(() => delete window.WebTransport)));

test('where UDP is blocked, WebSocket takes over after a second', async (context) => {
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
    context.diagnostic(
      `WebTransport was given up after ${waited} ms, and WebSocket was open ${Math.round(moments.connected - moments.fallback)} ms later`,
    );
    // One second, plus the timer delay of a page with software rendering.
    assert.ok(waited >= 900 && waited <= 2500, `WebTransport was given up after ${waited} ms`);
    assert.ok(moments.connected > moments.fallback, 'WebSocket opens after that');
  } finally {
    silent.close();
  }
});

test('a silent connection is detected within seconds, prediction stops, and play continues when it is back', async () => {
  const tunnel = await openTunnel(server.url);
  try {
    const player = await Player.enter(browser, { ...server, url: tunnel.url }, { game: 'sandbox' });
    await player.walk(0.5);
    await player.page.keyboard.down('KeyW');
    tunnel.silence(true);
    await player.page.getByText('Connection problem…').waitFor();
    const stopped = await player.position();
    // Long before the connection is closed.
    assert.equal(await player.read('phase'), 'playing');
    // As long as the detection took: with prediction running that would be many metres.
    const drawn = () =>
      player.page.evaluate(
        () =>
          new Promise((resolve) => {
            const until = performance.now() + 2000;
            const frame = () => (performance.now() > until ? resolve() : requestAnimationFrame(frame));
            frame();
          }),
      );
    await drawn();
    assert.deepEqual(await player.position(), stopped, 'it walks alone');
    tunnel.silence(false);
    await player.until(() => !window.__frolic.stalled && window.__frolic.phase === 'playing');
    await player.page.getByText('Connection problem…').waitFor({ state: 'detached' });
    await player.page.keyboard.up('KeyW');
    await player.walk(1, 'KeyS');
    await player.close();
  } finally {
    tunnel.close();
  }
});

/** The handshake of a page with version 2 of the binary protocol. */
function asOldPage(packet) {
  const bytes = Buffer.from(packet);
  const handshake = bytes.findIndex((byte) => byte < 0x80) + 1;
  assert.equal(bytes[handshake], 0, 'the first message is a handshake');
  bytes[handshake + 1] = 2;
  return bytes;
}

test('an outdated page reloads once, then says what to do', async () => {
  const page = await openPage(browser, {
    prepare: (context) =>
      context.routeWebSocket(/\/ws/, (socket) => {
        const world = socket.connectToServer();
        let pass = (packet) => {
          pass = (next) => next;
          return asOldPage(packet);
        };
        socket.onMessage((packet) => world.send(pass(packet)));
      }),
  });
  let loads = 0;
  const loadedAgain = new Promise((resolve) => page.on('load', () => ++loads === 2 && resolve()));
  await page.goto(`${server.url}/play/${game}?gfx=low&transport=ws`);
  await loadedAgain;
  await page.getByText('This page is out of date').waitFor();
  await page.getByRole('button', { name: 'Reload the page' }).waitFor();
  assert.equal(loads, 2);
  await page.context().close();
});

test('with 200 ms, 5 % loss and 30 ms jitter input is immediate, and positions agree', async (context) => {
  let line;
  const prepare = (page) =>
    changeJoin(page, async (joined) => {
      const url = new URL(joined.transports.webtransport.url);
      line ??= await openBadLine(Number(url.port), { delayMs: 100, jitterMs: 30, loss: 0.05 });
      url.port = String(line.port);
      joined.transports.webtransport.url = url.href;
      return joined;
    });
  try {
    // Forced: a connection that loses the first packets opens late, and the page would otherwise fall back.
    const player = await Player.enter(browser, server, { game: 'sandbox', prepare, query: { transport: 'wt' } });
    assert.equal(await player.read('transport'), 'webtransport');
    const stats = () => player.page.evaluate(() => window.__frolic.stats());
    await player.holding('KeyW', async () => {
      await player.untilMoved(3);
      const before = await stats();
      await player.untilMoved(12);
      // Pings and pongs are datagrams, and the first of them may be lost.
      await player.until(() => window.__frolic.stats().rttMs !== undefined);
      const now = await stats();
      // Software rendering stalls the page at times, independent of the network: corrections during the walk
      // are tested in the simulator (crates/world/tests/simulation/feel.rs).
      const corrected = now.corrections - before.corrections;
      context.diagnostic(
        `rtt ${Math.round(now.rttMs)} ms, ${line.counts.lost} of ${line.counts.lost + line.counts.passed} packets lost, ${corrected} corrections`,
      );
      assert.ok(line.counts.lost > 5, 'the network lost packets');
      assert.ok(now.rttMs > 150, `a round trip of ${now.rttMs} ms`);
      // Input is applied before the server acknowledges it. A stalled page receives many acknowledgements at once, so
      // one sample proves nothing.
      await player.until(() => window.__frolic.stats().pendingInputs > 6);
    });
    const { server_address: address, ticket } = await server.join({ world_id: await player.read('worldId') });
    const witness = await JsonClient.open(address, { ticket });
    const id = await player.read('entityId');
    const seen = new Replica();
    const stands = ({ v }) => v.every((speed) => speed === 0);
    await seen.until(witness, ({ entities }) => entities.has(id) && stands(entities.get(id)), 'the character stands');
    await player.until(([x, , z]) => {
      const [ownX, , ownZ] = window.__frolic.position();
      return Math.hypot(ownX - x, ownZ - z) < 0.02;
    }, seen.entities.get(id).p);
    assert.deepEqual(player.page.complaints, []);
    await player.close();
  } finally {
    line?.close();
  }
});
