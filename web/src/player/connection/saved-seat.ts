// The seat of this tab in a world, saved in session storage: after a reload or navigation the same character is resumed
// within a minute. The server decides whether the token is still valid.
import type { JoinRequest } from '../../generated/rest';

export interface Place {
  gameId: string;
  worldId: string;
  roomCode: string;
  resumeToken: string;
}

const KEY = 'frolic.place';
/** As long as the server reserves a seat. */
const SAVED_MS = 60_000;

type SavedPlace = Place & { at: number };

/** Saves the seat with the current time. */
export function keepPlace(place: Place, storage = tabStorage(), now = Date.now()): void {
  try {
    storage?.setItem(KEY, JSON.stringify({ ...place, at: now } satisfies SavedPlace));
  } catch {
    // No space or no permission: the next visit starts a new session.
  }
}

/** The seat that matches the request, if it was saved less than a minute ago. */
export function keptPlace(gameId: string, wish: JoinRequest, storage = tabStorage(), now = Date.now()): Place | null {
  try {
    const saved: unknown = JSON.parse(storage?.getItem(KEY) ?? 'null');
    if (!isSaved(saved) || saved.gameId !== gameId || now - saved.at > SAVED_MS) return null;
    // An invitation spawns the player next to a friend, not at the saved seat.
    if (wish.invite) return null;
    if (wish.world_id && wish.world_id !== saved.worldId) return null;
    if (wish.room_code && wish.room_code.toUpperCase() !== saved.roomCode) return null;
    return saved;
  } catch {
    return null;
  }
}

export function forgetPlace(storage = tabStorage()): void {
  try {
    storage?.removeItem(KEY);
  } catch {
    // Nothing was stored.
  }
}

/** Session storage; null where the browser blocks it. */
export function tabStorage(): Storage | null {
  try {
    return sessionStorage;
  } catch {
    return null;
  }
}

function isSaved(value: unknown): value is SavedPlace {
  if (typeof value !== 'object' || value === null) return false;
  const { gameId, worldId, roomCode, resumeToken, at } = value as Record<string, unknown>;
  return [gameId, worldId, roomCode, resumeToken].every((text) => typeof text === 'string') && typeof at === 'number';
}
