// API calls for the user's worlds.
import type { NewWorld, WorldChange, WorldInfo, WorldList } from '../../generated/rest';
import { call } from '../../lib/api';
import { loadSession } from '../../lib/session';

const PER_PAGE = 24;

/** The user's worlds; empty without a session. */
export async function ownWorlds(page: number, signal: AbortSignal): Promise<WorldList> {
  if (!loadSession()) return { worlds: [], total: 0, page: 1, per_page: PER_PAGE };
  return call('GET', '/worlds', { as: 'me', query: { mine: true, page, per_page: PER_PAGE }, signal });
}

export const makeWorld = (wish: NewWorld) => call('POST', '/worlds', { as: 'guest', body: wish });

export const changeWorld = (id: string, change: WorldChange) =>
  call('PATCH', '/world/{id}', { as: 'me', path: { id }, body: change });

export const deleteWorld = (id: string) => call('DELETE', '/world/{id}', { as: 'me', path: { id } });

export const listSaves = (id: string, signal: AbortSignal) =>
  call('GET', '/world/{id}/saves', { as: 'me', path: { id }, query: { per_page: 50 }, signal });

export const saveWorld = (id: string, label: string) =>
  call('POST', '/world/{id}', { as: 'me', path: { id }, body: { label } });

export const goBack = (id: string, saveId: string) =>
  call('POST', '/world/{id}', { as: 'me', path: { id }, body: { restore: saveId } });

export const deleteSave = (id: string, save_id: string) =>
  call('DELETE', '/world/{id}/saves/{save_id}', { as: 'me', path: { id, save_id } });

/** The play path with the room code, which also opens private worlds. */
export const worldPath = (world: WorldInfo): string =>
  `/play/${encodeURIComponent(world.game_id)}?room=${encodeURIComponent(world.room_code)}`;
