// API calls for the user's worlds.
import type { NewWorld, WorldChange, WorldInfo, WorldList, WorldSave, WorldSaveList } from '../../generated/rest';
import { call } from '../../lib/api';
import { loadSession } from '../../lib/session';

const PER_PAGE = 24;
const path = (worldId: string): string => `/world/${encodeURIComponent(worldId)}`;

/** The user's worlds; empty without a session. */
export async function ownWorlds(page: number, signal: AbortSignal): Promise<WorldList> {
  if (!loadSession()) return { worlds: [], total: 0, page: 1, per_page: PER_PAGE };
  return call<WorldList>('GET', '/worlds', { as: 'me', query: { mine: 'true', page, per_page: PER_PAGE }, signal });
}

export const makeWorld = (wish: NewWorld): Promise<WorldInfo> =>
  call<WorldInfo>('POST', '/worlds', { as: 'guest', body: wish });

export const changeWorld = (worldId: string, change: WorldChange): Promise<WorldInfo> =>
  call<WorldInfo>('PATCH', path(worldId), { as: 'me', body: change });

export const deleteWorld = (worldId: string): Promise<void> => call<void>('DELETE', path(worldId), { as: 'me' });

export const listSaves = (worldId: string, signal: AbortSignal): Promise<WorldSaveList> =>
  call<WorldSaveList>('GET', `${path(worldId)}/saves`, { as: 'me', query: { per_page: 50 }, signal });

export const saveWorld = (worldId: string, label: string): Promise<WorldSave> =>
  call<WorldSave>('POST', path(worldId), { as: 'me', body: { label } });

export const goBack = (worldId: string, saveId: string): Promise<WorldSave> =>
  call<WorldSave>('POST', path(worldId), { as: 'me', body: { restore: saveId } });

export const deleteSave = (worldId: string, saveId: string): Promise<void> =>
  call<void>('DELETE', `${path(worldId)}/saves/${encodeURIComponent(saveId)}`, { as: 'me' });

/** The play path with the room code, which also opens private worlds. */
export const worldPath = (world: WorldInfo): string =>
  `/play/${encodeURIComponent(world.game_id)}?room=${encodeURIComponent(world.room_code)}`;
