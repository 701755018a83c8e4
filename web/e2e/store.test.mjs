// The store: the sample games exist on an empty installation, look right
// at any width, and every dead end says what to do next.
// Covers: web/src/routes, web/src/lib, crates/platform/src/catalog
import assert from 'node:assert/strict';
import { get } from 'node:http';
import { after, before, test } from 'node:test';
import { launchBrowser, openPage, picture } from './browser.mjs';
import { look, WIDE } from './pages.mjs';
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

test('the front page shows the sample game as a card that links to its page', async () => {
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
  // A world reports its players with heartbeats, and the store aggregates them every few seconds; a player who left
  // recently may still be counted. A page shows the count at the time it was opened.
  const deadline = Date.now() + 30_000;
  let players = '';
  while (!/^1\s*player now$/.test(players) && Date.now() < deadline) {
    await page.goto(server.url);
    await card.waitFor();
    // Zero is not shown.
    players = (await card.locator('.players').allInnerTexts())[0] ?? '';
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
  // A card gets a small copy.
  const whole = (await response.arrayBuffer()).byteLength;
  const small = await fetch(new URL(`${sample.thumbnail_url}&w=320`, server.url));
  assert.equal(small.headers.get('content-type'), 'image/webp');
  assert.ok((await small.arrayBuffer()).byteLength < whole / 4);
  const page = await openPage(browser, { viewport: WIDE });
  await page.goto(server.url);
  const shown = page.locator(`[data-game="${sample.id}"] img`).first();
  assert.match(await shown.evaluate((image) => image.decode().then(() => image.currentSrc)), /w=320$/);
  await page.context().close();
});

test('the site travels packed by the build', async () => {
  const html = await (await fetch(server.url)).text();
  const script = /src="(\/assets\/[^"]+\.js)"/.exec(html)[1];
  const bytes = async (encoding) => {
    const { headers, length } = await raw(`${server.url}${script}`, encoding);
    assert.equal(headers['content-encoding'] ?? 'identity', encoding);
    return length;
  };
  const [brotli, gzip, plain] = [await bytes('br'), await bytes('gzip'), await bytes('identity')];
  assert.ok(brotli < gzip && gzip < plain / 2, `${brotli} ${gzip} ${plain}`);
});

/** The transferred bytes before decompression. */
function raw(url, encoding) {
  return new Promise((resolve, reject) => {
    get(url, { headers: { 'accept-encoding': encoding } }, (response) => {
      let length = 0;
      response.on('data', (part) => (length += part.length));
      response.on('end', () => resolve({ headers: response.headers, length }));
    }).on('error', reject);
  });
}

test('at phone width nothing overflows and Play is visible', async () => {
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
  const answer = await page.goto(`${server.url}/games/no-such-game`);
  assert.equal(answer.status(), 404);
  await page.getByRole('heading', { level: 1, name: 'We couldn’t find that game' }).waitFor();
  await page.context().close();
});

test('an address that is no page answers 404, with a page that says so', async () => {
  const page = await openPage(browser, { viewport: WIDE });
  const answer = await page.goto(`${server.url}/no/such/page`);
  assert.equal(answer.status(), 404);
  await page.getByRole('heading', { level: 1, name: 'Page not found' }).waitFor();
  await look(page, 'missing');
  const place = await page.evaluate(() => {
    const box = (selector) => document.querySelector(selector).getBoundingClientRect();
    return { gap: box('main .card').top - box('header').bottom, end: box('footer').bottom - innerHeight };
  });
  assert.ok(place.gap >= 8, `the card is ${place.gap} px below the header`);
  assert.ok(Math.abs(place.end) < 2, `the footer ends ${place.end} px from the end of the window`);
  await page.context().close();
});

test('playing a game that is not there leads back to the store', async () => {
  const page = await openPage(browser, { viewport: WIDE });
  const answer = await page.goto(`${server.url}/play/sunny-stepz`);
  assert.equal(answer.status(), 404);
  await page.getByRole('heading', { level: 1, name: 'We couldn’t find that game' }).waitFor();
  assert.equal(await page.title(), 'Game not found · Frolic');
  assert.equal(await page.getByText('Back to the game').count(), 0, 'no way to a page that is not there');
  await look(page, 'play-missing');
  await page.getByRole('link', { name: 'Search for “sunny stepz”' }).click();
  await page.waitForURL('**/search?q=sunny+stepz');
  await page.context().close();
});

