// Compatibility with programs written for similar servers: every event, call, message and column in their documentation,
// field by field, with a plain Socket.IO client, fetch and a WebSocket against a real platform. The tables are in
// crates/platform/tests/platform/tables.rs.
// Covers: crates/platform/src/socketio, crates/platform/src/spells, crates/protocol
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { io } from 'socket.io-client';
import { startServer } from './server.mjs';

const PATIENCE_MS = 30_000;
const ADMIN_TOKEN = 'compatibility-tests';
const CODE = "function on_cast(ctx)\n\tctx.world.sound('hit')\nend\n";
const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

let server;
const sockets = [];
before(async () => {
  server = await startServer({ ADMIN_TOKEN });
});
after(async () => {
  for (const socket of sockets) socket.close();
  await server?.stop();
});

const kinds = {
  text: (value) => typeof value === 'string' && value.length > 0,
  maybeText: (value) => value === null || typeof value === 'string',
  anyText: (value) => typeof value === 'string',
  count: (value) => Number.isInteger(value) && value >= 0,
  flag: (value) => typeof value === 'boolean',
  list: Array.isArray,
  object: (value) => value !== null && typeof value === 'object' && !Array.isArray(value),
  time: (value) => typeof value === 'string' && RFC3339.test(value),
  ws: (value) => typeof value === 'string' && value.startsWith('ws://'),
};

/** Checks that every documented field exists with its type. */
function has(what, value, fields) {
  assert.ok(kinds.object(value), `${what} is ${JSON.stringify(value)}`);
  for (const [name, kind] of Object.entries(fields)) {
    assert.ok(name in value, `${what} has no ${name}: ${JSON.stringify(value)}`);
    assert.ok(kinds[kind](value[name]), `${what}.${name} is no ${kind}: ${JSON.stringify(value[name])}`);
  }
}

const WORLD = {
  world_id: 'text',
  name: 'text',
  description: 'anyText',
  created_by: 'text',
  player_count: 'count',
  created_at: 'time',
  updated_at: 'time',
};
const SPELL = {
  spell_id: 'text',
  display_name: 'text',
  active_draft_rev: 'maybeText',
  active_beta_rev: 'maybeText',
  active_stable_rev: 'maybeText',
  created_at: 'time',
  updated_at: 'time',
};
const REVISION = {
  revision_id: 'text',
  spell_id: 'text',
  parent_revision_id: 'maybeText',
  channel: 'text',
  version: 'count',
  manifest: 'object',
  created_at: 'time',
};
const OP = { type: 'text', center: 'list', radius: 'count' };

/** A client that buffers every event. */
async function connect() {
  const socket = io(server.url, { reconnection: false, forceNew: true, transports: ['websocket'] });
  sockets.push(socket);
  const received = [];
  const waiting = [];
  socket.onAny((event, data) => {
    const at = waiting.findIndex((one) => one.event === event && one.fits(data));
    if (at >= 0) waiting.splice(at, 1)[0].resolve(data);
    else received.push({ event, data });
  });
  const wait = (event, fits = () => true) => {
    const at = received.findIndex((one) => one.event === event && fits(one.data));
    if (at >= 0) return Promise.resolve(received.splice(at, 1)[0].data);
    return new Promise((resolve, reject) => {
      const late = setTimeout(
        () => reject(new Error(`no ${event}; got ${JSON.stringify(received.slice(-5))}`)),
        PATIENCE_MS,
      );
      waiting.push({ event, fits, resolve: (data) => (clearTimeout(late), resolve(data)) });
    });
  };
  const ask = (event, data, answer) => {
    if (data === undefined) socket.emit(event);
    else socket.emit(event, data);
    return wait(answer);
  };
  const hello = await wait('connected');
  return { socket, received, wait, ask, hello };
}

