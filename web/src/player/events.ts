// Events and figures that the client core gives as JSON. Their types are generated from those in crates/client-wasm.

import type { CoreEvent } from '../generated/CoreEvent';
import type { CoreStats as Stats } from '../generated/CoreStats';

export type { CoreEvent };
export type { Cast } from '../generated/Cast';
export type { Looks } from '../generated/Looks';
export type { PlayerInfo } from '../generated/PlayerInfo';
export type { ScriptEntry } from '../generated/ScriptEntry';
export type { ScriptManifest } from '../generated/ScriptManifest';
export type { TickFigures } from '../generated/TickFigures';
import type { WireValue } from '../generated/WireValue';
export type { WireValue };

/** What the debug overlay shows. Without a connection there are no figures: each is shown as a dash. */
export type CoreStats = Partial<Stats>;

/** Parses one event; null for something that this page does not know. */
export function parseEvent(json: string): CoreEvent | null {
  const value: unknown = JSON.parse(json);
  const known = typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string';
  return known ? (value as CoreEvent) : null;
}

/** A value that should be text; anything else is none. */
export const textOf = (value: WireValue | undefined): string => (typeof value === 'string' ? value : '');
