// Playing with others in real pages: from the click on Play into the world,
// two players who see each other move, and what happens when one leaves.
// Covers: crates/world, crates/client, crates/gameserver, crates/platform/src/worlds/join, web/src/player
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launchBrowser, openPage } from './browser.mjs';
import { JsonClient } from './json-client.mjs';
import { changeJoin, Player } from './player.mjs';
import { startServer } from './server.mjs';

let server;
let browser;
let game;
before(async () => {
  server = await startServer();
  browser = await launchBrowser();
  game = 'obby';
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

test('a click on Play joins the world', async (context) => {
  const { player, ms, steps } = await clickPlay();
  context.diagnostic(`from the click to the world: ${ms} ms (${steps})`);
  assert.match(await player.read('worldId'), /^world_/);
  await player.walk(1.5);
  assert.deepEqual(player.page.complaints, []);
  await player.close();
});

test('a ticket that expired before the page connects is replaced silently', async () => {
  const joins = [];
  const prepare = (context) =>
    changeJoin(context, async (joined) => {
      joins.push(joined.ticket);
      // The first ticket is used up by another connection.
      if (joins.length === 1)
        await (await JsonClient.open(joined.server_address, { ticket: joined.ticket })).next('welcome');
      return joined;
    });
  const player = await Player.enter(browser, server, { game, prepare });
  assert.equal(joins.length, 2);
  await player.close();
});

test('the saved seat is refreshed while playing, so that it survives a later crash', async () => {
  const player = await Player.enter(browser, server, { game });
  const keptAt = () => JSON.parse(sessionStorage.getItem('frolic.place')).at;
  const first = await player.page.evaluate(keptAt);
  await player.until((before) => JSON.parse(sessionStorage.getItem('frolic.place')).at > before, first);
  await player.close();
});

test('two players in one world see each other move', async () => {
  const ada = await Player.enter(browser, server, { game });
  const world = await ada.read('worldId');
  const ben = await Player.enter(browser, server, { game, world });
  assert.equal(await ben.read('worldId'), world);
  const adaId = await ada.read('entityId');

  await ben.until((id) => window.__frolic.entities().some((entity) => entity.id === id), adaId);
  const before = await ben.seen(adaId);
  await ada.walk(2);
  const [x, , z] = before;
  await ben.until(
    ([id, startX, startZ]) => {
      const seen = window.__frolic.entities().find((entity) => entity.id === id)?.position;
      return seen && Math.hypot(seen[0] - startX, seen[2] - startZ) > 1.5;
    },
    [adaId, x, z],
  );

  // Once her character has stopped, both pages agree on the position. A correction may still move her slightly.
  for (;;) {
    const stands = await ada.until(() => {
      const own = window.__frolic.entities().find((entity) => entity.own);
      return own && Math.hypot(...own.velocity) < 0.01 && own.position;
    });
    const seen = await ben.seen(adaId);
    if (seen && Math.hypot(seen[0] - stands[0], seen[2] - stands[2]) < 0.3) break;
  }

  await ada.leave();
  await ben.until((id) => !window.__frolic.entities().some((entity) => entity.id === id), adaId);
  await Promise.all([ada.close(), ben.close()]);
});

test('a reload and back/forward navigation resume the same character', async () => {
  const player = await Player.enter(browser, server, { game });
  const id = await player.read('entityId');
  await player.walk(2);
  await player.settled();
  const [x, , z] = await player.position();
  const isBack = async (how) => {
    await player.ready(server);
    assert.equal(await player.read('entityId'), id, `the same character after ${how}`);
    const [nowX, , nowZ] = await player.position();
    assert.ok(Math.hypot(nowX - x, nowZ - z) < 0.5, `stands at ${[nowX, nowZ]} after ${how}, stood at ${[x, z]}`);
  };
  await player.page.reload();
  await isBack('a reload');
  await player.page.goto('about:blank');
  await player.page.goBack();
  await isBack('a step back');
  await player.close();
});

test('jumping lifts off the ground and lands again', async () => {
  const player = await Player.enter(browser, server, { game });
  const grounded = () => window.__frolic.entities().find((entity) => entity.own)?.grounded;
  await player.until(grounded);
  await player.holding('Space', () =>
    player.until(() => window.__frolic.entities().find((entity) => entity.own)?.grounded === false),
  );
  await player.until(grounded);
  await player.close();
});

/** Waits for `count` server ticks, in which an effect would have been visible. */
const ticks = async (player, count) => {
  const { tick } = await player.page.evaluate(() => window.__frolic.stats());
  await player.until((until) => window.__frolic.stats().tick >= until, tick + count);
};

const stands = (player) =>
  player.until(() => Math.hypot(...window.__frolic.entities().find((entity) => entity.own).velocity) < 0.01);

test('the pause menu has keyboard focus: no walking, Tab cycles, Space presses, Esc closes', async () => {
  const player = await Player.enter(browser, server, { game });
  const { page } = player;
  const menu = page.getByRole('dialog', { name: 'Paused' });
  const ways = {
    'by key': () => page.keyboard.press('Escape'),
    'by button': () => page.getByRole('button', { name: 'Menu' }).click(),
    'while writing': async () => {
      await page.keyboard.press('Enter');
      await page.locator('[data-chat] input').waitFor();
      await page.getByRole('button', { name: 'Menu' }).click();
    },
  };
  for (const [way, open] of Object.entries(ways)) {
    await stands(player);
    await open();
    await menu.waitFor();
    const before = await player.position();
    await player.holding('KeyW', () => ticks(player, 60));
    const now = await player.position();
    // A character walks five metres per second; a new one may still settle.
    assert.ok(Math.hypot(now[0] - before[0], now[2] - before[2]) < 0.3, `${way}: walked from ${before} to ${now}`);
    await page.keyboard.press('Escape');
    await menu.waitFor({ state: 'detached' });
  }
  // A key held while the menu opens does not keep walking.
  await player.holding('KeyW', async () => {
    await player.untilMoved(0.5);
    await page.keyboard.press('Escape');
    await stands(player);
  });

  // Other players may be present or disconnected.
  const focused = () =>
    page.evaluate(() => document.activeElement?.textContent?.trim().replace(/^\d+ players?$/, 'Players') ?? '');
  const seen = [await focused()];
  assert.equal(seen[0], 'Resume');
  for (let at = 0; at < 20; at += 1) {
    await page.keyboard.press('Tab');
    seen.push(await focused());
    if (seen.at(-1) === 'Resume') break;
  }
  assert.deepEqual(seen, [
    'Resume',
    'Settings',
    'Controls',
    'Players',
    'Invite a friend',
    'Reset character',
    'Report this game',
    'Leave',
    'Resume',
  ]);
  assert.equal(await page.locator('[data-debug]').count(), 0, 'Tab is not the overlay here');
  await page.keyboard.press('Shift+Tab');
  assert.equal(await focused(), 'Leave');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Space');
  await page.getByText('Camera sensitivity').waitFor();
  // The controls of an opened panel are reachable too.
  const reached = [];
  for (let at = 0; at < 30 && reached.at(-1) !== 'Resume'; at += 1) {
    await page.keyboard.press('Tab');
    reached.push(
      await page.evaluate(
        () =>
          document.activeElement?.closest('label')?.innerText.split('\n')[0].trim() ??
          document.activeElement?.textContent?.trim() ??
          '',
      ),
    );
  }
  for (const control of ['Camera sensitivity', 'Invert Y', 'Volume', 'Graphics', 'Network stats'])
    assert.ok(reached.includes(control), `${control} in ${reached}`);
  await page.keyboard.press('Enter');
  await menu.waitFor({ state: 'detached' });
  await player.walk(0.5, 'KeyS');
  assert.deepEqual(page.complaints, []);
  await player.close();
});

test('a gamepad opens the menu with Start and closes it with B', async () => {
  const prepare = (context) =>
    context.addInitScript(() => {
      window.pad = {
        connected: true,
        axes: [0, 0, 0, 0],
        buttons: Array.from({ length: 16 }, () => ({ pressed: false })),
      };
      navigator.getGamepads = () => [window.pad];
      window.press = (at, pressed) => (window.pad.buttons[at] = { pressed });
    });
  const player = await Player.enter(browser, server, { game, prepare });
  const menu = player.page.getByRole('dialog', { name: 'Paused' });
  const press = async (at, shown) => {
    await player.page.evaluate((button) => window.press(button, true), at);
    await shown();
    await player.page.evaluate((button) => window.press(button, false), at);
  };
  const focused = (label) => player.until((text) => document.activeElement?.textContent?.trim() === text, label);
  await press(9, () => menu.waitFor());
  await focused('Resume');
  await press(13, () => focused('Settings'));
  await press(0, () => player.page.getByText('Camera sensitivity').waitFor());
  await press(1, () => menu.waitFor({ state: 'detached' }));
  await player.close();
});

test('the arrow keys turn the view', async () => {
  const player = await Player.enter(browser, server, { game });
  const { yaw } = await player.page.evaluate(() => window.__frolic.view());
  await player.holding('ArrowRight', () => player.until((from) => window.__frolic.view().yaw < from - 0.3, yaw));
  await player.close();
});

test('the leaderboard is visible, P collapses it, and a closed tab is shown as away', async () => {
  const ada = await Player.enter(browser, server, { game });
  // High enough for all rows.
  const ben = await Player.enter(browser, server, {
    game,
    world: await ada.read('worldId'),
    viewport: { width: 800, height: 520 },
  });
  const board = ben.page.locator('[data-leaderboard]');
  const adaId = await ada.read('entityId');
  const name = await ben.until((id) => window.__frolic.players().find((player) => player.entityId === id)?.name, adaId);
  await board.locator('tr:not(.away)', { hasText: name }).waitFor();
  assert.deepEqual((await board.locator('th').allTextContents()).slice(1), ['Stage', 'Falls']);
  assert.equal(await board.locator('tr.own').count(), 1);
  await ben.page.keyboard.press('KeyP');
  await board.locator('table').waitFor({ state: 'detached' });
  await ben.page.keyboard.press('KeyP');
  await board.locator('table').waitFor();

  assert.equal(await ben.page.evaluate((id) => window.__frolic.faded(id), adaId), false);
  const [a, b] = [await ben.seen(adaId), await ben.position()];
  assert.ok(Math.hypot(a[0] - b[0], a[2] - b[2]) > 0.75, `not inside each other: ${a} and ${b}`);
  // Without a goodbye: the tab is closed.
  await ada.close();
  await ben.until((id) => window.__frolic.faded(id), adaId);
  await board.locator('tr.away', { hasText: `${name} · away` }).waitFor();
  await ben.close();
});

test('a second tab of the same player ends the first, which can take over again', async () => {
  const first = await Player.enter(browser, server, { game });
  const second = new Player(await first.page.context().newPage());
  await second.page.goto(`${server.url}/play/${game}?gfx=low&world=${await first.read('worldId')}`);
  await second.ready(server);
  await first.page.getByRole('heading', { name: 'You opened this game in another tab' }).waitFor();
  await first.page.getByRole('button', { name: 'Play here instead' }).click();
  await first.ready(server);
  await second.page.getByRole('button', { name: 'Play here instead' }).waitFor();
  await first.close();
});

test('world time follows the server, however slow the page renders', async () => {
  const prepare = (context) =>
    context.addInitScript(() => {
      // Two frames a second.
      const real = window.requestAnimationFrame.bind(window);
      window.requestAnimationFrame = (draw) => setTimeout(() => real(draw), 500);
    });
  const player = await Player.enter(browser, server, { game, prepare });
  await ticks(player, 240);
  const { time, tick } = await player.page.evaluate(() => ({
    time: window.__frolic.worldTime(),
    tick: window.__frolic.stats().tick,
  }));
  assert.ok(Math.abs(time - tick / 60) < 1, `${time} s on the page, ${tick / 60} s on the server`);
  await player.close();
});

test('Tab shows the network stats', async () => {
  const player = await Player.enter(browser, server, { game });
  await player.page.keyboard.press('Tab');
  await player.page.getByText(/rtt/i).first().waitFor();
  await player.page
    .getByText(/webtransport/i)
    .first()
    .waitFor();
  for (const figure of [
    'server tick',
    'jitter',
    'loss',
    'input seq',
    'pending inputs',
    'corrections',
    'snapshot age',
    'entities',
    'script memory',
    'script time',
  ]) {
    await player.page.locator('[data-debug] dt', { hasText: figure }).waitFor();
  }
  assert.equal(await player.page.locator('[data-graphs] polyline').count(), 5);
  // On a phone there is less space, but still one row per value.
  await player.page.setViewportSize({ width: 360, height: 780 });
  const broken = await player.page
    .locator('[data-debug] dt')
    .evaluateAll((names) =>
      names
        .filter((name) => name.getClientRects().length !== 1 || name.offsetHeight > 20)
        .map((name) => name.textContent),
    );
  assert.deepEqual(broken, [], 'names that are broken into two lines');
  await player.close();
});

/** A new visitor opens the game's page and clicks Play. Returns the time until the world is on screen. */
async function clickPlay() {
  const page = await openPage(browser, { prepare: lowQuality });
  await page.goto(`${server.url}/games/${game}`);
  await page.evaluate(timeTheWay);
  await page.locator('[data-play]').click();
  const player = new Player(page);
  await player.ready(server);
  const shown = await player.until(() => performance.getEntriesByName('shown')[0]?.startTime);
  const [clicked, moments] = await page.evaluate(() => [
    performance.getEntriesByName('clicked')[0].startTime,
    window.__frolic.moments(),
  ]);
  const inOrder = Object.entries({ ...moments, shown }).sort(([, a], [, b]) => a - b);
  const steps = inOrder.map(([name, at]) => `${name} ${Math.round(at - clicked)}`).join(', ');
  return { player, ms: Math.round(shown - clicked), steps };
}

/** Runs in the page: marks the click, and the frame after the first frame of the world. */
function timeTheWay() {
  const watch = () => requestAnimationFrame(window.__frolic?.ready ? () => performance.mark('shown') : watch);
  const clicked = () => {
    performance.mark('clicked');
    watch();
  };
  document.addEventListener('click', clicked, { capture: true, once: true });
}

/** Sets the quality before the page starts, because play links do not contain it. */
function lowQuality(context) {
  return context.addInitScript(() => {
    if (location.pathname.startsWith('/play/')) return;
    document.addEventListener(
      'click',
      (event) => {
        const link = event.target.closest?.('a[data-play]');
        if (link) link.href += link.search ? '&gfx=low' : '?gfx=low';
      },
      { capture: true },
    );
  });
}
