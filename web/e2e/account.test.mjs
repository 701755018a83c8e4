// Accounts on the site: a guest registers and keeps their content, signs in again with the password, creates an API key for
// the command line, ends other sessions, and an operator grants a role.
// Covers: web/src/routes/account, web/src/routes/admin, crates/platform/src/community/accounts
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { launchBrowser, openPage } from './browser.mjs';
import { binary, startServer } from './server.mjs';

const ADMIN_TOKEN = 'the admin token of the end-to-end tests';
const PASSWORD = 'correct horse battery';
const WIDE = { width: 1280, height: 800 };
const PHONE = { width: 390, height: 844 };

let server;
let browser;
before(async () => {
  server = await startServer({ ADMIN_TOKEN });
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

async function register(name) {
  const answer = await server.call('POST', '/api/register', { body: { username: name, password: PASSWORD } });
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  return answer.body;
}

/** A page with a signed-in session. */
async function pageOf(login, viewport = WIDE) {
  const saved = {
    token: login.session_token,
    clientId: login.client_id,
    username: login.username,
    kind: login.kind,
    role: login.role,
  };
  return openPage(browser, {
    viewport,
    prepare: (context) =>
      context.addInitScript((session) => {
        if (!sessionStorage.getItem('prepared')) localStorage.setItem('frolic.session', session);
        sessionStorage.setItem('prepared', 'yes');
      }, JSON.stringify(saved)),
  });
}

const field = (page, label) => page.getByLabel(label, { exact: false });

test('a guest registers, keeps their content, and signs in again with the password', async () => {
  await register('Taken');
  const guest = (await server.call('POST', '/login', { body: { username: 'Zoe' } })).body;
  const page = await pageOf(guest);
  await page.goto(`${server.url}/account`);
  await page.getByText('You’re playing as a guest').waitFor();
  await look(page, 'account-guest');
  await page.getByRole('link', { name: 'Create an account' }).click();
  await page.getByText('You’re playing as Zoe').waitFor();
  await field(page, 'Name').fill('taken');
  await field(page, 'Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Create account' }).click();
  await page.getByText('That name is taken.').waitFor();
  await look(page, 'register-refused');
  await field(page, 'Name').fill('Zoe the Builder');
  await page.getByRole('button', { name: 'Create account' }).click();
  await page.getByRole('heading', { level: 1, name: 'Your account', exact: true }).waitFor();
  const token = await page.evaluate(() => JSON.parse(localStorage.getItem('frolic.session')).token);
  const me = await server.call('GET', '/api/me', { token });
  assert.equal(me.body.client_id, guest.client_id, 'the same person');
  assert.equal(me.body.kind, 'account');

  // Signs out through the menu with the keyboard, and in again, back to the same page.
  await page.goto(`${server.url}/games/obby`);
  await page.getByRole('button', { name: 'Account of Zoe the Builder' }).press('Enter');
  await page.getByRole('menuitem', { name: 'Account' }).waitFor();
  await page.keyboard.press('End');
  await page.keyboard.press('Enter');
  await page.locator('[data-sign-in]').click();
  await page.waitForURL('**/sign-in?next=%2Fgames%2Fobby');
  await look(page, 'sign-in');
  await field(page, 'Name').fill('zoe the builder');
  await field(page, 'Password').fill('not this one');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('the name or the password is wrong').waitFor();
  await field(page, 'Password').fill(PASSWORD);
  await page.keyboard.press('Enter');
  await page.waitForURL('**/games/obby');
  await page.getByRole('button', { name: 'Account of Zoe the Builder' }).waitFor();
  const gone = await server.call('GET', '/api/me', { token });
  assert.equal(gone.status, 401, 'signing out ended the session on the server too');
  await page.context().close();
});

test('an API key created on the page publishes a game from the command line', async () => {
  const page = await pageOf(await register('Keymaker'));
  await page.goto(`${server.url}/account`);
  await page.locator('[data-new-key]').click();
  await field(page, 'What is it for?').fill('laptop');
  await page.getByRole('button', { name: 'Create key' }).click();
  const key = await page.getByRole('textbox', { name: 'API key' }).inputValue();
  assert.match(key, /^frolic_key_[0-9a-f]{64}$/);
  await look(page, 'account-new-key');
  await page.getByRole('button', { name: 'Done' }).click();
  await page.getByRole('row', { name: /laptop/ }).waitFor();
  await look(page, 'account');

  const config = path.join(server.dataDir, 'config');
  const env = { ...process.env, XDG_CONFIG_HOME: config, FROLIC_API_KEY: '', FROLIC_SERVER: '' };
  const run = (args, more = {}) => promisify(execFile)(binary(), args, { env: { ...env, ...more } });
  await assert.rejects(run(['publish', 'games/none', '--server', server.url]), /frolic login/);
  await assert.rejects(
    run(['login', '--server', server.url], { FROLIC_API_KEY: 'frolic_key_0' }),
    /does not know this API key/,
  );
  const login = await run(['login', '--server', server.url], { FROLIC_API_KEY: key });
  assert.match(login.stdout, /Logged in to .* as Keymaker/);
  const game = path.join(server.dataDir, 'mine');
  await writeGame(game, 'keymakers-game');
  const published = await run(['publish', game]);
  assert.match(published.stdout, /Published keymakers-game 1\.0\.0/);
  const listed = await server.call('GET', '/api/games/keymakers-game');
  assert.equal(listed.body.creator, 'Keymaker');

  await page.reload();
  await page.getByRole('button', { name: 'Revoke the key laptop' }).click();
  await page.locator('[data-confirm]:visible').click();
  await page.getByText('No keys yet').waitFor();
  await assert.rejects(run(['publish', game]), /revoked/);
  assert.deepEqual(page.complaints, []);
  await page.context().close();
});

test('signing out everywhere else ends the other session, and deletion ends all', async () => {
  const login = await register('Leaver');
  const page = await pageOf(login);
  const other = (await server.call('POST', '/api/login', { body: { username: 'Leaver', password: PASSWORD } })).body;
  const elsewhere = await pageOf(other);
  await elsewhere.goto(`${server.url}/account`);
  await elsewhere.getByRole('heading', { name: 'Where you are signed in' }).waitFor();
  await page.goto(`${server.url}/account`);
  await page.getByRole('button', { name: 'Sign out everywhere else' }).click();
  await page.getByRole('button', { name: 'Sign out everywhere else' }).waitFor({ state: 'detached' });
  await elsewhere.reload();
  await elsewhere.getByText('You’re not signed in').waitFor();
  await look(elsewhere, 'account-signed-out');
  await elsewhere.context().close();

  await page.locator('[data-delete]').click();
  await page.getByLabel('Your name: Leaver').fill('Leaver');
  await page.getByRole('dialog').getByLabel('Password').fill('wrong password');
  await page.locator('[data-confirm]:visible').click();
  await page.getByText('Your current password is wrong.').waitFor();
  await page.getByRole('dialog').getByLabel('Password').fill(PASSWORD);
  await look(page, 'account-delete');
  await page.locator('[data-confirm]:visible').click();
  await page.waitForURL(`${server.url}/`);
  await page.locator('[data-sign-in]').waitFor();
  const again = await server.call('POST', '/api/login', { body: { username: 'Leaver', password: PASSWORD } });
  assert.equal(again.status, 401);
  await page.context().close();
});

test('the operator grants the first admin role, which works without the token', async () => {
  await register('Ruler');
  await register('Helper');
  const operator = await openPage(browser, { viewport: WIDE });
  await operator.goto(`${server.url}/admin`);
  await field(operator, 'Admin token').fill('a guess');
  await operator.getByRole('button', { name: 'Open' }).click();
  await operator.getByText('this is neither ADMIN_TOKEN').waitFor();
  await look(operator, 'admin-closed');
  await field(operator, 'Admin token').fill(ADMIN_TOKEN);
  await operator.getByRole('button', { name: 'Open' }).click();
  await operator.getByRole('tab', { name: 'Users' }).click();
  await field(operator, 'Find users').fill('rul');
  await operator.getByLabel('Role of Ruler').selectOption('admin');
  await operator.locator('[data-confirm]:visible').click();
  await operator.getByText('Ruler is now admin').waitFor();
  await operator.context().close();

  const login = (await server.call('POST', '/api/login', { body: { username: 'Ruler', password: PASSWORD } })).body;
  const page = await pageOf(login);
  await server.join();
  await page.goto(server.url);
  await page.getByRole('button', { name: 'Account of Ruler' }).click();
  await page.getByRole('menuitem', { name: 'Administration' }).click();
  await page.getByRole('cell', { name: 'ready' }).waitFor();
  await look(page, 'admin-servers');
  await page.getByRole('tab', { name: 'Users' }).click();
  await page.getByLabel('Role of Helper').selectOption('moderator');
  await page.locator('[data-confirm]:visible').click();
  await page.getByText('Helper is now moderator').waitFor();
  await look(page, 'admin-people');
  await page.getByRole('tab', { name: 'Sessions' }).click();
  await page.getByRole('button', { name: 'Sign out Ruler' }).first().waitFor();
  await look(page, 'admin-sessions');
  await page.getByRole('tab', { name: 'Cleanup' }).click();
  await page.locator('[data-cleanup]').click();
  await page.getByText(/Removed \d+ session/).waitFor();
  await look(page, 'admin-cleanup');
  await page.getByRole('tab', { name: 'Servers' }).click();
  await page
    .getByRole('button', { name: /Actions for/ })
    .first()
    .click();
  await page.getByRole('menuitem', { name: 'Stop now' }).click();
  await page.locator('[data-confirm]:visible').click();
  await page.getByText('No game servers are running').waitFor();
  assert.deepEqual(page.complaints, []);
  await page.context().close();
});

/** A small game on the disk. */
async function writeGame(folder, id) {
  const { writeFile } = await import('node:fs/promises');
  await mkdir(folder, { recursive: true });
  await writeFile(
    path.join(folder, 'game.toml'),
    `[game]\nid = "${id}"\nname = "Made with a key"\nversion = "1.0.0"\n`,
  );
  const entities = [{ id: 1, name: 'Spawn', components: { Transform: { position: [0, 1, 0] }, SpawnPoint: {} } }];
  await writeFile(path.join(folder, 'scene.json'), JSON.stringify({ format: 1, prefabs: {}, entities }));
}
