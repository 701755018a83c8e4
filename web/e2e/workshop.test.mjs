// The spell workshop: a guest writes a spell, sees why it does not compile, builds it, publishes it and casts it into a
// private world; a player in that world sees it without rejoining.
// Covers: web/src/routes/workshop, crates/platform/src/spells, crates/world/src/spells.rs
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { launchBrowser, openPage } from './browser.mjs';
import { startServer } from './server.mjs';

const WIDE = { width: 1280, height: 800 };
const PHONE = { width: 390, height: 844 };

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

/** Takes screenshots in both themes and sizes if SCREENSHOTS is set, and checks that nothing overflows. */
async function look(page, name) {
  for (const [size, viewport] of Object.entries({ wide: WIDE, phone: PHONE })) {
    await page.setViewportSize(viewport);
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(overflow <= 0, `${name} is ${overflow} px too wide at ${viewport.width} px`);
    if (!process.env.SCREENSHOTS) continue;
    await mkdir(process.env.SCREENSHOTS, { recursive: true });
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme });
      await page.screenshot({
        path: path.join(process.env.SCREENSHOTS, `${name}-${size}-${colorScheme}.png`),
        fullPage: true,
      });
    }
    await page.emulateMedia({ colorScheme: 'light' });
  }
  await page.setViewportSize(WIDE);
}

async function type(page, code) {
  await page.locator('.cm-content').click();
  await page.keyboard.press('Control+a');
  await page.keyboard.press('Delete');
  await page.keyboard.insertText(code);
}

test('from the first line to a cast', async () => {
  // Another user's public world that allows spells.
  const other = (await server.call('POST', '/login', { body: {} })).body.session_token;
  const world = await server.call('POST', '/worlds', {
    token: other,
    body: { game_id: 'sandbox', name: 'Foreign meadow' },
  });
  assert.equal(world.status, 201);
  const page = await openPage(browser, { viewport: WIDE });
  await page.goto(`${server.url}/workshop`);
  await page.getByText('Choose a spell or create one').waitFor();
  await look(page, 'workshop-empty');
  await page.getByRole('button', { name: 'New spell' }).first().click();
  await page.getByRole('textbox', { name: /Name/ }).fill('Ice wall');
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await page.locator('.cm-content').waitFor();

  // The compile error is shown with its line.
  await type(page, 'function on_cast(ctx)\n\tif\nend');
  await page.getByRole('button', { name: 'Build', exact: true }).click();
  await page.getByRole('alert').filter({ hasText: 'spell.luau:' }).waitFor();
  await look(page, 'workshop-failed');

  await type(
    page,
    "function on_cast(ctx)\n\tctx.world.terraform({ op = 'subtract', center = ctx.target, radius = 1 })\n\tctx.world.sound('hit')\nend\n",
  );
  await page.getByRole('button', { name: 'Build', exact: true }).click();
  await page.getByText('Version 1').waitFor();
  await page.getByRole('button', { name: 'Stable' }).click();
  await page.getByText('Published to stable').waitFor();

  // A private sandbox, and a cast in it.
  // Other users' worlds are not offered, nor prompts without a configured language model.
  assert.deepEqual(await page.getByLabel('World', { exact: true }).locator('option').allTextContents(), [
    'Choose a world',
  ]);
  assert.equal(await page.getByText('plain words').count(), 0);
  await page.getByRole('button', { name: 'Create a sandbox' }).click();
  await page.getByText('Watching Spell range').waitFor();
  await page
    .getByLabel('World', { exact: true })
    .locator('option', { hasText: 'Spell range' })
    .waitFor({ state: 'attached' });
  await page.getByLabel('Target (x, y, z)').fill('8, 6, 8');
  await page.getByRole('button', { name: 'Cast', exact: true }).click();
  await page.getByText(/was cast at 8.0, 6.0, 8.0/).waitFor();
  await look(page, 'workshop-cast');
  assert.deepEqual(
    page.complaints.filter((text) => !text.includes('favicon')),
    [],
  );
  await page.context().close();
});
