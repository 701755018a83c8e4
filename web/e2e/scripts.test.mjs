// Delivery of the sample game's scripts: fetched from /cdn, cached for the next visit,
// and refused when they were tampered with.
// Covers: crates/gameserver/src/scripts, crates/platform/src/worlds/scripts.rs, crates/client, web/src/player
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launchBrowser } from './browser.mjs';
import { changeJoin, Player } from './player.mjs';
import { startServer } from './server.mjs';

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

const showsHud = (player) => player.until(() => window.__frolic.hudTexts().includes('Falls: 0'));

/** In the page: waits until fetched scripts are in the cache. */
async function scriptsAreCached() {
  const settled = (request) =>
    new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  const database = await settled(indexedDB.open('frolic-scripts'));
  const count = () => settled(database.transaction('bytecode').objectStore('bytecode').count());
  for (let last = -1, now = await count(); now !== last || now === 0; [last, now] = [now, await count()]) {
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
  database.close();
}

test('scripts are fetched from /cdn once, and the second visit costs under 2 KB', async () => {
  const fetched = [];
  const prepare = (context) =>
    void context.on('request', (request) => {
      if (new URL(request.url()).pathname.startsWith('/cdn/')) fetched.push(request.url());
    });
  const player = await Player.enter(browser, server, { game: 'obby', prepare });
  await showsHud(player);
  assert.ok(fetched.length > 0, 'the first visit fetches from /cdn');
  await player.page.evaluate(scriptsAreCached);
  fetched.length = 0;
  await player.page.goto('about:blank');
  await player.page.goto(`${server.url}/play/obby?gfx=low`);
  await player.ready(server);
  await showsHud(player);
  const bytes = await player.page.evaluate(() => window.__frolic.stats().scriptBytes);
  console.info(`script bytes of the second visit: ${bytes}`);
  assert.ok(bytes > 0 && bytes < 2000, `${bytes}`);
  assert.deepEqual(fetched, []);
  await player.close();
});

test('tampered content is refused and fetched from the world instead', async () => {
  const tampered = [];
  const said = [];
  const prepare = async (context) => {
    context.on('console', (message) => said.push(message.text()));
    await context.route('**/cdn/*', (route) => {
      tampered.push(route.request().url());
      return route.fulfill({ body: 'not what was signed' });
    });
  };
  const player = await Player.enter(browser, server, { game: 'obby', prepare });
  await showsHud(player);
  assert.ok(tampered.length > 0, 'the page asks /cdn first');
  const refusals = said.filter((text) => text.includes('not what was signed. Asking the world'));
  // Not equal: optional scripts are fetched while the game runs.
  assert.ok(
    refusals.length > 0 && refusals.length <= tampered.length,
    `${refusals.length} refusals of ${tampered.length} answers:\n${said.join('\n')}`,
  );
  assert.deepEqual(player.page.complaints, []);
  await player.close();
});

test('a list signed by another platform is refused, and none of its scripts runs', async () => {
  const warnings = [];
  const prepare = async (context) => {
    context.on('console', (message) => warnings.push(message.text()));
    await changeJoin(context, (joined) => ({ ...joined, script_key: 'ab'.repeat(32) }));
  };
  const player = await Player.enter(browser, server, { game: 'obby', prepare });
  await player.until(() => window.__frolic.stats().snapshots > 20);
  assert.ok(
    warnings.some((text) => text.includes('did not sign')),
    warnings.join('\n'),
  );
  assert.deepEqual(await player.hudTexts(), []);
  await player.close();
});