test('Socket.IO: connection, worlds and operations', async () => {
  const [ada, bob] = [await connect(), await connect()];
  has('connected', ada.hello, { client_id: 'text' });

  const listed = await ada.ask('world.list', undefined, 'world.list_result');
  has('world.list_result', listed, { worlds: 'list' });
  const created = await ada.ask('world.create', { name: 'Meadow', description: 'green' }, 'world.created');
  has('world.created', created, { ...WORLD, world: 'object' });
  has('world.created.world', created.world, WORLD);
  assert.equal(created.world.description, 'green');
  const updated = await bob.wait('world.list_updated');
  has('world.list_updated', updated, { worlds: 'list' });
  has(
    'world in world.list_updated',
    updated.worlds.find((world) => world.world_id === created.world_id),
    WORLD,
  );

  const { world_id } = created.world;
  const joined = await ada.ask('world.join', { world_id }, 'world.joined');
  has('world.joined', joined, { world_id: 'text', world: 'object' });
  has('world.joined.world', joined.world, WORLD);
  has('sync_complete', await ada.wait('sync_complete'), { message: 'text' });
  await bob.ask('world.join', { world_id }, 'world.joined');
  const info = await ada.ask('world.get', { world_id }, 'world.info');
  has('world.info', info, { ...WORLD, world: 'object' });
  has('world.info.world', info.world, WORLD);

  // Both forms of an operation, and the broadcast object.
  for (const said of [
    { spell: { type: 'subtract', center: [8, 4, 8], radius: 2 } },
    { type: 'subtract', center: [14, 4, 8], radius: 2 },
  ]) {
    const applied = await ada.ask('request_spell', said, 'apply_op');
    has('apply_op', applied, { ...OP, op: 'object' });
    has('apply_op.op', applied.op, OP);
    assert.deepEqual(applied.op.center, (said.spell ?? said).center);
    assert.deepEqual((await bob.wait('apply_op')).op, applied.op);
  }
  const late = await connect();
  late.socket.emit('world.join', { world_id });
  const synced = await late.wait('sync_ops');
  has('sync_ops', synced, { ops: 'list' });
  assert.equal(synced.ops.length, 2);
  has('op in sync_ops', synced.ops[0], OP);

  const pong = await ada.ask('ping', undefined, 'pong');
  has('pong', pong, { clients: 'count', world_id: 'text', ops: 'count' });
  assert.deepEqual([pong.clients, pong.world_id, pong.ops], [3, world_id, 2]);
  ada.socket.emit('clear_world');
  has('world_cleared', await bob.wait('world_cleared'), { world_id: 'text' });
  const left = await ada.ask('world.leave', undefined, 'world.left');
  has('world.left', left, { left_world_id: 'text' });
  assert.equal(left.left_world_id, world_id);
});

test('Socket.IO: spells, builds, content and casts', async () => {
  const [ada, bob] = [await connect(), await connect()];
  const draft = await ada.ask('spell.create_draft', { spell_id: 'my_fireball' }, 'spell.draft_created');
  has('spell.draft_created', draft, { spell_id: 'text', created: 'flag', spell: 'object' });
  has('spell.draft_created.spell', draft.spell, SPELL);
  const nameless = await ada.ask('spell.create_draft', undefined, 'spell.draft_created');
  has('spell.draft_created', nameless, { spell_id: 'text', created: 'flag', spell: 'object' });

  const spell_id = draft.spell_id;
  const build = { spell_id, prompt: '', code: CODE, options: { metadata: { name: 'My Fireball' } } };
  const started = await ada.ask('spell.start_build', build, 'spell.build_started');
  has('spell.build_started', started, { job_id: 'text', spell_id: 'text' });
  const stages = [];
  for (let pct = 0; pct < 100;) {
    const progress = await ada.wait('job.progress', (one) => one.job_id === started.job_id);
    has('job.progress', progress, { job_id: 'text', stage: 'text', pct: 'count', message: 'text', extras: 'object' });
    assert.ok(progress.pct >= pct);
    ({ pct } = progress);
    stages.push(progress.stage);
  }
  assert.deepEqual(stages, ['prepare', 'assemble_package', 'validate', 'finalize', 'done']);
  const ready = await bob.wait('spell.revision_ready', (one) => one.spell_id === spell_id);
  has('spell.revision_ready', ready, { spell_id: 'text', revision_id: 'text', manifest: 'object' });
  assert.equal(ready.manifest.revision_id, ready.revision_id);
  assert.equal(ready.manifest.name, 'My Fireball');

  const { revision_id } = ready;
  ada.socket.emit('spell.publish', { spell_id, revision_id, channel: 'beta' });
  for (const client of [ada, bob]) {
    const active = await client.wait('spell.active_update', (one) => one.spell_id === spell_id);
    has('spell.active_update', active, { spell_id: 'text', revision_id: 'text', channel: 'text', manifest: 'object' });
    assert.deepEqual([active.revision_id, active.channel], [revision_id, 'beta']);
  }
  const spells = await bob.ask('spell.list', undefined, 'spell.list_result');
  has('spell.list_result', spells, { spells: 'list' });
  const listed = spells.spells.find((one) => one.spell_id === spell_id);
  has('spell in spell.list_result', listed, SPELL);
  assert.deepEqual([listed.display_name, listed.active_beta_rev], ['My Fireball', revision_id]);
  const revisions = await bob.ask('spell.get_revisions', { spell_id }, 'spell.revisions_result');
  has('spell.revisions_result', revisions, { spell_id: 'text', revisions: 'list' });
  has('revision in spell.revisions_result', revisions.revisions[0], REVISION);

  const named = { spell_id, revision_id };
  const manifest = await bob.ask('content.get_manifest', named, 'content.manifest');
  has('content.manifest', manifest, { spell_id: 'text', revision_id: 'text', manifest: 'object' });
  const files = await bob.ask('content.list_files', named, 'content.files_list');
  has('content.files_list', files, { spell_id: 'text', revision_id: 'text', files: 'list' });
  const file = await bob.ask('content.get_file', { ...named, path: files.files[0].path }, 'content.file');
  has('content.file', file, { spell_id: 'text', revision_id: 'text', path: 'text', content: 'text', size: 'count' });
  assert.equal(Buffer.from(file.content, 'base64').length, file.size);

  const { world_id } = await ada.ask('world.create', { name: 'Range' }, 'world.created');
  for (const client of [ada, bob]) await client.ask('world.join', { world_id }, 'world.joined');
  const cast_params = { target_position: { x: 1, y: 20, z: 2 }, power: 3 };
  ada.socket.emit('spell.cast_request', { spell_id, revision_id, cast_params });
  for (const client of [ada, bob]) {
    const cast = await client.wait('spell.cast_event');
    has('spell.cast_event', cast, {
      spell_id: 'text',
      revision_id: 'text',
      caster_id: 'text',
      cast_params: 'object',
      seed: 'count',
      timestamp: 'time',
    });
    assert.deepEqual([cast.spell_id, cast.revision_id, cast.caster_id], [spell_id, revision_id, ada.hello.client_id]);
    assert.equal(cast.cast_params.power, 3);
    assert.deepEqual(cast.cast_params.target, [1, 20, 2]);
    assert.deepEqual(cast.params, cast.cast_params);
  }
  bob.socket.emit('spell.cast_request', { spell_id: 'none-such', cast_params: {} });
  const rejected = await bob.wait('spell.cast_rejected');
  has('spell.cast_rejected', rejected, { spell_id: 'text', error: 'text' });
  assert.equal(rejected.spell_id, 'none-such');
});

