// Events and statistics of the client core as JSON. Their types are generated from crates/client-wasm.

import type { CoreEvent } from '../../generated/CoreEvent';
import type { CoreStats as Stats } from '../../generated/CoreStats';

export type { CoreEvent };
export type { Cast } from '../../generated/Cast';
export type { PlayerInfo } from '../../generated/PlayerInfo';
export type { ScriptEntry } from '../../generated/ScriptEntry';
export type { ScriptManifest } from '../../generated/ScriptManifest';
export type { TickFigures } from '../../generated/TickFigures';
import type { WireValue } from '../../generated/WireValue';
export type { WireValue };

/** Statistics for the debug overlay. Without a connection all are undefined and shown as dashes. */
export type CoreStats = Partial<Stats>;

/** Parses one event; null for an unknown one. */
export function parseEvent(json: string): CoreEvent | null {
  const value: unknown = JSON.parse(json);
  const known = typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string';
  return known ? (value as CoreEvent) : null;
}

/** The value if it is a string, otherwise undefined. */
export const textOf = (value: WireValue | undefined): string => (typeof value === 'string' ? value : '');
