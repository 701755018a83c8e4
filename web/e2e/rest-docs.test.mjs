// The REST reference: rendered from the server's OpenAPI document, searchable, and every operation can be tried. With
// SCREENSHOTS=folder it leaves pictures there.
// Covers: web/src/routes/docs, crates/platform/src/openapi.rs
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { launchBrowser, openPage } from './browser.mjs';
import { startServer } from './server.mjs';

let server;
let browser;

before(async () => {
  [server, browser] = await Promise.all([startServer(), launchBrowser()]);
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

async function shot(page, name) {
  const folder = process.env.SCREENSHOTS;
  if (folder) await page.screenshot({ path: path.join(folder, `${name}.png`) });
}

for (const [name, viewport, touch, scheme] of [
  ['desktop', { width: 1280, height: 800 }, false, 'light'],
  ['phone', { width: 390, height: 844 }, true, 'dark'],
]) {
  test(`REST operations are described and can be tried (${name})`, async () => {
    const page = await openPage(browser, { viewport, touch });
    await page.emulateMedia({ colorScheme: scheme });
    await page.goto(`${server.url}/docs/rest`);
    await page.getByRole('heading', { name: 'REST API' }).waitFor();
    const search = page.getByRole('searchbox', { name: 'Search the calls' });
    await search.waitFor();
    await shot(page, `rest-${name}`);

    await search.fill('liveness');
    const call = page.locator('details#get-health');
    await call.waitFor();
    assert.equal(await page.locator('details').count(), 1, 'the search leaves out the rest');
    await call.locator('summary').click();
    await call.getByText('players: number').waitFor();
    await call.getByRole('button', { name: 'Send' }).click();
    await call.getByText('"status": "ok"').waitFor();
    await shot(page, `rest-tried-${name}`);

    // An operation with a path parameter requires it, and shows errors unchanged.
    await search.fill('console');
    const guarded = page.locator('details#get-api-games-id-console');
    await guarded.locator('summary').click();
    assert.ok(await guarded.getByRole('button', { name: 'Send' }).isDisabled());
    await guarded.getByLabel('id', { exact: false }).first().fill('meadow');
    await guarded.getByRole('button', { name: 'Send' }).click();
    await guarded.getByText('missing_token').waitFor();
    await shot(page, `rest-refused-${name}`);

    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= viewport.width, `nothing sticks out: ${wide}`);
    // The browser logs the expected 401.
    assert.deepEqual(
      page.complaints.filter((text) => !text.includes('401')),
      [],
    );
    await page.context().close();
  });
}
