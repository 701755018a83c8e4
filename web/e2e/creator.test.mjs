// A creator on the site: uploads a package that is refused with a report, then a valid one, edits its page
// and pictures, rolls a version out and back, and sees the dashboard, which other users cannot.
// Covers: web/src/routes/create, crates/platform/src/catalog
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { launchBrowser, openPage } from './browser.mjs';
import { look, pageOf, WIDE } from './pages.mjs';
import { binary, startServer } from './server.mjs';

const SPAWN = { id: 1, name: 'Spawn', components: { Transform: { position: [0, 1, 0] }, SpawnPoint: {} } };

let server;
let browser;
let creator;
before(async () => {
  server = await startServer();
  browser = await launchBrowser();
  creator = (await server.call('POST', '/login', { body: { username: 'Mira' } })).body;
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

/** A package of this version in a file. */
async function pack(version) {
  const folder = path.join(server.dataDir, `tower-${version}`);
  await mkdir(path.join(folder, 'scripts/ServerScriptService'), { recursive: true });
  await writeFile(
    path.join(folder, 'game.toml'),
    `[game]\nid = "tower"\nname = "Tower"\nversion = "${version}"\ntags = ["obby"]\n`,
  );
  await writeFile(path.join(folder, 'scene.json'), JSON.stringify({ format: 1, prefabs: {}, entities: [SPAWN] }));
  await writeFile(path.join(folder, 'scripts/ServerScriptService/Main.luau'), `print("tower ${version}")\n`);
  const file = `${folder}.game`;
  await promisify(execFile)(binary(), ['pack', folder, '-o', file]);
  return file;
}

/** Saves a game's page and waits for the response. */
async function save(page) {
  await page.locator('[data-save]').click();
  await page.locator('[data-save][disabled][aria-busy=false]').waitFor();
}

/** Picks a file on the upload page. */
async function pick(page, file) {
  await page.locator('input[type=file]').setInputFiles(file);
  await page.locator('[data-send]').waitFor();
}

test('a guest starts, and an invalid package is refused with a report', async () => {
  const page = await openPage(browser, { viewport: WIDE });
  await page.goto(`${server.url}/create`);
  await page.getByText('Sign in to continue').waitFor();
  await look(page, 'create-signed-out');
  await page.locator('[data-guest]').click();
  await page.getByText('Nothing here yet').waitFor();
  await look(page, 'create-empty');
  await page.getByRole('link', { name: 'Upload your first game' }).click();
  await page.waitForURL('**/upload');
  await look(page, 'upload');

  const wrong = path.join(server.dataDir, 'readme.txt');
  await writeFile(wrong, 'hello');
  await page.locator('input[type=file]').setInputFiles(wrong);
  await page.getByText('is not a .game package').waitFor();

  const broken = path.join(server.dataDir, 'broken.game');
  const bytes = await readFile(await pack('0.9.0'));
  await writeFile(broken, bytes.subarray(0, bytes.length - 40));
  await pick(page, broken);
  await page.locator('[data-check]').click();
  await page.locator('[data-report-view] [data-problem]').first().waitFor();
  await page.locator('[data-send]').click();
  await page.locator('[data-upload-failed]').waitFor();
  await page.locator('[data-report-view] [data-problem]').first().waitFor();
  await look(page, 'upload-refused');
  await page.context().close();
});

test('a package is uploaded in parts despite a lost connection, and is in the store', async () => {
  const page = await pageOf(browser, creator);
  await page.goto(`${server.url}/upload`);
  await pick(page, await pack('1.0.0'));
  await page.locator('[data-check]').click();
  await page.locator('[data-check-ok]').waitFor();
  let broken = 0;
  await page.route('**/api/uploads/*/part?*', (route) => (broken++ === 0 ? route.abort() : route.continue()));
  await page.getByLabel('What’s new?').fill('The first floor');
  await page.locator('[data-send]').click();
  await page.locator('[data-upload-done]').waitFor();
  assert.ok(broken >= 2, 'the part was sent again');
  assert.match(await page.locator('[data-upload-done]').innerText(), /Version 1\.0\.0 is on stable/);
  await look(page, 'upload-done');
  await page.getByRole('link', { name: 'View page' }).click();
  await page.waitForURL('**/games/tower');
  await page.getByRole('heading', { level: 1, name: 'Tower' }).waitFor();
  await page.getByText('The first floor').waitFor();
  await page.locator('[data-manage]').waitFor();
  await page.context().close();
});

test('the store page is edited: description, tags, pictures, visibility', async () => {
  const page = await pageOf(browser, creator);
  await page.goto(`${server.url}/create/tower/edit`);
  await page.getByLabel('Description').fill('Climb. <b>Do not</b> look down.');
  await page.getByLabel('Tags').fill('Obby, Hard Core');
  await save(page);
  const shot = path.join(import.meta.dirname, '../../games/obby/assets/thumbnail.png');
  await page.locator('input[type=file][multiple]').setInputFiles([shot]);
  await page.locator('[data-shot]').first().waitFor();
  await look(page, 'manage-edit');

  // Another tab saved first: nothing is overwritten, and typed text stays.
  const other = await pageOf(browser, creator);
  await other.goto(`${server.url}/create/tower/edit`);
  await other.getByLabel('Name').fill('Tower of Mira');
  await save(other);
  await other.context().close();
  await page.getByLabel('Description').fill('Climb higher.');
  await page.locator('[data-save]').click();
  await page.getByRole('button', { name: /Load the latest/ }).click();
  await page.getByRole('heading', { level: 1, name: 'Tower of Mira' }).waitFor();
  assert.equal(await page.getByLabel('Description').inputValue(), 'Climb higher.');
  assert.equal(await page.getByLabel('Name').inputValue(), 'Tower of Mira', 'the field that was not touched follows');
  await save(page);

  const game = (await server.call('GET', '/api/games/tower')).body;
  assert.equal(game.name, 'Tower of Mira');
  assert.equal(game.description, 'Climb higher.');
  assert.deepEqual(game.tags, ['obby', 'hard-core']);
  assert.equal(game.screenshots.length, 1);

  await page.getByLabel('Visibility').selectOption('private');
  await save(page);
  await page.locator('main').getByText('private', { exact: true }).waitFor();
  assert.equal((await server.call('GET', '/api/games/tower')).status, 404, 'strangers see nothing of it');
  await page.getByLabel('Visibility').selectOption('public');
  await save(page);
  await page.locator('main').getByText('public', { exact: true }).waitFor();
  await page.context().close();
});

test('a new version goes to beta, to a share, to everyone, and back', async () => {
  const page = await pageOf(browser, creator);
  await page.goto(`${server.url}/upload?game=tower`);
  await pick(page, await pack('1.1.0'));
  await page.getByLabel('Channel').selectOption('beta');
  await page.locator('[data-send]').click();
  await page.locator('[data-upload-done]').waitFor();
  assert.equal(
    (await server.call('GET', '/api/games/tower')).body.version,
    '1.0.0',
    'other players keep their version',
  );
  assert.equal((await server.call('GET', '/api/games/tower')).body.beta_version, '1.1.0');

  await page.goto(`${server.url}/create/tower/versions`);
  await page.locator('[data-release="1.1.0"]').click();
  await page.getByLabel('Share of players').selectOption('20');
  await look(page, 'manage-release');
  await page.locator('[data-confirm-release]').click();
  const stable = page.locator('[data-channel=stable]');
  await stable.getByText('20 %').waitFor();
  await look(page, 'manage-versions');
  await stable.locator('[data-everyone]').click();
  await page.waitForFunction(() => !document.querySelector('[data-channel=stable] [role=progressbar]'));
  assert.equal((await server.call('GET', '/api/games/tower')).body.version, '1.1.0');
  await stable.locator('[data-rollback]').click();
  await page.locator('[data-confirm]').click();
  await page.getByText('stable is back on 1.0.0').waitFor();
  assert.equal((await server.call('GET', '/api/games/tower')).body.version, '1.0.0');
  assert.deepEqual(page.complaints, []);
  await page.context().close();
});

test('the dashboard shows plays, to the creator only', async () => {
  await server.join({ game_id: 'tower' });
  await server.join({ game_id: 'tower' });
  const page = await pageOf(browser, creator);
  await page.goto(`${server.url}/create/tower`);
  await page.locator('[data-stats] .stat').filter({ hasText: 'Plays' }).getByText('2', { exact: true }).waitFor();
  const plays = page.getByRole('img', { name: /Plays per day/ });
  await plays.focus();
  await page.keyboard.press('End');
  await page
    .locator('figcaption')
    .filter({ hasText: 'Plays per day' })
    .getByText(/: 2\s+plays/)
    .waitFor();
  await look(page, 'manage-overview');
  await page.getByRole('tab', { name: 'Errors' }).click();
  await page.waitForURL('**/create/tower/errors');
  await page.getByText('No errors').waitFor();
  await look(page, 'manage-errors');
  await page.goto(`${server.url}/create`);
  await page.locator('[data-own-game=tower]').waitFor();
  await look(page, 'create');

  await page.goto(`${server.url}/create/tower/edit`);
  await page.locator('[data-unpublish]').click();
  await page.locator('[data-confirm]').click();
  await page.locator('[data-publish]').waitFor();
  assert.equal((await server.call('GET', '/api/games/tower')).status, 404);
  await page.locator('[data-publish]').click();
  await page.locator('[data-unpublish]').waitFor();
  assert.equal((await server.call('GET', '/api/games/tower')).status, 200);
  await page.context().close();

  const stranger = await pageOf(browser, (await server.call('POST', '/login', { body: {} })).body);
  await stranger.goto(`${server.url}/create/tower`);
  await stranger.getByText('This isn’t your game').waitFor();
  await look(stranger, 'manage-stranger');
  await stranger.context().close();
});
