// The seat of this tab in a world, saved in session storage: after a reload or navigation the same character is resumed
// within a minute. The server decides whether the token is still valid.
import type { JoinRequest } from '../generated/rest';

export interface Place {
  gameId: string;
  worldId: string;
  roomCode: string;
  resumeToken: string;
}

const KEY = 'frolic.place';
/** As long as the server keeps a place. */
const KEPT_MS = 60_000;

type Kept = Place & { at: number };

/** Remembers the place as of now. */
export function keepPlace(place: Place, storage = tabStorage(), now = Date.now()): void {
  try {
    storage?.setItem(KEY, JSON.stringify({ ...place, at: now } satisfies Kept));
  } catch {
    // No room or no permission: the next visit begins anew.
  }
}

/** The place in a world that fits the wish, if it was left less than a minute ago. */
export function keptPlace(gameId: string, wish: JoinRequest, storage = tabStorage(), now = Date.now()): Place | null {
  try {
    const kept: unknown = JSON.parse(storage?.getItem(KEY) ?? 'null');
    if (!isKept(kept) || kept.gameId !== gameId || now - kept.at > KEPT_MS) return null;
    // Whoever follows an invitation wants to be beside a friend, not where they were.
    if (wish.invite) return null;
    if (wish.world_id && wish.world_id !== kept.worldId) return null;
    if (wish.room_code && wish.room_code.toUpperCase() !== kept.roomCode) return null;
    return kept;
  } catch {
    return null;
  }
}

export function forgetPlace(storage = tabStorage()): void {
  try {
    storage?.removeItem(KEY);
  } catch {
    // Nothing was kept.
  }
}

/** What lasts as long as the tab; null where the browser keeps nothing. */
export function tabStorage(): Storage | null {
  try {
    return sessionStorage;
  } catch {
    return null;
  }
}

function isKept(value: unknown): value is Kept {
  if (typeof value !== 'object' || value === null) return false;
  const { gameId, worldId, roomCode, resumeToken, at } = value as Record<string, unknown>;
  return [gameId, worldId, roomCode, resumeToken].every((text) => typeof text === 'string') && typeof at === 'number';
}
