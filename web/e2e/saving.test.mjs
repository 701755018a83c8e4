// What players see while the platform cannot store what happens in their world.
// Covers: web/src/player/hud, crates/gameserver/src, crates/platform/src/db
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launchBrowser, picture } from './browser.mjs';
import { Player } from './player.mjs';
import { startServer } from './server.mjs';

let server;
let browser;
before(async () => {
  server = await startServer();
  browser = await launchBrowser();
});
after(async () => {
  server?.thaw();
  await browser?.close();
  await server?.stop();
});

test('players see that saving is delayed, play on, and see it go', async () => {
  const player = await Player.enter(browser, server, { game: 'sandbox' });
  const notice = player.page.getByText('Saving is delayed…');
  assert.equal(await notice.count(), 0);
  // What the game says at the top is what the notice must keep clear of.
  await player.until(() => document.querySelector('.Top [data-widget]') !== null);
  // The platform answers nothing; the world runs in a process of its own.
  server.freeze();
  await notice.waitFor({ state: 'visible' });
  await player.walk(1);
  const below = await player.page.evaluate(() => {
    const notice = document.querySelector('[data-saving]').getBoundingClientRect();
    const labels = [...document.querySelectorAll('.Top [data-widget]')].filter((label) => label.checkVisibility());
    return labels.every((label) => label.getBoundingClientRect().bottom <= notice.top);
  });
  assert.ok(below, 'it lies on what the game says');
  await picture(player.page, 'saving');
  server.thaw();
  await notice.waitFor({ state: 'detached' });
  await player.walk(1);
  await player.close();
});
