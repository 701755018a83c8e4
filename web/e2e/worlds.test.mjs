// A user's worlds in a browser: created, named, hidden, joined by a friend with the link, saved, restored under
// players who reconnect automatically, and deleted. A full world shows its queue.
// Covers: web/src/routes/worlds, crates/platform/src/worlds, crates/platform/src/fleet
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launchBrowser, openPage, picture } from './browser.mjs';
import { look, PHONE, WIDE } from './pages.mjs';
import { Player } from './player.mjs';
import { publish } from './publish.mjs';
import { startServer } from './server.mjs';

/** A game with one player per world. */
const DUEL = {
  'game.toml': '[game]\nid = "duel"\nname = "Duel of one"\nversion = "1.0.0"\nmax_players = 1\n',
  'scene.json': JSON.stringify({
    format: 1,
    prefabs: {},
    entities: [
      { id: 1, name: 'Spawn', components: { Transform: { position: [0, 1, 0] }, SpawnPoint: {} } },
      {
        id: 2,
        name: 'Floor',
        components: { Transform: { position: [0, -0.5, 0] }, Shape: { type: 'box', size: [20, 1, 20] } },
      },
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

test('a world is created, hidden, shared, saved, restored and deleted', async () => {
  const page = await openPage(browser, { viewport: WIDE });
  await page.goto(`${server.url}/my/worlds`);
  await page.getByText('You don’t have a world yet').waitFor();
  await look(page, 'worlds-empty');

  await page.getByRole('button', { name: 'New world' }).click();
  await page.getByRole('textbox', { name: 'Name', exact: true }).fill('Our <b>island</b>');
  await page.getByRole('combobox', { name: 'Game', exact: true }).selectOption('sandbox');
  await page.getByRole('textbox', { name: 'Description' }).fill('Bring a shovel.');
  await page.getByRole('switch', { name: 'Private' }).check();
  await look(page, 'worlds-new');
  await page.getByRole('button', { name: 'Create world' }).click();
  const card = page.locator('[data-world]');
  await card.getByText('Our <b>island</b>').waitFor();
  await card.getByText('private').waitFor();
  await look(page, 'worlds-list');
  const worldId = await card.getAttribute('data-world');
  assert.deepEqual((await server.call('GET', '/worlds')).body.worlds, [], 'no other user sees it');
  assert.equal((await server.call('GET', `/world/${worldId}`)).status, 404);

  // A friend with the link can join; one with the id cannot.
  const link = await card.getByRole('link', { name: /Play in/ }).getAttribute('href');
  const room = new URL(link, server.url).searchParams.get('room');
  const friend = await Player.enter(browser, server, { game: 'sandbox', query: { room } });
  assert.equal(await friend.read('worldId'), worldId);
  const guest = (await server.call('POST', '/login', { body: {} })).body;
  const refused = await server.call('POST', '/join', { token: guest.session_token, body: { world_id: worldId } });
  assert.equal(refused.status, 404);

  // Saved and restored with the friend inside, who reconnects automatically.
  await page.reload();
  await card.getByRole('button', { name: /More about/ }).click();
  await look(page, 'worlds-menu');
  await page.getByRole('menuitem', { name: 'Saves' }).click();
  await page.getByLabel('Save name').fill('Before the party');
  await page.getByRole('button', { name: 'Save now' }).click();
  await page.locator('[data-save]').waitFor();
  await look(page, 'worlds-saves');
  await page.getByRole('button', { name: 'Restore' }).click();
  await page.locator('[data-confirm]').click();
  await friend.until(() => window.__frolic.phase === 'reconnecting');
  await page.getByText('Before restoring').waitFor();
  await friend.until(
    () => window.__frolic.ready && window.__frolic.phase === 'playing' && window.__frolic.position() !== null,
  );
  assert.equal(await friend.read('worldId'), worldId);

  // Deleted, and the friend is notified.
  await page.keyboard.press('Escape');
  await card.getByRole('button', { name: /More about/ }).click();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  await page.locator('[data-confirm]').click();
  await page.getByText('You don’t have a world yet').waitFor();
  await friend.page.getByText('This world no longer exists').waitFor();
  assert.deepEqual(page.complaints, []);
  await Promise.all([friend.close(), page.context().close()]);
});

test('a full world shows the queue and admits the next player', async () => {
  await publish(server, DUEL);
  const first = await Player.enter(browser, server, { game: 'duel' });
  const room = await first.read('roomCode');
  const page = await openPage(browser, { viewport: WIDE });
  await page.goto(`${server.url}/play/duel?gfx=low&room=${room}`);
  await page.getByText('The world is full: you are next').waitFor();
  for (const [name, viewport] of Object.entries({ wide: WIDE, phone: PHONE })) {
    await page.setViewportSize(viewport);
    await picture(page, `worlds-queue-${name}`);
  }
  // Closing the tab reserves the seat for a minute; leaving frees it.
  await first.page.keyboard.press('Escape');
  await first.page.getByRole('link', { name: 'Leave' }).click();
  await new Player(page).ready(server);
  await Promise.all([first.close(), page.context().close()]);
});
