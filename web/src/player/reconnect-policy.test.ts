// After which kicks a visit goes on: a refusal on the way back costs an attempt, being shown out of a world ends it.
import { expect, test } from 'vitest';
import { ApiError } from '../lib/api';
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

test('a refused handshake on the way back costs an attempt', () => {
  for (const lastCode of [null, 'world_full', 'draining', 'ticket_used', 'ticket_wrong_world']) {
    expect(comesBack({ ...reconnecting, lastCode }), String(lastCode)).toBe(true);
    expect(comesBack({ ...reconnecting, joinedAgain: true, lastCode }), String(lastCode)).toBe(true);
  }
});

test('a page that is too old for the server says so instead of trying for a minute', () => {
  for (const standing of [playing, reconnecting, arriving, { ...reconnecting, restarting: true }]) {
    expect(comesBack({ ...standing, lastCode: 'unsupported_version' })).toBe(false);
    expect(isOutdated({ ...standing, lastCode: 'unsupported_version' })).toBe(true);
    expect(isOutdated(standing)).toBe(false);
  }
});

test('who is shown out of a world stays out, unless the server only stops', () => {
  expect(comesBack(playing)).toBe(false);
  expect(comesBack({ ...playing, lastCode: 'flood' })).toBe(false);
  expect(comesBack({ ...playing, restarting: true, lastCode: 'restarting' })).toBe(true);
});

test('who was never in tries a stale ticket again, once', () => {
  expect(comesBack({ ...arriving, lastCode: 'ticket_expired' })).toBe(true);
  expect(comesBack({ ...arriving, lastCode: 'ticket_expired', joinedAgain: true })).toBe(false);
  expect(comesBack({ ...arriving, lastCode: 'world_full' })).toBe(false);
  expect(comesBack(arriving)).toBe(false);
  expect(hasStaleTicket({ ...arriving, lastCode: 'ticket_used' })).toBe(true);
});

test('a suspension and a world that is gone end the attempts, a busy server does not', () => {
  expect(isFinal(new ApiError(403, 'suspended', 'You are suspended.'))).toBe(true);
  expect(isFinal(new ApiError(404, 'room_not_found', 'There is no such room.'))).toBe(true);
  expect(isFinal(new ApiError(503, 'server_starting', 'Still starting.'))).toBe(false);
  expect(isFinal(new ApiError(409, 'world_full', 'Full.'))).toBe(false);
  expect(isFinal(new Error('the network is down'))).toBe(false);
});
