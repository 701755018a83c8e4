// What players see while the platform cannot store what happens in their world.
// Covers: web/src/player/hud, crates/gameserver/src, crates/platform/src/db
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launchBrowser } from './browser.mjs';
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
  // The platform answers nothing; the world runs in a process of its own.
  server.freeze();
  await notice.waitFor({ state: 'visible' });
  await player.walk(1);
  if (process.env.SHOTS) await player.page.screenshot({ path: `${process.env.SHOTS}/saving-desktop.png` });
  server.thaw();
  await notice.waitFor({ state: 'detached' });
  await player.walk(1);
  await player.close();
});
