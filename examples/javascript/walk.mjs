// Walks in a circle through a Frolic world: a whole client of your own.
// HTTP to get in, then JSON over a WebSocket; docs/protocol.md explains it all.
//   npm install
//   node walk.mjs [PLATFORM] [NAME] [SECONDS] [ROOM CODE]
import { setTimeout as sleep } from 'node:timers/promises';
import WebSocket from 'ws'; // Node 22 and browsers have a WebSocket of their own

const [platform = 'http://127.0.0.1:5000', name = 'Ben', seconds = '20', room = ''] = process.argv.slice(2);
const until = performance.now() + Number(seconds) * 1000;
let token = null; // from the welcome: the way back in
let own = 0; // and which character is ours
let entities = new Map(); // the world now
const kept = new Map(); // and as it was at the ticks that deltas build on
const players = new Map();
let [commands, inputs, acks, walked] = [0, 0, 0, 0];
const near = new Set();

async function post(path, body, session = '') {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${session}` };
  const answer = await fetch(platform + path, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

/** Each command gets an ack or an error that names its number. */
function send(socket, feature, action, payload = {}) {
  commands += 1;
  socket.send(JSON.stringify({ v: 2, kind: 'command', seq: commands, feature, action, payload }));
}

/** One input per tick of the server: forward, always turning, a jump every second. */
async function walk(socket, tickHz) {
  send(socket, 'chat', 'say', { text: `${name} walks in circles` });
  while (performance.now() < until && socket.readyState === WebSocket.OPEN) {
    const batch = Array.from({ length: tickHz / 20 }, () => {
      inputs += 1;
      return { seq: inputs, up: true, yaw: inputs / 18, jump: inputs % 60 < 5 };
    });
    send(socket, 'movement', 'input_batch', { inputs: batch });
    await sleep(50);
  }
  if (socket.readyState === WebSocket.OPEN) send(socket, 'session', 'leave');
}

/** A full one is the world; a delta is what changed since `baseline`, a snapshot we acknowledged and kept. */
function snapshot(socket, { tick, mode, baseline, features }) {
  const before = entities.get(own);
  entities = new Map(mode === 'full' ? [] : kept.get(baseline));
  for (const entity of features.movement.entities) entities.set(entity.id, entity);
  for (const id of features.movement.removed) entities.delete(id);
  for (const player of features.presence?.players ?? []) players.set(player.entityId, player);
  for (const old of kept.keys()) if (old < (baseline ?? tick)) kept.delete(old);
  kept.set(tick, entities);
  send(socket, 'session', 'ack', { tick });
  const now = entities.get(own);
  if (before && now) walked += Math.hypot(...now.p.map((at, axis) => at - before.p[axis]));
  for (const [id, player] of players) {
    if (id === own || near.has(id) || !entities.has(id)) continue;
    near.add(id);
    console.log(`near: ${player.name} at ${entities.get(id).p}`);
  }
}

function receive(socket, message) {
  if (message.kind === 'welcome') {
    console.log(token ? 'back as' : 'in as', message.entityId, 'in room', message.roomCode);
    [token, own] = [message.resumeToken, message.entityId];
    void walk(socket, message.tickHz);
  } else if (message.kind === 'snapshot') snapshot(socket, message);
  else if (message.kind === 'ack') acks += 1;
  else if (message.kind === 'error') console.log('error:', message.code, message.message);
  else if (message.feature === 'chat') console.log(`chat: ${message.from}: ${message.text}`);
}

/** One connection, from the handshake to its end; a resume token counts more than a ticket. */
function play(address, ticket) {
  const socket = new WebSocket(address, ['frolic.v2.json']);
  socket.on('open', () => send(socket, 'session', 'handshake', { ticket, resumeToken: token }));
  socket.on('message', (text) => receive(socket, JSON.parse(text)));
  return new Promise((ended) => socket.on('close', ended).on('error', () => undefined));
}

const guest = await post('/login', { username: name });
const joined = await post('/join', room ? { room_code: room } : {}, guest.session_token);
// The world's own address, or the same world through the platform's one port.
const address = room ? `${platform.replace('http', 'ws')}/api/rooms/${room}/ws` : joined.server_address;
while (performance.now() < until) {
  await play(address, joined.ticket);
  if (performance.now() >= until) break;
  console.log('the line is lost'); // within a minute the token brings us back to where we were
  await sleep(300);
}
console.log(`walked ${walked.toFixed(1)} m, got ${acks} acks for ${commands} commands, met ${near.size}`);
