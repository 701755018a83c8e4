// API calls for characters, blocks, invitations, reports and notices.
import type { AppealState, Character, CharacterLooks, Decision, Report, ReportStatus } from '../generated/rest';
import { call, download, saveFile } from './api';

export const listCharacters = (signal?: AbortSignal) => call('GET', '/api/characters', { as: 'guest', signal });
export const createCharacter = (name: string, looks: CharacterLooks) =>
  call('POST', '/api/characters', { as: 'guest', body: { name, looks } });
/** Refused when it was edited elsewhere in the meantime. */
export const saveCharacter = ({ character_id, version }: Character, name: string, looks: CharacterLooks) =>
  call('PUT', '/api/characters/{id}', { as: 'me', path: { id: character_id }, body: { name, looks, version } });
export const deleteCharacter = (id: string) => call('DELETE', '/api/characters/{id}', { as: 'me', path: { id } });
export const activateCharacter = (id: string) =>
  call('POST', '/api/characters/{id}/activate', { as: 'me', path: { id } });

export const listBlocks = (page = 1, signal?: AbortSignal) =>
  call('GET', '/api/blocks', { as: 'me', query: { page, per_page: 100 }, signal });
export const block = (user_id: string) => call('PUT', '/api/blocks/{user_id}', { as: 'me', path: { user_id } });
export const unblock = (user_id: string) => call('DELETE', '/api/blocks/{user_id}', { as: 'me', path: { user_id } });

export const createInvite = (world_id: string) => call('POST', '/api/invites', { as: 'me', body: { world_id } });
export const getInvite = (code: string, signal?: AbortSignal) =>
  call('GET', '/api/invites/{code}', { path: { code }, signal });

export const listNotices = (page: number, signal?: AbortSignal) =>
  call('GET', '/api/notices', { as: 'me', query: { page }, signal });
export const seeNotice = (id: string) => call('POST', '/api/notices/{id}/seen', { as: 'me', path: { id } });
export const appeal = (id: string, text: string) =>
  call('POST', '/api/notices/{id}/appeal', { as: 'me', path: { id }, body: { text } });

export const listReports = (status: ReportStatus, page: number, signal?: AbortSignal) =>
  call('GET', '/api/moderation/reports', { as: 'me', query: { status, page }, signal });
export const decideReport = ({ report_id }: Report, decision: Decision) =>
  call('POST', '/api/moderation/reports/{id}/decide', { as: 'me', path: { id: report_id }, body: decision });
/** Saves the recording of a world, for `frolic replay`. */
export const saveRecording = async ({ report_id }: Report, file: string): Promise<void> =>
  saveFile(await download('/api/moderation/reports/{id}/recording', { as: 'me', path: { id: report_id } }), file);
export const listAppeals = (state: AppealState, page: number, signal?: AbortSignal) =>
  call('GET', '/api/moderation/appeals', { as: 'me', query: { state, page }, signal });
export const decideAppeal = (id: string, grant: boolean, answer: string) =>
  call('POST', '/api/moderation/appeals/{id}/decide', { as: 'me', path: { id }, body: { grant, answer } });
export const moderationLog = (page: number, signal?: AbortSignal) =>
  call('GET', '/api/moderation/log', { as: 'me', query: { page, per_page: 50 }, signal });
