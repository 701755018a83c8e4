// Socket.IO with the real clients: socket.io-client from npm and python-socketio, against a real
// platform with real worlds. Every event; worlds isolated; casts and operations in running worlds, one log.
// Covers: crates/platform/src/socketio, crates/world/src/remote_commands.rs
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { io } from 'socket.io-client';
import { JsonClient } from './json-client.mjs';
import { startServer } from './server.mjs';

const PATIENCE_MS = 30_000;
let server;
const clients = [];

before(async () => {
  server = await startServer();
});
after(async () => {
  for (const client of clients) client.close();
  await server?.stop();
});

/** A connected client that buffers every event. */
async function connect(options = {}) {
  const socket = io(server.url, { reconnection: false, forceNew: true, ...options });
  const received = [];
  const waiting = [];
  socket.onAny((event, data) => {
    const at = waiting.findIndex((wish) => wish.event === event && wish.test(data));
    if (at >= 0) waiting.splice(at, 1)[0].resolve(data);
    else received.push({ event, data });
  });
  const client = {
    socket,
    received,
    wait(event, test = () => true) {
      const at = received.findIndex((one) => one.event === event && test(one.data));
      if (at >= 0) return Promise.resolve(received.splice(at, 1)[0].data);
      return new Promise((resolve, reject) => {
        const late = setTimeout(
          () =>
            reject(
              new Error(
                `no ${event}; received ${received.map((one) => one.event)}; ${JSON.stringify(received.filter((one) => one.event === 'error'))}`,
              ),
            ),
          PATIENCE_MS,
        );
        waiting.push({ event, test, resolve: (data) => (clearTimeout(late), resolve(data)) });
      });
    },
    ask(event, data, answer) {
      socket.emit(event, data);
      return this.wait(answer);
    },
    close: () => socket.close(),
  };
  clients.push(client);
  client.id = (await client.wait('connected')).client_id;
  return client;
}

/** Builds a spell and publishes it. */
async function publish(client, spell_id, code, channel = 'stable') {
  const started = await client.ask(
    'spell.start_build',
    { spell_id, code, options: { cooldown_s: 0.2, cost: 10 } },
    'spell.build_started',
  );
  const done = await client.wait(
    'job.progress',
    (progress) => progress.job_id === started.job_id && progress.pct === 100,
  );
  assert.equal(done.extras.status, 'done', JSON.stringify(done));
  const revision_id = done.extras.result_revision_id;
  await client.ask('spell.publish', { spell_id, revision_id, channel }, 'spell.active_update');
  return revision_id;
}

for (const transports of [['websocket'], ['polling'], ['polling', 'websocket']]) {
  test(`clients connect by ${transports.join(' then ')}`, async () => {
    const client = await connect({ transports });
    const pong = await client.ask('ping', {}, 'pong');
    assert.equal(pong.world_id, null);
    // Acknowledgements are sent on request.
    const listed = await client.socket.timeout(5000).emitWithAck('world.list', {});
    assert.ok(Array.isArray(listed.worlds));
    client.close();
  });
}

