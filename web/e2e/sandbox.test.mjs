// The sample game Block Meadow in real pages: what one player digs another sees, on a phone too, and a third-party JSON
// client edits and reads the same terrain. The layout is described in games/sandbox/README.md.
// Covers: games/sandbox, crates/terrain, crates/world/src/terrain, web/src/player/terrain
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launchBrowser, picture } from './browser.mjs';
import { JsonClient } from './json-client.mjs';
import { Player } from './player.mjs';
import { startServer } from './server.mjs';

const GAME = 'sandbox';
const PHONE = { width: 390, height: 700 };

let server;
let browser;
before(async () => {
  server = await startServer();
  browser = await launchBrowser();
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

const drawn = (player, count = 20) => player.until((wanted) => window.__frolic.ground.chunks >= wanted, count);

/**
 * Walks out of the protected centre to the open meadow in the south. Stopping there leaves the player early in the block at 8:
 * players that stopped late in it sometimes could not build in front of their feet, probably because they were in the way.
 */
async function toTheMeadow(player, x = 0.5) {
  await player.walkingTowards([x, 14], () => player.until(() => window.__frolic.position()[2] > 7.8));
  await player.until(() => Math.hypot(...window.__frolic.entities().find((entity) => entity.own).velocity) < 0.1);
}

/** Down and ahead: a block near the feet, but not overlapping the player. */
const lookDown = (player) => player.page.evaluate(() => window.__frolic.look(Math.PI, -0.8));

test('a player sees what another digs and builds', async () => {
  const ada = await Player.enter(browser, server, { game: GAME });
  const bob = await Player.enter(browser, server, { game: GAME, world: await ada.read('worldId') });
  await Promise.all([drawn(ada), drawn(bob)]);
  await picture(bob.page, 'sandbox-spawn');
  await toTheMeadow(ada);
  await lookDown(ada);
  const { width, height } = ada.page.viewportSize();
  await ada.page.mouse.move(width / 2, height / 2);
  const [x, , z] = await ada.position();
  // The blocks in front of Ada in Bob's page.
  const before = await watch(bob, [Math.floor(x) + 0.5, Math.floor(z) + 0.5]);
  await ada.page.mouse.down();
  await bob.until((start) => window.__look() !== start, before);
  await ada.page.mouse.up();
  await picture(ada.page, 'sandbox-dig');
  const hole = await settled(bob);
  await ada.page.mouse.down({ button: 'right' });
  await bob.until((start) => window.__look() !== start, hole);
  await ada.page.mouse.up({ button: 'right' });
  assert.match(await settled(bob), /planks/, 'the material that was chosen');
  assert.deepEqual(ada.page.complaints, []);
  assert.deepEqual(bob.page.complaints, []);
  await Promise.all([ada.close(), bob.close()]);
});

/** Reads the blocks around a position from a page. */
function watch(player, [x, z]) {
  return player.page.evaluate(
    ([x, z]) => {
      const places = [];
      for (let dx = -2; dx <= 2; dx++)
        for (let dy = -3; dy <= 2; dy++) for (let dz = 0; dz <= 7; dz++) places.push([x + dx, 9.5 + dy, z + dz]);
      window.__look = () => places.map((place) => window.__frolic.ground.block(...place)).join();
      return window.__look();
    },
    [x, z],
  );
}

/** A held button repeats: waits until the blocks are stable and returns them. */
async function settled(player) {
  return player.until(() => {
    const now = window.__look();
    if (now !== window.__last?.seen) window.__last = { seen: now, at: performance.now() };
    return performance.now() - window.__last.at > 500 && now;
  });
}

test('the game explains how to dig, and why a protected area cannot be changed', async () => {
  const player = await Player.enter(browser, server, { game: GAME });
  await drawn(player);
  await player.until(() => window.__frolic.hudTexts().some((text) => text.includes('Left mouse button digs')));
  await lookDown(player);
  const { width, height } = player.page.viewportSize();
  await player.page.mouse.move(width / 2, height / 2);
  await player.page.mouse.down();
  await player.until(() => window.__frolic.hudTexts().some((text) => text.includes('protected')));
  await player.page.mouse.up();
  assert.deepEqual(player.page.complaints, []);
  await player.close();
});

test('characters swim in a lake', { timeout: 120_000 }, async () => {
  const player = await Player.enter(browser, server, { game: GAME });
  await drawn(player);
  await player.walkingTowards([48, 0.5], () =>
    player.until(() => window.__frolic.position()[0] > 44, undefined, 60_000),
  );
  // Afloat: the surface is at y = 5.
  await player.until(() => {
    const [, y] = window.__frolic.position();
    return (
      y > 3.4 &&
      y < 4.2 &&
      window.__frolic.ground.block(window.__frolic.position()[0], y + 0.9, window.__frolic.position()[2]) === 'water'
    );
  });
  await picture(player.page, 'sandbox-swimming');
  await player.close();
});

test("an edit reaches another player's page", async () => {
  // A small viewport, so that software rendering does not dominate.
  const bob = await Player.enter(browser, server, { game: GAME, viewport: { width: 160, height: 90 } });
  await drawn(bob);
  const { server_address: address, ticket } = await server.join({ world_id: await bob.read('worldId') });
  const ada = await JsonClient.open(address, { ticket });
  await ada.next('snapshot');
  const place = [0.5, 13.5, 6.5];
  const delays = [];
  for (let round = 0; round < 10; round++) {
    const op = round % 2 === 0 ? 'add' : 'subtract';
    const seen = bob.page.evaluate(
      ([place, before]) =>
        new Promise((resolve) => {
          const timer = setInterval(() => {
            if (window.__frolic.ground.block(...place) === before) return;
            clearInterval(timer);
            resolve(Date.now());
          }, 2);
        }),
      [place, round % 2 === 0 ? '' : 'brick'],
    );
    // The page observes from here on.
    await bob.page.evaluate(() => 0);
    const sent = Date.now();
    ada.send('terrain', 'op', { op, center: place, size: [1, 1, 1], material: 'brick' });
    delays.push((await seen) - sent);
    await ada.next((message) => message.feature === 'terrain' && message.action === 'applied');
  }
  console.info(`edits were seen after ${delays.join(', ')} ms`);
  await ada.close();
  await bob.close();
});

test('a phone has the tools as buttons, and the bar fits', async () => {
  const player = await Player.enter(browser, server, { game: GAME, viewport: PHONE, touch: true });
  await drawn(player);
  await toTheMeadow(player, 3.5);
  await lookDown(player);
  for (const name of ['Dig', 'Build']) {
    const box = await player.page.getByRole('button', { name, exact: true }).boundingBox();
    assert.ok(
      box && box.x >= 0 && box.x + box.width <= PHONE.width && box.y + box.height <= PHONE.height,
      `${name} is on the screen`,
    );
  }
  for (const name of ['1', '9']) {
    const box = await player.page.getByRole('button', { name, exact: true }).boundingBox();
    assert.ok(box && box.x >= 0 && box.x + box.width <= PHONE.width, `slot ${name} is on the screen`);
  }
  const before = await player.page.evaluate(() => window.__frolic.ground.drawnAt);
  const session = await player.page.context().newCDPSession(player.page);
  const { x, y, width, height } = await player.page.getByRole('button', { name: 'Dig', exact: true }).boundingBox();
  const points = [{ x: x + width / 2, y: y + height / 2 }];
  await session.send('Input.dispatchTouchEvent', { type: 'touchStart', touchPoints: points });
  await player.until((at) => window.__frolic.ground.drawnAt > at, before);
  await session.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] });
  await picture(player.page, 'sandbox-phone');
  assert.deepEqual(player.page.complaints, []);
  await player.close();
});

