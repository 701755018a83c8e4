// `frolic dev`: a page plays a folder, a file is saved, and the page shows the change, with the
// preserved state of the script. Prints the latency.
// Covers: crates/frolic/src/commands, web/src/player
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { createInterface } from 'node:readline';
import { launchBrowser, openPage, picture } from './browser.mjs';
import { Player } from './player.mjs';
import { binary } from './server.mjs';

const hud = (word) => `
  local label = UI.Label({ Text = "${word}", Anchor = "TopLeft" })
  visits = 1
  function OnSave() return visits end
  function OnReload(old)
    visits = old + 1
    label.Text = "${word} " .. visits
  end`;
const server_script = (word) => `
  local count = 0
  Network.OnClientInvoke("Count", function() count += 1 return "${word}", count end)
  function OnSave() return count end
  function OnReload(old) count = old end`;
const scene = (name) =>
  JSON.stringify({
    format: 1,
    prefabs: {},
    entities: [
      {
        id: 1,
        name: 'Ground',
        components: {
          Transform: { position: [0, -0.5, 0] },
          Shape: { type: 'box', size: [20, 1, 20] },
          Body: { type: 'static' },
        },
      },
      { id: 2, name: 'Spawn', components: { Transform: { position: [0, 0.5, 0] }, SpawnPoint: {} } },
      { id: 3, name, components: { Transform: { position: [3, 1, 3] }, Shape: { type: 'box', size: [1, 1, 1] } } },
    ],
  });
const HUD = 'scripts/StarterGui/Hud.luau';
const MAIN = 'scripts/ServerScriptService/Main.luau';
const FILES = {
  'game.toml': '[game]\nid = "workshop"\nname = "Workshop"\nversion = "1.0.0"\nvisibility = "private"\n',
  'scene.json': scene('First'),
  [HUD]: hud('first'),
  [MAIN]: server_script('one'),
  'scripts/StarterGui/Ask.luau': `
    local label = UI.Label({ Text = "", Anchor = "Top" })
    while true do
      local word, count = Network.InvokeServer("Count")
      label.Text = \`server {word} {count > 3}\`
      task.wait(0.05)
    end`,
};

let folder;
let dev;
let browser;
before(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'frolic-dev-'));
  for (const [name, text] of Object.entries(FILES)) await save(name, text);
  dev = await startDev(folder);
  browser = await launchBrowser();
});
after(async () => {
  await browser?.close();
  await dev?.stop();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
});

async function save(name, text) {
  await mkdir(path.dirname(path.join(folder, name)), { recursive: true });
  await writeFile(path.join(folder, name), text);
}