test('every event, two isolated worlds, and one log', async () => {
  const login = (await server.call('POST', '/login', { body: { username: 'Ada' } })).body;
  const ada = await connect({ auth: { token: login.session_token }, transports: ['websocket'] });
  assert.equal(ada.id, login.client_id);
  const [bob, eve] = [await connect({ transports: ['websocket'] }), await connect({ transports: ['websocket'] })];

  const made = await ada.ask('world.create', { name: 'Garden', description: 'quiet' }, 'world.created');
  assert.equal(made.world.game_id, 'sandbox');
  await bob.wait('world.list_updated');
  const world_id = made.world_id;
  const other = await eve.ask('world.create', { name: 'Elsewhere' }, 'world.created');
  await eve.ask('world.join', { world_id: other.world_id }, 'world.joined');
  for (const client of [ada, bob]) {
    const joined = await client.ask('world.join', { world_id }, 'world.joined');
    assert.equal(joined.world.name, 'Garden');
    await client.wait('sync_complete');
  }
  assert.equal((await bob.ask('world.get', {}, 'world.info')).clients, 2);

  // A spell: draft, build, publish; read by another user.
  const draft = await ada.ask('spell.create_draft', { spell_id: 'dig' }, 'spell.draft_created');
  assert.equal(draft.created, true);
  const code =
    "function on_cast(ctx)\n\tctx.world.terraform({ op = 'subtract', center = ctx.target, radius = 1 + ctx.random.NextInteger(0, 0) })\n\tctx.world.sound('hit')\nend\n";
  const revision_id = await publish(ada, 'dig', code);
  const ready = await bob.wait('spell.revision_ready');
  assert.equal(ready.revision_id, revision_id);
  assert.equal((await bob.wait('spell.active_update')).channel, 'stable');
  assert.ok((await bob.ask('spell.list', {}, 'spell.list_result')).spells.some((spell) => spell.spell_id === 'dig'));
  assert.equal(
    (await bob.ask('spell.get_revisions', { spell_id: 'dig' }, 'spell.revisions_result')).revisions.length,
    1,
  );
  assert.equal(
    (await bob.ask('content.get_manifest', { spell_id: 'dig', revision_id }, 'content.manifest')).manifest.version,
    1,
  );
  assert.ok(
    (await bob.ask('content.list_files', { spell_id: 'dig', revision_id }, 'content.files_list')).files.length >= 2,
  );
  const file = await bob.ask('content.get_file', { spell_id: 'dig', revision_id, path: 'spell.luau' }, 'content.file');
  assert.equal(Buffer.from(file.content, 'base64').toString(), code);
  assert.equal(file.size, code.length);

  // A cast into a sleeping world starts it, runs the spell, and is broadcast.
  bob.socket.emit('spell.cast_request', { spell_id: 'dig', params: { target: [8, 6, 8] } });
  const [seen, also] = [await ada.wait('spell.cast_event'), await bob.wait('spell.cast_event')];
  assert.deepEqual(seen, also);
  assert.equal(seen.world_id, world_id);
  assert.equal(seen.revision_id, revision_id);
  assert.ok(Number.isSafeInteger(seen.seed));
  assert.deepEqual(seen.target, [8, 6, 8]);
  // The terrain edits of the spell are logged and broadcast.
  const dug = await ada.wait('apply_op');
  assert.equal(dug.type, 'subtract');
  // Too soon, and refused with a reason.
  bob.socket.emit('spell.cast_request', { spell_id: 'dig', params: { target: [8, 6, 8] } });
  const rejected = await bob.wait('spell.cast_rejected');
  assert.match(rejected.error, /again in/);
  assert.equal(rejected.spell_id, 'dig');
  bob.socket.emit('spell.cast_request', { spell_id: 'none-such' });
  assert.equal((await bob.wait('spell.cast_rejected')).spell_id, 'none-such');

  // Operations by Socket.IO, and by a player in the running world: one log.
  await bob.wait('apply_op');
  const op = await bob.ask(
    'request_spell',
    { type: 'add', center: { x: 20, y: 30, z: 20 }, radius: 2, material: 'stone' },
    'apply_op',
  );
  assert.equal(op.op_id, dug.op_id + 1);
  assert.equal(op.by, bob.id);
  assert.equal((await ada.wait('apply_op')).op_id, op.op_id);
  const refused = await ada.ask('request_spell', { type: 'add', center: [0, 10, 0], radius: 10_000 }, 'error');
  assert.equal(refused.code, 'too_large');

  // A later client gets the log.
  const late = await connect({ transports: ['websocket'] });
  late.socket.emit('world.join', { world_id });
  const sync = await late.wait('sync_ops');
  assert.deepEqual(
    sync.ops.map((one) => one.op_id),
    [dug.op_id, op.op_id],
  );
  assert.equal((await late.ask('ping', {}, 'pong')).ops, op.op_id);

  // Only the owner can clear the world.
  assert.equal((await bob.ask('clear_world', {}, 'error')).code, 'forbidden');
  ada.socket.emit('clear_world');
  assert.equal((await bob.wait('world_cleared')).world_id, world_id);
  await ada.wait('world_cleared');

  assert.equal((await bob.ask('world.leave', {}, 'world.left')).left_world_id, world_id);
  await ada.ask('request_spell', { type: 'subtract', center: [8, 6, 8], radius: 1 }, 'apply_op');
  assert.equal((await bob.ask('ping', {}, 'pong')).world_id, null);
  for (const foreign of ['apply_op', 'spell.cast_event', 'world_cleared']) {
    assert.ok(!eve.received.some((one) => one.event === foreign), `${foreign} reached another world`);
    assert.ok(!bob.received.some((one) => one.event === foreign), `${foreign} reached a client that left`);
  }
});

