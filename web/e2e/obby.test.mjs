// The sample game Sunny Steps in a real page: its scripts move a platform and
// send players that touch a kill brick back, and its HUD counts the falls. The
// layout is described in games/obby/README.md.
// Covers: games/obby, web/src/player
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launchBrowser } from './browser.mjs';
import { Player } from './player.mjs';
import { startServer } from './server.mjs';

const GAME = 'obby';
const MOVING_PLATFORM = 52;
const KILL_BRICK = [4.4, -10.2];

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

const shows = (player, text) => player.until((wanted) => window.__frolic.hudTexts().includes(wanted), text);
/** On a slow page the player may have fallen more than once. */
const hasFallen = (player) => player.until(() => window.__frolic.hudTexts().some((text) => /^Falls: [1-9]/.test(text)));

test('the kill brick sends the player back, and only their HUD counts the fall', async () => {
  const falls = await Player.enter(browser, server, { game: GAME });
  const stays = await Player.enter(browser, server, { game: GAME, world: await falls.read('worldId') });
  await shows(falls, 'Falls: 0');
  await shows(stays, 'Falls: 0');

  await falls.walkingTowards(KILL_BRICK, () => hasFallen(falls));
  await falls.until(() => {
    const [x, , z] = window.__frolic.position();
    return Math.hypot(x, z) < 3;
  });
  assert.ok((await stays.hudTexts()).includes('Falls: 0'));
  assert.deepEqual(falls.page.complaints, []);
  await Promise.all([falls.close(), stays.close()]);
});

test('the HUD is correct after a reload, without a new join', async () => {
  const player = await Player.enter(browser, server, { game: GAME });
  await shows(player, 'Falls: 0');
  await player.holding('KeyW', async () => {
    await player.until(() => window.__frolic.position()[2] < -5);
    await hasFallen(player);
  });
  const [falls] = (await player.hudTexts()).filter((text) => text.startsWith('Falls'));
  const id = await player.read('entityId');
  await player.page.reload();
  await player.ready(server);
  assert.equal(await player.read('entityId'), id, 'the same character');
  await shows(player, falls);
  await player.close();
});

test('a platform moved by a server script moves on screen', async () => {
  const player = await Player.enter(browser, server, { game: GAME });
  const at = (id) => window.__frolic.entities().find((entity) => entity.id === id)?.position[2];
  const start = await player.until(at, MOVING_PLATFORM);
  await player.until(
    ([id, z]) => Math.abs(window.__frolic.entities().find((entity) => entity.id === id)?.position[2] - z) > 1,
    [MOVING_PLATFORM, start],
  );
  await player.close();
});
