// Walks in a circle through a world (docs/protocol/websocket.md): node walk.mjs [PLATFORM] [NAME] [SECONDS] [ROOM CODE]
import { setTimeout as sleep } from 'node:timers/promises';
import WebSocket from 'ws'; // Node 22 and browsers have a WebSocket of their own
const [platform = 'http://127.0.0.1:5000', name = 'Ben', seconds = '20', room = ''] = process.argv.slice(2);
const until = performance.now() + Number(seconds) * 1000;
const [kept, players, near] = [new Map(), new Map(), new Set()]; // kept: worlds by tick, the baselines of deltas
let [welcome, world, commands, inputs, acks, walked, ping] = [null, new Map(), 0, 0, 0, 0, 0];

async function post(path, body, session = '') {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${session}` };
  const answer = await fetch(platform + path, { method: 'POST', headers, body: JSON.stringify(body), signal: AbortSignal.timeout(9000) });
  return answer.ok ? answer.json() : Promise.reject(new Error(`${path}: ${answer.status} ${await answer.text()}`));
}

function send(socket, feature, action, payload = {}) { // each gets an ack or an error that names its number
  socket.send(JSON.stringify({ v: 2, kind: 'command', seq: ++commands, feature, action, payload }));
}

const hear = {
  welcome(socket, message) { // its token resumes at the same position, within a minute of a lost connection
    console.log(welcome ? 'back as' : 'in as', message.entityId, 'in room', message.roomCode);
    welcome = message;
    send(socket, 'session', 'ping', { t: performance.now() });
  },
  snapshot(socket, { tick, baseline, features: { movement, presence } }) { // a full one has no baseline; a delta builds on it
    const before = world.get(welcome.entityId);
    world = new Map([...(kept.get(baseline) ?? []), ...movement.entities.map((entity) => [entity.id, entity])]);
    for (const id of movement.removed) world.delete(id);
    for (const old of kept.keys()) if (old < (baseline ?? 0)) kept.delete(old);
    kept.set(tick, world);
    send(socket, 'session', 'ack', { tick });
    const held = () => ({ seq: ++inputs, up: true, yaw: inputs / 18, jump: inputs % 60 < 5 }); // one for each tick
    send(socket, 'movement', 'input_batch', { inputs: Array.from({ length: welcome.tickHz / welcome.snapshotHz }, held) });
    if (before) walked += Math.hypot(...world.get(welcome.entityId).p.map((at, axis) => at - before.p[axis]));
    for (const player of presence?.players ?? []) players.set(player.entityId, player.name);
    for (const [id, other] of players) {
      if (id === welcome.entityId || near.has(id) || !world.has(id)) continue;
      near.add(id);
      console.log(`near: ${other} at ${world.get(id).p}`);
    }
    if (performance.now() > until) send(socket, 'session', 'leave');
  },
  pong: (_, message) => (ping = performance.now() - message.t),
  ack: () => (acks += 1),
  error: (_, message) => console.log('error:', message.code, message.message),
};

const receive = (socket, message) => hear[message.kind]?.(socket, message);
const { session_token: session } = await post('/login', { username: name });
const through = `${platform.replace('http', 'ws')}/api/rooms/${room}/ws`; // the same world, through the platform's port
for (; performance.now() < until; await sleep(300)) {
  if (welcome) console.log('connection lost');
  const joined = await post('/join', { room_code: room || welcome?.roomCode }, session).catch((cause) => console.log(cause.message));
  if (!joined) continue; // join again each time: a restarted server has another address
  const socket = new WebSocket(room ? through : joined.server_address, ['frolic.v2.json']);
  socket.on('open', () => send(socket, 'session', 'handshake', { ticket: joined.ticket, resumeToken: welcome?.resumeToken }));
  socket.on('message', (text) => receive(socket, JSON.parse(text)));
  await new Promise((ended) => socket.on('close', ended).on('error', () => undefined));
}
console.log(`walked ${walked.toFixed(1)} m, got ${acks} acks for ${commands} commands, met ${near.size}, ping ${ping | 0} ms`);
