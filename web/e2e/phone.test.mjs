// A phone: upright screen, fingers instead of keys. The stick walks, the
// button jumps, and dragging beside them looks around.
// Covers: web/src/player
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launchBrowser, picture } from './browser.mjs';
import { JsonClient } from './json-client.mjs';
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
  const game = 'obby';
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

/** Overlapping pairs of game widgets and platform controls, and truncated short labels. */
function covered() {
  const shown = (element) =>
    element.checkVisibility({ opacityProperty: true }) && element.getBoundingClientRect().width > 0;
  const all = (selector) => [...document.querySelectorAll(selector)].filter(shown);
  const widgets = all('[data-widget]');
  const controls = all('.player button, [data-stick], [data-health], [data-leaderboard]').filter(
    (control) => !control.closest('[data-widget]'),
  );
  const pairs = [];
  // Platform controls must not overlap each other either.
  const own = all('[data-leaderboard], [data-hint]');
  const fixed = all('[data-stick], [data-jump], [data-fire], [data-action], [data-health]');
  const squeezed = widgets
    .filter((widget) => widget.textContent.trim().length > 2 && widget.offsetHeight > widget.offsetWidth * 1.5)
    .map((widget) => widget.textContent.trim());
  for (const widget of [...widgets, ...own]) {
    const a = widget.getBoundingClientRect();
    for (const control of own.includes(widget) ? fixed : controls) {
      const b = control.getBoundingClientRect();
      if (a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom) {
        pairs.push(
          `"${widget.textContent.trim()}" and ${control.ariaLabel ?? control.getAttribute('aria-label') ?? control.className}`,
        );
      }
    }
  }
  return { pairs, squeezed, widgets: widgets.length, controls: controls.length };
}

/** Block Meadow moves its bar when the phone is rotated. */
const barIsIn = (place) => document.querySelector(`.${place} .Panel`) !== null;

