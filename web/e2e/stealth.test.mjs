// The sample game The Moonlit Gem in a real page: a guard notices a player that
// walks into its view, the mark above its head shows it, and being caught
// returns the player to the gate. The layout is described in games/stealth/README.md.
// Covers: games/stealth, crates/world/src/npcs, web/src/player
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { forWorlds, launchBrowser, picture } from './browser.mjs';
import { Player } from './player.mjs';
import { startServer } from './server.mjs';

const GAME = 'stealth';
const PHONE = { width: 390, height: 700 };
const DESKTOP = { width: 960, height: 540 };
/** A guard completes its round in this time, even with software rendering. */
const ROUND_MS = 90_000;

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

const shows = (player, text) => player.until((wanted) => window.__frolic.hudTexts().includes(wanted), text);
const guards = (player) =>
  player.page.evaluate(() => window.__frolic.entities().filter((entity) => entity.kind === 'npc'));

/** Along the southern hedge into the corner, where no guard looks. */
async function walkToBell(player, prompt) {
  await player.walkingTowards([18, 26.8], () => player.until(() => window.__frolic.position()[0] > 17));
  // Straight at the hedge, which stops the player.
  await player.walkingTowards([20.6, 21], () => prompt.waitFor());
}

test('guards patrol, notice the player, and a caught player starts again', async () => {
  const player = await Player.enter(browser, server, { game: GAME, viewport: forWorlds(DESKTOP) });
  await shows(player, 'Take the gem from the museum');
  await player.until(() => window.__frolic.entities().filter((entity) => entity.kind === 'npc').length === 4);
  const before = await guards(player);
  assert.deepEqual(
    before.map((guard) => guard.npc),
    ['idle', 'idle', 'idle', 'idle'],
    'no guard looks at the gate',
  );
  const walked = (start) =>
    window.__frolic.entities().some((entity) => {
      const then = start.find((guard) => guard.id === entity.id);
      return then && Math.hypot(entity.position[0] - then.position[0], entity.position[2] - then.position[2]) > 1;
    });
  await player.until(walked, before);
  await picture(player.page, 'stealth-gate');

  // Software rendering may miss short events: record every mark.
  await player.page.evaluate(() => {
    window.marksSeen = [];
    setInterval(() => window.marksSeen.push(...window.__frolic.npcMarks().map(([, mark]) => mark)), 30);
  });
  // Straight up the path, into the light of the guard at the fountain.
  await player.walkingTowards([0, 13.5], () => player.until(() => window.marksSeen.length > 0, undefined, ROUND_MS));
  await picture(player.page, 'stealth-noticed');
  await player.until(() => window.marksSeen.includes('!'), undefined, ROUND_MS);
  await picture(player.page, 'stealth-chased');
  const caught = () => window.__frolic.players()[0]?.stats.find((stat) => stat.name === 'Attempts')?.number >= 2;
  await player.until(caught, undefined, ROUND_MS);
  await player.until(() => window.__frolic.position()[2] > 22);
  await player.until(() => window.__frolic.npcMarks().length === 0, undefined, ROUND_MS);
  assert.deepEqual(player.page.complaints, []);
  await player.close();
});

test('a bush hides, and the level fits a phone', async () => {
  const player = await Player.enter(browser, server, { game: GAME, viewport: PHONE, touch: true });
  await shows(player, 'Take the gem from the museum');
  // The bush left of the path, before the first hedge.
  await player.walkingTowards([-4.2, 20.5], () => shows(player, 'Hidden'));
  await picture(player.page, 'stealth-phone');
  const overflow = await player.page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  assert.ok(overflow <= 0, `the page is ${overflow} px too wide`);
  await player.walkingTowards([-4.2, 26], () => player.until(() => !window.__frolic.hudTexts().includes('Hidden')));
  await player.close();
});

test('on a phone the bell has a button between the others, only next to it', async () => {
  const player = await Player.enter(browser, server, { game: GAME, viewport: PHONE, touch: true });
  const button = player.page.locator('button[data-prompt]');
  assert.equal(await button.count(), 0, 'nothing to use at the gate');
  await walkToBell(player, button);
  const [use, stick, jump] = await Promise.all(
    [button, player.page.locator('[data-stick]'), player.page.locator('[data-jump]')].map((control) =>
      control.boundingBox(),
    ),
  );
  assert.ok(
    use.x >= stick.x + stick.width && use.x + use.width <= jump.x,
    `${use.x} to ${use.x + use.width} between ${stick.x + stick.width} and ${jump.x}`,
  );
  await picture(player.page, 'stealth-bell-phone');
  await player.walkingTowards([14, 27], () => button.waitFor({ state: 'detached' }));
  await player.close();
});

test('the bell shows its prompt, E rings it, and a guard investigates', async () => {
  const player = await Player.enter(browser, server, { game: GAME, viewport: forWorlds(DESKTOP) });
  const prompt = player.page.locator('[data-prompt]');
  assert.equal(await prompt.count(), 0, 'nothing to use at the gate');
  await walkToBell(player, prompt);
  assert.equal((await prompt.innerText()).replace(/\s+/g, ' ').trim(), 'E Ring the bell');
  await picture(player.page, 'stealth-bell');
  await player.page.keyboard.press('KeyE', { delay: 300 });
  await prompt.waitFor({ state: 'detached' });
  const near = () =>
    window.__frolic
      .entities()
      .some(({ kind, position: [x, , z] }) => kind === 'npc' && Math.hypot(x - 20.6, z - 21) < 5);
  await player.until(near, undefined, ROUND_MS);
  await player.close();
});
