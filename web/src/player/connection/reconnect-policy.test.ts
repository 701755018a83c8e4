// Which kicks end a session: a refusal during a reconnect costs an attempt, a kick from the world ends it.
import { expect, test } from 'vitest';
import { ApiError } from '../../lib/api';
import { comesBack, hasStaleTicket, isFinal, isOutdated, type Standing } from './reconnect-policy';

const playing: Standing = {
  hasPlace: true,
  reconnecting: false,
  restarting: false,
  joinedAgain: false,
  lastCode: null,
};
const reconnecting: Standing = { ...playing, reconnecting: true };
const arriving: Standing = { ...playing, hasPlace: false };

test('a refused handshake during a reconnect costs an attempt', () => {
  for (const lastCode of [null, 'world_full', 'draining', 'ticket_used', 'ticket_wrong_world']) {
    expect(comesBack({ ...reconnecting, lastCode }), String(lastCode)).toBe(true);
    expect(comesBack({ ...reconnecting, joinedAgain: true, lastCode }), String(lastCode)).toBe(true);
  }
});

test('an outdated page reports it instead of retrying for a minute', () => {
  for (const standing of [playing, reconnecting, arriving, { ...reconnecting, restarting: true }]) {
    expect(comesBack({ ...standing, lastCode: 'unsupported_version' })).toBe(false);
    expect(isOutdated({ ...standing, lastCode: 'unsupported_version' })).toBe(true);
    expect(isOutdated(standing)).toBe(false);
  }
});

test('a kicked player stays out, unless the server is restarting', () => {
  expect(comesBack(playing)).toBe(false);
  expect(comesBack({ ...playing, lastCode: 'flood' })).toBe(false);
  expect(comesBack({ ...playing, restarting: true, lastCode: 'restarting' })).toBe(true);
});

test('a first join with a stale ticket is retried once', () => {
  expect(comesBack({ ...arriving, lastCode: 'ticket_expired' })).toBe(true);
  expect(comesBack({ ...arriving, lastCode: 'ticket_expired', joinedAgain: true })).toBe(false);
  expect(comesBack({ ...arriving, lastCode: 'world_full' })).toBe(false);
  expect(comesBack(arriving)).toBe(false);
  expect(hasStaleTicket({ ...arriving, lastCode: 'ticket_used' })).toBe(true);
});

test('a suspension or a deleted world ends the attempts, a busy server does not', () => {
  expect(isFinal(new ApiError(403, 'suspended', 'You are suspended.'))).toBe(true);
  expect(isFinal(new ApiError(404, 'room_not_found', 'There is no such room.'))).toBe(true);
  expect(isFinal(new ApiError(503, 'server_starting', 'Still starting.'))).toBe(false);
  expect(isFinal(new ApiError(409, 'world_full', 'Full.'))).toBe(false);
  expect(isFinal(new Error('the network is down'))).toBe(false);
});