async function startDev(of) {
  const child = spawn(binary(), ['dev', of, '--port', '0', '--no-open'], { stdio: ['ignore', 'pipe', 'pipe'] });
  const lines = [];
  const waiting = [];
  const onLine = (line) => {
    lines.push(line);
    for (const look of [...waiting]) look();
  };
  for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on('line', onLine);
  const until = (pattern) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no ${pattern} in\n${lines.join('\n')}`)), 90_000);
      const look = () => {
        const found = lines.map((line) => line.match(pattern)).find(Boolean);
        if (!found) return;
        clearTimeout(timer);
        waiting.splice(waiting.indexOf(look), 1);
        resolve(found);
      };
      waiting.push(look);
      look();
    });
  const [, url, link] = await until(/Play at (http:\/\/127\.0\.0\.1:\d+)(\/\S+)/);
  return {
    url,
    /** Signs one browser in as the creator. */
    link: url + link,
    until,
    log: () => lines.join('\n'),
    async stop() {
      if (child.exitCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
    },
  };
}

const shows = (player, text) =>
  player.until((wanted) => window.__frolic.hudTexts().some((t) => t.includes(wanted)), text);

/** Milliseconds from saving a file to the page showing `text`. */
async function liveAfter(player, name, text, shown) {
  const seen = player.page.waitForFunction(
    (wanted) => window.__frolic.hudTexts().some((t) => t.includes(wanted)),
    shown,
    { polling: 10, timeout: 90_000 },
  );
  const began = performance.now();
  await save(name, text);
  await seen;
  return performance.now() - began;
}

test('saved changes are live with preserved state; broken code changes nothing', async () => {
  const player = await Player.enter(browser, dev, { game: 'workshop' });
  await shows(player, 'first');
  const world = await player.read('worldId');

  const times = [];
  for (const [i, word] of ['second', 'third', 'fourth'].entries()) {
    times.push(await liveAfter(player, HUD, hud(word), `${word} ${i + 2}`));
  }
  console.info(`client script live after ${times.map((ms) => `${ms.toFixed(0)} ms`).join(', ')}`);

  await shows(player, 'server one true');
  const took = await liveAfter(player, MAIN, server_script('two'), 'server two true');
  console.info(`server script live after ${took.toFixed(0)} ms, its count preserved`);

  await save(HUD, `${hud('broken')}\nlocal = 5`);
  await dev.until(/Hud\.luau:\d+: .*identifier/);
  await dev.until(/local = 5/);
  assert.ok((await player.hudTexts()).includes('fourth 4'), 'the old one goes on');
  await liveAfter(player, HUD, hud('fifth'), 'fifth 5');

  await liveAfter(
    player,
    'scripts/StarterGui/New.luau',
    'UI.Label({ Text = "brand new", Anchor = "Left" })',
    'brand new',
  );
  await rm(path.join(folder, 'scripts/StarterGui/New.luau'));
  await player.until(() => !window.__frolic.hudTexts().includes('brand new'));

  // Server code that fails is rolled back to the previous version.
  await save(MAIN, `${server_script('bad')}\nfunction OnTick() error("oh no") end`);
  await dev.until(/Main\.luau:\d+: oh no \(revision [0-9a-f]{8}, script [0-9a-f]{8}\)/);
  await dev.until(/swapped back from revision/);
  await shows(player, 'server two true');

  assert.equal(await player.read('worldId'), world, 'without reconnecting');
  const login = await (await fetch(`${dev.url}/login`, { method: 'POST' })).json();
  const joined = await fetch(`${dev.url}/join`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${login.session_token}` },
    body: JSON.stringify({ game_id: 'workshop' }),
  });
  assert.equal((await joined.json()).world_id, world, 'the same world, on the newest revision');
  await player.close();
});

/** Waits until the playing page shows an entity with this name. */
const showsScene = (player, name) =>
  player.until((wanted) => window.__frolic?.ready && window.__frolic.sceneNames().includes(wanted), name);

test('a saved scene appears in the open page, after a reload, and after Play', async () => {
  const player = await Player.enter(browser, dev, { game: 'workshop' });
  await showsScene(player, 'First');
  const began = performance.now();
  await save('scene.json', scene('Second'));
  await showsScene(player, 'Second');
  console.info(`a new scene is on the screen after ${(performance.now() - began).toFixed(0)} ms`);
  await player.page.reload();
  await showsScene(player, 'Second');
  await save('scene.json', scene('Third'));
  await showsScene(player, 'Third');
  await player.page.goto(`${dev.url}/`);
  await player.page.goto(`${dev.url}/play/workshop?gfx=low`);
  await showsScene(player, 'Third');

  // A change of game.toml also changes the world.
  await save('game.toml', FILES['game.toml'].replace('1.0.0', '1.0.1'));
  await dev.until(/game\.toml changed: worlds restart/);
  await save('scene.json', scene('Fourth'));
  await showsScene(player, 'Fourth');
  await save('scene.json', FILES['scene.json']);
  await save('game.toml', FILES['game.toml']);
  await showsScene(player, 'First');
  await player.close();
});