for (const game of ['obby', 'arena', 'sandbox', 'stealth']) {
  test(`what ${game} shows and the controls do not overlap, in portrait and landscape`, async () => {
    const one = game === 'obby' ? player : await Player.enter(browser, server, { game, viewport: PHONE, touch: true });
    await one.until(() => document.querySelector('[data-widget]') !== null);
    const sizes = {
      upright: PHONE,
      side: { width: 740, height: 360 },
      low: { width: 640, height: 360 },
      tablet: { width: 768, height: 1024 },
    };
    for (const [name, size] of Object.entries(sizes)) {
      await one.page.setViewportSize(size);
      await one.until((width) => window.innerWidth === width, size.width);
      if (game === 'sandbox') await one.until(barIsIn, name === 'upright' ? 'Top' : 'Bottom');
      // Games arrange their widgets when they notice the new size, so this may take a moment.
      await one.page.waitForFunction(`(${covered})().pairs.length === 0`).catch(() => undefined);
      const { pairs, squeezed, widgets, controls } = await one.page.evaluate(covered);
      assert.ok(widgets > 0 && controls >= 5, `${widgets} widgets and ${controls} controls`);
      await picture(one.page, `phone-${game}-${name}`);
      assert.deepEqual(pairs, [], `${game} ${name}`);
      assert.deepEqual(squeezed, [], `${game} ${name}`);
    }
    if (one === player) await one.page.setViewportSize(PHONE);
    else await one.close();
  });
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

test('dragging beside the controls looks around, and the stick then walks that way', async () => {
  const look = () => player.page.evaluate(() => window.__frolic.view());
  const before = await look();
  const [x, y] = [PHONE.width / 2, PHONE.height / 3];
  await touch('touchStart', [x, y]);
  for (let step = 1; step <= 10; step += 1) await touch('touchMove', [x + step * 10, y + step * 3]);
  await touch('touchEnd');
  await player.until((yaw) => window.__frolic.view().yaw < yaw - 0.3, before.yaw);
  assert.ok((await look()).pitch < before.pitch, 'down looks down');

  const start = await player.position();
  const [stickX, stickY] = await middle('[data-stick]');
  await touch('touchStart', [stickX, stickY]);
  await touch('touchMove', [stickX, stickY - 45]);
  // To the right of straight ahead.
  await player.until(([fromX]) => window.__frolic.position()[0] > fromX + 0.3, start);
  await touch('touchEnd');
});

test('the menu shows the network stats, because there is no Tab key', async () => {
  await player.page.getByRole('button', { name: 'Menu' }).tap();
  await player.page.getByRole('button', { name: 'Settings' }).tap();
  await player.page.locator('[data-figures]').tap();
  await player.page.getByRole('button', { name: 'Resume' }).tap();
  const box = await player.page.locator('[data-debug]').boundingBox();
  assert.ok(box.x >= 0 && box.x + box.width <= PHONE.width, `figures from ${box.x}, ${box.width} wide`);
  const stick = await player.page.locator('[data-stick]').boundingBox();
  assert.ok(box.y + box.height < stick.y, 'the figures leave the stick free');
});

test('on the narrowest screen each setting has its name beside or above it', async () => {
  await player.page.setViewportSize({ width: 300, height: 640 });
  await player.page.getByRole('button', { name: 'Menu' }).tap();
  await player.page.getByRole('button', { name: 'Settings' }).tap();
  const crossed = await player.page.locator('[role=dialog] label').evaluateAll((labels) =>
    labels
      .filter((label) => {
        const words = document.createRange();
        words.selectNodeContents(label.firstChild);
        const [a, b] = [words.getBoundingClientRect(), label.querySelector('input, select').getBoundingClientRect()];
        return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
      })
      .map((label) => label.innerText),
  );
  await picture(player.page, 'narrow-settings');
  assert.deepEqual(crossed, []);
  await player.page.getByRole('button', { name: 'Resume' }).tap();
  await player.page.setViewportSize(PHONE);
});

test('with the longest name all player actions stay on screen', async () => {
  const {
    server_address: address,
    ticket,
    username,
  } = await server.join({ world_id: await player.read('worldId') }, 'abcdefghijklmnopqrst');
  const other = await JsonClient.open(address, { ticket });
  await other.next('welcome');
  await player.page.getByRole('button', { name: 'Menu' }).tap();
  await player.page.getByRole('button', { name: '2 players' }).tap();
  const card = await player.page.getByRole('dialog').boundingBox();
  for (const does of ['Mute', 'Block', 'Report']) {
    const box = await player.page.getByRole('button', { name: `${does} ${username}` }).boundingBox();
    assert.ok(
      box.x >= card.x && box.x + box.width <= card.x + card.width,
      `${does} from ${box.x}, ${box.width} wide, in a card from ${card.x}, ${card.width} wide`,
    );
  }
  await picture(player.page, 'phone-players');
  await player.page.getByRole('button', { name: 'Resume' }).tap();
  other.close();
});

test('at 640 by 360 the middle of the screen stays free with chat, labels and hints', async () => {
  const one = await Player.enter(browser, server, { game: 'arena', viewport: { width: 640, height: 360 } });
  const { server_address: address, ticket } = await server.join({ world_id: await one.read('worldId') }, 'Chatterbox');
  const other = await JsonClient.open(address, { ticket });
  await other.next('welcome');
  for (let line = 0; line < 5; line += 1) other.send('chat', 'say', { text: `${line} `.repeat(70) });
  await one.until(
    () =>
      document.querySelectorAll('[data-chat] li').length >= 2 && document.querySelector('[data-crosshair]') !== null,
  );
  const { over, tallest } = await one.page.evaluate(() => {
    const [x, y, free] = [innerWidth / 2, innerHeight / 2, 18];
    const boxes = [
      ...document.querySelectorAll('[data-widget], [data-chat] li, [data-hint], [data-leaderboard]'),
    ].filter((element) => element.checkVisibility());
    const covers = (box) => box.left < x + free && box.right > x - free && box.top < y + free && box.bottom > y - free;
    return {
      over: boxes
        .filter((element) => covers(element.getBoundingClientRect()))
        .map((element) => element.textContent.trim()),
      tallest: Math.max(...[...document.querySelectorAll('[data-chat] li')].map((line) => line.offsetHeight)),
    };
  });
  await picture(one.page, 'low-arena');
  assert.deepEqual(over, [], 'these lie on the crosshair');
  assert.ok(tallest < 360 * 0.25, `a line of chat is ${tallest} px high`);
  other.close();
  await one.close();
});

test('touch gestures do not scroll or zoom the page', async () => {
  const overflow = await player.page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  assert.ok(overflow <= 0, `the page is ${overflow} px too wide`);
  assert.equal(await player.page.evaluate(() => window.scrollY), 0);
});
