// Events and figures that the client core gives as JSON.

import type { NpcState } from '../generated/NpcState';
import type { PlayerInfo } from '../generated/PlayerInfo';
import type { ScriptEntry } from '../generated/ScriptEntry';
import type { ScriptManifest } from '../generated/ScriptManifest';
import type { TickFigures } from '../generated/TickFigures';
import type { Components } from './scene';

export type { PlayerInfo, ScriptEntry, ScriptManifest, TickFigures };

/** A value on the wire: plain JSON; a vector is {"$v":[x,y,z]}, an entity {"$e":id}. */
export type WireValue = null | boolean | number | string | WireValue[] | { [key: string]: WireValue };

/** How a script changed an entity's looks; null is as its definition says. */
export interface Looks {
  color: [number, number, number] | null;
  opacity: number | null;
  scale: [number, number, number] | null;
}

/** A cast as the core tells of it; crates/protocol/src/spell.rs. */
export interface Cast {
  spellId: string;
  revisionId: string;
  caster: number;
  target: [number, number, number];
  params: WireValue[];
  seed: number;
  draws: number;
  answers: WireValue[];
  tick: number;
}

export type CoreEvent =
  | { type: 'welcome'; entityId: number; playerId: string; playerNumber: number; roomCode: string; worldId: string; resumeToken: string; tickHz: number }
  | { type: 'scene' }
  /** How spawned entities of this number look. */
  | { type: 'definition'; index: number; components: Components | null }
  /** Attributes and looks of an entity changed; these are all of them. */
  | { type: 'details'; entity: number; attributes: Record<string, WireValue>; looks: Looks }
  /** Players who came, changed or left; not all of them. */
  | { type: 'players'; players: PlayerInfo[] }
  | { type: 'scriptManifest'; manifest: ScriptManifest }
  /** The list that the manifest names is here and verified. */
  | { type: 'scriptList' }
  | { type: 'scriptVerified'; path: string; hash: string }
  | { type: 'scriptRun'; path: string }
  | { type: 'scriptsReload'; changed: string[]; removed: string[] }
  /** Everything that runs at the start was told to run. */
  | { type: 'scriptsStarted' }
  | { type: 'event'; name: string; args: WireValue[] }
  | { type: 'invokeResult'; id: number; ok: true; values: WireValue[] }
  | { type: 'invokeResult'; id: number; ok: false; error: string }
  /** Where the server's time goes. */
  | { type: 'figures'; figures: TickFigures }
  /** Somebody cast a spell: its code runs here with the same seed. */
  | { type: 'cast'; cast: Cast }
  /** The ground changed within a box. */
  | { type: 'terrain'; min: [number, number, number]; max: [number, number, number] }
  /** `playerId` is empty for the game itself. */
  | { type: 'chat'; from: string; text: string; playerId: string }
  /** How a weapon looks and sounds; also when it changed. */
  | { type: 'weapon'; index: number; name: string; color: [number, number, number]; look: 'tracer' | 'ball' | 'nothing'; radius: number; sound: string }
  /** What a player holds now. */
  | { type: 'armed'; player: number; weapon: number | null }
  /** How the own character is. */
  | { type: 'vitals'; health: number; maxHealth: number; alive: boolean }
  /** A shot begins to be shown. */
  | { type: 'shot'; weapon: number; own: boolean; shooter: number; position: [number, number, number]; velocity: [number, number, number] }
  /** A shot met something; target 0: the server has not said what. */
  | { type: 'impact'; weapon: number; own: boolean; target: number; point: [number, number, number]; normal: [number, number, number] }
  /** An NPC nearby has changed its mind; `target` is the character it minds. */
  | { type: 'npc'; entity: number; before: NpcState; state: NpcState; target: number | null; suspicion: number }
  | { type: 'error'; code: string; message: string }
  | { type: 'kick'; reason: string };

/** What the debug overlay shows (NET-11). Missing figures are shown as a dash. */
export interface CoreStats {
  tick?: number;
  rttMs?: number;
  jitterMs?: number;
  loss?: number;
  inputSeq?: number;
  pendingInputs?: number;
  corrections?: number;
  bytesInPerS?: number;
  bytesOutPerS?: number;
  /** In all, since this connection began. */
  bytesIn?: number;
  /** Of messages about scripts, both ways, in all. */
  scriptBytes?: number;
  /** Version of the scripts that the server runs; rises with every reload. */
  scriptVersion?: number;
  snapshotAgeMs?: number;
  entities?: number;
  lastCorrectionM?: number;
  playbackDelayMs?: number;
}

/** Parses one event; null for something that this page does not know. */
export function parseEvent(json: string): CoreEvent | null {
  const value: unknown = JSON.parse(json);
  const known = typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string';
  return known ? (value as CoreEvent) : null;
}