test('REST: sessions, worlds, spells, administration and health', async () => {
  const rest = async (method, target, { token, body } = {}) => {
    const answer = await server.call(method, target, { token, body });
    assert.ok(answer.status < 300, `${method} ${target}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const login = await rest('POST', '/login', { body: { username: 'Ada' } });
  has('POST /login', login, { session_token: 'text', client_id: 'text', username: 'text' });
  has('POST /login without a name', await rest('POST', '/login', { body: {} }), {
    session_token: 'text',
    client_id: 'text',
    username: 'text',
  });
  const token = login.session_token;
  const joined = await rest('POST', '/join', { token, body: {} });
  const JOINED = { server_address: 'ws', session_token: 'text', client_id: 'text', world_id: 'text' };
  has('POST /join', joined, JOINED);
  assert.deepEqual([joined.session_token, joined.client_id], [token, login.client_id]);
  const again = await rest('POST', '/join', { token, body: { world_id: joined.world_id } });
  has('POST /join with a world', again, JOINED);
  assert.equal(again.world_id, joined.world_id);

  const world = `/world/${joined.world_id}`;
  has('GET /world', await rest('GET', world, { token }), WORLD);
  const worlds = await rest('GET', '/worlds');
  has('GET /worlds', worlds, { worlds: 'list' });
  has('world in GET /worlds', worlds.worlds[0], WORLD);
  await rest('POST', world, { token, body: { state: { checkpoint_op: 0, sections: [], ops: [] } } });
  await rest('DELETE', world, { token });
  assert.equal((await server.call('GET', world)).status, 404);

  const build = { prompt: '', code: CODE, options: { metadata: { author: 'Ada' } } };
  const started = await rest('POST', '/api/spells/ice/build', { token, body: build });
  has('POST /api/spells/…/build', started, { job_id: 'text', spell_id: 'text' });
  let job;
  do {
    // Without a token, as documented.
    job = await rest('GET', `/api/jobs/${started.job_id}`);
    has('GET /api/jobs', job, {
      status: 'text',
      stage: 'text',
      progress_pct: 'count',
      result_revision_id: 'maybeText',
    });
  } while (job.progress_pct < 100);
  const revision_id = job.result_revision_id;
  const published = await rest('POST', '/api/spells/ice/publish', { token, body: { revision_id, channel: 'beta' } });
  has('POST /api/spells/…/publish', published, {
    spell_id: 'text',
    revision_id: 'text',
    channel: 'text',
    manifest: 'object',
  });
  assert.deepEqual([published.spell_id, published.revision_id, published.channel], ['ice', revision_id, 'beta']);
  assert.deepEqual(published.manifest.metadata, { author: 'Ada' });
  const spells = await rest('GET', '/api/spells');
  has('GET /api/spells', spells, { spells: 'list' });
  has(
    'spell in GET /api/spells',
    spells.spells.find((spell) => spell.spell_id === 'ice'),
    SPELL,
  );
  has('revision in GET …/revisions', (await rest('GET', '/api/spells/ice/revisions')).revisions[0], REVISION);
  const manifest = await rest('GET', `/api/spells/ice/revisions/${revision_id}/manifest`);
  has('GET …/manifest', manifest, { spell_id: 'text', revision_id: 'text', version: 'count', files: 'list' });
  assert.equal(await rest('GET', `/api/spells/ice/revisions/${revision_id}/files/${manifest.entry}`), CODE);

  for (const health of ['/health', '/healthz', '/api/health']) await rest('GET', health);
  const admin = { token: ADMIN_TOKEN };
  const running = await rest('POST', '/join', { token, body: {} });
  const servers = await rest('GET', '/admin/servers', admin);
  assert.ok(JSON.stringify(servers).includes(running.world_id));
  assert.ok(JSON.stringify(await rest('GET', '/admin/sessions', admin)).includes(login.client_id));
  await rest('POST', '/admin/cleanup', admin);
  await rest('DELETE', `/admin/servers/${running.world_id}`, admin);
});

test('WebSocket: the envelope, the rooms and resuming', async () => {
  const login = (await server.call('POST', '/login', { body: {} })).body;
  const joined = (await server.call('POST', '/join', { token: login.session_token, body: { game_id: 'obby' } })).body;
  const base = `${server.url.replace('http', 'ws')}/api/rooms/${joined.room_code}/ws`;

  const open = async (address) => {
    const socket = new WebSocket(address);
    const messages = [];
    let settle = () => undefined;
    socket.addEventListener('message', (event) => (messages.push(JSON.parse(event.data)), settle()));
    socket.addEventListener(
      'close',
      (event) => (messages.push({ kind: 'closed', code: event.code, reason: event.reason }), settle()),
    );
    const next = async (fits) => {
      const end = Date.now() + PATIENCE_MS;
      for (;;) {
        const at = messages.findIndex(fits);
        if (at >= 0) return messages.splice(at, 1)[0];
        assert.ok(Date.now() < end, `not there: ${fits}; last ${JSON.stringify(messages.slice(-3))}`);
        await new Promise((resolve) => {
          settle = resolve;
          setTimeout(resolve, 500);
        });
      }
    };
    const command = (seq, feature, action, payload) =>
      socket.send(JSON.stringify({ v: 2, kind: 'command', seq, feature, action, clientTime: 1234.56, payload }));
    return { socket, messages, next, command };
  };

  // Identity is passed in the URL: playerId and token.
  const query = new URLSearchParams({ playerId: login.client_id, token: login.session_token });
  const first = await open(`${base}?${query}`);
  const welcome = await first.next((one) => one.kind === 'welcome');
  has('welcome', welcome, { v: 'count', resumeToken: 'text', roomCode: 'text', tickHz: 'count', snapshotHz: 'count' });
  assert.equal(welcome.v, 2);
  const full = await first.next((one) => one.kind === 'snapshot' && one.mode === 'full');
  has('snapshot.features', full.features, {
    presence: 'object',
    movement: 'object',
    build: 'object',
    projectile: 'object',
  });

  const inputs = [101, 102, 103].map((seq) => ({ seq, up: true, down: false, left: false, right: true }));
  first.command(42, 'movement', 'input_batch', { inputs });
  assert.equal((await first.next((one) => one.kind === 'ack')).seq, 42);
  await first.next((one) => one.kind === 'snapshot' && one.ackSeq === 103);
  first.command(43, 'session', 'ping', { t: 7 });
  assert.equal((await first.next((one) => one.kind === 'pong')).t, 7);
  first.command(44, 'no', 'such', {});
  const error = await first.next((one) => one.kind === 'error');
  has('error', error, { code: 'text', message: 'text' });
  const tick = (await first.next((one) => one.kind === 'snapshot')).tick;
  first.command(45, 'session', 'ack', { tick });
  await first.next((one) => one.kind === 'snapshot' && one.mode === 'delta');

  // The token of the welcome resumes the same character.
  first.socket.close();
  await first.next((one) => one.kind === 'closed');
  query.set('resumeToken', welcome.resumeToken);
  const second = await open(`${base}?${query}`);
  const back = await second.next((one) => one.kind === 'welcome');
  assert.equal(back.entityId, welcome.entityId);
  second.socket.close();
});
