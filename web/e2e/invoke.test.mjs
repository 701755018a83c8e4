// Network.InvokeServer in its own game: a page's script, and a
// third-party client, call a server script and get its result or error.
// Covers: crates/script/builtin, crates/gameserver, web/src/player/luau
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launchBrowser } from './browser.mjs';
import { JsonClient } from './json-client.mjs';
import { Player } from './player.mjs';
import { publish } from './publish.mjs';
import { startServer } from './server.mjs';

const FILES = {
  'game.toml': '[game]\nid = "asking"\nname = "Asking"\nversion = "1.0.0"\n',
  'scene.json': JSON.stringify({
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
    ],
  }),
  'scripts/ServerScriptService/Main.luau': `
    Network.OnClientInvoke("Add", function(player, a, b)
      task.wait(0.1)
      return a + b, player.Name
    end)
    Network.OnClientInvoke("Refuse", function() error("no coins", 0) end)`,
  'scripts/StarterGui/Ask.luau': `
    local sum, name = Network.InvokeServer("Add", 2, 3)
    UI.Label({ Text = \`sum {sum} for {name}\`, Anchor = "TopLeft" })
    local ok, why = pcall(Network.InvokeServer, "Refuse")
    UI.Label({ Text = \`{ok} {why}\`, Anchor = "TopLeft" })`,
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

test("a page's script gets the result or the error", async () => {
  const player = await Player.enter(browser, server, { game: 'asking' });
  const texts = await player.until(() => {
    const shown = window.__frolic.hudTexts();
    return shown.length >= 2 && shown;
  });
  assert.match(texts[0], /^sum 5 for .+/);
  assert.match(texts[1], /^false .*no coins$/);
  await player.close();
});

test('a third-party client gets the same', async () => {
  const joined = await server.join({ game_id: 'asking' });
  const client = await JsonClient.open(joined.server_address, { ticket: joined.ticket });
  await client.next('welcome');
  const result = (id) =>
    client.next((message) => message.feature === 'network.result' && message.id === id, `result ${id}`);
  client.send('network', 'invoke', { id: 7, name: 'Add', args: [2, 3] });
  const { ok, value } = await result(7);
  assert.deepEqual([ok, value], [true, [5, joined.username]]);
  client.send('network', 'invoke', { id: 8, name: 'Refuse' });
  assert.equal((await result(8)).error, 'no coins');
  client.send('network', 'invoke', { id: 9, name: 'Unhandled' });
  assert.match((await result(9)).error, /nothing answers/);
  await client.close();
});
