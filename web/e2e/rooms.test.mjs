// One open port is enough: through a tunnel that forwards nothing but
// the platform's port, a browser plays, a third-party client plays, and
// both reconnect when the tunnel breaks.
// Covers: crates/platform/src/worlds/rooms, crates/client
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launchBrowser } from './browser.mjs';
import { JsonClient, Replica } from './json-client.mjs';
import { Player } from './player.mjs';
import { startServer } from './server.mjs';
import { openTunnel } from './tunnel.mjs';

let server;
let browser;
let tunnel;
let game;
before(async () => {
  server = await startServer();
  browser = await launchBrowser();
  tunnel = await openTunnel(server.url);
  game = 'obby';
});
after(async () => {
  await browser?.close();
  tunnel?.close();
  await server?.stop();
});

test('a browser behind one port plays with a direct one, and reconnects after a lost connection', async () => {
  const sockets = [];
  const prepare = (context) =>
    context.on('page', (page) => page.on('websocket', (socket) => sockets.push(socket.url())));
  const behind = await Player.enter(browser, { ...server, url: tunnel.url }, { game, prepare });
  assert.equal(await behind.read('transport'), 'websocket');
  const room = await behind.read('roomCode');
  assert.deepEqual(sockets, [`${tunnel.url.replace('http', 'ws')}/api/rooms/${room}/ws`]);

  const direct = await Player.enter(browser, server, { game, world: await behind.read('worldId') });
  const id = await behind.read('entityId');
  await behind.walk(1.5);
  await direct.until((other) => {
    const seen = window.__frolic.entities().find((entity) => entity.id === other);
    return seen && Math.hypot(seen.position[0], seen.position[2]) > 1;
  }, id);

  await behind.settled();
  const stood = await behind.position();
  tunnel.cut();
  await behind.until(() => window.__frolic.phase === 'reconnecting');
  await behind.until(() => window.__frolic.ready && window.__frolic.position() !== null);
  assert.equal(await behind.read('entityId'), id, 'the same character');
  const [x, , z] = await behind.position();
  assert.ok(Math.hypot(x - stood[0], z - stood[2]) < 0.5, `stands at ${[x, z]}, stood at ${stood}`);
  await behind.walk(1, 'KeyS');
  assert.ok(
    sockets.every((url) => url.startsWith(tunnel.url.replace('http', 'ws'))),
    sockets.join(' '),
  );
  await Promise.all([behind.close(), direct.close()]);
});

test('a third-party client plays and resumes through the room URL', async () => {
  const joined = await server.join();
  const address = `${tunnel.url.replace('http', 'ws')}/api/rooms/${joined.room_code}/ws`;
  const client = await JsonClient.open(address, { ticket: joined.ticket });
  const welcome = await client.next('welcome');
  const world = new Replica();
  await world.until(client, () => world.entities.has(welcome.entityId), 'own character');
  const start = [...world.entities.get(welcome.entityId).p];
  client.walk(40, { up: true });
  // The server repeats the last input until the next one: release the key, and stand still.
  const last = client.walk(20, {});
  await world.until(client, () => world.ackSeq >= last, 'all inputs used');
  const stood = world.entities.get(welcome.entityId).p;
  assert.ok(Math.hypot(stood[0] - start[0], stood[2] - start[2]) > 1, `from ${start} to ${stood}`);

  tunnel.cut();
  await client.closed;
  // The token alone: the ticket has been used.
  const again = await JsonClient.open(address, { handshake: true, resumeToken: welcome.resumeToken });
  const back = await again.next('welcome');
  assert.equal(back.entityId, welcome.entityId);
  assert.notEqual(back.resumeToken, welcome.resumeToken, 'a token works once');
  const after = new Replica();
  await after.until(again, () => after.entities.has(back.entityId), 'own character again');
  const stands = after.entities.get(back.entityId).p;
  assert.ok(Math.hypot(stands[0] - stood[0], stands[2] - stood[2]) < 0.5, `at ${stands}, was at ${stood}`);

  // A message after the welcome confirms that the welcome and the next token arrived.
  again.send('session', 'ping', { t: 1 });
  await again.next('pong');
  const used = await JsonClient.open(address, { handshake: true, resumeToken: welcome.resumeToken });
  assert.match((await used.next('error', 'a used token is refused')).code, /^ticket_/);
  again.send('session', 'leave');
  const { reason } = await again.closed;
  assert.equal(reason, 'goodbye', 'the reason passes through');
});