test('a third-party client edits and reads terrain in JSON, within the rules', async () => {
  const { server_address: address, ticket } = await server.join({ game_id: GAME });
  const client = await JsonClient.open(address, { ticket });
  const full = await client.next('snapshot');
  assert.ok(Array.isArray(full.features.voxel.versions));
  const answer = (seq) => client.next((message) => message.seq === seq, `the answer to ${seq}`);

  const op = (center, more = {}) =>
    client.send('terrain', 'op', { op: 'add', center, size: [1, 1, 1], material: 'brick', ...more });
  assert.equal((await answer(op([2.5, 10.5, 0.5]))).code, 'protected');
  assert.equal((await answer(op([60, 10.5, 0.5]))).code, 'out_of_reach');
  assert.equal((await answer(op([0.5, 12, 6.5], { size: undefined, radius: 50 }))).code, 'too_large');
  assert.equal((await answer(op([0.5, 12, 6.5], { material: 'gold' }))).code, 'unknown_material');
  const place = [0.5, 12.5, 6.5];
  assert.equal((await answer(op(place))).kind, 'ack');
  const applied = await client.next((message) => message.feature === 'terrain' && message.action === 'applied');
  assert.deepEqual(applied.center, place);
  assert.equal(applied.chunks.length, 1);
  const { x, y, z, version } = applied.chunks[0];
  assert.equal((await answer(client.send('terrain', 'chunk', { x, y, z }))).kind, 'ack');
  const chunk = await client.next((message) => message.feature === 'terrain' && message.action === 'chunk');
  assert.deepEqual([chunk.x, chunk.y, chunk.z], [x, y, z]);
  assert.ok(chunk.version >= version && chunk.data.length > 0);
  assert.equal((await answer(client.send('terrain', 'chunk', { x: 999, y: 0, z: 0 }))).code, 'no_such_chunk');
  const listed = await client.next(
    (message) =>
      message.kind === 'snapshot' &&
      message.features.voxel?.versions.some((at) => at.x === x && at.y === y && at.z === z),
  );
  assert.ok(listed);
  await client.close();
});
