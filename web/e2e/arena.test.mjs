// The sample game Sunset Splash with two players in real pages: one shoots the
// other until they are out, both see it, and they chat. The layout
// is described in games/arena/README.md.
// Covers: games/arena, web/src/player
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { forWorlds, launchBrowser, picture } from './browser.mjs';
import { readMap } from './arena-map.mjs';
import { Player } from './player.mjs';
import { startServer } from './server.mjs';

const GAME = 'arena';
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

/** Keeps aiming at a player. Returns a function that stops it. */
async function aimAt(player, target) {
  const timer = await player.page.evaluate((id) => {
    const aim = () => {
      const own = window.__frolic?.position();
      const at = window.__frolic?.entities().find((entity) => entity.id === id)?.position;
      if (!own || !at) return;
      const [x, y, z] = [at[0] - own[0], at[1] + 0.9 - own[1] - 1.55, at[2] - own[2]];
      window.__frolic.look(Math.atan2(-x, -z), Math.atan2(y, Math.hypot(x, z)));
    };
    aim();
    return setInterval(aim, 30);
  }, target);
  return () => player.page.evaluate((id) => clearInterval(id), timer);
}

const combat = (player) => player.page.evaluate(() => window.__frolic.combat());

/** Walks until the other player is near and in line of sight. */
async function approach(player, [x, z]) {
  const map = await readMap();
  const [ownX, , ownZ] = await player.position();
  for (const [toX, toZ] of map.way([ownX, ownZ], [x, z], 10)) {
    await player.walkingTowards([toX, toZ], () =>
      player.until(
        ([wantedX, wantedZ]) =>
          Math.hypot(window.__frolic.position()[0] - wantedX, window.__frolic.position()[2] - wantedZ) < 0.6,
        [toX, toZ],
      ),
    );
  }
}

async function say(player, text) {
  await player.page.keyboard.press('Enter');
  await player.page.getByLabel('Say something').fill(text);
  await player.page.keyboard.press('Enter');
}

test('a single player gets bots that shoot', { timeout: 180_000 }, async () => {
  const player = await Player.enter(browser, server, { game: GAME, viewport: forWorlds({ width: 960, height: 540 }) });
  const bots = () => window.__frolic.entities().filter((entity) => entity.kind === 'npc');
  const start = await player.until(() => {
    const bots = window.__frolic.entities().filter((entity) => entity.kind === 'npc');
    return bots.length === 3 && bots;
  });
  await player.until(
    (before) =>
      window.__frolic.entities().some((entity) => {
        const then = before.find((bot) => bot.id === entity.id);
        return then && Math.hypot(entity.position[0] - then.position[0], entity.position[2] - then.position[2]) > 3;
      }),
    start,
  );
  // Eventually a shot hits: the player, or another bot.
  await player.until(() => window.__frolic.combat().drawn > 0, undefined, 120_000);
  assert.ok((await player.page.evaluate(bots)).length <= 3);
  assert.deepEqual(player.page.complaints, []);
  await player.leave();
});

test('a shot lowers health, the hit is shown, and a knock-out counts', { timeout: 240_000 }, async () => {
  const ada = await Player.enter(browser, server, { game: GAME, viewport: forWorlds({ width: 960, height: 540 }) });
  const ben = await Player.enter(browser, server, { game: GAME, world: await ada.read('worldId') });
  // No bots that could interfere.
  await say(ada, '/bots 0');
  await ada.until(() => window.__frolic.entities().every((entity) => entity.kind !== 'npc'));
  const ids = { a: await ada.read('entityId'), b: await ben.read('entityId') };
  await ada.until(() => window.__frolic.combat().weapon === 'Blaster');
  await ada.until((id) => window.__frolic.entities().some((entity) => entity.id === id), ids.b);
  await picture(ada.page, 'arena-start');

  const [x, , z] = await ada.position();
  await approach(ben, [x, z]);
  const stop = await aimAt(ada, ids.b);
  // The mouse may not be locked in a headless page: fire as a gamepad would.
  await ada.page.evaluate(() => window.__frolic.fire(true));
  await ada.until(() => window.__frolic.combat().shots > 1 && window.__frolic.combat().drawn > 0);
  await picture(ada.page, 'arena-shooting');
  await ben.until(() => window.__frolic.combat().health < 100);
  await picture(ben.page, 'arena-hurt');
  await ada.until(() => window.__frolic.combat().hits > 0);
  await ben.until(() => window.__frolic.combat().alive === false, undefined, 60_000);
  await picture(ben.page, 'arena-out');
  await ada.page.evaluate(() => window.__frolic.fire(false));
  await stop();

  const scored = (wanted) =>
    window.__frolic
      .players()
      .some((player) => player.stats.some((stat) => stat.name === 'KOs' && stat.number === wanted));
  await ben.until(scored, 1);
  await ben.until(() => window.__frolic.combat().alive && window.__frolic.combat().health === 100);
  assert.ok((await combat(ada)).hits >= 5, 'five hits of 20 each');
  assert.equal(await ada.page.locator('[data-crosshair]').count(), 1);
  // A bot may have hit her before it left.
  const { health } = await combat(ada);
  assert.equal(await ada.page.locator('[data-health]').getAttribute('data-health'), String(health));

  // The same line twice in both pages: once each.
  await ada.page.keyboard.press('Enter');
  await ada.page.getByLabel('Say something').fill('good game');
  await ada.page.keyboard.press('Enter');
  const received = () => window.__frolic.chat().filter((line) => line.text === 'good game' && line.from !== '').length;
  await Promise.all([ada, ben].map((player) => player.until(received)));
  await picture(ada.page, 'arena-chat');
  assert.equal(await ben.page.evaluate(received), 1);
  assert.deepEqual(ada.page.complaints, []);
  assert.deepEqual(ben.page.complaints, []);
  await Promise.all([ada.close(), ben.close()]);
});

test('on a phone a button fires, and everything fits the screen', { timeout: 120_000 }, async () => {
  const player = await Player.enter(browser, server, { game: GAME, viewport: PHONE, touch: true });
  await player.until(() => window.__frolic.combat().weapon === 'Blaster');
  await picture(player.page, 'arena-phone');
  const boxes = {};
  for (const name of ['fire', 'jump', 'stick', 'health']) {
    const box = await player.page.locator(`[data-${name}]`).boundingBox();
    assert.ok(
      box && box.x >= 0 && box.x + box.width <= PHONE.width && box.y >= 0 && box.y + box.height <= PHONE.height,
      `${name} is on the screen`,
    );
    boxes[name] = box;
  }
  const apart = (a, b) =>
    a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y;
  assert.ok(apart(boxes.fire, boxes.jump) && apart(boxes.fire, boxes.stick), 'thumbs find one button at a time');

  const session = await player.page.context().newCDPSession(player.page);
  const [x, y] = [boxes.fire.x + boxes.fire.width / 2, boxes.fire.y + boxes.fire.height / 2];
  await session.send('Input.dispatchTouchEvent', { type: 'touchStart', touchPoints: [{ x, y }] });
  await player.until(() => window.__frolic.combat().shots > 2);
  await picture(player.page, 'arena-phone-firing');
  const before = await player.page.evaluate(() => window.__frolic.view().yaw);
  await session.send('Input.dispatchTouchEvent', { type: 'touchMove', touchPoints: [{ x: x - 60, y }] });
  await player.until((yaw) => Math.abs(window.__frolic.view().yaw - yaw) > 0.1, before);
  await session.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] });
  assert.deepEqual(player.page.complaints, []);
  await player.close();
});
