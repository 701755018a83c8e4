// Events and figures that the client core gives as JSON.

import type { PlayerInfo } from '../generated/PlayerInfo';
import type { ScriptEntry } from '../generated/ScriptEntry';

export type { PlayerInfo, ScriptEntry };

/** A value on the wire: plain JSON; a vector is {"$v":[x,y,z]}, an entity {"$e":id}. */
export type WireValue = null | boolean | number | string | WireValue[] | { [key: string]: WireValue };

export type CoreEvent =
  | { type: 'welcome'; entityId: number; playerId: number; roomCode?: string; worldId?: string; resumeToken?: string; tickHz?: number }
  | { type: 'scene' }
  | { type: 'definition'; [key: string]: unknown }
  | { type: 'players'; players: PlayerInfo[] }
  | { type: 'scriptManifest'; scripts: ScriptEntry[] }
  | { type: 'scriptWanted'; path: string; hash: string }
  | { type: 'scriptReady'; path: string; hash?: string }
  | { type: 'event'; name: string; args: WireValue[] }
  | { type: 'error'; code: string; message: string }
  | { type: 'kick'; reason: string }
  | { type: 'log'; level?: string; message: string };

/** What the debug overlay shows (NET-11). Missing figures are shown as a dash. */
export interface CoreStats {
  state?: string;
  tick?: number;
  rttMs?: number;
  jitterMs?: number;
  loss?: number;
  inputSeq?: number;
  pendingInputs?: number;
  corrections?: number;
  bytesInPerS?: number;
  bytesOutPerS?: number;
  snapshotAgeMs?: number;
  entities?: number;
}

/** Parses one event; null for something that this page does not know. */
export function parseEvent(json: string): CoreEvent | null {
  const value: unknown = JSON.parse(json);
  const known = typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string';
  return known ? (value as CoreEvent) : null;
}
