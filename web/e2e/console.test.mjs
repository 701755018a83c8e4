// The creator's console: an error of a script shows on the page within seconds,
// with its file, line, source and stack; script costs are shown below; and
// other users see none of it.
// Covers: web/src/routes/create, crates/platform/src/worlds/console.rs, crates/gameserver/src/console.rs
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { launchBrowser, openPage } from './browser.mjs';
import { binary, startServer } from './server.mjs';

const ADMIN_TOKEN = 'admin-of-this-test-0123456789';
const SCRIPT = `print("the world is up")
local held = {}
function OnTick()
	for i = 1, 500 do held[i] = tostring(i) end
end
task.spawn(function()
	while true do
		task.spawn(function()
			local door = nil
			door.Open()
		end)
		task.wait(1)
	end
end)
`;

let server;
let browser;
let creator;
before(async () => {
  server = await startServer({ ADMIN_TOKEN });
  browser = await launchBrowser();
  creator = (await server.call('POST', '/login', { body: { username: 'Creator' } })).body;
  await publish();
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

async function publish() {
  const folder = path.join(server.dataDir, 'noisy');
  const scripts = path.join(folder, 'scripts/ServerScriptService');
  await mkdir(scripts, { recursive: true });
  await writeFile(path.join(folder, 'game.toml'), '[game]\nid = "noisy"\nname = "Noisy"\nversion = "1.0.0"\n');
  const spawn = { id: 1, name: 'Spawn', components: { Transform: { position: [0, 1, 0] }, SpawnPoint: {} } };
  await writeFile(path.join(folder, 'scene.json'), JSON.stringify({ format: 1, prefabs: {}, entities: [spawn] }));
  await writeFile(path.join(scripts, 'Main.luau'), SCRIPT);
  const file = path.join(server.dataDir, 'noisy.game');
  execFileSync(binary(), ['pack', folder, '-o', file]);
  const response = await fetch(`${server.url}/api/games`, {
    method: 'POST',
    headers: { authorization: `Bearer ${creator.session_token}` },
    body: await readFile(file),
  });
  assert.equal(response.status, 201, await response.text());
}

/** A page with a session, or without one for a stranger. */
async function pageOf(login, options = {}) {
  const page = await openPage(browser, options);
  if (login) {
    const session = { token: login.session_token, clientId: login.client_id, username: login.username };
    await page.addInitScript((saved) => localStorage.setItem('frolic.session', JSON.stringify(saved)), session);
  }
  return page;
}

test('a script error is shown with line, source and stack, and costs below', async () => {
  // Starts the world; its scripts run without players.
  await server.join({ game_id: 'noisy' });
  const page = await pageOf(creator, { viewport: { width: 1100, height: 800 } });
  await page.goto(`${server.url}/games/noisy`);
  await page.locator('[data-console]').click();
  await page.waitForURL('**/create/noisy/console');
  const lines = page.locator('[data-console-lines]');
  await lines.getByText('the world is up').first().waitFor();
  const error = lines.locator('[data-level="error"]').first();
  await error.waitFor();
  const text = await error.innerText();
  assert.ok(text.includes('ServerScriptService/Main.luau:10'), text);
  assert.ok(text.includes('attempt to index nil'), text);
  await error.locator('summary').click();
  await error.getByText('10 | door.Open()').waitFor();
  assert.ok((await error.innerText()).includes('package'), 'it names the package it came from');

  const row = page.locator('[data-script="ServerScriptService/Main.luau"]');
  await row.waitFor();
  await page.waitForFunction(() => {
    const cells = document.querySelectorAll('[data-script="ServerScriptService/Main.luau"] td');
    return Number(cells[3]?.textContent) > 0 && Number.parseFloat(cells[0]?.textContent ?? '0') > 0;
  });

  await page.getByRole('button', { name: 'Errors' }).click();
  await lines.getByText('the world is up').waitFor({ state: 'detached' });
  assert.ok((await lines.locator('li').count()) > 0);
  assert.deepEqual(page.complaints, []);
  await page.context().close();
});

test('it fits a phone', async () => {
  const page = await pageOf(creator, { viewport: { width: 360, height: 740 }, touch: true });
  await page.goto(`${server.url}/create/noisy/console`);
  await page.locator('[data-console-lines] li').first().waitFor();
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(wide <= 0, `${wide} px stick out`);
  await page.context().close();
});

test('other users have no access to the console, an operator has', async () => {
  const page = await pageOf(null);
  await page.goto(`${server.url}/games/noisy`);
  await page.locator('[data-play]').waitFor();
  assert.equal(await page.locator('[data-console]').count(), 0);
  await page.goto(`${server.url}/create/noisy/console`);
  await page.getByText('You can’t open this console').waitFor();
  assert.equal(await page.locator('[data-console-lines]').count(), 0);
  await page.getByPlaceholder('Admin token').fill(ADMIN_TOKEN);
  await page.getByRole('button', { name: 'Open' }).click();
  await page.locator('[data-console-lines] li').first().waitFor();
  await page.context().close();
});
