// What players see while the platform cannot persist their world.
// Covers: web/src/player/hud, crates/gameserver/src, crates/platform/src/core/db
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

test('players see that saving is delayed, continue to play, and see the notice disappear', async () => {
  const player = await Player.enter(browser, server, { game: 'sandbox' });
  const notice = player.page.getByText('Saving is delayed…');
  assert.equal(await notice.count(), 0);
  // The notice must not overlap the game's text at the top.
  await player.until(() => document.querySelector('.Top [data-widget]') !== null);
  // The platform is frozen; the world runs in its own process.
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
