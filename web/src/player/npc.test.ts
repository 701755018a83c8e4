// State and suspicion in one number, as the server puts them together.
import { describe, expect, it } from 'vitest';
import { npcMark, npcState, npcSuspicion } from './npc';

describe('the mood of an NPC', () => {
  it('is taken apart as the server puts it together', () => {
    expect(npcState(0)).toBe(null);
    expect(npcState(0x10)).toBe('idle');
    expect(npcState(0x4f)).toBe('chase');
    expect(npcState(0x60)).toBe('return');
    expect(npcState(0xff)).toBe(null);
    expect(npcSuspicion(0x2f)).toBe(1);
    expect(npcSuspicion(0x20)).toBe(0);
  });

  it('shows above the head what players have to know', () => {
    expect([0, 0x10, 0x25, 0x3f, 0x4f, 0x5a, 0x60].map(npcMark)).toEqual(['', '', '?', '!', '!', '?', '']);
  });
});
