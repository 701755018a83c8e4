// State and suspicion packed into one number by the server.
import { describe, expect, it } from 'vitest';
import { npcMark, npcState, npcSuspicion } from './npc';

describe('the mood of an NPC', () => {
  it('is decoded as the server encodes it', () => {
    expect(npcState(0)).toBe(null);
    expect(npcState(0x10)).toBe('idle');
    expect(npcState(0x4f)).toBe('chase');
    expect(npcState(0x60)).toBe('return');
    expect(npcState(0xff)).toBe(null);
    expect(npcSuspicion(0x2f)).toBe(1);
    expect(npcSuspicion(0x20)).toBe(0);
  });

  it('is shown as a mark above the head', () => {
    expect([0, 0x10, 0x25, 0x3f, 0x4f, 0x5a, 0x60].map(npcMark)).toEqual(['', '', '?', '!', '!', '?', '']);
  });
});
