// The client libraries in a game of its own, on a desktop and on a phone: widgets, keys, actions, camera,
// effects, who is here. With SCREENSHOTS=folder it also leaves pictures there.
// Covers: crates/script/builtin, web/src/player
import assert from 'node:assert/strict';
import { deflateSync } from 'node:zlib';
import { after, before, test } from 'node:test';
import { launchBrowser, openPage, picture } from './browser.mjs';
import { Player } from './player.mjs';
import { publish } from './publish.mjs';
import { startServer } from './server.mjs';

const FILES = {
  'game.toml': '[game]\nid = "widgets"\nname = "Widgets"\nversion = "1.0.0"\n',
  'assets/heart.png': png(16, 16, (x, y) => ((x - 8) ** 2 + (y - 8) ** 2 < 49 ? [255, 93, 93, 255] : [0, 0, 0, 0])),
  'scene.json': JSON.stringify({
    format: 1,
    prefabs: {
      Coin: { components: { Shape: { type: 'sphere', radius: 0.4 }, Material: { color: '#ffc53d' }, Tag: ['coin'] } },
    },
    entities: [
      {
        id: 1,
        name: 'Ground',
        components: {
          Transform: { position: [0, -0.5, 0] },
          Shape: { type: 'box', size: [40, 1, 40] },
          Material: { color: '#7fc97f', pattern: 'grass' },
        },
      },
      { id: 2, name: 'Spawn', components: { Transform: { position: [0, 0.5, 0] }, SpawnPoint: {} } },
      {
        id: 3,
        name: 'Wall',
        components: {
          Transform: { position: [0, 1.5, -8] },
          Shape: { type: 'box', size: [12, 3, 1] },
          Material: { color: '#3aa6ff' },
          Tag: ['wall'],
        },
      },
    ],
  }),
  'scripts/ServerScriptService/Main.luau': `
    World.Spawn("Coin", Vector3.new(2, 1, -4))
    Players.PlayerJoined:Connect(function(player)
      player.Team = "Red"
      player.leaderstats.Coins = 0
    end)
    Network.OnClientEvent("Dash", function(player, held) player.leaderstats.Coins += 1 end)
    Network.OnClientEvent("Aim", function(player) player.leaderstats.Aims = (player.leaderstats.Aims or 0) + 1 end)`,
  'scripts/StarterGui/Screen.luau': `
    UI.Label({ Text = "Coins: 0", Anchor = "TopRight", Size = 22 })
    UI.Bar({ Text = "Health", Value = 0.7, Anchor = "TopLeft", Color = "#2fbf71" })
    UI.Image({ Image = "assets/heart.png", Width = 40, Anchor = "TopLeft" })
    local list = UI.List({ Text = "Choose a hat", Items = { "Cap", "Crown", "<b>Wizard</b>" }, Anchor = "Left", Size = 16 })
    local panel = UI.Panel({ Text = "Ready?", Anchor = "Bottom", Layout = "Row" })
    local start = UI.Button({ Text = "Start", Parent = panel })
    UI.Button({ Text = "Later", Color = "#ffc53d", Parent = panel })
    local said = UI.Label({ Text = "nothing yet", Position = Vector3.new(0.5, 0.16, 0), Anchor = "Center" })
    start.Clicked:Connect(function()
      said.Text = "started"
      Effects.Particles(World.Find("coin"), { Count = 60 })
      Effects.Beam(Players.LocalPlayer.Character, World.Find("coin"), { Seconds = 20 })
      Effects.Shake(0.3, 0.5)
      Sound.Play("coin")
    end)
    list.Selected:Connect(function(index, text) said.Text = index .. " " .. text end)
    Input.BindAction("Dash", { "Q", "ButtonX" }, function(pressed)
      said.Text = "dash " .. tostring(pressed)
      if pressed then Network.FireServer("Dash") end
    end)
    local me = UI.Label({ Anchor = "BottomLeft", Size = 14 })
    function OnTick()
      local player = Players.LocalPlayer
      local hit = World.Raycast(Vector3.new(0, 1.5, 0), Vector3.new(0, 0, -20), { Tag = "wall" })
      me.Text = \`{player.Name} {player.Team} {player.leaderstats.Coins} of {Players.Count}, coin {World.Find("coin") ~= nil}, wall {hit and math.round(hit.Distance * 10) / 10}\`
      Network.FireServerUnreliable("Aim")
    end
    Network.OnServerEvent("Far", function()
      Camera.SetPosition(Vector3.new(0, 12, 14))
      Camera.LookAt(World.Find("Wall"))
      said.Text = Camera.Mode .. " " .. math.round(Camera.Position.Y)
    end)
    Input.OnPressed("F", function()
      Camera.SetPosition(Vector3.new(0, 12, 14))
      Camera.LookAt(World.Find("Wall"))
      task.wait(0.5)
      said.Text = Camera.Mode .. " " .. math.round(Camera.Position.Y)
    end)`,
};

