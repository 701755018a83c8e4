// Worlds of one's own, in a browser: made, named, hidden, played in by a friend with the link, saved, set back under
// players who come back by themselves, and deleted. A full world shows its queue.
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { launchBrowser, openPage } from './browser.mjs';
import { Player } from './player.mjs';
import { publish } from './publish.mjs';
import { startServer } from './server.mjs';

/** A game in which one person fits into a world. */
const DUEL = {
  'game.toml': '[game]\nid = "duel"\nname = "Duel of one"\nversion = "1.0.0"\nmax_players = 1\n',
  'scene.json': JSON.stringify({
    format: 1,
    prefabs: {},
    entities: [
      { id: 1, name: 'Spawn', components: { Transform: { position: [0, 1, 0] }, SpawnPoint: {} } },
      { id: 2, name: 'Floor', components: { Transform: { position: [0, -0.5, 0] }, Shape: { type: 'box', size: [20, 1, 20] } } },
    ],
  }),
};
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

async function shot(page, name) {
  const folder = process.env.SCREENSHOTS;
  if (!folder) return;
  await mkdir(folder, { recursive: true });
  for (const scheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.evaluate((dark) => document.documentElement.setAttribute('data-theme', dark ? 'dark' : 'light'), scheme === 'dark');
    for (const [width, height] of [[1280, 800], [390, 844]]) {
      await page.setViewportSize({ width, height });
      await page.screenshot({ path: path.join(folder, `${name}-${scheme}-${width}.png`) });
    }
  }
  await page.evaluate(() => document.documentElement.removeAttribute('data-theme'));
  await page.setViewportSize({ width: 1280, height: 800 });
}

test('a world is made, hidden, shared, saved, set back and deleted', async () => {
  const page = await openPage(browser, { viewport: { width: 1280, height: 800 } });
  await page.goto(`${server.url}/my/worlds`);
  await page.getByText('You have no world yet').waitFor();
  await shot(page, 'worlds-empty');

  await page.getByRole('button', { name: 'New world' }).click();
  await page.getByLabel('Name').fill('Our <b>island</b>');
  await page.getByLabel('Game').selectOption('sandbox');
  await page.getByLabel('Description').fill('Bring a shovel.');
  await page.getByLabel('Private').check();
  await shot(page, 'worlds-new');
  await page.getByRole('button', { name: 'Make it' }).click();
  const card = page.locator('[data-world]');
  await card.getByText('Our <b>island</b>').waitFor();
  await card.getByText('private').waitFor();
  await shot(page, 'worlds-list');
  const worldId = await card.getAttribute('data-world');
  assert.deepEqual((await server.call('GET', '/worlds')).body.worlds, [], 'nobody else sees it');
  assert.equal((await server.call('GET', `/world/${worldId}`)).status, 404);

  // A friend with the link comes in; one with the id does not.
  const link = await card.getByRole('link', { name: /Play in/ }).getAttribute('href');
  const room = new URL(link, server.url).searchParams.get('room');
  const friend = await Player.enter(browser, server, { game: 'sandbox', query: { room } });
  assert.equal(await friend.read('worldId'), worldId);
  const guest = (await server.call('POST', '/login', { body: {} })).body;
  const refused = await server.call('POST', '/join', { token: guest.session_token, body: { world_id: worldId } });
  assert.equal(refused.status, 404);

  // Saved, and set back with the friend inside, who comes back by himself.
  await page.reload();
  await card.getByText('1 player').waitFor({ timeout: 30_000 }).catch(() => undefined);
  await card.getByRole('button', { name: /More about/ }).click();
  await shot(page, 'worlds-menu');
  await page.getByRole('menuitem', { name: 'Saves' }).click();
  await page.getByLabel('Name of the save').fill('Before the party');
  await page.getByRole('button', { name: 'Save now' }).click();
  await page.locator('[data-save]').waitFor();
  await shot(page, 'worlds-saves');
  await page.getByRole('button', { name: 'Go back' }).click();
  await page.locator('[data-confirm]').click();
  await friend.until(() => window.__frolic.phase === 'reconnecting');
  await page.getByText('Before going back').waitFor();
  await friend.until(() => window.__frolic.ready && window.__frolic.phase === 'playing' && window.__frolic.position() !== null);
  assert.equal(await friend.read('worldId'), worldId);

  // Gone, and the friend is told so.
  await page.keyboard.press('Escape');
  await card.getByRole('button', { name: /More about/ }).click();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  await page.locator('[data-confirm]').click();
  await page.getByText('You have no world yet').waitFor();
  await friend.page.getByText('This world is gone').waitFor();
  assert.deepEqual(page.complaints, []);
  await Promise.all([friend.close(), page.context().close()]);
});

test('a full world shows the queue, and lets the next one in', async () => {
  await publish(server, DUEL);
  const first = await Player.enter(browser, server, { game: 'duel' });
  const room = await first.read('roomCode');
  const page = await openPage(browser, { viewport: { width: 1280, height: 800 } });
  await page.goto(`${server.url}/play/duel?gfx=low&room=${room}`);
  await page.getByText('The world is full: you are next').waitFor();
  await shot(page, 'worlds-queue');
  await first.close();
  await new Player(page).ready(server);
  await page.context().close();
});