test('the link in the terminal signs in the creator once; others are players', async () => {
  const page = await openPage(browser);
  await page.goto(`${dev.link}`.replace('#', '?gfx=low#'));
  const creator = new Player(page);
  await creator.ready(dev);
  assert.equal(new URL(page.url()).hash, '', 'the secret leaves the address');
  await page.goto(`${dev.url}/create/workshop/console`);
  await page.getByRole('heading', { name: /Workshop/ }).waitFor();
  assert.equal(await page.getByText('You can’t open this console').count(), 0);
  await page.goto(`${dev.url}/create`);
  await page.getByText('Workshop').first().waitFor();
  const [, next] = await dev.until(/The link for another one: (http:\S+)/);
  assert.notEqual(next, dev.link);
  await creator.close();

  const late = await openPage(browser);
  await late.goto(dev.link.replace(/\/play\/\w+/, '/create/workshop/console'));
  await late
    .getByText(/You can’t open this console|not signed in/i)
    .first()
    .waitFor();
  await late.close();
});

test('client script output and errors reach the terminal, the console and the error list', async () => {
  const [, link] = await dev.until(/The link for another one: (http:\S+)/);
  const page = await openPage(browser);
  await page.goto(link.replace('#', '?gfx=low#'));
  const creator = new Player(page);
  await creator.ready(dev);
  const name = 'scripts/StarterGui/Noisy.luau';
  await save(
    name,
    'print("hello from the browser")\nwarn("careful")\ntask.wait(0.1)\nfor i = 1, 3 do task.spawn(function() local none = nil; print(none.Gone) end) end',
  );
  await dev.until(
    /client StarterGui\/Noisy\.luau:1: hello from the browser \(in Chrome on Linux, revision [0-9a-f]{8}\)/,
  );
  await dev.until(/client StarterGui\/Noisy\.luau:2: careful/);
  await dev.until(/client StarterGui\/Noisy\.luau:4: .*index nil.*\(in Chrome on Linux, 3 times, revision/);
  // A missing asset.
  await save('scripts/StarterGui/Missing.luau', 'UI.Image({ Image = "none.png" })\nSound.Play("none.ogg")');
  await dev.until(/WARN client .*there is no file "none\.png" in this game/);
  await dev.until(/WARN client .*there is no file "none\.ogg" in this game/);
  await rm(path.join(folder, 'scripts/StarterGui/Missing.luau'));
  // The source line, as for server errors.
  await dev.until(/^\s+for i = 1, 3 do/);
  // Output of guests is included during development.
  const guest = await Player.enter(browser, dev, { game: 'workshop' });
  await page.goto(`${dev.url}/create/workshop/console`);
  const lines = page.locator('[data-console-lines]');
  await lines.getByText('hello from the browser').first().waitFor();
  await lines
    .locator('li[data-level=error]', { hasText: 'Noisy.luau:4' })
    .getByText(/Chrome on Linux ×3/)
    .first()
    .waitFor();
  await picture(page, 'console-client');
  await page.goto(`${dev.url}/create/workshop/errors`);
  await page
    .getByText(/in browsers, most recently Chrome on Linux/)
    .first()
    .waitFor();
  await picture(page, 'errors-client');
  await guest.close();
  await creator.close();
  await rm(path.join(folder, name));
});

/** The output of a command. */
async function said(args, env = {}) {
  const child = spawn(binary(), args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => (text += bytes));
  const [code] = await once(child, 'close');
  return { code, text };
}

test('failing commands say what to do', async () => {
  const second = await said(['dev', folder, '--port', '0', '--no-open']);
  assert.notEqual(second.code, 0);
  assert.match(second.text, /stop the other `frolic dev` of this game first/);
  assert.doesNotMatch(second.text, /--data-dir/, 'dev has no such flag');
  const login = await said(['login', '--server', dev.url], { FROLIC_API_KEY: 'no-such-key', HOME: folder });
  assert.notEqual(login.code, 0);
  assert.match(login.text, /does not know this API key; make one at/);
});