let server;
let browser;
before(async () => {
  server = await startServer();
  browser = await launchBrowser();
  await publish(server, FILES);
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

async function shows(player, pattern) {
  const shown = (source) => window.__frolic.hudTexts().some((text) => new RegExp(source).test(text));
  await player.until(shown, pattern.source).catch(async (error) => {
    throw new Error(
      `no ${pattern} in ${JSON.stringify(await player.hudTexts())}; ${player.page.complaints.join('; ')}`,
      { cause: error },
    );
  });
}

test('desktop: widgets, keys, camera, effects and replicated state', async () => {
  const player = await Player.enter(browser, server, { game: 'widgets', viewport: { width: 1280, height: 720 } });
  const { page } = player;
  await shows(player, /Red 0 of 1, coin true, wall 7\.5/);
  await player.until(() => document.querySelector('[data-widget] img')?.naturalWidth === 16);
  assert.equal(await page.locator('.line b').count(), 0, 'text is never markup');
  await page.getByRole('button', { name: '<b>Wizard</b>' }).click();
  await shows(player, /^3 <b>Wizard/);
  await page.getByRole('button', { name: 'Start' }).click();
  await shows(player, /^started$/);
  await picture(page, 'widgets-desktop');
  await page.keyboard.down('KeyQ');
  await shows(player, /^dash true$/);
  await page.keyboard.up('KeyQ');
  await shows(player, /^dash false$/);
  await shows(player, /Red 1 of 1/);
  await page.keyboard.press('KeyF');
  await shows(player, /^Fixed 12$/);
  await picture(page, 'camera-fixed');
  // The leaderboard has a column per stat.
  const board = page.locator('[data-leaderboard]');
  await board.locator('th', { hasText: 'Coins' }).waitFor();
  await board.locator('tr.own td', { hasText: /^1$/ }).first().waitFor();
  await picture(page, 'leaderboard');
  // The pause menu lists the game's action with its key, and the same stats.
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Controls' }).click();
  const controls = await page
    .locator('[role=dialog] dl > div')
    .evaluateAll((rows) => rows.map((row) => row.innerText.replace(/\s+/g, ' ').trim()));
  assert.ok(controls.includes('Q Dash'), controls.join(' | '));
  assert.ok(controls.includes('Enter Chat') && controls.includes('Esc Menu'), controls.join(' | '));
  await picture(page, 'controls');
  await page.getByRole('button', { name: '1 player' }).click();
  await page.locator('[data-player]', { hasText: 'Coins 1' }).waitFor();
  await page.keyboard.press('Escape');
  const info = await page.evaluate(() => window.__frolic.players()[0]);
  assert.ok(
    info.stats.some((stat) => stat.name === 'Aims' && stat.number > 0),
    'unreliable events came',
  );
  assert.deepEqual(page.complaints, []);
  await page.context().close();
});

test('phone: the same widgets, and a button for the action', async () => {
  const player = await Player.enter(browser, server, {
    game: 'widgets',
    viewport: { width: 390, height: 844 },
    touch: true,
  });
  const { page } = player;
  await shows(player, /coin true/);
  await page.locator('[data-action="Dash"]').tap();
  await shows(player, /^dash false$/);
  await shows(player, /Red 1 of/);
  await picture(page, 'widgets-phone');
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= 390, `nothing sticks out: ${wide}`);
  assert.deepEqual(page.complaints, []);
  await page.context().close();
});

test('the API reference is searchable on desktop and phone', async () => {
  for (const [name, viewport, touch] of [
    ['desktop', { width: 1280, height: 800 }, false],
    ['phone', { width: 390, height: 844 }, true],
  ]) {
    const page = await openPage(browser, { viewport, touch });
    await page.goto(`${server.url}/docs/api`);
    await page.getByRole('heading', { name: 'World', exact: true }).waitFor();
    await picture(page, `reference-${name}`);
    await page.getByRole('searchbox', { name: 'Search the reference' }).fill('raycast');
    await page.locator('[id="World.Raycast"]').waitFor();
    assert.equal(await page.locator('[id="World.Spawn"]').count(), 0);
    await picture(page, `reference-search-${name}`);
    await page.getByRole('button', { name: 'Client' }).click();
    await page.getByRole('searchbox', { name: 'Search the reference' }).fill('');
    await page.locator('[id="UI.Label"]').waitFor();
    assert.equal(await page.locator('[id="World.Spawn"]').count(), 0);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= viewport.width, `nothing sticks out: ${wide}`);
    assert.deepEqual(page.complaints, []);
    await page.context().close();
  }
});

/** A generated image: the repository has no binary test files. */
function png(width, height, pixel) {
  const rows = Array.from({ length: height }, (_, y) => [
    0,
    ...Array.from({ length: width }, (_, x) => pixel(x, y)).flat(),
  ]);
  const chunk = (type, data) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const out = Buffer.alloc(body.length + 8);
    out.writeUInt32BE(data.length, 0);
    body.copy(out, 4);
    out.writeUInt32BE(crc32(body), body.length + 4);
    return out;
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 6, 0, 0, 0], 8);
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([
    signature,
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(Buffer.from(rows.flat()))),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function crc32(bytes) {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}
