// A phone: upright screen, fingers instead of keys. The stick walks, the
// button jumps, and dragging beside them looks around.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launchBrowser } from './browser.mjs';
import { Player } from './player.mjs';
import { startServer } from './server.mjs';

const PHONE = { width: 390, height: 700 };

let server;
let browser;
let player;
let touch;
before(async () => {
  server = await startServer();
  browser = await launchBrowser();
  const game = (await server.call('GET', '/api/games')).body.games[0].id;
  player = await Player.enter(browser, server, { game, viewport: PHONE, touch: true });
  const session = await player.page.context().newCDPSession(player.page);
  touch = (type, ...points) =>
    session.send('Input.dispatchTouchEvent', { type, touchPoints: points.map(([x, y]) => ({ x, y })) });
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

async function middle(selector) {
  const box = await player.page.locator(selector).boundingBox();
  assert.ok(box, `${selector} is on the screen`);
  assert.ok(box.x >= 0 && box.x + box.width <= PHONE.width, `${selector} is within the width`);
  assert.ok(box.y >= 0 && box.y + box.height <= PHONE.height, `${selector} is within the height`);
  return [box.x + box.width / 2, box.y + box.height / 2];
}

test('pushing the stick forward walks forward', async () => {
  const [x, y] = await middle('[data-stick]');
  const start = await player.position();
  await touch('touchStart', [x, y]);
  await touch('touchMove', [x, y - 45]);
  await player.until((z) => window.__frolic.position()[2] < z - 1, start[2]);
  await touch('touchEnd');
  await player.until(() => Math.hypot(...window.__frolic.entities().find((entity) => entity.own).velocity) < 0.1);
});

test('the jump button jumps', async () => {
  const [x, y] = await middle('[data-jump]');
  await player.until(() => window.__frolic.entities().find((entity) => entity.own)?.grounded);
  await touch('touchStart', [x, y]);
  await player.until(() => window.__frolic.entities().find((entity) => entity.own)?.grounded === false);
  await touch('touchEnd');
});

test('the page does not scroll or zoom under the fingers', async () => {
  const overflow = await player.page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  assert.ok(overflow <= 0, `the page is ${overflow} px too wide`);
  assert.equal(await player.page.evaluate(() => window.scrollY), 0);
});
