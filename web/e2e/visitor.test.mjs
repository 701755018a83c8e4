// A visitor of the store: rows, tags and search lead to a game; its page describes it, explains its rank,
// lists running worlds; a like counts once; everything works with the keyboard.
// Covers: web/src/routes, web/src/lib, crates/platform/src/catalog
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launchBrowser, openPage } from './browser.mjs';
import { look, WIDE } from './pages.mjs';
import { startServer } from './server.mjs';

let server;
let browser;
let games;
before(async () => {
  server = await startServer();
  browser = await launchBrowser();
  games = (await server.call('GET', '/api/games')).body.games;
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

test('the front page has rows and tags, and a tag leads to its games', async () => {
  const page = await openPage(browser, { viewport: WIDE });
  await page.goto(server.url);
  // A small catalogue is one row: a second would repeat the same games.
  await page.getByRole('heading', { level: 2, name: 'Games', exact: true }).waitFor();
  await page.locator('[data-game]').first().waitFor();
  assert.equal(await page.locator('[data-game]').count(), games.length, 'each game once');
  await look(page, 'home');
  const [tag] = games[0].tags;
  await page.getByRole('navigation', { name: 'Tags' }).getByText(tag, { exact: true }).click();
  await page.waitForURL(`**/search?tag=${tag}`);
  await page.locator(`[data-game="${games[0].id}"]`).waitFor();
  const shown = await page.locator('[data-game]').count();
  assert.equal(shown, games.filter((game) => game.tags.includes(tag)).length);
  assert.deepEqual(page.complaints, []);
  await page.context().close();
});

test('typing in the header searches, and the URL can be shared', async () => {
  const page = await openPage(browser, { viewport: WIDE });
  await page.goto(server.url);
  const field = page.getByRole('searchbox', { name: 'Search games' });
  await field.focus();
  await page.keyboard.type(games[0].name.slice(0, 4));
  await page.waitForURL('**/search?q=*');
  await page.keyboard.type(games[0].name.slice(4));
  await page.locator(`[data-game="${games[0].id}"]`).waitFor();
  await page.waitForURL(`**/search?${new URLSearchParams({ q: games[0].name })}`);
  assert.equal(await field.inputValue(), games[0].name);
  await look(page, 'search');
  await page.reload();
  await page.locator(`[data-game="${games[0].id}"]`).waitFor();
  assert.equal(await field.inputValue(), games[0].name);

  await field.fill('no such game anywhere');
  await page.getByText('No games found for').waitFor();
  await look(page, 'search-empty');
  await page.getByRole('link', { name: 'All games' }).click();
  await page.waitForURL('**/search');
  await page.locator(`[data-game="${games[0].id}"]`).waitFor();
  assert.equal(await field.inputValue(), '', 'the field follows the address');
  await page.goBack();
  await page.getByText('No games found for').waitFor();
  assert.deepEqual(page.complaints, []);
  await page.context().close();
});

test('a game page: a like counts once, the rank is explained, a running world can be joined', async () => {
  const joined = await server.join({ game_id: games[0].id });
  const page = await openPage(browser, { viewport: WIDE });
  await page.goto(`${server.url}/games/${games[0].id}`);
  const world = page.locator(`[data-world="${joined.world_id}"]`);
  await world.getByText(/\d+ ms/).waitFor();
  assert.match(await world.getByRole('link').getAttribute('href'), new RegExp(joined.world_id));
  await look(page, 'game');

  const like = page.locator('[data-like]');
  const before = (await server.call('GET', `/api/games/${games[0].id}`)).body.likes;
  // Shown optimistically; an immediate reload would lose it.
  await Promise.all([page.waitForResponse(/\/like$/), like.click()]);
  await page.waitForFunction(
    (count) => document.querySelector('[data-like]')?.textContent?.trim().startsWith(String(count)),
    before + 1,
  );
  assert.equal(await like.getAttribute('aria-pressed'), 'true');
  await page.reload();
  await page.locator('[data-like][aria-pressed=true]').waitFor();
  assert.equal((await server.call('GET', `/api/games/${games[0].id}`)).body.likes, before + 1);
  await like.click();
  await page.locator('[data-like][aria-pressed=false]').waitFor();

  await page.locator('[data-why]').click();
  const parts = page.locator('[data-ranking] li');
  await parts.first().waitFor();
  assert.ok((await parts.count()) >= 3, 'players, plays and likes are distinguishable');
  await look(page, 'game-why');
  await page.keyboard.press('Escape');
  await parts.first().waitFor({ state: 'detached' });
  assert.equal(
    await page.evaluate(() => document.activeElement?.hasAttribute('data-why')),
    true,
    'the focus comes back',
  );
  assert.deepEqual(page.complaints, []);
  await page.context().close();
});

test('keyboard only: skip the header, open a game, press Play', async () => {
  const page = await openPage(browser, { viewport: WIDE });
  await page.goto(`${server.url}/games/${games[0].id}`);
  await page.locator('[data-play]').waitFor();
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'Skip to content');
  await page.keyboard.press('Enter');
  for (let press = 0; press < 20; press++) {
    await page.keyboard.press('Tab');
    if (await page.evaluate(() => document.activeElement?.hasAttribute('data-play'))) break;
  }
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.equal(outline, 'solid', 'the focus is seen');
  assert.equal(await page.evaluate(() => document.activeElement?.hasAttribute('data-play')), true);
  await page.context().close();
});

test('without a server, pages report it and recover with a retry', async () => {
  const page = await openPage(browser, { viewport: WIDE });
  await page.route('**/api/games?*', (route) => route.abort());
  await page.goto(server.url);
  await page.getByText('We couldn’t load the games').waitFor();
  await look(page, 'home-failed');
  const asked = page.waitForRequest('**/api/games?*');
  await page.getByRole('button', { name: 'Try again' }).click();
  await asked;
  // Once the server is back, pages recover without a click.
  await page.unroute('**/api/games?*');
  await page.locator('[data-game]').first().waitFor();
  await page.context().close();
});

test('while a page chunk loads the frame is shown, and a failure says what to do', async () => {
  const page = await openPage(browser, { viewport: WIDE });
  const code = '**/assets/ApiPage-*.js';
  let release;
  const held = new Promise((resolve) => (release = resolve));
  await page.route(code, async (route) => {
    await held;
    await route.abort();
  });
  await page.goto(`${server.url}/docs/api`);
  await page.locator('main[aria-busy=true]').getByText('Loading the page').waitFor();
  await page.getByRole('searchbox', { name: 'Search games' }).waitFor();
  release();
  await page.getByRole('heading', { level: 1, name: 'Something went wrong' }).waitFor();
  await look(page, 'page-failed');
  await page.unroute(code);
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByRole('heading', { level: 1, name: 'Script reference' }).waitFor();
  await page.context().close();
});