test("players load published spells, and both sides receive each other's events", async () => {
  const ada = await connect({ transports: ['websocket'] });
  const { world_id } = await ada.ask('world.create', { name: 'Together' }, 'world.created');
  await ada.ask('world.join', { world_id }, 'world.joined');
  const place = await server.join({ world_id }, 'Player');
  const player = await JsonClient.open(place.server_address, { ticket: place.ticket });
  const next = (feature, action, fits = () => true) =>
    player.next(
      (message) => message.feature === feature && message.action === action && fits(message),
      `${feature}.${action}`,
      PATIENCE_MS,
    );
  await player.next('snapshot');

  // Published from outside, and loaded without leaving the world.
  const revision_id = await publish(ada, 'glow', "function on_cast(ctx)\n\tctx.world.sound('hit')\nend\n");
  await next('scripts', 'manifest', (message) => JSON.stringify(message).includes('spells/glow/spell.luau'));
  ada.socket.emit('spell.cast_request', { spell_id: 'glow', params: { target: [1, 12, 1] } });
  const [outside, inside] = [await ada.wait('spell.cast_event'), await next('spell', 'cast')];
  assert.equal(inside.seed, outside.seed);
  assert.equal(outside.revision_id, revision_id);
  assert.equal(outside.caster_id, ada.id);

  // And the other way round.
  player.send('spell', 'cast', { spell_id: 'glow', params: { target: [1, 12, 1] } });
  const own = await ada.wait('spell.cast_event');
  assert.equal(own.caster_id, place.client_id);
  assert.notEqual(own.caster, 0);
  const op = await ada.ask('request_spell', { type: 'subtract', center: [8, 6, 8], radius: 1 }, 'apply_op');
  const applied = await next('terrain', 'applied');
  assert.equal(applied.seq, op.op_id);
  await player.close();
});

test('the same world continues after its process was restarted', async () => {
  const admin = await startServer({ ADMIN_TOKEN: 'socketio-tests' });
  const before = server;
  server = admin;
  try {
    const ada = await connect({ transports: ['websocket'] });
    const { world_id } = await ada.ask('world.create', { name: 'Lasting' }, 'world.created');
    await ada.ask('world.join', { world_id }, 'world.joined');
    await publish(ada, 'spark', "function on_cast(ctx)\n\tctx.world.sound('hit')\nend\n");
    ada.socket.emit('spell.cast_request', { spell_id: 'spark', params: { target: [0, 9, 0] } });
    await ada.wait('spell.cast_event');
    const op = await ada.ask('request_spell', { type: 'add', center: [20, 30, 20], radius: 2 }, 'apply_op');
    const stopped = await admin.call('DELETE', `/admin/servers/${world_id}`, { token: 'socketio-tests' });
    assert.ok(stopped.status < 300, JSON.stringify(stopped));
    // The next cast and operation start it again with its state.
    const again = await ada.ask('request_spell', { type: 'subtract', center: [20, 30, 20], radius: 1 }, 'apply_op');
    assert.equal(again.op_id, op.op_id + 1);
    ada.socket.emit('spell.cast_request', { spell_id: 'spark', params: { target: [0, 9, 0] } });
    await ada.wait('spell.cast_event');
  } finally {
    server = before;
    await admin.stop();
  }
});

test(
  'python-socketio',
  { skip: !process.env.PYTHON_SOCKETIO && 'no python-socketio: cargo xtask test installs it' },
  async () => {
    const program = path.join(import.meta.dirname, 'python-socketio-client.py');
    const { stdout } = await promisify(execFile)(process.env.PYTHON_SOCKETIO, [program, server.url], {
      timeout: 100_000,
    });
    const received = JSON.parse(stdout);
    assert.equal(received.stage, 'done');
    assert.equal(received.channel, 'stable');
    assert.equal(received.cast_world, received.world_id);
    assert.equal(received.cast_spell, received.spell_id);
    assert.equal(received.op, 'subtract');
    assert.equal(received.pong.clients, 1);
    assert.equal(received.left, received.world_id);
  },
);
