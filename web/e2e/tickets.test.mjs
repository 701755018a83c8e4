// A ticket admits one connection to one world, once, for a short time:
// every other ticket is refused with a code that says why.
// Covers: crates/protocol, crates/gameserver/src/admission.rs
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { after, before, test } from 'node:test';
import { JsonClient } from './json-client.mjs';
import { SECRET_KEY, startServer } from './server.mjs';

let server;
let world;
before(async () => {
  server = await startServer();
  world = await server.join();
});
after(() => server?.stop());

const hmac = (key, message) => createHmac('sha256', key).update(message).digest();

/** Signs claims as the control plane would (crates/protocol/src/ticket.rs). */
function sign(claims, { secret = SECRET_KEY, keyOf = claims.world_id } = {}) {
  const body = Buffer.from(JSON.stringify(claims));
  const key = hmac(secret, `frolic ticket key\0${keyOf}`);
  return `${body.toString('base64url')}.${hmac(key, body).toString('base64url')}`;
}

/** Which process of the world is running, as a good ticket names it. */
function epoch() {
  return JSON.parse(Buffer.from(world.ticket.split('.')[0], 'base64url')).epoch;
}

function claims(changes = {}) {
  const now = Math.floor(Date.now() / 1000);
  const person = { player_id: 'client_e2e', name: 'Mallory' };
  const usual = { world_id: world.world_id, epoch: epoch(), ...person, expires_at: now + 60 };
  return { ...usual, nonce: `nonce-${Math.random()}`, ...changes };
}

async function refused(ticket, code) {
  const client = await JsonClient.open(world.server_address, { ticket, handshake: true });
  const error = await client.next('error', `refusal with ${code}`);
  assert.equal(error.code, code);
  assert.ok(error.message);
  await client.closed;
}

test('a ticket signed with the right key is accepted (control for the tests below)', async () => {
  const client = await JsonClient.open(world.server_address, { ticket: sign(claims()) });
  await client.next('welcome');
  await client.close();
});

test('a ticket works once', async () => {
  const joined = await server.join({ world_id: world.world_id });
  const client = await JsonClient.open(joined.server_address, { ticket: joined.ticket });
  await client.next('welcome');
  await refused(joined.ticket, 'ticket_used');
  await client.close();
  await refused(joined.ticket, 'ticket_used');
});

test('a forged ticket is refused', async () => {
  await refused(sign(claims(), { secret: 'guessed' }), 'ticket_forged');
  const [body, signature] = sign(claims()).split('.');
  const changed = Buffer.from(body, 'base64url').toString().replace('Mallory', 'Malloru');
  await refused(`${Buffer.from(changed).toString('base64url')}.${signature}`, 'ticket_forged');
});

test('an expired ticket is refused', async () => {
  await refused(sign(claims({ expires_at: Math.floor(Date.now() / 1000) - 1 })), 'ticket_expired');
});

test("a ticket for the world's last process is refused", async () => {
  await refused(sign(claims({ epoch: epoch() - 1 })), 'ticket_expired');
});

test('a ticket for another world is refused, whichever key signed it', async () => {
  const other = claims({ world_id: 'world_elsewhere' });
  await refused(sign(other), 'ticket_forged');
  await refused(sign(other, { keyOf: world.world_id }), 'ticket_wrong_world');
});

test('malformed tickets are refused', async () => {
  for (const ticket of ['', 'no dot', 'a.b', '.', 'x'.repeat(10_000)]) {
    const client = await JsonClient.open(world.server_address, { ticket, handshake: true });
    const error = await client.next('error');
    assert.match(error.code, /^ticket_/);
    await client.closed;
  }
});

test('the world still accepts players afterwards', async () => {
  const joined = await server.join({ world_id: world.world_id });
  const client = await JsonClient.open(joined.server_address, { ticket: joined.ticket });
  await client.next('welcome');
  await client.close();
});
