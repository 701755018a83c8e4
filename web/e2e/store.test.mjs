// The store: the sample games are there on an empty installation, look right
// at any width, and every dead end says what to do next.
// Covers: web/src/routes, web/src/lib, crates/platform/src/store
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launchBrowser, openPage } from './browser.mjs';
import { Player } from './player.mjs';
import { startServer } from './server.mjs';

let server;
let browser;
let sample;
before(async () => {
  server = await startServer();
  browser = await launchBrowser();
  const listing = await server.call('GET', '/api/games');
  sample = listing.body.games[0];
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

test('the first page shows the sample game as a card that leads to its page', async () => {
  const page = await openPage(browser);
  await page.goto(server.url);
  const card = page.locator(`[data-game="${sample.id}"]`).first();
  await card.waitFor();
  const text = await card.innerText();
  assert.ok(text.includes(sample.name), text);
  assert.ok(text.includes(sample.creator), text);

  await card.click();
  await page.waitForURL(`**/games/${sample.id}`);
  await page.getByRole('heading', { level: 1, name: sample.name }).waitFor();
  assert.equal(await page.locator('[data-play]').getAttribute('href'), `/play/${sample.id}`);
  assert.deepEqual(page.complaints, []);
  await page.context().close();
});

test('a card shows the picture of its game and how many play it', async () => {
  const player = await Player.enter(browser, server, { game: sample.id });
  const page = await openPage(browser);
  const card = page.locator(`[data-game="${sample.id}"]`).first();
  // A world tells how many are in it with its heartbeats, and the store counts them every few seconds; who left
  // just before may still be counted, and then not be. A page shows what was counted when it was opened.
  const deadline = Date.now() + 30_000;
  let players = '';
  while (!/^1\s*player now$/.test(players) && Date.now() < deadline) {
    await page.goto(server.url);
    players = await card.locator('.players').innerText();
  }
  assert.match(players, /^1\s*player now$/);
  assert.equal(await card.locator('.players.live .dot').count(), 1, 'the dot is lit');
  const width = await card.locator('img').evaluate(async (image) => {
    await image.decode();
    return image.naturalWidth;
  });
  assert.ok(width > 0, 'the thumbnail is drawn');
  assert.deepEqual(page.complaints, []);
  await Promise.all([page.context().close(), player.close()]);
});

test('the thumbnail of the sample game is a picture', async () => {
  assert.ok(sample.thumbnail_url, 'the sample game has a thumbnail');
  const response = await fetch(new URL(sample.thumbnail_url, server.url));
  assert.equal(response.status, 200);
  assert.match(response.headers.get('content-type'), /^image\//);
});

test('at phone width nothing sticks out and Play is in reach', async () => {
  const page = await openPage(browser, { viewport: { width: 360, height: 740 }, touch: true });
  for (const target of ['/', `/games/${sample.id}`]) {
    await page.goto(server.url + target);
    await page.locator('[data-game], [data-play]').first().waitFor();
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(overflow <= 0, `${target} is ${overflow} px too wide`);
  }
  const play = await page.locator('[data-play]').boundingBox();
  assert.ok(play.height >= 44, `Play is ${play.height} px high: too small for a thumb`);
  await page.context().close();
});

test('a reload deep inside the site works, and a wrong address says so', async () => {
  const page = await openPage(browser);
  await page.goto(`${server.url}/games/${sample.id}`);
  await page.getByRole('heading', { level: 1, name: sample.name }).waitFor();
  await page.goto(`${server.url}/games/no-such-game`);
  await page.getByText('There is no such game').waitFor();
  await page.context().close();
});

test('the site is served with headers that keep others out of it', async () => {
  const response = await fetch(server.url);
  assert.match(response.headers.get('content-security-policy') ?? '', /default-src/);
  assert.equal(response.headers.get('x-content-type-options'), 'nosniff');
  const missing = await server.call('GET', '/api/no-such-thing');
  assert.equal(missing.status, 404);
  assert.ok(missing.body.error.code, JSON.stringify(missing.body));
});
