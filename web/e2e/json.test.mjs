// A third-party WebSocket client with the JSON format: it joins, walks and is seen,
// and its mistakes are answered with errors, not disconnects.
// Covers: crates/protocol, crates/gameserver
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { JsonClient, Replica } from './json-client.mjs';
import { startServer } from './server.mjs';

let server;
before(async () => {
  server = await startServer();
});
after(() => server?.stop());

async function enter(where, options = {}) {
  const joined = await server.join(where);
  const client = await JsonClient.open(options.address?.(joined) ?? joined.server_address, {
    ticket: joined.ticket,
    handshake: options.handshake,
  });
  const welcome = await client.next('welcome');
  const replica = new Replica();
  await replica.until(client, (world) => world.entities.has(welcome.entityId), 'own character in a snapshot');
  return { joined, client, welcome, replica };
}

test('a ticket in the URL is accepted, then a full snapshot follows', async () => {
  const { joined, client, welcome } = await enter();
  assert.equal(welcome.v, 2);
  assert.equal(welcome.worldId, joined.world_id);
  assert.equal(welcome.roomCode, joined.room_code);
  assert.equal(welcome.tickHz, 60);
  assert.equal(welcome.snapshotHz, 20);
  assert.equal(typeof welcome.resumeToken, 'string');
  await client.close();
});

test('a full snapshot contains every feature', async () => {
  const joined = await server.join();
  const client = await JsonClient.open(joined.server_address, { ticket: joined.ticket });
  const { mode, baseline, features } = await client.next('snapshot');
  assert.deepEqual([mode, baseline], ['full', null]);
  assert.deepEqual(Object.keys(features).sort(), ['build', 'movement', 'npc', 'presence', 'projectile', 'voxel']);
  assert.deepEqual(features.voxel, { versions: [] });
  await client.close();
});

test('a ticket in the first message is accepted', async () => {
  const { client } = await enter({}, { handshake: true });
  await client.close();
});

test('the room code reaches the world through the control plane', async () => {
  const first = await enter();
  const through = await enter(
    { room_code: first.joined.room_code },
    { address: (joined) => `${server.url.replace('http', 'ws')}/api/rooms/${joined.room_code}/ws` },
  );
  assert.equal(through.welcome.worldId, first.joined.world_id);
  await Promise.all([first.client.close(), through.client.close()]);
});

test('held keys move the character, and another client sees it', async () => {
  const walker = await enter();
  const watcher = await enter({ world_id: walker.joined.world_id });
  const me = walker.welcome.entityId;
  const at = (replica) => replica.entities.get(me).p;
  const start = [...at(walker.replica)];

  for (let batch = 0; batch < 4; batch += 1) {
    const last = walker.client.walk(10, { up: true });
    await walker.client.next('ack', 'ack of the inputs');
    await walker.replica.until(walker.client, (world) => world.ackSeq >= last, 'all inputs processed');
  }
  const moved = Math.hypot(at(walker.replica)[0] - start[0], at(walker.replica)[2] - start[2]);
  assert.ok(moved > 1, `walked ${moved} m in 40 ticks`);

  await watcher.replica.until(
    watcher.client,
    (world) => world.entities.has(me) && Math.hypot(at(world)[0] - start[0], at(world)[2] - start[2]) > 1,
    'the walker moved in the other client',
  );
  await Promise.all([walker.client.close(), watcher.client.close()]);
});

test('ping is answered, invalid messages get an error, and the connection stays open', async () => {
  const { client } = await enter();
  const errorFor = (seq) =>
    client.next((message) => message.kind === 'error' && message.seq === seq, `error of ${seq}`);
  const mistakes = [
    ['unknown_command', 'levitation', 'rise'],
    ['unknown_command', 'movement', 'fly'],
    ['bad_payload', 'movement', 'input_batch', { inputs: 'all of them' }],
    ['bad_payload', 'movement', 'input_batch', { inputs: [{ seq: 1, yaw: 'NaN' }] }],
    ['bad_payload', 'session', 'ack', { tick: 'yesterday' }],
    ['bad_payload', 'session', 'ack', { tick: 1e20 }],
    ['bad_chat', 'chat', 'say', { text: '   ' }],
    ['bad_name', 'network', 'event', { name: '', args: [] }],
    ['no_such_script', 'scripts', 'request', { paths: ['no/such.luau'] }],
    ['no_terrain', 'terrain', 'op', { op: 'add', center: [0, 0, 0], radius: 2, material: 'sand' }],
    ['no_terrain', 'terrain', 'chunk', { x: 0, y: 0, z: 0 }],
    ['bad_payload', 'terrain', 'chunk', {}],
    ['spells_not_allowed', 'spell', 'cast', { spell_id: 'fireball', params: {} }],
  ];
  for (const [code, feature, action, payload] of mistakes) {
    const error = await errorFor(client.send(feature, action, payload));
    assert.equal(error.code, code, `${feature}.${action}: ${JSON.stringify(error)}`);
    assert.ok(error.message);
  }
  client.sendRaw('{"v":2,');
  assert.ok((await client.next('error', 'error of broken JSON')).message);

  client.send('session', 'ping', { t: 123 });
  const pong = await client.next('pong');
  assert.equal(pong.t, 123);
  assert.equal(typeof pong.tick, 'number');
  await client.close();
});

test('a client that leaves disappears for the others', async () => {
  const stays = await enter();
  const leaves = await enter({ world_id: stays.joined.world_id });
  const gone = leaves.welcome.entityId;
  await stays.replica.until(stays.client, (world) => world.entities.has(gone), 'the other came');
  leaves.client.send('session', 'leave');
  await leaves.client.closed;
  await stays.replica.until(stays.client, (world) => !world.entities.has(gone), 'the other left');
  await stays.client.close();
});

test('a flood of commands ends in a kick with a reason; the world continues', async () => {
  const victim = await enter();
  const flooder = await enter({ world_id: victim.joined.world_id });
  for (let count = 0; count < 5_000; count += 1) flooder.client.send('session', 'ping', { t: count });
  const warning = await flooder.client.next('error', 'a warning');
  assert.ok(warning.code && warning.message, JSON.stringify(warning));
  const { code, reason } = await flooder.client.closed;
  assert.equal(code, 1008);
  assert.ok(reason);
  victim.client.send('session', 'ping', { t: 1 });
  await victim.client.next('pong');
  await victim.client.close();
});