test('the text of the front page never overlaps its figures', async () => {
  const page = await openPage(browser, { viewport: WIDE });
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await page.goto(server.url);
  await page.locator('.hero .btn').waitFor();
  for (const width of [
    320, 390, 520, 640, 641, 700, 720, 768, 820, 900, 960, 1000, 1001, 1060, 1120, 1200, 1440, 1920,
  ]) {
    await page.setViewportSize({ width, height: 900 });
    const clashes = await page.evaluate(() => {
      const hero = document.querySelector('.hero');
      const words = [...hero.querySelectorAll('h1, p, .btn')].flatMap((element) => {
        if (element.matches('.btn')) return [element.getBoundingClientRect()];
        const range = document.createRange();
        range.selectNodeContents(element);
        return [...range.getClientRects()];
      });
      const svg = hero.querySelector('svg');
      // How far the figures hop and bob, in the picture's own units.
      const { a: scale } = svg.getScreenCTM();
      const figures = [...svg.querySelectorAll('.float, .jump')].map((figure) => figure.getBoundingClientRect());
      const touch = (word, figure) =>
        word.right > figure.left &&
        word.left < figure.right &&
        word.bottom > figure.top - 26 * scale &&
        word.top < figure.bottom + 12 * scale;
      return words.filter((word) => figures.some((figure) => touch(word, figure))).length;
    });
    assert.equal(clashes, 0, `at ${width} px`);
    await picture(page, `hero-${width}`);
  }
  await page.context().close();
});

test('the search field stays in its place from page to page', async () => {
  const page = await openPage(browser, { viewport: WIDE });
  const places = new Set();
  const measure = async (path) => {
    await page.goto(server.url + path);
    await page.locator('main:not([aria-busy=true])').waitFor();
    const { x, width } = await page.getByRole('searchbox', { name: 'Search games' }).boundingBox();
    places.add(`${Math.round(x)} ${Math.round(width)}`);
  };
  for (const path of ['/', '/sign-in', '/docs/api', '/search']) await measure(path);
  const account = { username: 'Header Tester', password: 'a long enough password' };
  const made = await server.call('POST', '/api/register', { body: account });
  const saved = {
    token: made.body.session_token,
    clientId: made.body.client_id,
    username: made.body.username,
    kind: 'account',
    role: 'player',
  };
  await page.evaluate((session) => localStorage.setItem('frolic.session', session), JSON.stringify(saved));
  for (const path of ['/search', '/account']) await measure(path);
  assert.equal(places.size, 1, [...places].join(', '));
  await page.context().close();
});

test('search without a server reports it once, and recovers by itself', async () => {
  const page = await openPage(browser, { viewport: WIDE });
  await page.route('**/api/games?*', (route) => route.abort());
  await page.goto(`${server.url}/search?q=${encodeURIComponent(sample.name)}`);
  await page.getByRole('heading', { name: 'Search isn’t working right now' }).waitFor();
  assert.equal(await page.getByText('Searching…').count(), 0);
  await look(page, 'search-failed');
  await page.unroute('**/api/games?*');
  await page.locator(`[data-game="${sample.id}"]`).waitFor();
  await page.context().close();
});

test('the front page begins with a skip link', async () => {
  const page = await openPage(browser, { viewport: WIDE });
  await page.goto(server.url);
  await page.locator('[data-game]').first().waitFor();
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'Skip to content');
  await page.keyboard.press('Enter');
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.querySelector('main').contains(document.activeElement)), true);
  await page.context().close();
});

test('the site is served with security headers', async () => {
  const response = await fetch(server.url);
  assert.match(response.headers.get('content-security-policy') ?? '', /default-src/);
  assert.equal(response.headers.get('x-content-type-options'), 'nosniff');
  const missing = await server.call('GET', '/api/no-such-thing');
  assert.equal(missing.status, 404);
  assert.ok(missing.body.error.code, JSON.stringify(missing.body));
});
