// Social features: a character edited on the site is seen by others in the world, an invite link spawns next to the friend,
// blocked players do not see each other's chat, and a report includes a recording and leads to a notice and an appeal.
// Covers: crates/platform/src/community, crates/platform/src/moderation, web/src/routes/moderation, web/src/player
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { forWorlds, launchBrowser, openPage } from './browser.mjs';
import { Player } from './player.mjs';
import { binary, startServer } from './server.mjs';

const ADMIN_TOKEN = 'end-to-end-admin';
const WIDE = { width: 1280, height: 800 };
const TALL = { width: 390, height: 844 };
const game = 'obby';
let server;
let browser;
before(async () => {
  server = await startServer({ ADMIN_TOKEN, RECORD_DIR: 'recordings' });
  browser = await launchBrowser();
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

/** Takes a screenshot if SCREENSHOTS names a folder. */
async function picture(page, name) {
  const folder = process.env.SCREENSHOTS;
  if (folder) await page.screenshot({ path: path.join(folder, `${name}.png`) });
}

/** The same page narrow and wide, dark and light. */
async function pictures(page, name) {
  for (const [size, viewport] of [
    ['wide', WIDE],
    ['tall', TALL],
  ]) {
    for (const colorScheme of ['light', 'dark']) {
      await page.setViewportSize(viewport);
      await page.emulateMedia({ colorScheme });
      await picture(page, `${name}-${size}-${colorScheme}`);
    }
  }
  await page.setViewportSize(WIDE);
  await page.emulateMedia({ colorScheme: 'light' });
}

test('a character edited on the site is seen by others in the world', async () => {
  const page = await openPage(browser, { viewport: WIDE });
  await page.goto(`${server.url}/characters`);
  await page.locator('.stage[data-ready=true]').waitFor();
  // Until it is saved, avatar, chip and swatches show the same colours, and the page says that they are a suggestion.
  await page.locator('[data-undressed]').waitFor();
  const shown = await page.evaluate(() => ({
    chosen: ['Skin', 'Shirt', 'Trousers'].map((name) => {
      const group = [...document.querySelectorAll('fieldset')].find(
        (one) => one.querySelector('legend').textContent === name,
      );
      return getComputedStyle(group.querySelector('label:has(input:checked)')).backgroundColor;
    }),
    chip: [...document.querySelectorAll('.chosen .dots i')].map((dot) => getComputedStyle(dot).backgroundColor),
  }));
  assert.deepEqual(shown.chip, shown.chosen);
  await page.locator('[data-new]').click();
  await page.locator('[data-character="Character 2"]').waitFor();
  await page.locator('[data-choice=crown]').click();
  await page.locator('[data-choice=cool]').click();
  await page.getByText('Shirt 4', { exact: true }).locator('..').click();
  await page.locator('[data-save]').click();
  await page.getByText('Saved', { exact: true }).first().waitFor();
  await page.locator('[data-activate]').click();
  await page.getByText('You’re playing as this character', { exact: true }).waitFor();
  await pictures(page, 'characters');
  assert.deepEqual(page.complaints, []);

  // The same visitor plays; another one watches.
  await page.goto(`${server.url}/play/${game}?gfx=low`);
  const dressed = new Player(page);
  await dressed.ready(server);
  const watcher = await Player.enter(browser, server, {
    game,
    world: await dressed.read('worldId'),
    viewport: forWorlds(WIDE),
  });
  const entity = await dressed.read('entityId');
  const worn = await watcher.until(
    (id) => window.__frolic.worn(id)?.hat === 'crown' && window.__frolic.worn(id),
    entity,
  );
  assert.deepEqual(worn, { hat: 'crown', face: 'cool', shirt: '#2fbf71' });
  await picture(watcher.page, 'seen-by-others');
  await Promise.all([dressed.close(), watcher.close()]);
});

test('an invite link spawns next to the friend', async () => {
  const host = await Player.enter(browser, server, { game, viewport: forWorlds(WIDE) });
  await host.walk(3);
  await host.page.keyboard.press('Escape');
  await host.page.locator('[data-panel=invite]').click();
  const link = await host.page.getByLabel('Invite link').inputValue();
  await picture(host.page, 'pause-invite');
  const [x, , z] = await host.position();

  const page = await openPage(browser, { viewport: WIDE });
  await page.goto(link);
  await page.locator('[data-join]').waitFor();
  await pictures(page, 'invite');
  await page.locator('[data-join]').click();
  const friend = new Player(page);
  await friend.ready(server);
  assert.equal(await friend.read('worldId'), await host.read('worldId'));
  const [fx, , fz] = await friend.position();
  const apart = Math.hypot(fx - x, fz - z);
  assert.ok(apart < 3.2, `${apart} m from the friend`);

  await page.goto(`${server.url}/i/NOSUCHCODE12`);
  await page.getByText('This invite has expired').waitFor();
  await Promise.all([host.close(), friend.close()]);
});

test('a block hides chat in both directions, and a mute applies to oneself', async () => {
  const ada = await Player.enter(browser, server, { game, viewport: forWorlds(WIDE) });
  const world = await ada.read('worldId');
  const eve = await Player.enter(browser, server, { game, world, viewport: forWorlds(WIDE) });
  const bob = await Player.enter(browser, server, { game, world });
  const number = (player) =>
    player.page.evaluate(() => window.__frolic.players().find((one) => one.entityId === window.__frolic.entityId).name);
  const [adaName, eveName] = [await number(ada), await number(eve)];

  const say = async (player, text) => {
    await player.page.keyboard.press('Enter');
    await player.page.getByLabel('Say something').fill(text);
    await player.page.keyboard.press('Enter');
  };
  const expectChat = (player, text) =>
    player.until((line) => window.__frolic.chat().some((known) => known.text === line), text);
  const chatOf = (player) => player.page.evaluate(() => window.__frolic.chat().map((line) => line.text));

  await say(eve, 'rude words');
  await expectChat(ada, 'rude words');
  await ada.page.keyboard.press('Escape');
  await ada.page.locator('[data-panel=players]').click();
  await picture(ada.page, 'pause-players');
  await ada.page.getByRole('button', { name: `Block ${eveName}` }).click();
  await ada.page.getByRole('button', { name: `Unblock ${eveName}` }).waitFor();
  await ada.page.getByRole('button', { name: 'Resume' }).click();
  await ada.page.locator('[data-chat]').waitFor({ state: 'attached' });
  assert.equal(await ada.page.getByText('rude words').count(), 0, 'earlier messages are hidden');

  await say(eve, 'more of it');
  await expectChat(bob, 'more of it');
  await say(ada, 'calm again');
  await expectChat(bob, 'calm again');
  // Bob received both in this order, so messages to Ada and Eve were sent before.
  await say(bob, 'hello you two');
  await Promise.all([expectChat(ada, 'hello you two'), expectChat(eve, 'hello you two')]);
  assert.ok(!(await chatOf(ada)).includes('more of it'));
  assert.ok(!(await chatOf(eve)).includes('calm again'));

  // Stored with the account: the block persists after a reload.
  await ada.page.reload();
  await ada.ready(server);
  await say(eve, 'still there?');
  await expectChat(bob, 'still there?');
  await say(bob, 'she is');
  await expectChat(ada, 'she is');
  assert.ok(!(await chatOf(ada)).includes('still there?'));
  assert.ok(adaName !== eveName);
  await Promise.all([ada.close(), eve.close(), bob.close()]);
});

test('a report reaches a moderator, who decides with a reason, and an appeal is answered', async () => {
  const ada = await Player.enter(browser, server, { game, viewport: forWorlds(WIDE) });
  const eve = await Player.enter(browser, server, {
    game,
    world: await ada.read('worldId'),
    viewport: forWorlds(WIDE),
  });
  const eveName = await eve.page.evaluate(
    () => window.__frolic.players().find((one) => one.entityId === window.__frolic.entityId).name,
  );
  await eve.page.keyboard.press('Enter');
  await eve.page.getByLabel('Say something').fill('free coins at example dot com');
  await eve.page.keyboard.press('Enter');
  await ada.until(() => window.__frolic.chat().some((line) => line.text.startsWith('free coins')));
  await ada.page.keyboard.press('Escape');
  await ada.page.locator('[data-panel=players]').click();
  await ada.page.getByRole('button', { name: `Report ${eveName}` }).click();
  await ada.page.getByRole('radio', { name: /^Scams/ }).check();
  await picture(ada.page, 'report');
  await ada.page.locator('[data-send-report]').click();
  await ada.page.getByText('Thank you').waitFor();
  await ada.close();

  // The moderation page with the admin token instead of a moderator's session.
  const desk = await openPage(browser, { viewport: WIDE });
  await desk.addInitScript(
    (token) =>
      localStorage.setItem('frolic.session', JSON.stringify({ token, clientId: 'operator', username: 'operator' })),
    ADMIN_TOKEN,
  );
  await desk.goto(`${server.url}/moderation`);
  await desk.getByText('free coins at example dot com').waitFor();
  await pictures(desk, 'moderation');
  // The recording can be replayed while the world continues.
  const [recording] = await Promise.all([desk.waitForEvent('download'), desk.locator('[data-recording]').click()]);
  const file = path.join(server.dataDir, recording.suggestedFilename());
  await recording.saveAs(file);
  const replay = await promisify(execFile)(binary(), ['replay', file, '--json', '--data-dir', server.dataDir]);
  const { difference, sameHashes, ending } = JSON.parse(replay.stdout);
  assert.deepEqual({ difference, ending }, { difference: null, ending: 'cut off' });
  assert.ok(sameHashes > 0, replay.stdout);
  await desk.locator('[data-decide]').click();
  await desk.getByLabel('Why').fill('Advertised a scam in the chat.');
  await picture(desk, 'moderation-decide');
  await desk.locator('[data-confirm]').click();
  await desk.getByText('No open reports').waitFor();

  await eve.page.goto(`${server.url}/notices`);
  await eve.page.getByText('Advertised a scam in the chat.').waitFor();
  await eve.page.locator('[data-appeal]').click();
  await eve.page.getByLabel('Why is this decision wrong?').fill('It was a joke among friends.');
  await pictures(eve.page, 'notices');
  await eve.page.getByRole('button', { name: 'Send appeal' }).click();
  await eve.page.getByText('Another moderator will look at it').waitFor();

  await desk.getByRole('tab', { name: 'Appeals' }).click();
  await desk.getByText('It was a joke among friends.').waitFor();
  await desk.getByLabel('Your answer').fill('Understood. Please do not repeat it.');
  await picture(desk, 'moderation-appeal');
  await desk.locator('[data-grant]').click();
  await desk.getByText('No open appeals').waitFor();
  await desk.getByRole('tab', { name: 'Log' }).click();
  await desk.getByText('grant', { exact: true }).waitFor();
  await picture(desk, 'moderation-log');
  assert.deepEqual(desk.complaints, []);

  await eve.page.reload();
  await eve.page.getByText('Understood. Please do not repeat it.').waitFor();
  await eve.page.getByText('overturned').waitFor();
  await eve.close();
});
